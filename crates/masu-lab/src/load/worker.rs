//! What each connection does during a burst.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::TryAcquireError;

use super::Burst;
use super::connection::{Connection, Failure};
use super::schedule::Pace;

/// How long a worker rests after it was refused, so that it does not hammer a server that is gone.
const AFTER_REFUSAL: Duration = Duration::from_millis(10);

/// How long after the window the last requests that were due in it may be sent.
const SLACK: Duration = Duration::from_millis(10);

/// Asks until the burst is over, and returns the connection.
pub(super) async fn work(burst: Arc<Burst>, connection: Connection, index: usize) -> Connection {
    match burst.plan.pace {
        Pace::Closed => closed(&burst, connection, index).await,
        Pace::Open { .. } => open(&burst, connection, index).await,
    }
}

async fn closed(burst: &Burst, mut connection: Connection, index: usize) -> Connection {
    let mut turn = index;
    loop {
        let began = burst.began.elapsed();
        if began >= burst.window {
            return connection;
        }
        ask(burst, &mut connection, turn, began).await;
        turn += 1;
    }
}

/// What is due, as soon as it is due or this connection is free.
async fn open(burst: &Burst, mut connection: Connection, index: usize) -> Connection {
    let mut turn = index;
    // What the server has not answered long after the window never will be in time.
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

/// One request; `since` is when its latency begins, counted from the beginning of the burst.
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
