//! Redaction: words taken out of everything that is kept or shown, before it is.
//!
//! Free texts are commands, variants and the programs' output. Texts that programs read must stay (a user called `wall`
//! must not lose a measure), so those fields are listed by name, and every other text is redacted.

use std::collections::BTreeSet;
use std::fs;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use masu_run::{Output, kernel};

/// The words to take out, and the replacement of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redact {
    /// The longest first, so that a word is not cut to pieces by a shorter one in it.
    words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    text: String,
    instead: String,
    /// Whether the word counts only where no letter or digit is next to it.
    is_name: bool,
}

impl Redact {
    /// Replaces each of `texts` wherever it occurs by `[redacted]`, numbered where there are
    /// several so that different texts stay different. Empty texts are ignored.
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

    /// Hides the user and the machine: the home folder becomes `~`, the user's name `[user]`, the
    /// host's `[host]`. The names `root` and `localhost` say nothing and stay.
    pub fn own() -> Redact {
        let variable = |name: &str| std::env::var(name).ok();
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let entry = account(&passwd, kernel::effective_ids().0);
        let (name, home) = entry.unzip();
        // Under sudo the person is the user who called sudo.
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

    /// Takes out the words of `other`, too.
    pub fn and(mut self, other: Redact) -> Redact {
        self.words.extend(other.words);
        self.sorted()
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    fn sorted(mut self) -> Redact {
        self.words.sort_by_key(|word| std::cmp::Reverse(word.text.len()));
        self
    }

    /// `text` without the words.
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

    /// Takes a word's end off the start of `text`, whose beginning was cut off:
    /// the last half of a secret says too much.
    pub(crate) fn without_end<'a>(&self, text: &'a str) -> &'a str {
        // A letter that was cut in the middle was decoded as a replacement character.
        let text = text.trim_start_matches(char::REPLACEMENT_CHARACTER);
        let left = |word: &Word| {
            let starts = word.text.char_indices().map(|(start, _)| start).skip(1);
            starts.map(|start| &word.text[start..]).find(|end| text.starts_with(end)).map(str::len)
        };
        &text[self.words.iter().filter_map(left).max().unwrap_or(0)..]
    }

    /// Takes the words out of a line of results, or a part of it: out of every text but those that machines read.
    pub(crate) fn all_of<T: Serialize + DeserializeOwned>(&self, results: &mut T) {
        if self.is_empty() {
            return;
        }
        let mut json = serde_json::to_value(&*results).expect("results are JSON");
        self.json(&mut json);
        *results = serde_json::from_value(json).expect("a text is still a text");
    }

    fn json(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.json(value)),
            Value::Object(fields) => {
                let bytes = fields.get("bytes").and_then(Value::as_u64).unwrap_or(0);
                for (name, value) in fields.iter_mut() {
                    if let ("tail", Value::String(tail)) = (name.as_str(), &mut *value)
                        && bytes > Output::TAIL_BYTES as u64
                    {
                        *tail = self.without_end(tail).to_owned();
                    }
                    let is_read = READ_BY_MACHINES.contains(&name.as_str()) && value.is_string();
                    if !is_read && name != "machine" {
                        self.json(value);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Fields whose texts are words of the format. The description of the machine is kept too: it names a model of CPU and a
/// kernel, not a host.
const READ_BY_MACHINES: [&str; 8] =
    ["record", "masu_version", "began", "hash", "primary", "measure", "verdict", "ending"];

impl Word {
    /// Whether `rest` starts with the word; `before` is the letter in front of `rest`.
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
