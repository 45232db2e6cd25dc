//! An executor that runs nothing: the runs are invented from their place, so that the engine's
//! result for them is known.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::*;
use masu_run::{Evidence, Input};

/// One run: the case's name, the row's label, and the number of the run among those of the row, counted from zero.
pub(super) type Place<'a> = (&'a str, &'a str, usize);

/// The result of a timed run.
type Fate = dyn Fn(Place<'_>) -> Result<Run, Error>;

/// A simulated machine.
#[derive(Clone)]
pub(super) struct Mock {
    /// The result of each timed run.
    pub(super) run: Rc<Fate>,
    /// Rows whose warm-up fails.
    pub(super) broken: Vec<&'static str>,
    /// Whether rows must stay warm, as servers do.
    pub(super) kept_warm: bool,
    /// All actions, in order.
    pub(super) done: Rc<RefCell<Vec<String>>>,
    /// Timed runs of each row so far, those before the comparison was resumed included.
    pub(super) counts: Rc<RefCell<HashMap<String, usize>>>,
}

impl Mock {
    pub(super) fn new(run: impl Fn(Place<'_>) -> Result<Run, Error> + 'static) -> Mock {
        Mock {
            run: Rc::new(run),
            broken: Vec::new(),
            kept_warm: false,
            done: Rc::default(),
            counts: Rc::default(),
        }
    }

    pub(super) fn compare(
        &self,
        plan: &Plan,
        options: &Options,
        stop: &Stop,
    ) -> Result<Comparison, Error> {
        let mut make: Box<Make<'_>> = Box::new(|prepared, _| {
            Ok(Box::new(Playing { mock: self.clone(), prepared }) as Box<dyn Executor>)
        });
        compare_with(plan, options, stop, &mut |_| {}, &mut *make)
    }

    /// The actions of this kind, without the kind.
    pub(super) fn of(&self, kind: &str) -> Vec<String> {
        let done = self.done.borrow();
        done.iter().filter_map(|one| Some(one.strip_prefix(kind)?.trim().to_owned())).collect()
    }
}

struct Playing<'a> {
    mock: Mock,
    prepared: &'a Prepared,
}

impl Playing<'_> {
    fn note(&self, kind: &str, index: usize) {
        let label = &self.prepared.rows[index].variant.label;
        self.mock.done.borrow_mut().push(format!("{kind} {} {label}", self.prepared.name));
    }
}

impl Executor for Playing<'_> {
    fn begin_round(&mut self, rows: &[usize]) {
        rows.iter().for_each(|row| self.note("begin", *row));
    }

    fn warm_up(&mut self, index: usize, _: &Stop) -> Result<(Run, Evidence), Error> {
        self.note("warm", index);
        let variant = self.prepared.rows[index].variant.label.clone();
        if self.mock.broken.contains(&variant.as_str()) {
            return Err(Error::NotInEffect { variant, reason: "made up".to_owned() });
        }
        let peak_rss_bytes = 100 + u64::try_from(index).unwrap();
        Ok((Run { wall_s: 1.0, peak_rss_bytes, ..Run::default() }, Evidence::default()))
    }

    fn run(&mut self, index: usize, _: &Stop) -> Result<Run, Error> {
        self.note("run", index);
        let Prepared { name, rows, .. } = self.prepared;
        let label = &rows[index].variant.label;
        let mut counts = self.mock.counts.borrow_mut();
        let count = counts.entry(format!("{name} {label}")).or_default();
        let run = (self.mock.run)((name, label, *count))?;
        *count += 1;
        Ok(run)
    }

    fn recall(&mut self, peak_rss_bytes: u64) {
        let said = format!("recall {} {peak_rss_bytes}", self.prepared.name);
        self.mock.done.borrow_mut().push(said);
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.mock.done.borrow_mut().push(format!("finish {}", self.prepared.name));
        Ok(())
    }

    fn is_kept_warm(&self) -> bool {
        self.mock.kept_warm
    }
}

/// A plan of these cases, each with the rows `a`, `b` and `c`, of which `c` is optional.
pub(super) fn plan(cases: &[&str], rounds: Rounds) -> Plan {
    let workload = Workload::new(["true"], Input::Empty).unwrap();
    let variant = |label: &&str| Variant { label: (*label).to_owned(), ..Variant::default() };
    let variants: Vec<Variant> = ["a", "b", "c"].iter().map(variant).collect();
    let mut plan = Plan::single(&workload, &variants, rounds);
    plan.cases[0].rows[2].optional = true;
    let prepared = plan.cases.remove(0);
    for name in cases {
        plan.cases.push(Prepared { name: (*name).to_owned(), ..prepared.clone() });
    }
    plan
}

pub(super) fn taking(wall_s: f64) -> Run {
    Run { wall_s, ..Run::default() }
}
