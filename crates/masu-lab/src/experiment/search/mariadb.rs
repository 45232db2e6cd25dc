//! MariaDB, which the report cites, under each malloc: sysbench runs here, with a fixed number of transactions a burst.
//!
//! Relies on two packages of Debian's. One of them is the server without its service, so that nothing starts
//! unasked.

use std::path::PathBuf;

use super::solr::ROUNDS;
use crate::experiment::Workbench;
use crate::experiment::workbench::{set, write};
use crate::results::Rounds;
use crate::suite::Suite;
use crate::tables::Table;
use masu_run::{Error, Program};

const SUITE: &str = include_str!("../../../experiments/search/mariadb.toml");
const TABLES: &str = include_str!("../../../experiments/search/mariadb-tables.sh");

const PACKAGES: [&str; 2] = ["mariadb-server-core", "sysbench"];

/// The table of the servers; none where they cannot be measured, which is noted.
pub(super) fn measure(bench: &mut Workbench<'_>) -> Result<Option<Table>, Error> {
    let Some(server) = provide(bench) else { return Ok(None) };
    let folder = bench.cache();
    write(&folder.join("mariadb-tables.sh"), TABLES)?;
    let mut suite = Suite::parse(&folder.join("mariadb.toml"), SUITE)?;
    set(&mut suite, "mariadbd", &server)?;
    set(&mut suite, "data", folder.join("tables"))?;
    suite.rounds = Rounds::Fixed(bench.depth().choose(ROUNDS));
    Ok(bench.table(&suite, "mariadb"))
}

/// The server's program, installed if the user allowed it; none where it is missing, which is noted.
fn provide(bench: &mut Workbench<'_>) -> Option<PathBuf> {
    let path = |name: &str| Program::find(name.as_ref()).ok().map(|program| program.path);
    // Most distributions install the server outside the search path of users who are not root.
    let server = || path("mariadbd").or_else(|| path("/usr/sbin/mariadbd"));
    let why = "there is no `mariadbd` or no `sysbench` here";
    bench.provide("MariaDB", why, &PACKAGES, || server().filter(|_| path("sysbench").is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Load;

    #[test]
    fn the_load_goes_to_this_machine_and_has_an_end() {
        let suite = Suite::parse("mariadb.toml".as_ref(), SUITE).unwrap();
        let entry = &suite.entries[0];
        let server = entry.server.as_ref().unwrap();
        let Load::Command(load) = &server.load else { panic!("{server:?}") };
        assert!(
            load.contains("--mysql-host=127.0.0.1") && load.contains("--events={events}"),
            "{load}"
        );
        assert!(entry.command.iter().any(|word| word == "--bind-address=127.0.0.1"));
        assert_eq!(entry.primary, crate::Measure::Wall);
    }
}
