//! A server as its allocator sees it: requests are read into strings, vectors and maps, answers grow piece by
//! piece, sessions outlive many requests, and one answer in four is dropped by another thread.
//!
//! No network and no file: requests are made here. The work of a request does not depend on other threads, which
//! keeps the checksum the same; and no thread waits for another before the end, because that would measure the kernel
//! more than the allocator.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use crate::collections::Words;
use crate::random::{Random, mix};
use crate::work::Work;

/// Sessions of a thread that are live at once.
const SESSIONS: usize = 1000;

struct Session {
    user: String,
    visited: Vec<Box<str>>,
}

struct Request {
    path: Vec<String>,
    headers: Words,
}

struct Answer {
    session: Arc<Session>,
    body: String,
}

impl Answer {
    fn digest(&self) -> u64 {
        let text: u64 = self.body.bytes().map(u64::from).sum();
        mix(text.wrapping_add(self.session.user.len() as u64))
    }
}

/// A request's text of some 150 to 400 bytes.
fn written(random: &mut Random, user: usize) -> String {
    let mut text = String::new();
    let depth = 2 + random.below(4);
    // Writing to a string cannot fail.
    let _ = write!(text, "GET /users/{user}");
    for _ in 0..depth {
        let _ = write!(text, "/part-{}", random.below(1000));
    }
    text.push('\n');
    for header in 0..3 + random.below(6) {
        let _ = writeln!(text, "x-header-{header}: value {} of it", random.bits());
    }
    text
}

fn parsed(text: &str) -> Request {
    let mut lines = text.lines();
    let line = lines.next().unwrap_or_default();
    let path = line.split('/').skip(1).map(str::to_owned).collect();
    let split = |line: &str| {
        let (name, value) = line.split_once(": ")?;
        Some((name.to_ascii_lowercase(), value.to_owned()))
    };
    Request { path, headers: lines.filter_map(split).collect() }
}

fn answered(request: &Request, session: &Arc<Session>) -> Answer {
    let mut body = String::new();
    let mut ordered: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, value) in &request.headers {
        ordered.insert(name, value);
    }
    let _ = write!(body, "hello {}, you asked for", session.user);
    for part in &request.path {
        let _ = write!(body, " {part}");
    }
    for (name, value) in ordered {
        let _ = write!(body, "\n{name} = {value}");
    }
    for place in &session.visited {
        body.push('\n');
        body.push_str(place);
    }
    Answer { session: Arc::clone(session), body }
}

/// Answers in one batch, and the most batches on their way at once.
const BATCH: usize = 16;
const BATCHES: usize = 64;

/// The channel to a thread's next neighbor, and the one from the thread before.
struct Neighbors {
    next: SyncSender<Vec<Answer>>,
    before: Receiver<Vec<Answer>>,
}

impl Neighbors {
    /// Hands answers on, and drops those for which there is no room together with those received. Returns the
    /// checksum of the answers dropped here.
    fn exchange(&self, answers: &mut Vec<Answer>) -> u64 {
        let batch = std::mem::replace(answers, Vec::with_capacity(BATCH));
        let back = match self.next.try_send(batch) {
            Ok(()) => None,
            Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => Some(batch),
        };
        let taken = back.into_iter().chain(self.before.try_iter());
        taken.flatten().fold(0, |sum, answer| sum.wrapping_add(answer.digest()))
    }

    /// Drops the answers that still come, until the thread before is at its end too.
    fn end(self) -> u64 {
        drop(self.next);
        let answers = self.before.into_iter().flatten();
        answers.fold(0, |sum, answer| sum.wrapping_add(answer.digest()))
    }
}

/// A session with one more place visited; it starts again now and then.
fn visited(before: Option<Arc<Session>>, user: usize, place: &str) -> Arc<Session> {
    let kept = before.filter(|session| session.visited.len() < 8);
    let mut visited: Vec<Box<str>> =
        kept.as_ref().map(|session| session.visited.clone()).unwrap_or_default();
    visited.push(place.into());
    let name = kept.map_or_else(|| format!("user-{user}"), |session| session.user.clone());
    Arc::new(Session { user: name, visited })
}

/// One thread's server: its requests, its sessions, and the answers that it hands on.
fn serve(seed: u64, ops: u64, neighbors: Neighbors) -> u64 {
    let mut random = Random::new(seed);
    let mut sessions: Vec<Option<Arc<Session>>> = (0..SESSIONS).map(|_| None).collect();
    let mut answers = Vec::with_capacity(BATCH);
    let mut sum = 0_u64;
    for op in 0..ops {
        let user = random.below(SESSIONS);
        let request = parsed(&written(&mut random, user));
        let last = request.path.last().map(String::as_str).unwrap_or_default();
        let session = visited(sessions[user].take(), user, last);
        let answer = answered(&request, &session);
        sessions[user] = Some(session);
        sum = sum.wrapping_add(answer.digest());
        if op % 4 == 0 {
            answers.push(answer);
        }
        if answers.len() == BATCH {
            sum = sum.wrapping_add(neighbors.exchange(&mut answers));
        }
    }
    sum.wrapping_add(neighbors.exchange(&mut answers)).wrapping_add(neighbors.end())
}

/// Threads that serve, each of which hands answers on to the next. One operation is one request.
pub fn requests(work: Work) -> u64 {
    let (mut senders, receivers): (Vec<_>, Vec<_>) =
        (0..work.threads).map(|_| sync_channel(BATCHES)).unzip();
    senders.rotate_left(1);
    thread::scope(|scope| {
        let ways = senders.into_iter().zip(receivers);
        let servers: Vec<_> = (0..work.threads)
            .zip(ways)
            .map(|(thread, (next, before))| {
                let (seed, ops) = (mix(work.seed.wrapping_add(thread)), work.share(thread));
                scope.spawn(move || serve(seed, ops, Neighbors { next, before }))
            })
            .collect();
        let sums = servers.into_iter().map(|thread| thread.join().unwrap_or_default());
        sums.fold(0, u64::wrapping_add)
    })
}
