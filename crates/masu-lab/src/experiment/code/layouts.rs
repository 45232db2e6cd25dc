//! The cost of a call by the place of code: small functions, called in turn, in every layout that a JIT may choose.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::noted;
use crate::experiment::format::{grouped, owned};
use crate::experiment::workbench::{in_one_table, set, vary};
use crate::experiment::{Series, Workbench};
use crate::suite::Suite;
use crate::tables::Table;
use masu_run::Error;

const SUITE: &str = include_str!("../../../experiments/layout.toml");

/// The layouts of code, with their names on the page.
const SHOWN: [(&str, &str); 4] = [
    ("own2m", "a library each, 2 MiB apart"),
    ("own", "a library each"),
    ("one", "one linked library"),
    ("arena", "code arena (masu-code)"),
];

/// The lengths of a function's code, in bytes.
const BODIES: [&str; 2] = ["8", "204"];

pub(super) struct Layouts {
    table: Table,
    folder: PathBuf,
    counts: &'static [&'static str],
}

impl Layouts {
    /// Compiles the functions and measures; none where that cannot be done, which is noted.
    pub(super) fn measure(
        bench: &mut Workbench<'_>,
        program: &Path,
    ) -> Result<Option<Layouts>, Error> {
        let counts: &[&str] = bench.choose(
            &["1", "10"],
            &["100", "1000"],
            &["100", "1000", "4000"],
            &["1", "100", "1000", "4000"],
        );
        let folder = bench.cache().join("layouts");
        let most = counts.last().copied().unwrap_or("100");
        let mut command = Command::new(program);
        command.arg("prepare").arg(&folder).arg(most);
        if bench.step(&format!("compiling {most} functions"), &mut command).is_none() {
            return Ok(None);
        }
        // Figures of an earlier experiment would be taken for those of this one.
        let _ = fs::remove_file(folder.join("figures.jsonl"));
        let suite = suite(bench, program, &folder, counts)?;
        let table = bench.table(&suite, "layouts");
        Ok(table.map(|table| Layouts { table, folder, counts }))
    }

    /// The slow configuration: its description, and its command.
    pub(super) fn slow(&self, program: &Path) -> (String, Vec<String>) {
        let most = self.counts.last().copied().unwrap_or("100");
        let [program, folder] = [program, &self.folder].map(|path| path.display().to_string());
        let words = [&program, "run", &folder, "own", "8", most, "/dev/null"].map(str::to_owned);
        (format!("{} functions, a library each", grouped(most)), words.into())
    }

    /// A figure of a layout: `ns`, `load_us`, `rss_kb`, `page_tables_kb`, `mappings`; `count` may be `few` or `many`.
    pub(super) fn of(&self, layout: &str, body: &str, count: &str, key: &str) -> Series {
        let [few, many] = self.few_and_many();
        let count = match count {
            "few" => few,
            "many" => many,
            count => count,
        };
        let values = [("layout", layout), ("body", body), ("count", count)];
        let own = [("kind", layout), ("body", body), ("count", count)];
        noted(&self.table, &values, &self.folder.join("figures.jsonl"), &own, key)
    }

    /// The few and the many functions of the claims; the report's limit was 1,000 methods.
    fn few_and_many(&self) -> [&'static str; 2] {
        if self.counts.contains(&"1000") { ["100", "1000"] } else { ["1", "10"] }
    }

    pub(super) fn rows(&self, list: &str) -> Vec<(String, String)> {
        match list {
            "layouts" => owned(&SHOWN),
            "bodies" => owned(&BODIES.map(|body| (body, body))),
            "counts" => {
                self.counts.iter().map(|count| ((*count).to_owned(), grouped(count))).collect()
            }
            "functions" => {
                let all =
                    BODIES.iter().flat_map(|body| self.counts.iter().map(move |it| (body, it)));
                let row = |(body, count): (&&str, &&str)| {
                    let label = format!("{}, bodies of {body} bytes", grouped(count));
                    (format!("{body} {count}"), label)
                };
                all.map(row).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn values(&self) -> Vec<(&'static str, String)> {
        let [few, many] = self.few_and_many().map(grouped);
        vec![("few", few), ("many", many)]
    }
}

fn suite(
    bench: &Workbench<'_>,
    program: &Path,
    folder: &Path,
    counts: &[&str],
) -> Result<Suite, Error> {
    let mut suite = Suite::parse(&bench.cache().join("layout.toml"), SUITE)?;
    set(&mut suite, "program", program)?;
    set(&mut suite, "made", folder)?;
    set(&mut suite, "figures", folder.join("figures.jsonl"))?;
    in_one_table(&mut suite, bench.choose(1, 8, 9, 9));
    vary(&mut suite, "layout", &SHOWN.map(|(layout, _)| layout));
    vary(&mut suite, "count", counts);
    Ok(suite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_has_every_layout_and_length_that_is_shown() {
        let suite = Suite::parse("layout.toml".as_ref(), SUITE).unwrap();
        let has = |name: &str, value: &str| {
            let entry = &suite.entries[0];
            let mut all = entry.parameters.iter().chain(&entry.each);
            all.any(|one| one.name == name && one.values.iter().any(|known| known == value))
        };
        assert!(SHOWN.iter().all(|(layout, _)| has("layout", layout)));
        assert!(BODIES.iter().all(|body| has("body", body)));
    }
}
