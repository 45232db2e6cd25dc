//! The report's own program: Ruby's MJIT, by the place of its methods' code.
//!
//! Relies on Debian's Ruby 3.1, whose MJIT works as the report's did, on an application that a script generates, and on
//! a library that is preloaded into Ruby and takes MJIT's objects to the code arena. The hard idea is the choice of
//! bursts: a start compiles for minutes, so every way is a server that is kept until all is compiled, and bursts of
//! requests take turns.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{noted, text};
use crate::experiment::format::{grouped, owned};
use crate::experiment::workbench::{in_one_table, set, vary, write};
use crate::experiment::{Depth, Series, Workbench};
use crate::suite::Suite;
use crate::tables::Table;
use masu_run::Error;

/// The ways of running the program, with their names on the page.
const WAYS: [(&str, &str); 4] = [
    ("interpreter", "no JIT"),
    ("own", "one .so each"),
    ("single", "single .so"),
    ("arena", "code arena"),
];

const PERCENTILES: [&str; 8] = ["50", "66", "75", "80", "90", "95", "98", "100"];

const FILES: [(&str, &str); 4] = [
    ("application.rb", include_str!("../../../experiments/jit/application.rb")),
    ("client.rb", include_str!("../../../experiments/jit/client.rb")),
    ("serve.sh", include_str!("../../../experiments/jit/serve.sh")),
    ("ruby.toml", SUITE),
];

const SUITE: &str = include_str!("../../../experiments/jit/ruby.toml");

const PROGRAM: &str = "ruby3.1";

/// The name on the page where a part is missing.
const WHAT: &str = "Ruby's MJIT";

/// A number of methods as small as in the report's fast program.
const FEW: &str = "25";

/// Reports by its exit code whether this Ruby has MJIT, its header and its compiler.
const IS_COMPLETE: &str = r##"
config = RbConfig::CONFIG
header = File.join(config["rubyarchhdrdir"], "rb_mjit_min_header-#{RUBY_VERSION}.h")
exit(RUBY_VERSION.start_with?("3.1.") && config["MJIT_SUPPORT"] == "yes" && File.exist?(header) && File.exist?(config["MJIT_CC"]))
"##;

pub(super) struct Ruby {
    table: Table,
    noted: PathBuf,
    many: &'static str,
    requests: usize,
}

impl Ruby {
    /// Measures; none where that cannot be done, which is noted. `shim` is the library for the arena.
    pub(super) fn measure(bench: &mut Workbench<'_>, shim: &Path) -> Result<Option<Ruby>, Error> {
        if !is_there(bench) {
            return Ok(None);
        }
        let folder = bench.cache().join("ruby");
        for (name, text) in FILES {
            write(&folder.join(name), text)?;
        }
        let noted = folder.join("figures.jsonl");
        // Figures of an earlier experiment would be taken for those of this one.
        let _ = fs::remove_file(&noted);
        let (many, requests) = (many(bench.depth()), requests(bench.depth()));
        let mut suite = Suite::parse(&folder.join("ruby.toml"), SUITE)?;
        set(&mut suite, "shim", shim)?;
        set(&mut suite, "figures", &noted)?;
        set(&mut suite, "requests", requests.to_string())?;
        in_one_table(&mut suite, bench.choose(1, 8, 8, 12));
        vary(&mut suite, "methods", &few_and(many));
        let table = bench.table(&suite, "ruby");
        Ok(table.map(|table| Ruby { table, noted, many, requests }))
    }

    /// The slow configuration, for the diagnosis: its description, and its command. None where it has too few methods
    /// to show the cause.
    pub(super) fn slow(&self, bench: &Workbench<'_>, shim: &Path) -> Option<(String, Vec<String>)> {
        if matches!(bench.depth(), Depth::Tiny | Depth::Quick) {
            return None;
        }
        let script = self.noted.with_file_name("serve.sh");
        let [script, shim] = [&script, shim].map(|path| path.display().to_string());
        let words =
            ["sh", &script, "own", PROGRAM, &shim, self.many, "0", "/dev/null"].map(str::to_owned);
        Some((format!("Ruby with {} methods, a library each", grouped(self.many)), words.into()))
    }

    /// A figure of the bursts: `p50`, and `p50_of_100` of each burst's first hundred requests; `methods` may be `few` or
    /// `many`.
    pub(super) fn of(&self, way: &str, methods: &str, key: &str) -> Series {
        if key.ends_with("_of_100") && self.requests <= 100 {
            return Series::default();
        }
        let methods = match methods {
            "few" => FEW,
            "many" => self.many,
            methods => methods,
        };
        let values = [("way", way), ("methods", methods)];
        let own = [("kind", "requests"), ("way", way), ("methods", methods)];
        noted(&self.table, &values, &self.noted, &own, key)
    }

    /// A figure of a server's start, until all was compiled; `added_kb` is the memory that the start took.
    pub(super) fn start(&self, way: &str, key: &str) -> Option<f64> {
        if key == "added_kb" {
            return Some(self.start(way, "rss_kb")? - self.start(way, "rss_before_kb")?);
        }
        let lines = fs::read_to_string(&self.noted).ok()?;
        let mut lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let is_own = |line: &Value| {
            text(line, "kind") == "start"
                && text(line, "way") == way
                && text(line, "methods") == self.many
        };
        lines.rfind(is_own)?.get(key)?.as_f64()
    }

    /// The middle request of a way over that of the interpreter.
    pub(super) fn gap(&self, way: &str, key: &str) -> Series {
        // With a hundred requests, the first hundred are all of them.
        if self.requests <= 100 {
            return Series::default();
        }
        let none = self.of("interpreter", "many", key);
        self.of(way, "many", key).with(&none, |own, none| own / none)
    }

    pub(super) fn rows(&self, list: &str) -> Vec<(String, String)> {
        match list {
            "ways" => owned(&WAYS),
            "percentiles" => owned(&PERCENTILES.map(|percentile| (percentile, percentile))),
            "methods" => {
                few_and(self.many).iter().map(|it| ((*it).to_owned(), grouped(it))).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The numbers of methods, each once.
fn few_and(many: &'static str) -> Vec<&'static str> {
    let mut counts = vec![FEW, many];
    counts.dedup();
    counts
}

fn many(depth: Depth) -> &'static str {
    depth.choose([FEW, "150", "600", "4000"])
}

fn requests(depth: Depth) -> usize {
    depth.choose([10, 100, 1_000, 1_000])
}

/// The values of the page: the program, and how much is asked of it at this depth.
pub(super) fn asked(depth: Depth) -> Vec<(&'static str, String)> {
    let methods = grouped(many(depth));
    vec![
        ("program", WHAT.to_owned()),
        ("jit", format!("{WHAT}, {methods} methods")),
        ("requests", grouped(&requests(depth).to_string())),
        ("methods", methods),
    ]
}

/// Whether Ruby exists with all that MJIT needs; a missing part is noted.
fn is_there(bench: &mut Workbench<'_>) -> bool {
    let packages = [PROGRAM, "ruby3.1-dev", "gcc"];
    let complete = || {
        let mut ruby = Command::new(PROGRAM);
        ruby.args(["--disable=gems", "-rrbconfig", "-e", IS_COMPLETE]);
        ruby.output().ok().filter(|output| output.status.success())
    };
    let why = format!("there is no `{PROGRAM}` here with MJIT's header and its compiler");
    bench.provide(WHAT, &why, &packages, complete).is_some()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_suite_has_every_way_and_the_files_beside_it() {
        let suite = Suite::parse("ruby.toml".as_ref(), SUITE).unwrap();
        let entry = &suite.entries[0];
        let has = |name: &str, value: &str| {
            entry
                .parameters
                .iter()
                .any(|one| one.name == name && one.values.iter().any(|known| known == value))
        };
        assert!(WAYS.iter().all(|(way, _)| has("way", way)));
        assert!(has("methods", FEW));
        let words = entry.command.iter().map(|word| word.to_string_lossy());
        let mut files = words.filter(|word| word.contains('.'));
        assert!(files.all(|word| FILES.iter().any(|(name, _)| *name == word)));
    }

    #[test]
    fn the_library_is_preloaded_from_a_folder_whose_name_has_a_space() {
        let place = tempfile::Builder::new().prefix("a b").tempdir().unwrap();
        let [serve, ruby, shim] =
            ["serve.sh", "ruby", "libmjit.so"].map(|name| place.path().join(name));
        // The loader would read a space in the list as the end of a name.
        let fake = "#!/bin/sh\ncase $LD_PRELOAD in *' '*) exit 9 ;; esac\ntest -f $LD_PRELOAD && echo $*\n";
        for (file, text) in [(&serve, FILES[2].1), (&ruby, fake), (&shim, "")] {
            write(file, text).unwrap();
        }
        fs::set_permissions(&ruby, fs::Permissions::from_mode(0o755)).unwrap();
        let _alone = masu_run::execute::alone();
        let mut sh = Command::new("sh");
        sh.arg(&serve).arg("arena").args([&ruby, &shim]).args(["25", "0"]).current_dir("/");
        let output = sh.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.starts_with("-C / --disable=gems --mjit "), "{output:?}");
        assert!(said.ends_with("/application.rb arena 25 0\n"), "{output:?}");
    }
}
