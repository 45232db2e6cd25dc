//! The progress of a comparison, on standard error: a bar with the time left on a terminal, else a few plain lines.
//!
//! The lab calls only between runs, so nothing is drawn while a run is timed; for the same reason the bar has no
//! ticking thread. Warm-ups are not timed: if one takes long, a line names the step that is still running.

use std::cell::RefCell;
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use masu_lab::compare::Event;
use masu_lab::report::{about, notice, visible};
use masu_lab::results::LeftOut;

use crate::notices;

/// Plain output divides the work into this many parts and reports each.
const PLAIN_STEPS: usize = 4;

/// A plain line is not worth printing with less time left than this.
const WORTH_TELLING: Duration = Duration::from_secs(5);

/// The time after which a line says that masu waits for a program of unknown duration.
const PATIENCE: Duration = Duration::from_secs(5);

/// The receiver of the lab's events.
pub(crate) struct Progress {
    /// One line of a terminal, redrawn; none for a file or a pipe, which gets few lines.
    bar: Option<ProgressBar>,
    began: Instant,
    waiting: RefCell<Option<Waiting>>,
    /// Advice about a warm-up that does not end, besides Ctrl-C: only options that the command has.
    advice: &'static str,
}

impl Progress {
    /// The form that fits standard error, for a command with this `advice` about a warm-up that does not end.
    pub(crate) fn on_stderr(advice: &'static str) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:24} {wide_msg}");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style.progress_chars("━╸ "));
            bar
        });
        Self { bar, began: Instant::now(), waiting: RefCell::default(), advice }
    }

    pub(crate) fn observe(&self, event: &Event<'_>) {
        let mut waiting = None;
        match event {
            Event::WarmUp { case, variant, is_server, has_hooks, done, of } => {
                let what = format!("warming up {case}: {}", variant.label);
                self.draw(*done, Some(*of), Duration::ZERO, &what);
                let line = slow_warm_up(&variant.label, *is_server, *has_hooks, self.advice);
                waiting = Some(Waiting::new(PATIENCE, self.bar.clone(), line));
            }
            Event::LeftOut { case, left_out: LeftOut { label, reason } } => {
                self.say(&format!("{case}: going on without {label}: {reason}"));
            }
            Event::Planned { runs, estimate, resumed } => {
                announced(*runs, *estimate, *resumed).iter().for_each(|line| self.say(line));
            }
            Event::Running { case, variant, done, of, remaining } => {
                let left = format!("{} left", about(*remaining));
                self.draw(*done, *of, *remaining, &format!("{left}, {case}: {}", variant.label));
                let due = of.filter(|of| is_step(*done, *of) && *remaining > WORTH_TELLING);
                if let Some(of) = due.filter(|_| self.bar.is_none()) {
                    self.say(&format!("{done} of {of} runs done, {left}"));
                }
            }
            _ => {}
        }
        self.waiting.replace(waiting);
    }

    fn draw(&self, done: usize, of: Option<usize>, remaining: Duration, message: &str) {
        // A user's value may hold what steers a terminal.
        let message = format!("{}  {}", drawn(done, of), visible(message));
        let Some(bar) = &self.bar else { return };
        let spent = self.began.elapsed();
        // Where time ends the runs, their number is not known.
        let by_time = (spent.as_secs(), (spent + remaining).as_secs().max(1));
        let (position, length) = of.map_or(by_time, |of| (done as u64, of as u64));
        bar.set_length(length);
        bar.set_position(position);
        bar.set_message(message);
        bar.tick();
    }

    /// Says `line`, above the bar where there is one.
    pub(crate) fn say(&self, line: &str) {
        say_above(self.bar.as_ref(), line);
    }

    /// Removes the bar, so that it does not stay on the screen.
    pub(crate) fn finish(&self) {
        self.waiting.take();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The number beside the bar.
fn drawn(done: usize, of: Option<usize>) -> String {
    match of {
        Some(of) => format!("{done:>3} of {of}"),
        None => format!("{done:>3} done"),
    }
}

fn say_above(bar: Option<&ProgressBar>, line: &str) {
    match bar {
        Some(bar) => bar.suspend(|| notices::say(notice(line))),
        None => notices::say(notice(line)),
    }
}

/// The line about a step that takes long. It may still be at a command before the program, which has no limit.
fn slow_warm_up(label: &str, is_server: bool, has_hooks: bool, advice: &str) -> String {
    let seconds = PATIENCE.as_secs();
    let what = if is_server { "the server" } else { "the warm-up" };
    let (before, advice) = match (has_hooks, is_server) {
        (true, _) => (", or a command before it (--setup, --prepare)", ""),
        (false, true) => ("", ""),
        (false, false) => ("", advice),
    };
    let line = format!(
        "Waiting for {what} under `{label}`{before}, {seconds} s so far; Ctrl-C ends it. {advice}"
    );
    line.trim_end().to_owned()
}

/// Says a line after a while, unless it is dropped before.
pub(crate) struct Waiting {
    /// The waiting thread ends when this is dropped.
    _until: Sender<()>,
}

impl Waiting {
    /// Says `line` above `bar` once this much time has passed.
    pub(crate) fn new(after: Duration, bar: Option<ProgressBar>, line: String) -> Self {
        let (until, is_over) = mpsc::channel();
        thread::spawn(move || {
            if is_over.recv_timeout(after) == Err(RecvTimeoutError::Timeout) {
                say_above(bar.as_ref(), &line);
            }
        });
        Self { _until: until }
    }
}

/// The progress of a program that is not timed: a clock on a terminal, and after a while a line about the wait.
pub(crate) struct Ticking {
    clock: Option<ProgressBar>,
    _waiting: Waiting,
}

impl Ticking {
    /// Says that the program still runs, and `what_to_do`.
    pub(crate) fn on_stderr(what_to_do: &str) -> Self {
        /// The clock shows seconds.
        const TICK: Duration = Duration::from_millis(500);
        let clock = io::stderr().is_terminal().then(|| {
            let clock = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} {elapsed}");
            clock.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            clock.enable_steady_tick(TICK);
            clock
        });
        let line = format!("It still runs, {} s so far. {what_to_do}", PATIENCE.as_secs());
        Self { _waiting: Waiting::new(PATIENCE, clock.clone(), line), clock }
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        if let Some(clock) = &self.clock {
            clock.finish_and_clear();
        }
    }
}

/// True if run `done` of `of` is the first past another part of the whole.
fn is_step(done: usize, of: usize) -> bool {
    done > 0 && done < of && done * PLAIN_STEPS / of > (done - 1) * PLAIN_STEPS / of
}

/// The announcement of the timed runs.
fn announced(runs: Option<usize>, estimate: Duration, resumed: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if resumed > 0 {
        lines.push(format!("{} there already.", some(resumed, "run is", "runs are")));
        if runs == Some(0) {
            return lines;
        }
    }
    let text = match runs {
        Some(runs) => format!("{}, {}", some(runs, "run", "runs"), about(estimate)),
        None => format!("As many runs as it takes, at most {}", about(estimate)),
    };
    lines.push(format!("{text}; Ctrl-C ends early and shows what there is."));
    lines
}

fn some(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::{drawn, is_step, slow_warm_up};

    #[test]
    fn a_long_wait_advises_only_what_ends_it() {
        let said =
            |is_server, has_hooks, advice| slow_warm_up("masu", is_server, has_hooks, advice);
        let limit = "--timeout 60s is its limit.";
        let alone = "Waiting for the warm-up under `masu`, 5 s so far; Ctrl-C ends it.";
        assert_eq!(said(false, false, limit), format!("{alone} {limit}"));
        assert_eq!(said(false, false, ""), alone);
        assert_eq!(said(true, false, limit), alone.replace("warm-up", "server"));
        let hook = said(false, true, limit);
        assert!(hook.contains("(--setup, --prepare)") && !hook.contains("--timeout"), "{hook}");
    }

    #[test]
    fn a_whole_that_is_not_known_has_no_number() {
        assert_eq!(drawn(4, Some(9)), "  4 of 9");
        assert_eq!(drawn(4, None), "  4 done");
    }

    #[test]
    fn plain_output_tells_of_each_quarter_once() {
        let steps: Vec<usize> = (0..=100).filter(|done| is_step(*done, 100)).collect();
        assert_eq!(steps, [25, 50, 75]);
        assert_eq!((0..=3).filter(|done| is_step(*done, 3)).count(), 2);
    }
}
