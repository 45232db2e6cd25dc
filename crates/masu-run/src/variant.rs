//! A variant: an allocator with its settings, written `ALLOCATOR[:NAME=VALUE,…]`, a library also `NAME=PATH[:…]`.
//!
//! [`Spec`] is the text understood; [`Variant`] is ready to run: the library to preload and the environment to set.
//! [`Catalogue::resolve`] leads from one to the other, by the table in [`settings`]. The user's own `LD_PRELOAD`,
//! `GLIBC_TUNABLES` and `MALLOC_CONF` are added to, never replaced.
//!
//! [`Catalogue::resolve`]: crate::Catalogue::resolve

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;

// COUPLING: A link to the allocator's own table of options, which is data.
#[expect(dead_code, reason = "only the allocator needs an option's place")]
pub mod options;
pub mod settings;
mod settle;
mod value;

pub use settle::{Settled, Target, family, settle};
pub use value::{Unit, parse_size};

const MALLOC_CONF: &str = "MALLOC_CONF";

/// A variant as it was written, understood but not yet looked up on this machine.
///
/// ```
/// let spec: masu_run::Spec = "glibc:top_pad=64M,trim_threshold=64M".parse()?;
/// assert_eq!(spec.allocator, "glibc");
/// assert_eq!(spec.settings[0], ("top_pad".to_owned(), "64M".to_owned()));
/// assert_eq!(spec.to_string(), "glibc:top_pad=64M,trim_threshold=64M");
/// # Ok::<(), masu_run::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spec {
    /// The user's own name for a library, written `NAME=PATH`; pages show it in place of the path.
    pub name: Option<String>,
    /// The allocator's name in the catalogue, or a path (anything with a `/`) to its library.
    pub allocator: String,
    /// The settings in the order given: name and value as written, a `\,` in a value unescaped.
    pub settings: Vec<(String, String)>,
}

impl FromStr for Spec {
    type Err = Error;

    /// Understands `ALLOCATOR[:NAME=VALUE,…]` and `NAME=PATH[:NAME=VALUE,…]`. The settings are checked only once the
    /// allocator is known, in [`Catalogue::resolve`](crate::Catalogue::resolve).
    fn from_str(text: &str) -> Result<Spec, Error> {
        let wrong = |reason: String| Error::Variant { variant: text.to_owned(), reason };
        let (allocator, rest) = match text.split_once(':') {
            Some((allocator, rest)) => (allocator, Some(rest)),
            None => (text, None),
        };
        // A name has no `/`, and a path has one: `./a=b/lib.so` is a path, `masu:a=/b` a setting.
        let named = allocator
            .split_once('=')
            .filter(|(name, path)| !name.is_empty() && !name.contains('/') && path.contains('/'));
        let (name, allocator) = match named {
            Some((name, path)) => (Some(name.to_owned()), path),
            None => (None, allocator),
        };
        if name.as_deref() == Some("system") {
            let reason = "`system` is the malloc that the program has; take another name";
            return Err(wrong(reason.to_owned()));
        }
        if allocator.is_empty() {
            return Err(wrong("no allocator named; write ALLOCATOR[:NAME=VALUE,…]".to_owned()));
        }
        if allocator.contains(',') && !allocator.contains('/') {
            return Err(wrong("this names several; give each an -a of its own".to_owned()));
        }
        let mut settings: Vec<(String, String)> = Vec::new();
        for part in rest.map(split_at_commas).unwrap_or_default() {
            let Some((name, value)) = part.split_once('=').filter(|(name, _)| !name.is_empty())
            else {
                return Err(wrong(format!(
                    "`{part}` is not NAME=VALUE; `masu list --settings` has the names"
                )));
            };
            if settings.iter().any(|(known, _)| known == name) {
                return Err(wrong(format!("`{name}` is given twice")));
            }
            settings.push((name.to_owned(), value.to_owned()));
        }
        Ok(Spec { name, allocator: allocator.to_owned(), settings })
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

impl Spec {
    /// This allocator without settings.
    pub fn bare(allocator: impl Into<String>) -> Spec {
        Spec { allocator: allocator.into(), ..Spec::default() }
    }

    /// The variant's name on pages: as it was written, or with the user's own name in place of the path.
    pub fn label(&self) -> String {
        let allocator = self.name.as_ref().unwrap_or(&self.allocator).clone();
        Spec { name: None, allocator, settings: self.settings.clone() }.to_string()
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}=")?;
        }
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
    /// The user's name for it: the variant as [written](Spec::label), then the values of its parameters. Unique within
    /// a comparison.
    pub label: String,
    /// The variant as it was written, without its parameters; empty where it was read from a file.
    #[serde(skip)]
    pub spec: Spec,
    /// The allocator's name in the catalogue, or its library's path.
    pub allocator: String,
    /// The allocator's version where it is known.
    pub version: Option<String>,
    /// The library to preload; none for the C library's own malloc.
    pub library: Option<PathBuf>,
    /// Tunables of the C library, `("glibc.malloc.top_pad", "67108864")`: one entry each in
    /// `GLIBC_TUNABLES`.
    pub tunables: Vec<(String, String)>,
    /// Other environment variables the variant sets. `MALLOC_CONF` among them is a list that is
    /// added to the user's own.
    pub variables: Vec<(String, String)>,
    /// The values of `{NAME}` in the workload, `("bin", "./new")`.
    #[serde(default)]
    pub parameters: Vec<(String, String)>,
}

impl Variant {
    /// The environment variables this variant changes, with their final values, given the
    /// environment the program would otherwise get. An `LD_PRELOAD`, `GLIBC_TUNABLES` or
    /// `MALLOC_CONF` already there is kept: the variant's library is put before it, its tunables
    /// and options behind it (the last one wins).
    pub fn changes(
        &self,
        inherited: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(OsString, OsString)> {
        let mut changes = Vec::new();
        let kept = |name: &str| inherited(name).filter(|value| !value.is_empty());
        if let Some(library) = &self.library {
            let value = join(Some(library.clone().into_os_string()), ":", kept("LD_PRELOAD"));
            changes.push(("LD_PRELOAD".into(), value));
        }
        if let Some(ours) = self.tunable_list() {
            let value = join(kept("GLIBC_TUNABLES"), ":", Some(ours.into()));
            changes.push(("GLIBC_TUNABLES".into(), value));
        }
        for (name, value) in &self.variables {
            let value = match name.as_str() {
                MALLOC_CONF => join(kept(name), ",", Some(value.into())),
                _ => value.into(),
            };
            changes.push((name.into(), value));
        }
        changes
    }

    /// [`changes`](Self::changes) over this process's own environment.
    pub fn changes_here(&self) -> Vec<(OsString, OsString)> {
        self.changes(|name| std::env::var_os(name))
    }

    /// The result of the settings, as one would write it in a shell, without the additions of the user's own
    /// environment: `GLIBC_TUNABLES=glibc.malloc.top_pad=67108864`. Empty where nothing is set.
    pub fn translation(&self) -> Vec<String> {
        let tunables = self.tunable_list().map(|list| format!("GLIBC_TUNABLES={list}"));
        let variables = self.variables.iter().map(|(name, value)| format!("{name}={value}"));
        tunables.into_iter().chain(variables).collect()
    }

    /// Notes to read before the figures of these settings.
    pub fn notes(&self) -> Vec<String> {
        let adapting = ["top_pad", "trim_threshold", "mmap_threshold"];
        let is_set = |name: &&&str| {
            let tunable = format!("glibc.malloc.{name}");
            self.tunables.iter().any(|(known, _)| *known == tunable)
        };
        let set: Vec<&&str> = adapting.iter().filter(is_set).collect();
        match set[..] {
            [alone] => vec![format!(
                "with `{alone}` alone glibc stops adapting mmap_threshold and trim_threshold to \
                 the program: blocks of 128K and more are mapped one by one from then on; set \
                 mmap_threshold and trim_threshold too, unless that is what you want to see"
            )],
            _ => Vec::new(),
        }
    }

    fn tunable_list(&self) -> Option<String> {
        let list: Vec<String> =
            self.tunables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        (!list.is_empty()).then(|| list.join(":"))
    }
}

/// Joins the values that exist with the character that the variable uses as separator.
fn join(first: Option<OsString>, separator: &str, second: Option<OsString>) -> OsString {
    let parts: Vec<OsString> = first.into_iter().chain(second).collect();
    parts.join(OsStr::new(separator))
}

#[cfg(test)]
mod tests;
