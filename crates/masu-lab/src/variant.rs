//! A variant: an allocator with its settings, written `ALLOCATOR[:NAME=VALUE,…]`.
//!
//! [`Spec`] is the text understood, without looking at the machine; [`Variant`] is ready to run:
//! the library to preload and the environment to set. [`Catalogue::resolve`] leads from one to the
//! other. The hard part is that settings and preloads share the environment with the user:
//! `LD_PRELOAD` and `GLIBC_TUNABLES` that are already there are added to, never replaced.
//!
//! [`Catalogue::resolve`]: crate::Catalogue::resolve

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;

/// A variant as it was written, understood but not yet looked up on this machine.
///
/// ```
/// let spec: masu_lab::Spec = "glibc:top_pad=64M,trim_threshold=64M".parse()?;
/// assert_eq!(spec.allocator, "glibc");
/// assert_eq!(spec.settings[0], ("top_pad".to_owned(), "64M".to_owned()));
/// assert_eq!(spec.to_string(), "glibc:top_pad=64M,trim_threshold=64M");
/// # Ok::<(), masu_lab::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The allocator's name in the catalogue, or a path (anything with a `/`) to its library.
    pub allocator: String,
    /// The settings in the order given: name and value as written, a `\,` in a value unescaped.
    pub settings: Vec<(String, String)>,
}

/// One setting that this version can change.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The allocator it belongs to, as the catalogue names it.
    pub allocator: &'static str,
    /// The name in a variant: `top_pad`.
    pub name: &'static str,
    /// The tunable it becomes: `glibc.malloc.top_pad`.
    pub tunable: &'static str,
    /// What it does, in one line.
    pub effect: &'static str,
}

/// Every setting this version knows.
pub const SETTINGS: [Setting; 5] = [
    Setting {
        allocator: "glibc",
        name: "top_pad",
        tunable: "glibc.malloc.top_pad",
        effect: "bytes asked for beyond need whenever the heap's top grows",
    },
    Setting {
        allocator: "glibc",
        name: "trim_threshold",
        tunable: "glibc.malloc.trim_threshold",
        effect: "free bytes at the heap's top that are given back to the kernel",
    },
    Setting {
        allocator: "glibc",
        name: "mmap_threshold",
        tunable: "glibc.malloc.mmap_threshold",
        effect: "size in bytes from which a block gets its own mapping",
    },
    Setting {
        allocator: "glibc",
        name: "mmap_max",
        tunable: "glibc.malloc.mmap_max",
        effect: "how many blocks may have their own mapping at once",
    },
    Setting {
        allocator: "glibc",
        name: "arena_max",
        tunable: "glibc.malloc.arena_max",
        effect: "how many arenas threads may spread over",
    },
];

impl FromStr for Spec {
    type Err = Error;

    /// Understands `ALLOCATOR[:NAME=VALUE,…]`. Whether the settings exist is known only once the
    /// allocator is, in [`Catalogue::resolve`](crate::Catalogue::resolve).
    ///
    /// # Errors
    ///
    /// [`Error::Variant`] for an empty allocator, a setting without `=`, or one given twice.
    fn from_str(text: &str) -> Result<Spec, Error> {
        let wrong = |reason: String| Error::Variant { variant: text.to_owned(), reason };
        let (allocator, rest) = match text.split_once(':') {
            Some((allocator, rest)) => (allocator, Some(rest)),
            None => (text, None),
        };
        if allocator.is_empty() {
            return Err(wrong("no allocator named; write ALLOCATOR[:NAME=VALUE,…]".to_owned()));
        }
        let mut settings: Vec<(String, String)> = Vec::new();
        for part in rest.map(split_at_commas).unwrap_or_default() {
            let Some((name, value)) = part.split_once('=').filter(|(name, _)| !name.is_empty())
            else {
                return Err(wrong(format!("`{part}` is not NAME=VALUE")));
            };
            if settings.iter().any(|(known, _)| known == name) {
                return Err(wrong(format!("`{name}` is given twice")));
            }
            settings.push((name.to_owned(), value.to_owned()));
        }
        Ok(Spec { allocator: allocator.to_owned(), settings })
    }
}

/// Splits at commas; `\,` is a comma that belongs to the value.
pub(crate) fn split_at_commas(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let last = parts.last_mut().expect("there is always one part");
        match character {
            '\\' if characters.peek() == Some(&',') => last.extend(characters.next()),
            ',' => parts.push(String::new()),
            other => last.push(other),
        }
    }
    parts
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.allocator)?;
        for (index, (name, value)) in self.settings.iter().enumerate() {
            let separator = if index == 0 { ':' } else { ',' };
            write!(f, "{separator}{name}={}", value.replace(',', "\\,"))?;
        }
        Ok(())
    }
}

/// An allocator with its settings, ready to run one program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Variant {
    /// What the user calls it: the variant as written, then the values of its parameters. Unique
    /// within a comparison.
    pub label: String,
    /// The allocator's name in the catalogue, or its library's path.
    pub allocator: String,
    /// The allocator's version where it is known.
    pub version: Option<String>,
    /// The library to preload; none for the C library's own malloc.
    pub library: Option<PathBuf>,
    /// Tunables of the C library, `("glibc.malloc.top_pad", "67108864")`: one entry each in
    /// `GLIBC_TUNABLES`.
    pub tunables: Vec<(String, String)>,
    /// Other environment variables the variant sets.
    pub variables: Vec<(String, String)>,
    /// What `{NAME}` stands for in the workload, `("bin", "./new")`.
    #[serde(default)]
    pub parameters: Vec<(String, String)>,
}

impl Variant {
    /// The environment variables this variant changes, with their final values, given the
    /// environment the program would otherwise get. An `LD_PRELOAD` or `GLIBC_TUNABLES` already
    /// there is kept: the variant's library is put before it, its tunables behind it (the last
    /// one wins).
    #[must_use]
    pub fn changes(
        &self,
        inherited: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(OsString, OsString)> {
        let mut changes = Vec::new();
        let kept = |name: &str| inherited(name).filter(|value| !value.is_empty());
        if let Some(library) = &self.library {
            let value = join(Some(library.clone().into_os_string()), kept("LD_PRELOAD"));
            changes.push(("LD_PRELOAD".into(), value));
        }
        if !self.tunables.is_empty() {
            let ours: Vec<String> =
                self.tunables.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let value = join(kept("GLIBC_TUNABLES"), Some(ours.join(":").into()));
            changes.push(("GLIBC_TUNABLES".into(), value));
        }
        changes.extend(self.variables.iter().map(|(name, value)| (name.into(), value.into())));
        changes
    }

    /// [`changes`](Self::changes) over this process's own environment.
    #[must_use]
    pub fn changes_here(&self) -> Vec<(OsString, OsString)> {
        self.changes(|name| std::env::var_os(name))
    }
}

/// Joins what there is with the colon that both variables use as separator.
fn join(first: Option<OsString>, second: Option<OsString>) -> OsString {
    let parts: Vec<OsString> = first.into_iter().chain(second).collect();
    parts.join(OsStr::new(":"))
}

/// Turns the settings of `spec` into tunables and variables for the allocator called `allocator`.
///
/// # Errors
///
/// [`Error::Variant`] for a setting the allocator does not have (the message lists those it has),
/// a value that is no size, and settings of allocators this version cannot set.
pub(crate) fn settle(spec: &Spec, allocator: &str) -> Result<Settled, Error> {
    let wrong = |reason: String| Error::Variant { variant: spec.to_string(), reason };
    let mut settled = Settled::default();
    for (name, value) in &spec.settings {
        if let Some(variable) = name.strip_prefix("env.") {
            let reserved = ["LD_PRELOAD", "GLIBC_TUNABLES", ""];
            if reserved.contains(&variable) || variable.contains('\0') || value.contains('\0') {
                return Err(wrong(format!("`{name}` cannot be set through a variant")));
            }
            settled.variables.push((variable.to_owned(), value.clone()));
            continue;
        }
        let known: Vec<&Setting> =
            SETTINGS.iter().filter(|setting| setting.allocator == allocator).collect();
        if known.is_empty() {
            return Err(wrong(format!(
                "this version cannot set `{name}` of {allocator} yet; \
                 `env.NAME=VALUE` passes an environment variable through"
            )));
        }
        let Some(setting) = known.iter().find(|setting| setting.name == name) else {
            let names: Vec<&str> = known.iter().map(|setting| setting.name).collect();
            return Err(wrong(format!(
                "{allocator} has no setting `{name}`; known: {}, and env.NAME",
                names.join(", ")
            )));
        };
        let Some(number) = parse_size(value) else {
            return Err(wrong(format!(
                "`{value}` is no value for `{name}`; \
                 write a whole number, with K, M or G if you like: {name}=64M"
            )));
        };
        settled.tunables.push((setting.tunable.to_owned(), number.to_string()));
    }
    Ok(settled)
}

/// What settings come to: tunables of the C library and plain environment variables.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) tunables: Vec<(String, String)>,
    pub(crate) variables: Vec<(String, String)>,
}

/// Understands `4096`, `64K`, `64M`, `1G` (powers of 1024, either case); none for anything else.
///
/// ```
/// assert_eq!(masu_lab::variant::parse_size("64M"), Some(64 << 20));
/// assert_eq!(masu_lab::variant::parse_size("64 M"), None);
/// ```
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 10),
        b'M' | b'm' => (&text[..text.len() - 1], 20),
        b'G' | b'g' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests;
