//! The screen of `masu top`: keys in, figures out.
//!
//! [`Canvas`] restores the terminal however this ends. Bold and reversed text show on every terminal.

mod canvas;

use std::io;
use std::time::{Duration, Instant};

use anstyle::Style;
use console::Key;
use masu_lab::process::{Observation, Observer};
use masu_lab::terminal::{self, Wait};
use masu_lab::{Error as LabError, Stop};

use self::canvas::{Canvas, Line, Size};
use super::table::{self, Table};

/// The longest time between two checks for keys and signals.
const PATIENCE: Duration = Duration::from_millis(200);
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3600);

const KEYS: &str = "c classes  t threads  < > sort  r turn  + - pace  space hold  ? keys  q end";
const HELP: &[&str] = &[
    "c, t           size classes, thread caches",
    "<, >           sort by the column to the left, to the right (or the arrows)",
    "r              sort the other way round",
    "up, down, j, k a line on; PgUp, PgDn a page; Home, End",
    "+, -           look twice as often, half as often",
    "space          hold still, go on",
    "?              this page, and back",
    "q, Ctrl-C      end",
    "",
    "live: handed out. cached: free, in caches of threads or on the way between",
    "them. free: in pages. waste: bytes of a class's pages that are not live.",
    "slow: calls that a cache could not serve. remote: freed by threads of others.",
];

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().bold();
const REVERSED: Style = Style::new().invert();

/// The heights of a point of a curve, from nothing to a full line.
const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Classes,
    Threads,
    Keys,
}

struct Screen<'a> {
    observer: &'a mut Observer,
    interval: Duration,
    seen: Option<Observation>,
    /// The reason why nothing newer can be shown.
    trouble: Option<String>,
    shown: Shown,
    /// The page to which `?` goes back from that of keys.
    before: Shown,
    /// The column to sort by, of classes and of threads, and whether the greatest comes first.
    sorted: [(usize, bool); 2],
    first_row: usize,
    holds: bool,
}

#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

/// Shows the process until the user has seen enough.
pub(super) fn show(observer: &mut Observer, interval: Duration, stop: &Stop) -> io::Result<()> {
    let mut screen = Screen {
        observer,
        interval,
        seen: None,
        trouble: None,
        shown: Shown::Classes,
        before: Shown::Classes,
        sorted: [(2, true), (4, true)],
        first_row: 0,
        holds: false,
    };
    screen.run(&mut Canvas::open()?, stop)
}

impl Screen<'_> {
    fn run(&mut self, canvas: &mut Canvas, stop: &Stop) -> io::Result<()> {
        let mut due = Instant::now();
        while !stop.requested() {
            if !self.holds && Instant::now() >= due {
                self.look();
                due = Instant::now() + self.interval;
            }
            canvas.draw(|size| self.lines(size))?;
            let left = due.saturating_duration_since(Instant::now());
            let wait = if self.holds { PATIENCE } else { left.min(PATIENCE) };
            // The lab waits: reading from a terminal that was closed would never come back.
            match terminal::wait_for_key(wait)? {
                Wait::Key if self.obey(&canvas.key()?) == Next::End => return Ok(()),
                Wait::Key | Wait::Nothing => {}
                Wait::Closed => return Ok(()),
            }
        }
        Ok(())
    }

    fn look(&mut self) {
        match self.observer.observe() {
            Ok(seen) => (self.seen, self.trouble) = (Some(seen), None),
            Err(LabError::Ended { .. }) => {
                self.trouble = Some("the process has ended; these are its last numbers".to_owned());
                self.holds = true;
            }
            Err(error) => self.trouble = Some(error.to_string()),
        }
    }

    fn obey(&mut self, key: &Key) -> Next {
        const PAGE: usize = 10;
        match key {
            Key::CtrlC | Key::Char('q') => return Next::End,
            Key::Escape if self.shown != Shown::Keys => return Next::End,
            Key::Escape => self.turn_to(self.before),
            Key::Char('c') => self.turn_to(Shown::Classes),
            Key::Char('t') => self.turn_to(Shown::Threads),
            Key::Char('?' | 'h') if self.shown == Shown::Keys => self.turn_to(self.before),
            Key::Char('?' | 'h') => self.turn_to(Shown::Keys),
            Key::Char('<') | Key::ArrowLeft => self.sort_beside(false),
            Key::Char('>') | Key::ArrowRight => self.sort_beside(true),
            Key::Char('r') => {
                let (_, falls) = self.sorting();
                *falls = !*falls;
            }
            Key::Char('+') => self.interval = (self.interval / 2).max(SHORTEST),
            Key::Char('-') => self.interval = (self.interval * 2).min(LONGEST),
            Key::Char(' ') => self.holds = !self.holds,
            Key::ArrowUp | Key::Char('k') => self.first_row = self.first_row.saturating_sub(1),
            Key::ArrowDown | Key::Char('j') => self.first_row += 1,
            Key::PageUp => self.first_row = self.first_row.saturating_sub(PAGE),
            Key::PageDown => self.first_row += PAGE,
            Key::Home => self.first_row = 0,
            Key::End => self.first_row = usize::MAX / 2,
            _ => {}
        }
        Next::GoOn
    }

    fn turn_to(&mut self, shown: Shown) {
        (self.before, self.shown, self.first_row) = (self.shown, shown, 0);
    }

    /// The column and the direction of sorting for the shown list.
    fn sorting(&mut self) -> (&mut usize, &mut bool) {
        let (column, falls) = &mut self.sorted[usize::from(self.shown == Shown::Threads)];
        (column, falls)
    }

    fn sort_beside(&mut self, right: bool) {
        const COLUMNS: usize = 8;
        let (column, _) = self.sorting();
        *column = (*column + if right { 1 } else { COLUMNS - 1 }) % COLUMNS;
    }

    fn lines(&mut self, size: Size) -> Vec<Line> {
        let Some(seen) = self.seen.take() else {
            let said = self.trouble.as_deref().unwrap_or("looking …");
            return vec![Line::new(PLAIN, said)];
        };
        let mut lines = vec![Line::new(BOLD, table::title(&seen))];
        lines.extend(table::whole(&seen).into_iter().map(|line| Line::new(PLAIN, line)));
        let points: Vec<_> = self.observer.history().collect();
        let mut curve = |name: &str, values: Vec<u64>| {
            let drawn = curve(&values, size.columns.saturating_sub(LABEL));
            lines.push(Line::new(PLAIN, format!("{name:LABEL$}{drawn}")));
        };
        curve("live", points.iter().map(|point| point.live_bytes).collect());
        curve("RSS", points.iter().map(|point| point.resident_bytes).collect());
        // All lines but those above and the one at the foot.
        let room = size.rows.saturating_sub(lines.len() + 1);
        let mut body = match self.shown {
            Shown::Classes => self.table(room, Table::of_classes(&seen)),
            Shown::Threads => self.table(room, Table::of_threads(&seen)),
            Shown::Keys => HELP.iter().map(|line| Line::new(PLAIN, *line)).collect(),
        };
        body.resize_with(room, Line::default);
        lines.append(&mut body);
        lines.push(match &self.trouble {
            Some(trouble) => Line::new(REVERSED, trouble.as_str()),
            None if self.holds => Line::new(REVERSED, "held still: space goes on"),
            None => Line::new(PLAIN, KEYS),
        });
        self.seen = Some(seen);
        lines
    }

    /// The headings, and below them as many rows as there is room for.
    fn table(&mut self, room: usize, mut table: Table) -> Vec<Line> {
        let (column, falls) = self.sorted[usize::from(self.shown == Shown::Threads)];
        table.sort(column, falls);
        let room = room.saturating_sub(1);
        self.first_row = self.first_row.min(table.rows.len().saturating_sub(room));
        let mut headings = Line::default();
        for (index, heading) in table.headings().enumerate() {
            headings.push(if index == column { REVERSED } else { BOLD }, heading);
        }
        let rows = table.lines().skip(self.first_row).take(room);
        std::iter::once(headings).chain(rows.map(|row| Line::new(PLAIN, row))).collect()
    }
}

/// The width of the names of curves.
const LABEL: usize = 9;

/// A curve of the latest values, one a column, the greatest of them at its full height.
fn curve(values: &[u64], columns: usize) -> String {
    let latest = &values[values.len().saturating_sub(columns)..];
    let greatest = latest.iter().copied().max().unwrap_or(0).max(1);
    let full = HEIGHTS.len() - 1;
    let height = |value: u64| (u128::from(value) * full as u128 / u128::from(greatest)) as usize;
    latest.iter().map(|value| HEIGHTS[height(*value).min(full)]).collect()
}

#[cfg(test)]
mod tests {
    use super::curve;

    #[test]
    fn a_curve_shows_the_latest_values_as_parts_of_the_greatest() {
        assert_eq!(curve(&[9, 0, 4, 8], 3), " ▄█");
        assert_eq!(curve(&[0, 0], 5), "  ");
        assert_eq!(curve(&[u64::MAX, 1], 2), "█ ");
        assert_eq!(curve(&[], 5), "");
    }
}
