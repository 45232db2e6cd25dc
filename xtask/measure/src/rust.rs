//! `cargo xtask rust`: the requests of Rust programs to a global allocator, under masu and the crates that represent
//! other mallocs.
//!
//! It relies on `workloads/rust` for the work, on cargo for a program of each allocator (`build.rs`), and on the
//! lab's engine for every run (`measure.rs`). The allocator is part of the program here: the code that the compiler
//! makes of it depends on link-time optimization and on the C library. So each combination is a program and a table
//! of its own, and an allocator that cannot be built in one of them costs no other allocator its result.

use std::path::Path;

use anyhow::Result;

use xtask::{commands, machine, options, records};

mod allocators;
mod build;
mod measure;
mod record;

use build::Libc;
use measure::Extent;

/// Rust programs under every allocator that is a crate, write benches/record (about 40 minutes, the first time 7 more)
#[derive(Debug, PartialEq, Eq, clap::Parser)]
pub(crate) struct Request {
    #[command(flatten)]
    extent: Extent,
    /// Only on this C library
    #[arg(long, value_enum)]
    libc: Option<Libc>,
    /// Where the record goes: benches/record/DATE-NAME.md (whole runs: rust)
    #[arg(long, value_name = "NAME", value_parser = options::record_name)]
    record: Option<String>,
}

impl Request {
    /// The record's name in the repository; none for runs that only a developer looks at.
    fn record(&self) -> Option<&str> {
        let Extent { quick, patterns, .. } = &self.extent;
        let is_whole = !quick && self.libc.is_none() && patterns.is_empty();
        self.record.as_deref().or(is_whole.then_some("rust"))
    }
}

pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    machine::provide_all(&[machine::RUST_PEERS])?;
    machine::provide_target(root, machine::MUSL)?;
    let folder = commands::target_folder()?.join("rust-patterns");
    let libcs = request.libc.map_or(Libc::ALL.to_vec(), |libc| vec![libc]);
    let built =
        commands::step("build a program of each allocator", || build::all(root, &folder, &libcs))?;
    let load_before = records::load();
    let measured =
        commands::step("measure", || measure::measure(&built.programs, &request.extent))?;
    let text = record::text(&records::commit(root), &load_before, &measured, &built);
    println!("\n{text}");
    if let Some(name) = request.record() {
        println!("record: {}", records::write(root, name, &text)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn a_record_is_of_a_whole_run() {
        let parse = |words: &str| Request::try_parse_from(words.split(' ')).unwrap();
        assert_eq!(parse("rust --quick --pattern box-u64").record(), None);
        assert_eq!(parse("rust").record(), Some("rust"));
        let musl = parse("rust --libc musl");
        assert_eq!((musl.libc, musl.record()), (Some(Libc::Musl), None));
    }
}
