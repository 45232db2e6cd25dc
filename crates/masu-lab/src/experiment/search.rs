//! `search`: a search server under several mallocs (Apache Solr, 2017).
//!
//! Relies on Maven for Solr, on Debian's packages for the database server that the report cites, and on the engine's
//! servers: kept warm side by side, loaded in turns. The hard part is that the subject is a server on a virtual
//! machine with a heap of its own: a restart would measure its compiler, and malloc's share of it is small. So the
//! page gives the differences that could have been seen, and not only those that were.

use super::{Depth, Experiment, Workbench};
use crate::tables::Table;
use masu_run::Error;

mod documents;
mod figures;
mod mariadb;
mod ranking;
mod scaling;
mod solr;

use solr::{Size, Solr};

/// The malloc that the others are compared with.
const REFERENCE: &str = "glibc";

#[derive(Debug, Default)]
struct Measured {
    cpus: usize,
    size: Size,
    solr: Option<Table>,
    mariadb: Option<Table>,
    scaling: Option<Table>,
}

pub(super) const SEARCH: Experiment = Experiment {
    name: "search",
    about: "A search server under several mallocs",
    title: "A search server under several mallocs",
    takes: ["2 min", "6 min", "15 min", "6 h"],
    report: include_str!("../../experiments/reports/search.toml"),
    run,
};

fn run(bench: &mut Workbench<'_>) -> Result<super::Measured, Error> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut measured = Measured { cpus, size: Size::of(bench), ..Measured::default() };
    let mut diagnosis = Vec::new();
    let solr = Solr::prepare(bench, measured.size);
    if let Some(solr) = bench.noted("Solr", solr).flatten() {
        let table = solr.measure(bench);
        measured.solr = bench.noted("Solr", table).flatten();
        if bench.depth() != Depth::Tiny {
            let made = solr.diagnosis(bench);
            diagnosis = bench.noted("Solr's diagnosis", made).unwrap_or_default();
        }
    }
    let mariadb = mariadb::measure(bench);
    measured.mariadb = bench.noted("MariaDB", mariadb).flatten();
    let scaling = scaling::measure(bench);
    measured.scaling = bench.noted("the test of malloc and free", scaling).flatten();
    Ok((Box::new(measured), diagnosis))
}
