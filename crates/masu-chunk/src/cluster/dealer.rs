//! The dealer, in the first process: it cuts the data, deals chunks to the process that has room,
//! takes the results, and ends the job.
//!
//! Relies on the members to move things. The hard part is the set of open chunks: a chunk is dealt only within a
//! member's room and the window, and each comes back exactly once, as a result or as a failure. After the first failure
//! the dealer deals nothing more and waits for every open chunk, so the failure that it reports is the first in the
//! order of the data.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Receiver;

use crate::executor::Executor;
use crate::failure::Cause;
use crate::place::Place;
use crate::stream::Pull;

use super::member::{Answer, Event, Failed, Letter, Mail, Order};

/// Deals all of `feed`. `take` gets the results that members did not keep; the kept ones are
/// returned. `None`: a process is lost.
pub(super) fn deal<P: Pull, R>(
    executor: &Executor<'_>,
    processes: usize,
    feed: P,
    (mail, events): (&Mail<P::Data, R>, &Receiver<Event<R>>),
    take: impl FnMut(Place, R) -> Result<(), String>,
) -> Option<Vec<R>> {
    let mut dealer = Dealer {
        feed: Some(feed),
        mail,
        take,
        executor,
        free: vec![0; processes],
        room: 0,
        absent: processes,
        open: BTreeMap::new(),
        ready: BTreeMap::new(),
        next: 0,
        items: 0,
        delivered: 0,
        failed: None,
    };
    let (mut kept, mut left) = (Vec::new(), processes);
    let mut is_over = false;
    while left > 0 {
        dealer.deal();
        if !is_over && dealer.has_nothing_left() {
            is_over = true;
            for process in 0..processes {
                mail.send(Letter::Order(process, Order::Over(dealer.failed.clone())));
            }
            mail.send(Letter::AllDealt);
        }
        match events.recv() {
            Ok(Event::Answer(from, Answer::Ready(room))) => {
                dealer.free[from] = room;
                dealer.room += room;
                dealer.absent -= 1;
            }
            Ok(Event::Answer(from, Answer::Made(index, made))) => {
                dealer.free[from] += 1;
                dealer.made(index, made);
            }
            Ok(Event::Answer(_, Answer::Last(value))) => {
                kept.extend(value);
                left -= 1;
            }
            Ok(Event::Lost) | Err(_) => return None,
        }
    }
    Some(kept)
}

struct Dealer<'a, P: Pull, R, T> {
    /// `None` at the end of the data.
    feed: Option<P>,
    mail: &'a Mail<P::Data, R>,
    take: T,
    executor: &'a Executor<'a>,
    /// The free room of each member, in chunks.
    free: Vec<usize>,
    room: usize,
    /// Members that have not reported yet.
    absent: usize,
    /// Chunks that were dealt and have not come back.
    open: BTreeMap<u64, Place>,
    ready: BTreeMap<u64, (Place, R)>,
    /// The next chunk, and its first item.
    next: u64,
    items: u64,
    /// Results taken or kept; in order, the next to be taken.
    delivered: u64,
    failed: Option<Failed>,
}

impl<P: Pull, R, T: FnMut(Place, R) -> Result<(), String>> Dealer<'_, P, R, T> {
    /// Deals while there is room, once all members are there; sooner, all would go to the first.
    fn deal(&mut self) {
        if self.absent > 0 {
            return;
        }
        while self.failed.is_none() && self.next < self.delivered.saturating_add(self.window()) {
            // The emptiest first, so that each member gets its share of little data.
            let room = |process: &usize| self.free[*process];
            let Some(to) = (0..self.free.len()).max_by_key(room) else { return };
            let Some(feed) = self.feed.as_mut().filter(|_| self.free[to] > 0) else { return };
            let pulled = catch_unwind(AssertUnwindSafe(|| feed.pull()));
            let (index, start) = (self.next, self.items);
            let said = match pulled {
                Ok(Ok(Some((sent, count)))) => {
                    self.next += 1;
                    self.items += count;
                    self.free[to] -= 1;
                    let place = Place { index, items: start..self.items };
                    self.mail.send(Letter::Order(to, Order::chunk(&place, sent)));
                    self.open.insert(index, place);
                    continue;
                }
                Ok(Ok(None)) => return self.feed = None,
                Ok(Err(error)) => format!("cannot be read: {error}"),
                Err(payload) => panicked(payload),
            };
            self.fail(Failed::new(&Place { index, items: start..start }, said));
        }
    }

    fn window(&self) -> u64 {
        self.executor.window_or(2 * self.room) as u64
    }

    /// Whether nothing more will be dealt and every open chunk came back.
    fn has_nothing_left(&self) -> bool {
        (self.feed.is_none() || self.failed.is_some()) && self.open.is_empty()
    }

    /// Takes back a chunk.
    fn made(&mut self, index: u64, made: Result<Option<R>, String>) {
        let Some(place) = self.open.remove(&index) else { return };
        match made {
            Ok(Some(result)) => {
                self.ready.insert(index, (place, result));
                self.take_ready();
            }
            Ok(None) => self.delivered += 1,
            Err(said) => self.fail(Failed::new(&place, said)),
        }
    }

    /// Takes the results whose turn it is; in order, also after a failure, up to the failure.
    fn take_ready(&mut self) {
        let in_order = self.executor.in_order();
        while let Some(entry) = self.ready.first_entry() {
            let is_before = self.failed.as_ref().is_none_or(|failed| *entry.key() < failed.index);
            let is_next = !in_order || *entry.key() == self.delivered;
            if !is_before || !is_next {
                return;
            }
            let (place, result) = entry.remove();
            self.delivered += 1;
            let take = AssertUnwindSafe(|| (self.take)(place.clone(), result));
            if let Err(said) = catch_unwind(take).unwrap_or_else(|payload| Err(panicked(payload))) {
                self.fail(Failed::new(&place, said));
            }
        }
    }

    fn fail(&mut self, failed: Failed) {
        if self.failed.as_ref().is_none_or(|before| failed.index < before.index) {
            self.failed = Some(failed);
        }
    }
}

pub(super) fn panicked(payload: Box<dyn std::any::Any + Send>) -> String {
    let cause = Cause::<String>::Panic(payload);
    format!("panicked: {}", cause.panic_message().unwrap_or("without words"))
}
