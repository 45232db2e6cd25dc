//! A process's member: one thread that runs timely, carries orders from the dealer to the local
//! workers and answers back, and notices a lost process.
//!
//! Relies on timely. The hard part is the lost process. Timely's threads then panic in every
//! process that is left; that is caught and becomes an error. (A program built with
//! `panic = "abort"` ends at once, with timely's message.)

use std::io;
use std::mem::ManuallyDrop;
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use timely::communication::allocator::ProcessBuilder;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::{AllocatorBuilder, Hooks};
use timely::dataflow::InputHandle;
use timely::dataflow::operators::vec::Map;
use timely::dataflow::operators::{Exchange, Input, Probe};
use timely::worker::Worker;
use timely::{ExchangeData, WorkerConfig};

use crate::place::Place;

/// An order of the dealer to a member.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Order<D> {
    /// A chunk to work on.
    Chunk { index: u64, start: u64, end: u64, sent: D },
    /// No more orders follow: the job is done, or this failed.
    Over(Option<Failed>),
}

impl<D> Order<D> {
    pub(super) fn chunk(Place { index, items }: &Place, sent: D) -> Self {
        Self::Chunk { index: *index, start: items.start, end: items.end, sent }
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Failed {
    pub(super) index: u64,
    start: u64,
    end: u64,
    pub(super) said: String,
}

impl Failed {
    pub(super) fn new(Place { index, items }: &Place, said: String) -> Self {
        Self { index: *index, start: items.start, end: items.end, said }
    }

    pub(super) fn place(&self) -> Place {
        Place { index: self.index, items: self.start..self.end }
    }
}

/// An answer of a member to the dealer.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Answer<R> {
    /// The member is there, with room for so many chunks.
    Ready(usize),
    /// The result of this chunk, kept there or sent along, or its failure.
    Made(u64, Result<Option<R>, String>),
    /// The member is done; its combined results.
    Last(Option<R>),
}

/// A message to the local member, to be sent on.
pub(super) enum Letter<D, R> {
    /// From the dealer to this process.
    Order(usize, Order<D>),
    AllDealt,
    /// To the dealer.
    Answer(Answer<R>),
}

/// The sending end of a member's mailbox: it wakes the member for each letter.
pub(super) struct Mail<D, R> {
    letters: Mutex<Sender<Letter<D, R>>>,
    member: Arc<OnceLock<Thread>>,
}

impl<D, R> Mail<D, R> {
    pub(super) fn send(&self, letter: Letter<D, R>) {
        // A lost member has already reported that.
        let _ = self.letters.lock().unwrap_or_else(PoisonError::into_inner).send(letter);
        // A member that has not started yet reads its letters before it sleeps.
        if let Some(member) = self.member.get() {
            member.unpark();
        }
    }
}

/// The orders for a process's workers. `None`: a process is lost.
pub(super) type Orders<D> = Receiver<Option<Order<D>>>;

/// A process is lost.
pub(super) struct Lost(pub(super) &'static str);

/// The interval at which a waiting member checks the connections.
const LOOK: Duration = Duration::from_millis(50);

/// Closes the connections at the end.
type Closing = Box<dyn FnOnce() -> Result<(), Lost>>;

/// A message to the dealer.
pub(super) enum Event<R> {
    /// From this process.
    Answer(usize, Answer<R>),
    /// A process is lost.
    Lost,
}

/// The member of this process, as its workers see it.
pub(super) struct Member<D, R> {
    pub(super) mail: Mail<D, R>,
    pub(super) orders: Orders<D>,
    /// The events for the dealer; none in other processes.
    pub(super) events: Receiver<Event<R>>,
    pub(super) leaving: Leaving,
}

/// The shutdown of a member.
pub(super) struct Leaving {
    ended: Receiver<Result<(), ()>>,
    closing: Closing,
}

/// The ends of a member's channels, on its thread.
struct Ends<D, R> {
    letters: Receiver<Letter<D, R>>,
    orders: Sender<Option<Order<D>>>,
    events: Sender<Event<R>>,
}

impl<D: ExchangeData + Clone, R: ExchangeData + Clone> Member<D, R> {
    /// Takes part, over these connections.
    pub(super) fn start(sockets: Vec<Option<TcpStream>>, process: usize) -> io::Result<Self> {
        let builders = ProcessBuilder::new_typed_vector(1, Hooks::default().refill, None);
        let hooks = Hooks::default();
        let (builders, guard) =
            initialize_networking_from_sockets(builders, sockets, process, 1, hooks)?;
        let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
        let (letters, its_letters) = mpsc::channel();
        let (its_orders, orders) = mpsc::channel();
        let (its_events, events) = mpsc::channel();
        let (its_end, ended) = mpsc::channel();
        let thread = Arc::new(OnceLock::new());
        let ends = Ends { letters: its_letters, orders: its_orders, events: its_events };
        // Timely takes a function that several threads could call; one calls it, once.
        let ends = Mutex::new(Some((ends, its_end)));
        let member = Arc::clone(&thread);
        let run = move |worker: &mut Worker| {
            let taken = ends.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some((ends, its_end)) = taken else { return };
            let _ = member.set(thread::current());
            let ended = carry(worker, process, &ends);
            if ended.is_ok() {
                let _ = its_end.send(Ok(()));
                return;
            }
            let _ = ends.orders.send(None);
            let _ = ends.events.send(Event::Lost);
            let _ = its_end.send(Err(()));
            // Timely would go on, panic, and panic again during that, which aborts.
            loop {
                thread::park();
            }
        };
        let config = WorkerConfig::default();
        let members = timely::execute::execute_from(builders, Box::new(()), config, run);
        let members = members.map_err(io::Error::other)?;
        let closing = Box::new(|| {
            let closed = catch_unwind(AssertUnwindSafe(|| {
                drop(members);
                drop(guard);
            }));
            closed.map_err(|_| Lost("its connection broke when the job was done"))
        });
        let mail = Mail { letters: Mutex::new(letters), member: thread };
        Ok(Self { mail, orders, events, leaving: Leaving { ended, closing } })
    }
}

impl Leaving {
    /// Waits until every process is done, and leaves.
    pub(super) fn finish(self) -> Result<(), Lost> {
        if let Ok(Ok(())) = self.ended.recv() {
            return (self.closing)();
        }
        // Dropping this would wait for threads that never end, or panic.
        std::mem::forget(self.closing);
        Err(Lost("its connection broke before the job was done"))
    }
}

/// Runs a step of timely, which panics when a process is lost.
fn alive<T>(body: impl FnOnce() -> T) -> Result<T, ()> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|_| ())
}

/// Sends letters and receives orders and answers until every process is done. `Err`: a process is
/// lost.
fn carry<D, R>(worker: &mut Worker, process: usize, ends: &Ends<D, R>) -> Result<(), ()>
where
    D: ExchangeData + Clone,
    R: ExchangeData + Clone,
{
    // Not dropped when a process is lost: they would send what they hold, panic, and do so during a
    // panic.
    let mut dealt = ManuallyDrop::new(InputHandle::<u64, _>::new());
    let mut answered = ManuallyDrop::new(InputHandle::<u64, _>::new());
    let (orders, events) = (ends.orders.clone(), ends.events.clone());
    let (all_dealt, all_answered) = worker.dataflow(|scope| {
        // Passed through an operator that only forwards, because an input holds part of the data back
        // until its time advances. A process that listens no more has all it needs.
        let dealt = scope.input_from(&mut *dealt).container::<Vec<(u64, Order<D>)>>();
        let dealt = dealt.map(|order| order).exchange(|(to, _)| *to);
        let dealt = dealt.map(move |(_, order)| drop(orders.send(Some(order)))).probe();
        let answers = scope.input_from(&mut *answered).container::<Vec<(u64, Answer<R>)>>();
        let hear = move |(from, answer)| drop(events.send(Event::Answer(from as usize, answer)));
        let answers = answers.map(|answer| answer).exchange(|_| 0).map(hear).probe();
        (dealt.0, answers.0)
    });
    if process > 0 {
        alive(|| dealt.advance_to(1))?;
    }
    while all_dealt.less_than(&1) || all_answered.less_than(&1) {
        while let Ok(letter) = ends.letters.try_recv() {
            match letter {
                Letter::Order(to, order) => alive(|| dealt.send((to as u64, order)))?,
                Letter::AllDealt => alive(|| dealt.advance_to(1))?,
                Letter::Answer(answer) => {
                    let is_last = matches!(answer, Answer::Last(_));
                    alive(|| answered.send((process as u64, answer)))?;
                    if is_last {
                        alive(|| answered.advance_to(1))?;
                    }
                }
            }
        }
        alive(|| dealt.flush())?;
        alive(|| answered.flush())?;
        // With a time limit: a lost connection wakes nobody, but the next step notices it.
        alive(|| worker.step_or_park(Some(LOOK)))?;
    }
    // Every process is done: nothing is left to send.
    ManuallyDrop::into_inner(dealt).close();
    ManuallyDrop::into_inner(answered).close();
    Ok(())
}
