//! Redaction: words taken out of everything that is kept or shown, before it is.
//!
//! Results travel: into bug reports, onto web pages, to colleagues. What stands in them of the user
//! is what the user wrote (the command, the variants) and what programs said; a name in a path is
//! enough. The hard part is to leave what machines read alone (a user called `wall` must not lose a
//! measure), so each record's free text is named here, and a test fills every text of a record to
//! see that none was forgotten.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::execute::Output;
use crate::results::{Case, FileMark, Header, LeftOut, Record, Row, Summary};
use crate::{Ending, Evidence, Run, Variant, kernel};

/// What is to be taken out, and what is put in its place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redact {
    /// The longest first, so that a word is not cut to pieces by a shorter one in it.
    words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    text: String,
    instead: String,
    /// Whether it counts only where no letter or digit is next to it.
    is_name: bool,
}

impl Redact {
    /// Takes out each of `texts` wherever it occurs, for `[redacted]`, numbered where there are
    /// several so that what differed still does. Empty ones are left aside.
    ///
    /// ```
    /// let redact = masu_lab::Redact::texts(["secret", "other"]);
    /// assert_eq!(redact.text("a secret/other"), "a [redacted 1]/[redacted 2]");
    /// ```
    #[must_use]
    pub fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Redact {
        let texts: Vec<String> =
            texts.into_iter().map(Into::into).filter(|text| !text.is_empty()).collect();
        let instead = |index: usize| match texts.len() {
            1 => "[redacted]".to_owned(),
            _ => format!("[redacted {}]", index + 1),
        };
        let word = |(index, text): (usize, &String)| Word {
            text: text.clone(),
            instead: instead(index),
            is_name: false,
        };
        Redact { words: texts.iter().enumerate().map(word).collect() }.sorted()
    }

    /// Takes out who and where this is: the home folder for `~`, the user's name for `[user]`, the
    /// host's for `[host]`. The names `root` and `localhost` say nothing and stay.
    #[must_use]
    pub fn own() -> Redact {
        let variable = |name: &str| std::env::var(name).ok();
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let entry = account(&passwd, kernel::effective_ids().0);
        let (name, home) = entry.unzip();
        // Under sudo the person is the one who called it.
        let users = ["USER", "LOGNAME", "SUDO_USER"].into_iter().filter_map(variable).chain(name);
        let mut homes: BTreeSet<String> = variable("HOME").into_iter().chain(home).collect();
        let real = |home: &String| Some(fs::canonicalize(home).ok()?.to_str()?.to_owned());
        homes.extend(homes.iter().filter_map(real).collect::<Vec<_>>());
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Redact::who(&homes, &users.collect(), host.trim())
    }

    fn who(homes: &BTreeSet<String>, users: &BTreeSet<String>, host: &str) -> Redact {
        let name = |text: &str, instead: &str| Word {
            text: text.to_owned(),
            instead: instead.to_owned(),
            is_name: true,
        };
        let homes = homes.iter().map(|home| home.trim_end_matches('/'));
        let mut words: Vec<Word> =
            homes.filter(|home| home.len() > 1).map(|home| name(home, "~")).collect();
        let users = users.iter().filter(|user| !user.is_empty() && *user != "root");
        words.extend(users.map(|user| name(user, "[user]")));
        let hosts = BTreeSet::from([host, host.split('.').next().unwrap_or_default()]);
        let hosts = hosts.into_iter().filter(|host| !host.is_empty() && *host != "localhost");
        words.extend(hosts.map(|host| name(host, "[host]")));
        Redact { words }.sorted()
    }

    /// Takes out what `other` does, too.
    #[must_use]
    pub fn and(mut self, other: Redact) -> Redact {
        self.words.extend(other.words);
        self.sorted()
    }

    /// Whether there is nothing to take out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    fn sorted(mut self) -> Redact {
        self.words.sort_by_key(|word| std::cmp::Reverse(word.text.len()));
        self
    }

    /// `text` without the words.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let mut made = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let before = text[..text.len() - rest.len()].chars().next_back();
            match self.words.iter().find(|word| word.starts(rest, before)) {
                Some(word) => {
                    made.push_str(&word.instead);
                    rest = &rest[word.text.len()..];
                }
                None => {
                    made.push(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
        made
    }

    /// Takes the words out of a line of results.
    pub fn record(&self, record: &mut Record) {
        match record {
            Record::Header(header) => self.header(header),
            Record::WarmUp { evidence, run } => {
                self.evidence(evidence);
                self.run(run);
            }
            Record::Run(run) => self.run(run),
            Record::Summary { case: _, summary } => self.summary(summary),
        }
    }

    /// Takes the words out of a header. The machine's description is kept: it names a model of CPU
    /// and a kernel, not a host.
    pub fn header(&self, header: &mut Header) {
        self.all(&mut header.suite);
        self.all(&mut header.decide);
        self.all(&mut header.asked);
        header.cases.iter_mut().for_each(|case| self.case(case));
        for FileMark { path, .. } in &mut header.files {
            self.one(path);
        }
    }

    /// Takes the words out of the description of a table.
    pub fn case(&self, case: &mut Case) {
        self.one(&mut case.name);
        self.all(&mut case.command);
        self.pairs(&mut case.settings);
        case.variants.iter_mut().for_each(|variant| self.variant(variant));
        for LeftOut { label, reason } in &mut case.left_out {
            self.one(label);
            self.one(reason);
        }
    }

    fn variant(&self, variant: &mut Variant) {
        self.one(&mut variant.label);
        self.one(&mut variant.allocator);
        self.all(&mut variant.version);
        if let Some(library) = &mut variant.library {
            *library = PathBuf::from(self.text(&library.to_string_lossy()));
        }
        for pairs in [&mut variant.tunables, &mut variant.variables, &mut variant.parameters] {
            self.pairs(pairs);
        }
    }

    /// Takes the words out of what a warm-up showed.
    pub fn evidence(&self, evidence: &mut Evidence) {
        let Evidence { served, idle, not_served, notes, .. } = evidence;
        for list in [served, idle, not_served, notes] {
            self.all(list);
        }
    }

    /// Takes the words out of a run: what it said, and the names of its processes.
    pub fn run(&self, run: &mut Run) {
        for output in [&mut run.stdout, &mut run.stderr] {
            if output.bytes > Output::TAIL_BYTES as u64 {
                output.tail = self.without_end(&output.tail).to_owned();
            }
            self.one(&mut output.tail);
        }
        self.all(&mut run.left_behind);
        if let Ending::OutOfMemory { process, .. } = &mut run.ending {
            self.one(process);
        }
    }

    /// Takes the words out of a summary.
    pub fn summary(&self, summary: &mut Summary) {
        self.all(&mut summary.warnings);
        self.all(&mut summary.notes);
        for Row { variant, .. } in &mut summary.rows {
            self.one(variant);
        }
    }

    /// `text`, of which the beginning was cut off, without the end of a word that it may begin with:
    /// the last half of a secret says too much.
    fn without_end<'a>(&self, text: &'a str) -> &'a str {
        // What is left of a letter that was cut is no letter any more.
        let text = text.trim_start_matches(char::REPLACEMENT_CHARACTER);
        let left = |word: &Word| {
            let starts = word.text.char_indices().map(|(start, _)| start).skip(1);
            starts.map(|start| &word.text[start..]).find(|end| text.starts_with(end)).map(str::len)
        };
        &text[self.words.iter().filter_map(left).max().unwrap_or(0)..]
    }

    fn one(&self, text: &mut String) {
        *text = self.text(text);
    }

    fn all<'a>(&self, texts: impl IntoIterator<Item = &'a mut String>) {
        texts.into_iter().for_each(|text| self.one(text));
    }

    fn pairs(&self, pairs: &mut [(String, String)]) {
        for (name, value) in pairs {
            self.one(name);
            self.one(value);
        }
    }
}

impl Word {
    /// Whether `rest` starts with it, where `before` is the letter in front of `rest`.
    fn starts(&self, rest: &str, before: Option<char>) -> bool {
        let is_inside = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
        rest.strip_prefix(self.text.as_str()).is_some_and(|behind| {
            !self.is_name || !is_inside(before) && !is_inside(behind.chars().next())
        })
    }
}

/// The name and the home folder that passwd(5) has for a user id.
fn account(passwd: &str, user: u32) -> Option<(String, String)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let id = fields.nth(1)?;
        let home = fields.nth(2)?;
        (id.parse() == Ok(user)).then(|| (name.to_owned(), home.to_owned()))
    })
}

#[cfg(test)]
mod tests;
