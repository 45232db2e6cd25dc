//! The work of each connection during a burst.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::TryAcquireError;

use super::Burst;
use super::connection::{Connection, Failure};
use super::schedule::Pace;

/// The rest of a worker after a refusal, so that it does not hammer a server that is gone.
const AFTER_REFUSAL: Duration = Duration::from_millis(10);

/// The time after the window in which the last requests that were due in the window may be sent.
const SLACK: Duration = Duration::from_millis(10);

/// Sends requests until the burst is over, and returns the connection.
pub(super) async fn work(burst: Arc<Burst>, connection: Connection, index: usize) -> Connection {
    match burst.plan.pace {
        Pace::Closed => closed(&burst, connection, index).await,
        Pace::Open { .. } => open(&burst, connection, index).await,
    }
}

async fn closed(burst: &Burst, mut connection: Connection, index: usize) -> Connection {
    let mut turn = index;
    loop {
        // One request in any case: on a busy machine a short window may be over before the first one.
        let began = burst.began.elapsed();
        ask(burst, &mut connection, turn, began).await;
        turn += 1;
        if burst.began.elapsed() >= burst.window {
            return connection;
        }
    }
}

/// Sends each request as soon as it is due and this connection is free.
async fn open(burst: &Burst, mut connection: Connection, index: usize) -> Connection {
    let mut turn = index;
    // Requests that the server has not answered long after the window will never be answered in time.
    let last = burst.window + burst.plan.timeout.min(burst.window);
    loop {
        let was_free = match burst.released.try_acquire() {
            Ok(permit) => {
                permit.forget();
                false
            }
            Err(TryAcquireError::NoPermits) => match burst.released.acquire().await {
                Ok(permit) => {
                    permit.forget();
                    true
                }
                Err(_) => return connection,
            },
            Err(TryAcquireError::Closed) => return connection,
        };
        let Some(due) = burst.take_due() else { return connection };
        let now = burst.began.elapsed();
        if now > last {
            burst.tally().never_sent(now.saturating_sub(due));
            // There may be millions of these, and a worker that never waits cannot be ended.
            tokio::task::yield_now().await;
            continue;
        }
        if now > burst.window + SLACK {
            burst.tally().behind();
        }
        if was_free {
            burst.tally().late(now.saturating_sub(due));
        }
        ask(burst, &mut connection, turn, due).await;
        turn += 1;
    }
}

/// Sends one request; its latency counts from `since`, measured from the beginning of the burst.
async fn ask(burst: &Burst, connection: &mut Connection, turn: usize, since: Duration) {
    let target = &burst.plan.targets[turn % burst.plan.targets.len()];
    let asked = tokio::time::timeout(burst.plan.timeout, connection.ask(target)).await;
    let outcome = asked.unwrap_or(Err(Failure::TimedOut));
    let now = burst.began.elapsed();
    burst.tally().note(outcome, now.saturating_sub(since), now <= burst.window);
    if outcome == Err(Failure::Refused) {
        tokio::time::sleep(AFTER_REFUSAL).await;
    }
}
