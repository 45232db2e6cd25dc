//! A job of a cluster, in one process: a member, the workers, and in the first process the dealer.
//!
//! Relies on the [stream engine](crate::stream) for the workers: the member's chunks are a stream like any other, and
//! the dealer keeps their order.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use timely::ExchangeData;

use crate::executor::Executor;
use crate::place::{Chunk, Place};
use crate::stream::{self, Pull};

use super::dealer::{self, panicked};
use super::member::{Answer, Failed, Letter, Lost, Mail, Member, Order, Orders};
use super::spread::{Open, Spread};
use super::{Cluster, ClusterError, sockets};

/// Combines results in the process that made them.
pub(super) type Keep<'a, R> = &'a (dyn Fn(&mut Option<R>, R) + Sync);

/// Puts every chunk of `source` through `work`. Results go to `take` in process 0, or with `keep` are kept in each
/// process; process 0 returns the kept results.
pub(super) fn run<S: Spread, R: ExchangeData + Clone, E: fmt::Display>(
    cluster: &Cluster,
    source: S,
    work: impl Fn(Chunk<S::Data>) -> Result<R, E> + Sync,
    keep: Option<Keep<'_, R>>,
    mut take: impl FnMut(Place, R) -> Result<(), E> + Send,
) -> Result<Vec<R>, ClusterError> {
    let Cluster { addresses, process, executor, patience } = cluster;
    let sockets = sockets::connect(addresses, *process, *patience)?;
    let member = Member::start(sockets, *process);
    let member = member.map_err(|error| ClusterError::Lost(error.to_string()))?;
    let (feed, opener) = source.split(executor);
    let failed = |said: &dyn fmt::Display| format!("failed: {said}");
    let open = |chunk: Chunk<Arrived<S::Sent>>| {
        let Arrived { dealt, sent } = chunk.into_inner();
        let data = opener.open(&dealt, sent).map_err(|said| failed(&said))?;
        work(Chunk::new(dealt, data)).map_err(|error| failed(&error))
    };
    let take = |place, result| take(place, result).map_err(|error| failed(&error));
    let Member { mail, orders, events, leaving } = member;
    let (mail, processes) = (&mail, addresses.len());
    let (over, kept) = thread::scope(|scope| {
        let deal = move || dealer::deal(executor, processes, feed, (mail, &events), take);
        let dealing = (*process == 0).then(|| scope.spawn(deal));
        let over = answer(executor, orders, mail, open, keep);
        (over, dealing.and_then(|dealing| dealing.join().ok().flatten()))
    });
    let lost = |Lost(said)| ClusterError::Lost(said.to_owned());
    leaving.finish().map_err(lost)?;
    match over {
        Some(None) => Ok(kept.unwrap_or_default()),
        Some(Some(failed)) => Err(ClusterError::Chunk { place: failed.place(), said: failed.said }),
        None => Err(lost(Lost("it took no part any more"))),
    }
}

/// A chunk as dealt: its place is the place in all the data.
struct Arrived<D> {
    dealt: Place,
    sent: D,
}

/// Chunks as they come, until the job is over.
struct Incoming<'a, D> {
    orders: Orders<D>,
    /// The end of the job; `None`: not over, or a process is lost.
    over: &'a mut Option<Option<Failed>>,
}

impl<D: Send> Pull for Incoming<'_, D> {
    type Data = Arrived<D>;

    fn pull(&mut self) -> io::Result<Option<(Arrived<D>, u64)>> {
        match self.orders.recv() {
            Ok(Some(Order::Chunk { index, start, end, sent })) => {
                let dealt = Place { index, items: start..end };
                Ok(Some((Arrived { dealt, sent }, end - start)))
            }
            Ok(Some(Order::Over(how))) => {
                *self.over = Some(how);
                Ok(None)
            }
            Ok(None) | Err(_) => Ok(None),
        }
    }
}

/// Works on each chunk and answers it, until the job is over. Returns its end; `None`: a process is
/// lost.
fn answer<D: Send, R: Send, F>(
    executor: &Executor<'_>,
    orders: Orders<D>,
    mail: &Mail<D, R>,
    work: F,
    keep: Option<Keep<'_, R>>,
) -> Option<Option<Failed>>
where
    F: Fn(Chunk<Arrived<D>>) -> Result<R, String> + Sync,
{
    let workers = executor.workers_or_default();
    // One chunk in work and one on its way for each worker.
    let room = 2 * workers;
    mail.send(Letter::Answer(Answer::Ready(room)));
    let (mut over, mut kept) = (None, None);
    let here = executor.clone().unordered().window(room);
    let incoming = Incoming { orders, over: &mut over };
    let work = |chunk: Chunk<Arrived<D>>| {
        let index = chunk.dealt.index;
        // A failure is an answer too, so that the dealer gets every chunk back.
        let made = catch_unwind(AssertUnwindSafe(|| work(chunk)));
        Ok::<_, Infallible>((index, made.unwrap_or_else(|payload| Err(panicked(payload)))))
    };
    let take = |_, (index, made): (u64, Result<R, String>)| {
        let made = made.and_then(|result| match keep {
            None => Ok(Some(result)),
            Some(keep) => catch_unwind(AssertUnwindSafe(|| keep(&mut kept, result)))
                .map(|()| None)
                .map_err(panicked),
        });
        mail.send(Letter::Answer(Answer::Made(index, made)));
        Ok(())
    };
    // Nothing can fail here: panics are caught above.
    let _ = stream::deliver(&here, incoming, work, take);
    mail.send(Letter::Answer(Answer::Last(kept)));
    over
}
