//! The weaker proof, for where tracing is forbidden: glibc's loader logs to which library it binds `malloc`.
//!
//! `LD_DEBUG=bindings` with `LD_DEBUG_OUTPUT` leaves the program's own output as it is. A binding does not show that
//! `malloc` was called; programs without such a log (static ones, or with another environment) stay unknown.

use std::fs;
use std::path::Path;

use super::Evidence;
use crate::error::Doing;
use crate::execute::{Conditions, execute};
use crate::{Error, Libc, Run, Stop, Variant, Workload};

/// Runs `workload` once under `variant` with the loader's log on, and reads the binding of each program's `malloc`
/// from it.
pub(super) fn run_logged(
    workload: &Workload,
    variant: &Variant,
    library: &Path,
    conditions: &Conditions,
    stop: &Stop,
) -> Result<(Run, Evidence), Error> {
    if workload.program.libc == Libc::Musl {
        return Err(Error::NotInEffect {
            variant: variant.label.clone(),
            reason: "whether it does cannot be seen: tracing is not permitted here and musl's \
                     loader keeps no log; allow ptrace"
                .to_owned(),
        });
    }
    let (run, logs) = run_with_logs(workload, variant, "bindings", conditions, stop)?;
    let mut evidence = Evidence {
        notes: vec![
            "tracing is not permitted here, so the loader's log was read instead; it proves less: \
             that calls to malloc lead into the library, not that there were any"
                .to_owned(),
        ],
        ..Evidence::default()
    };
    for log in logs {
        match read_log(&log, &library.to_string_lossy()) {
            None => {}
            Some((name, Ok(()))) => evidence.served.push(name),
            Some((name, Err(reason))) => evidence.not_served.push(format!("{name}: {reason}")),
        }
    }
    Ok((run, evidence.counted(true)))
}

/// The program that wrote this log and whether its `malloc` is that of `library`, or why not; none
/// if it never bound a `malloc`.
pub(super) fn read_log(log: &str, library: &str) -> Option<(String, Result<(), String>)> {
    let bindings = || {
        log.lines().filter_map(|line| {
            let (from, rest) = line.split_once("binding file ")?.1.split_once(" [0] to ")?;
            let (to, rest) = rest.split_once(" [0]: ")?;
            Some((from, to, rest.split_once('`')?.1.split_once('\'')?.0))
        })
    };
    let providers: Vec<&str> =
        bindings().filter(|(_, _, symbol)| *symbol == "malloc").map(|(_, to, _)| to).collect();
    let first = *providers.first()?;
    let mut programs = bindings().map(|(from, _, _)| from).filter(|from| !from.contains(".so"));
    let name = programs.next().map_or("a program", |path| path.rsplit('/').next().unwrap_or(path));
    let found = if providers.contains(&library) {
        Ok(())
    } else {
        Err(format!("its malloc is that of {first}"))
    };
    Some((name.to_owned(), found))
}

/// Runs `workload` once under `variant`, and returns what glibc's loader logs of this `subject` in each process.
pub(super) fn run_with_logs(
    workload: &Workload,
    variant: &Variant,
    subject: &str,
    conditions: &Conditions,
    stop: &Stop,
) -> Result<(Run, Vec<String>), Error> {
    let folder = tempfile::Builder::new().prefix("masu-loader-log-").tempdir();
    let folder = folder.doing(|| "creating a folder for the loader's log")?;
    let mut logged = variant.clone();
    let log = folder.path().join("log").to_string_lossy().into_owned();
    logged.variables.push(("LD_DEBUG".to_owned(), subject.to_owned()));
    logged.variables.push(("LD_DEBUG_OUTPUT".to_owned(), log));
    let run = execute(workload, &logged, conditions, stop)?;
    let files = fs::read_dir(folder.path()).into_iter().flatten().flatten();
    let logs = files.filter_map(|file| fs::read(file.path()).ok());
    Ok((run, logs.map(|log| String::from_utf8_lossy(&log).into_owned()).collect()))
}
