//! Saved diagnoses side by side: the costs of each run, and the findings that went, came and stayed.
//!
//! Relies on the JSON of `masu diagnose`, and reads no more of it than the page shows. One run is no series, so nothing
//! is called faster here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Content;
use super::across::name as letter;
use crate::page::{Block, Page, Sheet, Statement, Text, Tone, width};
use masu_run::Error;
use masu_run::once::once;
use masu_run::quantity::{bytes, count, percent, ratio, seconds};
use masu_run::workload::{COMMAND_LINES, shortened};

/// The beginning of a saved diagnosis, and the number of bytes in which it stands.
const SCHEMA: &str = "masu-diagnosis";
const BEGINNING: usize = 200;

/// Saved diagnoses, in the order in which they were given.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnoses {
    diagnoses: Vec<Saved>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Saved {
    #[serde(default)]
    file: String,
    command: Vec<String>,
    variant: String,
    findings: Vec<SavedFinding>,
    facts: SavedFacts,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SavedFinding {
    id: String,
    title: String,
    confidence: String,
    share: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SavedFacts {
    ending: Option<String>,
    clock: SavedClock,
    memory: SavedMemory,
    calls: Option<SavedCalls>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SavedClock {
    wall_s: f64,
    counting_s: f64,
    user_s: f64,
    own_sys_s: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SavedMemory {
    peak_rss_bytes: f64,
    minor_faults: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SavedCalls {
    counts: BTreeMap<String, f64>,
}

/// A figure that every run has, with its words.
type Quantity = (&'static str, fn(&Saved) -> Option<f64>, fn(f64) -> String);

const QUANTITIES: [Quantity; 6] = [
    ("time", |one| Some(one.facts.clock.wall_s - one.facts.clock.counting_s), seconds),
    ("CPU, own code", |one| Some(one.facts.clock.user_s), seconds),
    ("CPU, kernel", |one| Some(one.facts.clock.own_sys_s), seconds),
    ("peak RSS", |one| Some(one.facts.memory.peak_rss_bytes), bytes),
    ("page faults", |one| Some(one.facts.memory.minor_faults), count),
    ("calls counted", |one| Some(one.facts.calls.as_ref()?.counts.values().sum()), count),
];

impl Diagnoses {
    /// The diagnoses in `files`; none if the first is no diagnosis.
    pub(super) fn of(files: &[Content]) -> Result<Option<Diagnoses>, Error> {
        if !files.first().is_some_and(|(_, bytes)| is_diagnosis(bytes)) {
            return Ok(None);
        }
        let understand = |(path, bytes): &Content| {
            let file = path.display().to_string();
            if !is_diagnosis(bytes) {
                let reason = format!(
                    "{file}: it is no diagnosis (masu diagnose --json), as the first file is"
                );
                return Err(Error::Request(reason));
            }
            let saved: Saved = serde_json::from_slice(bytes).map_err(|error| {
                Error::Request(format!("{file}: a diagnosis that cannot be read: {error}"))
            })?;
            Ok(Saved { file, ..saved })
        };
        let diagnoses = files.iter().map(understand).collect::<Result<Vec<Saved>, Error>>()?;
        Ok(Some(Diagnoses { diagnoses }))
    }

    #[must_use]
    pub fn page(&self) -> Page {
        let all = &self.diagnoses;
        let mut page = Page { title: "Diagnoses side by side".to_owned(), ..Page::default() };
        let commands: Vec<String> =
            all.iter().map(|one| shortened(&one.command, COMMAND_LINES * width())).collect();
        let is_one = commands.iter().all(|one| *one == commands[0]);
        match is_one {
            true => page.heading(1, Text::code(&*commands[0])),
            false => page.heading(1, "Diagnoses of several commands"),
        }
        let facts = all.iter().zip(&commands).enumerate().map(|(at, (one, command))| {
            let mut words = vec![one.file.clone()];
            words.extend((!is_one).then(|| command.clone()));
            words.extend((one.variant != "system").then(|| format!("under {}", one.variant)));
            words.extend(one.facts.ending.as_ref().map(|ending| format!("it {ending}")));
            Statement::new(&letter(at), words.join("; "), Tone::Dim)
        });
        page.push(Block::Statements(facts.collect()));
        page.push(Block::Gap);
        page.push(Block::Sheet(self.figures()));
        page.push(Block::Gap);
        page.push(Block::Statements(self.findings()));
        page.push(Block::Gap);
        let note = "One run each: differences of a few percent may be chance. `masu compare` shows which are not.";
        page.push(Block::marked(note));
        page.foot = format!("Made by masu report {}", env!("CARGO_PKG_VERSION")).into();
        page
    }

    fn figures(&self) -> Sheet {
        let row = |(name, of, words): &Quantity| {
            let values: Vec<Option<f64>> = self.diagnoses.iter().map(of).collect();
            let mut cells = vec![(*name).to_owned()];
            cells.extend(values.iter().map(|value| value.map_or_else(String::new, words)));
            if let [Some(first), Some(second)] = values[..] {
                let known = first > 0.0;
                cells.push(if known {
                    format!("×{}", ratio(second / first))
                } else {
                    String::new()
                });
            }
            cells
        };
        let mut headings = vec![String::new()];
        headings.extend((0..self.diagnoses.len()).map(letter));
        headings.extend((self.diagnoses.len() == 2).then(|| "B to A".to_owned()));
        Sheet::new("", headings, QUANTITIES.iter().map(row).collect())
    }

    /// Each finding of any diagnosis, and its change from one diagnosis to the next.
    fn findings(&self) -> Vec<Statement> {
        let found = self.diagnoses.iter().flat_map(|one| &one.findings);
        let ids = once(found.map(|finding| finding.id.as_str()));
        let statement = |id: &str| {
            let of = |one: &Saved| one.findings.iter().find(|finding| finding.id == id).cloned();
            let found: Vec<Option<SavedFinding>> = self.diagnoses.iter().map(of).collect();
            let title = found.iter().flatten().next_back().map_or("", |one| one.title.as_str());
            let each = |(at, one): (usize, &Option<SavedFinding>)| {
                format!("{} {}", letter(at), one.as_ref().map_or("–".to_owned(), brief))
            };
            let each: Vec<String> = found.iter().enumerate().map(each).collect();
            let (fate, tone) = match &found[..] {
                [Some(_), .., None] => ("gone; ", Tone::Strong),
                [None, .., Some(_)] => ("new; ", Tone::Strong),
                _ => ("", Tone::Plain),
            };
            Statement::new(id, format!("{fate}{}: {title}", each.join(", ")), tone)
        };
        ids.into_iter().map(statement).collect()
    }
}

/// `20 % (high)`.
fn brief(finding: &SavedFinding) -> String {
    match finding.share {
        Some(share) => format!("{} ({})", percent(share), finding.confidence),
        None => format!("({})", finding.confidence),
    }
}

fn is_diagnosis(bytes: &[u8]) -> bool {
    // A command's letters may be cut where the beginning ends.
    String::from_utf8_lossy(&bytes[..bytes.len().min(BEGINNING)]).contains(SCHEMA)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::facts::{Clock, Memory};
    use crate::diagnose::{Confidence, Diagnosis, Facts, Finding, Id};
    use crate::page::Form;

    fn saved(wall_s: f64, ids: &[Id]) -> String {
        let finding = |id: &Id| Finding {
            id: *id,
            title: format!("Title of {}", id.name()),
            confidence: Confidence::High,
            share: Some(0.2),
            evidence: Vec::new(),
            remedies: Vec::new(),
        };
        let facts = Facts {
            ending: Some("returned 0".to_owned()),
            clock: Clock { wall_s, user_s: 1.0, ..Clock::default() },
            memory: Memory { peak_rss_bytes: 1 << 20, ..Memory::default() },
            ..Facts::default()
        };
        let findings = ids.iter().map(finding).collect();
        let diagnosis = Diagnosis::of(vec!["./job".to_owned()], facts, findings, Vec::new());
        serde_json::to_string_pretty(&diagnosis).unwrap()
    }

    #[test]
    fn what_went_came_and_stayed_stands_beside_what_each_took() {
        let file = |text: String| ("file".into(), text.into_bytes());
        let before = || file(saved(2.0, &[Id::HeapCallStorm, Id::CpuBound]));
        let after = file(saved(1.0, &[Id::CpuBound, Id::MemoryIsFine]));
        let other = || file("{}".to_owned());
        let both = Diagnoses::of(&[before(), after]).unwrap().unwrap();
        let text = crate::report::fixtures::plain(&both.page());
        for line in ["./job", "×0.500", "gone; A 20 % (high), B –", "new; A –, B 20 % (high)"]
        {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(text.contains("cpu-bound       A 20 % (high), B 20 % (high): Title"), "{text}");
        assert!(both.page().render(Form::Html, "").contains("Diagnoses side by side"));
        assert!(Diagnoses::of(&[other(), before()]).unwrap().is_none());
        let mixed = Diagnoses::of(&[before(), other()]).unwrap_err().to_string();
        assert!(mixed.contains("it is no diagnosis"), "{mixed}");
        let bare = file(format!("{{\"schema\": \"{SCHEMA}\"}}"));
        assert!(Diagnoses::of(&[bare]).unwrap_err().to_string().contains("cannot be read"));
    }

    #[test]
    fn a_diagnosis_is_known_whatever_letters_its_command_has() {
        for start in ["", "."] {
            let command = format!("{start}{}", "ж".repeat(100));
            assert!(is_diagnosis(saved(1.0, &[]).replace("./job", &command).as_bytes()));
        }
    }
}
