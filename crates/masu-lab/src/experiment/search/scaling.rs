//! The test of malloc and free that the report cites: each thread does the same work, beside more and more threads.

use std::process::Command;

use crate::experiment::Workbench;
use crate::experiment::workbench::set;
use crate::experiment::workbench::write;
use crate::results::Rounds;
use crate::suite::Suite;
use crate::tables::Table;
use masu_run::Error;

const SUITE: &str = include_str!("../../../experiments/search/scaling.toml");
const SOURCE: &str = include_str!("../../../experiments/search/scaling.c");

pub(super) const THREADS: [&str; 4] = ["1", "2", "4", "8"];

/// The table of the test; none where it cannot be made, which is noted.
pub(super) fn measure(bench: &mut Workbench<'_>) -> Result<Option<Table>, Error> {
    let install = "install a C compiler (Debian: apt install gcc libc6-dev)";
    if bench.tool("cc", "the test of malloc and free", install).is_none() {
        return Ok(None);
    }
    let folder = bench.cache();
    let (source, program) = (folder.join("scaling.c"), folder.join("scaling"));
    write(&source, SOURCE)?;
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-pthread", "-o"]).arg(&program).arg(&source);
    if bench.step("compiling the test of malloc and free", &mut compile).is_none() {
        return Ok(None);
    }
    let mut suite = Suite::parse(&folder.join("scaling.toml"), SUITE)?;
    set(&mut suite, "scaling", &program)?;
    suite.rounds = Rounds::Fixed(bench.choose(1, 11, 20, 30));
    Ok(bench.table(&suite, "scaling"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_has_these_numbers_of_threads() {
        let suite = Suite::parse("scaling.toml".as_ref(), SUITE).unwrap();
        let parameters = &suite.entries[0].parameters;
        assert_eq!(parameters.len(), 1);
        assert_eq!(parameters[0].values, THREADS);
    }

    #[test]
    fn the_program_does_the_same_work_every_time_and_refuses_what_is_no_number() {
        let folder = tempfile::tempdir().unwrap();
        let [source, program] = ["scaling.c", "scaling"].map(|name| folder.path().join(name));
        // The code that ends the leftovers of a run must not meet these processes.
        let _alone = masu_run::execute::alone();
        write(&source, SOURCE).unwrap();
        let mut compile = Command::new("cc");
        compile.args(["-Wall", "-Wextra", "-Werror", "-O2", "-pthread", "-o"]);
        let compiled = compile.arg(&program).arg(&source).status();
        let run = |threads: &str| Command::new(&program).arg(threads).output().unwrap();
        let made =
            compiled.map(|status| status.success().then(|| ["1", "1", "2", "none"].map(run)));
        let made = made.expect("this test compiles a program: apt-get install gcc");
        let [one, again, two, none] = made.expect("it compiles without a warning");
        assert!(one.status.success() && two.status.success());
        assert_eq!(one.stdout, again.stdout);
        assert_ne!(one.stdout, two.stdout);
        assert_eq!(none.status.code(), Some(2));
    }
}
