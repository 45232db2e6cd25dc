//! The screen of `masu top`: keys in, what was seen out.
//!
//! Relies on ratatui for the terminal, which is restored however this ends, and on the tables of its
//! neighbour. No colours: bold and reversed text show on every terminal. Where the locale is not UTF-8,
//! curves are drawn in ASCII.

use std::env;
use std::io;
use std::time::{Duration, Instant};

use masu_lab::process::{Observation, Observer};
use masu_lab::terminal::{self, Wait};
use masu_lab::{Error as LabError, Stop};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::symbols::bar;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};
use ratatui::{DefaultTerminal, Frame};

use super::table::{self, Table};

/// Keys are looked for so often at least, and signals.
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
    "q, Ctrl-C      end",
    "",
    "live: handed out. cached: free, in caches of threads or on the way between",
    "them. free: in pages. waste: bytes of a class's pages that are not live.",
    "slow: calls that a cache could not serve. remote: freed by threads of others.",
];

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Curves for terminals that know ASCII only.
const ASCII: bar::Set<'static> = bar::Set {
    full: "#",
    seven_eighths: "#",
    three_quarters: "+",
    five_eighths: "+",
    half: "=",
    three_eighths: "-",
    one_quarter: "-",
    one_eighth: ".",
    empty: " ",
};

/// What is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Classes,
    Threads,
    Keys,
}

/// The state of the screen.
struct Screen<'a> {
    observer: &'a mut Observer,
    interval: Duration,
    seen: Option<Observation>,
    /// Why there is nothing newer to be seen.
    trouble: Option<String>,
    shown: Shown,
    /// The column to sort by, of classes and of threads, and whether the greatest comes first.
    sorted: [(usize, bool); 2],
    first_row: usize,
    holds: bool,
    symbols: bar::Set<'static>,
}

/// What a key asks for.
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
        sorted: [(2, true), (4, true)],
        first_row: 0,
        holds: false,
        symbols: if is_utf8() { bar::NINE_LEVELS } else { ASCII },
    };
    let mut terminal = ratatui::try_init()?;
    let outcome = screen.run(&mut terminal, stop);
    ratatui::restore();
    outcome
}

/// Whether the locale's characters are UTF-8: the first of these that is set says so.
fn is_utf8() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| env::var(name).ok());
    let said = set.into_iter().find(|value| !value.is_empty()).unwrap_or_default();
    said.to_ascii_lowercase().replace('-', "").contains("utf8")
}

impl Screen<'_> {
    fn run(&mut self, screen: &mut DefaultTerminal, stop: &Stop) -> io::Result<()> {
        let mut due = Instant::now();
        while !stop.requested() {
            if !self.holds && Instant::now() >= due {
                self.look();
                due = Instant::now() + self.interval;
            }
            screen.draw(|frame| self.draw(frame))?;
            let left = due.saturating_duration_since(Instant::now());
            let wait = if self.holds { PATIENCE } else { left.min(PATIENCE) };
            // Not crossterm waits: where the terminal was closed it would never come back.
            match terminal::wait_for_key(wait)? {
                Wait::Key if event::poll(Duration::ZERO)? => {}
                Wait::Key | Wait::Nothing => continue,
                Wait::Closed => return Ok(()),
            }
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
                && self.obey(key) == Next::End
            {
                return Ok(());
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

    fn obey(&mut self, key: KeyEvent) -> Next {
        const PAGE: usize = 10;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return Next::End,
            KeyCode::Char('q') | KeyCode::Esc if self.shown != Shown::Keys => return Next::End,
            KeyCode::Char('q') | KeyCode::Esc | KeyCode::Char('c') => self.turn_to(Shown::Classes),
            KeyCode::Char('t') => self.turn_to(Shown::Threads),
            KeyCode::Char('?' | 'h') => self.turn_to(Shown::Keys),
            KeyCode::Char('<') | KeyCode::Left => self.sort_beside(false),
            KeyCode::Char('>') | KeyCode::Right => self.sort_beside(true),
            KeyCode::Char('r') => {
                let (_, falls) = self.sorting();
                *falls = !*falls;
            }
            KeyCode::Char('+') => self.interval = (self.interval / 2).max(SHORTEST),
            KeyCode::Char('-') => self.interval = (self.interval * 2).min(LONGEST),
            KeyCode::Char(' ') => self.holds = !self.holds,
            KeyCode::Up | KeyCode::Char('k') => self.first_row = self.first_row.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.first_row += 1,
            KeyCode::PageUp => self.first_row = self.first_row.saturating_sub(PAGE),
            KeyCode::PageDown => self.first_row += PAGE,
            KeyCode::Home => self.first_row = 0,
            KeyCode::End => self.first_row = usize::MAX / 2,
            _ => {}
        }
        Next::GoOn
    }

    fn turn_to(&mut self, shown: Shown) {
        (self.shown, self.first_row) = (shown, 0);
    }

    /// The column and the direction of what is shown.
    fn sorting(&mut self) -> (&mut usize, &mut bool) {
        let (column, falls) = &mut self.sorted[usize::from(self.shown == Shown::Threads)];
        (column, falls)
    }

    fn sort_beside(&mut self, right: bool) {
        const COLUMNS: usize = 8;
        let (column, _) = self.sorting();
        *column = (*column + if right { 1 } else { COLUMNS - 1 }) % COLUMNS;
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let Some(seen) = self.seen.take() else {
            let said = self.trouble.as_deref().unwrap_or("looking …");
            return frame.render_widget(Paragraph::new(said), frame.area());
        };
        let [title, whole, live, resident, body, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(4),
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Line::styled(table::title(&seen), BOLD), title);
        let lines: Vec<Line<'_>> = table::whole(&seen).into_iter().map(Line::from).collect();
        frame.render_widget(Paragraph::new(lines), whole);
        let points: Vec<_> = self.observer.history().collect();
        self.draw_curve(frame, live, "live", points.iter().map(|point| point.live_bytes));
        self.draw_curve(frame, resident, "RSS", points.iter().map(|point| point.resident_bytes));
        match self.shown {
            Shown::Classes => self.draw_table(frame, body, Table::of_classes(&seen)),
            Shown::Threads => self.draw_table(frame, body, Table::of_threads(&seen)),
            Shown::Keys => {
                let lines: Vec<Line<'_>> = HELP.iter().map(|line| Line::from(*line)).collect();
                frame.render_widget(Paragraph::new(lines), body);
            }
        }
        let foot_line = match &self.trouble {
            Some(trouble) => Line::styled(trouble.clone(), REVERSED),
            None if self.holds => Line::styled("held still: space goes on", REVERSED),
            None => Line::from(KEYS),
        };
        frame.render_widget(foot_line, foot);
        self.seen = Some(seen);
    }

    /// A curve of the latest points, the greatest of them at its full height.
    fn draw_curve(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        name: &str,
        points: impl DoubleEndedIterator<Item = u64>,
    ) {
        let [label, curve] =
            Layout::horizontal([Constraint::Length(9), Constraint::Fill(1)]).areas(area);
        frame.render_widget(Line::from(name.to_owned()), label);
        let mut latest: Vec<u64> = points.rev().take(usize::from(curve.width)).collect();
        latest.reverse();
        frame.render_widget(Sparkline::default().bar_set(self.symbols.clone()).data(latest), curve);
    }

    fn draw_table(&mut self, frame: &mut Frame<'_>, area: Rect, mut table: Table) {
        let (column, falls) = self.sorted[usize::from(self.shown == Shown::Threads)];
        table.sort(column, falls);
        let room = usize::from(area.height.saturating_sub(1));
        self.first_row = self.first_row.min(table.rows.len().saturating_sub(room));
        let headings = table.headings().enumerate().map(|(index, heading)| {
            Span::styled(heading, if index == column { REVERSED } else { BOLD })
        });
        let mut lines = vec![headings.collect::<Line<'_>>()];
        lines.extend(table.lines().skip(self.first_row).take(room).map(Line::from));
        frame.render_widget(Paragraph::new(lines), area);
    }
}
