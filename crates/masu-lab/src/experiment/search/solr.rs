//! Solr: fetched, given an index, kept warm under every malloc and loaded with queries.
//!
//! Relies on Maven for Solr itself and on the engine's servers for every figure. The hard idea is that slow steps are
//! done once: libraries, classes and index stay in the cache, each beside a note of its sources, and are made again
//! where the sources have changed or the step was cut off.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_128;

use super::documents;
use crate::experiment::workbench::{set, write};
use crate::experiment::{Block, Workbench};
use crate::report::count;
use crate::results::Rounds;
use crate::suite::Suite;
use crate::tables::Table;
use masu_run::error::Doing;
use masu_run::{Error, scratch};

const FILES: [(&str, &str); 6] = [
    ("pom.xml", include_str!("../../../experiments/search/pom.xml")),
    ("SearchNodes.java", include_str!("../../../experiments/search/SearchNodes.java")),
    ("log4j2.xml", include_str!("../../../experiments/search/log4j2.xml")),
    ("conf/schema.xml", include_str!("../../../experiments/search/conf/schema.xml")),
    ("conf/solrconfig.xml", include_str!("../../../experiments/search/conf/solrconfig.xml")),
    ("solr.toml", include_str!("../../../experiments/search/solr.toml")),
];

/// The number of different queries: several times as many as the servers' caches hold.
const QUERIES: usize = 4_000;

/// The number of queries in the diagnosed run.
const DIAGNOSED: usize = 4_000;

/// Rounds of the servers, the smallest depth first; at the fullest, bursts are an hour together, as the report's load was.
/// COUPLING: a verdict over the mallocs of the suite takes as many.
pub(super) const ROUNDS: [usize; 4] = [1, 12, 16, 120];

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Size {
    pub(super) documents: usize,
    /// A server's heap, as the virtual machine's option writes it.
    pub(super) heap: &'static str,
}

pub(super) struct Solr {
    folder: PathBuf,
    index: PathBuf,
    size: Size,
}

impl Size {
    pub(super) fn of(bench: &Workbench<'_>) -> Size {
        Size {
            documents: bench.choose(500, 20_000, 200_000, 1_700_000),
            heap: bench.choose("256m", "512m", "512m", "768m"),
        }
    }

    pub(super) fn index(self) -> String {
        format!("index-{}", self.documents)
    }
}

impl Solr {
    /// Prepares everything that a server needs; none where a part cannot be had, which is noted.
    pub(super) fn prepare(bench: &mut Workbench<'_>, size: Size) -> Result<Option<Solr>, Error> {
        let install = "install a JDK, version 17 or later, and Maven (Debian: apt install openjdk-17-jdk-headless maven)";
        for tool in ["java", "javac", "mvn"] {
            if bench.tool(tool, "Solr", install).is_none() {
                return Ok(None);
            }
        }
        let folder = bench.cache();
        let index = folder.join(size.index());
        let solr = Solr { folder, index, size };
        solr.write_files()?;
        let is_complete = solr.libraries(bench)? && solr.classes(bench)? && solr.index(bench)?;
        Ok(is_complete.then_some(solr))
    }

    fn write_files(&self) -> Result<(), Error> {
        for (name, text) in FILES {
            write(&self.folder.join(name), text)?;
        }
        let mut queries = documents::urls(QUERIES).join("\n");
        queries.push('\n');
        write(&self.folder.join("queries.txt"), &queries)
    }

    /// Fetches Solr and its dependencies, from the registry of this machine's Maven.
    fn libraries(&self, bench: &mut Workbench<'_>) -> Result<bool, Error> {
        let mut fetch = self.command("mvn");
        fetch.args(["--batch-mode", "-Dmaven.repo.local=maven", "dependency:copy-dependencies"]);
        fetch.args(["-DoutputDirectory=lib", "-DincludeScope=runtime"]);
        self.kept(bench, "lib", &of(&["pom.xml"]), "fetching Solr (some 100 MB)", &mut fetch)
    }

    fn classes(&self, bench: &mut Workbench<'_>) -> Result<bool, Error> {
        let mut compile = self.command("javac");
        compile.args(["-nowarn", "-cp", "lib/*", "-d", "classes", "SearchNodes.java"]);
        let from = of(&["pom.xml", "SearchNodes.java"]);
        self.kept(bench, "classes", &from, "compiling the starter of Solr", &mut compile)
    }

    fn index(&self, bench: &mut Workbench<'_>) -> Result<bool, Error> {
        let name = self.index.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut sample = Vec::new();
        documents::write(100, &mut sample).doing(|| "making documents")?;
        let files = of(&["pom.xml", "conf/schema.xml", "conf/solrconfig.xml"]);
        let from = format!("{files} {:032x}", xxh3_128(&sample));
        if self.is_kept(&name, &from) {
            return Ok(true);
        }
        let documents = self.folder.join("documents.tsv");
        let writing = || format!("writing {}", documents.display());
        let mut file = BufWriter::new(File::create(&documents).doing(writing)?);
        documents::write(self.size.documents, &mut file)
            .and_then(|()| file.flush())
            .doing(writing)?;
        let work = self.folder.join("work");
        remove(&work)?;
        let mut index = self.java("1g", &work);
        index.args(["index", "conf", "work", "documents.tsv", name.as_str()]);
        let what = format!("indexing {} documents", count(self.size.documents as f64));
        let made = self.kept(bench, &name, &from, &what, &mut index)?;
        remove(&work)?;
        fs::remove_file(&documents).doing(|| format!("removing {}", documents.display()))?;
        Ok(made)
    }

    /// The folder `name`, made by `make` unless it was made from the same sources; returns whether it exists.
    fn kept(
        &self,
        bench: &mut Workbench<'_>,
        name: &str,
        from: &str,
        what: &str,
        make: &mut Command,
    ) -> Result<bool, Error> {
        if self.is_kept(name, from) {
            return Ok(true);
        }
        let note = self.note(name);
        remove(&self.folder.join(name))?;
        write(&note, "")?;
        if bench.step(what, make).is_none() {
            return Ok(false);
        }
        write(&note, from)?;
        Ok(true)
    }

    fn is_kept(&self, name: &str, from: &str) -> bool {
        fs::read_to_string(self.note(name)).is_ok_and(|text| text == from)
    }

    fn note(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.from"))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder);
        command
    }

    /// The starter, with this heap and its temporary files in `temporary`.
    fn java(&self, heap: &str, temporary: &Path) -> Command {
        let mut java = self.command("java");
        java.args(flags(heap, temporary, &self.folder));
        // The virtual machine requires that its folder exists.
        let _ = fs::create_dir_all(temporary);
        java
    }

    /// The table of the servers; none where they cannot be measured, which is noted.
    pub(super) fn measure(&self, bench: &mut Workbench<'_>) -> Result<Option<Table>, Error> {
        let (_, text) = FILES[5];
        let mut suite = Suite::parse(&self.folder.join("solr.toml"), text)?;
        set(&mut suite, "index", &self.index)?;
        set(&mut suite, "heap", self.size.heap)?;
        suite.rounds = Rounds::Fixed(bench.depth().choose(ROUNDS));
        let burst = Duration::from_millis(bench.choose(400, 2_000, 5_000, 30_000));
        for server in suite.entries.iter_mut().filter_map(|entry| entry.server.as_mut()) {
            server.burst = burst;
        }
        Ok(bench.table(&suite, "solr"))
    }

    /// The lab's diagnosis of a whole run of the server, from its start through some queries to its end.
    pub(super) fn diagnosis(&self, bench: &mut Workbench<'_>) -> Result<Vec<Block>, Error> {
        let work = self.folder.join("asked");
        remove(&work)?;
        fs::create_dir_all(&work).doing(|| format!("making {}", work.display()))?;
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        let mut words = vec!["java".to_owned()];
        words.extend(flags(self.size.heap, &work, &self.folder));
        words.extend(["ask".to_owned(), path(self.folder.join("conf")), path(work.clone())]);
        words.extend([path(self.index.clone()), path(self.folder.join("queries.txt"))]);
        words.push(DIAGNOSED.to_string());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let what = "Solr from its start through some queries to its end";
        let diagnosis = bench.diagnosis(what, &words, None);
        remove(&work)?;
        Ok(diagnosis)
    }
}

/// The options and arguments of a virtual machine, up to the class; its files are in `folder`.
fn flags(heap: &str, temporary: &Path, folder: &Path) -> Vec<String> {
    let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
    vec![
        format!("-Xmx{heap}"),
        "-XX:-UsePerfData".to_owned(),
        format!("-Djava.io.tmpdir={}", temporary.display()),
        "-Djetty.testMode=false".to_owned(),
        "-Dzookeeper.forceSync=no".to_owned(),
        format!("-Dlog4j2.configurationFile={}", at("log4j2.xml")),
        "-cp".to_owned(),
        format!("{}:{}", at("lib/*"), at("classes")),
        "SearchNodes".to_owned(),
    ]
}

fn remove(folder: &Path) -> Result<(), Error> {
    scratch::remove(folder).doing(|| format!("removing {}", folder.display()))
}

/// A hash of the contents of these files.
fn of(names: &[&str]) -> String {
    let known = FILES.iter().filter(|(name, _)| names.contains(name));
    let texts: Vec<&str> = known.map(|(_, text)| *text).collect();
    format!("{:032x}", xxh3_128(texts.join("\0").as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{LatencyRate, Load};
    use crate::statistics::{Level, pairs_needed};

    #[test]
    fn the_suite_asks_every_query_and_names_masu() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().to_owned();
        let size = Size { documents: 1, heap: "256m" };
        let solr = Solr { folder: folder.clone(), index: folder.join(size.index()), size };
        solr.write_files().unwrap();
        let suite = Suite::parse(&folder.join("solr.toml"), FILES[5].1).unwrap();
        let entry = &suite.entries[0];
        let server = entry.server.as_ref().unwrap();
        let Load::Http { urls, latency_rate, .. } = &server.load else { panic!("{server:?}") };
        assert_eq!(urls.len(), QUERIES);
        assert_eq!(*latency_rate, Some(LatencyRate::Share(0.5)));
        assert_eq!(entry.primary, crate::Measure::Throughput);
        let crate::suite::Choice::Named(mallocs) = &entry.variants else { panic!("{entry:?}") };
        let needed = pairs_needed(mallocs.len() - 1, Level::TABLE);
        assert!(ROUNDS[1..].iter().all(|rounds| *rounds >= needed), "{needed} are needed");
        assert_eq!(FILES[5].0, "solr.toml");
    }
}
