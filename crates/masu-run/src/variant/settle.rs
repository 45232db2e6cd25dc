//! Translates the settings of a variant for its malloc: into tunables and environment variables.
//!
//! It is an error if the malloc, or this release of it, does not have a setting; the message lists the settings there
//! are.

use std::path::Path;

use super::options::{self, Description};
use super::settings::{self, Cell, Place, SETTINGS, Setting};
use super::value::{Unit, Value};
use super::{MALLOC_CONF, Spec};
use crate::Error;

#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: Option<&'a str>,
    pub(crate) library: &'a Path,
}

/// The translated settings: tunables of the C library and plain environment variables.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settled {
    pub(crate) tunables: Vec<(String, String)>,
    pub(crate) variables: Vec<(String, String)>,
}

/// Turns the settings of `spec` into tunables and variables for the allocator `target`. An error for a setting that
/// this allocator does not have or a value that it does not take.
pub fn settle(spec: &Spec, target: Target<'_>) -> Result<Settled, Error> {
    let mut settled = Settled::default();
    let mut given = Vec::new();
    for (name, value) in &spec.settings {
        let done = if let Some(variable) = name.strip_prefix("env.") {
            settled.pass_variable(name, variable, value)
        } else if let Some(entry) = name.strip_prefix("conf.") {
            settled.pass_entry(name, entry, value, target)
        } else {
            settled.translate(name, value, target, &mut given)
        };
        done.map_err(|reason| Error::Variant { variant: spec.to_string(), reason })?;
    }
    Ok(settled)
}

impl Settled {
    fn pass_variable(&mut self, name: &str, variable: &str, value: &str) -> Result<(), String> {
        let reserved = ["LD_PRELOAD", "GLIBC_TUNABLES", ""];
        if reserved.contains(&variable) || variable.contains('\0') || value.contains('\0') {
            return Err(format!("`{name}` cannot be set through a variant"));
        }
        self.set_variable(variable, value);
        Ok(())
    }

    fn pass_entry(
        &mut self,
        name: &str,
        entry: &str,
        value: &str,
        target: Target<'_>,
    ) -> Result<(), String> {
        let place = match family(target.name) {
            "glibc" => Place::Tunable,
            "jemalloc" => Place::Conf,
            malloc => {
                return Err(format!(
                    "{malloc} reads no list of options, so `{name}` says nothing to it; \
                     write env.NAME=VALUE for a variable of its own"
                ));
            }
        };
        let separates_values = if place == Place::Tunable { [':', '\0'] } else { [',', '\0'] };
        if entry.is_empty()
            || entry.contains([',', ':', '=', '\0'])
            || value.contains(separates_values)
        {
            return Err(format!("`{name}={value}` cannot stand in a list of options"));
        }
        self.set(place, entry, value.to_owned());
        Ok(())
    }

    fn translate(
        &mut self,
        name: &str,
        value: &str,
        target: Target<'_>,
        given: &mut Vec<(&'static str, String)>,
    ) -> Result<(), String> {
        let malloc = family(target.name);
        let Some(setting) = Setting::named(name).filter(|setting| setting.is_of(malloc)) else {
            let mut options = options::ALL.iter().filter(|_| malloc == "masu");
            let option = options.find(|option| option.name == name);
            return self
                .set_option(option.ok_or_else(|| no_such_setting(name, target.name))?, value);
        };
        if let Some((_, known)) = given.iter().find(|(one, _)| *one == setting.name) {
            return Err(format!("`{name}` is `{known}`, which is given already"));
        }
        given.push((setting.name, name.to_owned()));
        let cell = choose(setting, malloc, target)?;
        let understood = understood(name, cell.unit(setting), value)?;
        for entry in cell.entries {
            if entry.place == Place::Variable
                && self.variables.iter().any(|(it, _)| it == entry.name)
            {
                return Err(format!("`{name}` is {}, which is given already", entry.name));
            }
            self.set(entry.place, entry.name, entry.value(&understood));
        }
        Ok(())
    }

    /// Sets an option of masu's, unless a setting of another name has set it.
    fn set_option(&mut self, option: &'static Description, value: &str) -> Result<(), String> {
        let Description { name, variable, .. } = *option;
        if self.variables.iter().any(|(known, _)| known == variable) {
            return Err(format!("`{name}` is {variable}, which is given already"));
        }
        let understood = understood(name, Unit::of(option), value)?;
        self.set_variable(variable, &settings::variable(variable).value(&understood));
        Ok(())
    }

    fn set(&mut self, place: Place, name: &str, value: String) {
        match place {
            Place::Tunable => self.tunables.push((name.to_owned(), value)),
            Place::Conf => self.set_variable(MALLOC_CONF, &format!("{name}:{value}")),
            Place::Variable => self.set_variable(name, &value),
        }
    }

    /// Sets a variable; adds to `MALLOC_CONF`, which is a list in which later entries win.
    fn set_variable(&mut self, name: &str, value: &str) {
        match self.variables.iter_mut().find(|(known, _)| known == name) {
            Some((_, list)) if name == MALLOC_CONF => {
                list.push(',');
                list.push_str(value);
            }
            Some((_, known)) => value.clone_into(known),
            None => self.variables.push((name.to_owned(), value.to_owned())),
        }
    }
}

/// The meaning of `value` for the setting `name`.
fn understood(name: &str, unit: Unit, value: &str) -> Result<Value, String> {
    unit.read(value).map_err(|wanted| {
        let example = unit.example();
        format!("`{value}` is no value for `{name}`; write {wanted}, as in {name}={example}")
    })
}

/// The malloc behind a name of the catalogue: its settings do not depend on its packaging.
pub fn family(name: &str) -> &str {
    // `jemalloc-5.3.0` is a second release beside `jemalloc`.
    let name = match name.split_once('-') {
        Some((malloc, rest)) if rest.starts_with(|first: char| first.is_ascii_digit()) => malloc,
        _ => name,
    };
    match name {
        "tcmalloc-full" => "tcmalloc",
        "masu-secure" => "masu",
        _ => match name.strip_prefix("mimalloc") {
            Some(rest) if rest.bytes().all(|byte| byte.is_ascii_digit()) => "mimalloc",
            _ => name,
        },
    }
}

/// The cell of `setting` that this release of `malloc` has.
fn choose(
    setting: &'static Setting,
    malloc: &str,
    target: Target<'_>,
) -> Result<&'static Cell, String> {
    let cells = setting.cells.iter().filter(|cell| cell.malloc == malloc);
    let fits = |cell: &&Cell| cell.release.includes(target.version, target.library);
    cells.clone().find(fits).ok_or_else(|| {
        let releases: Vec<String> = cells.map(|cell| cell.release.words()).collect();
        format!(
            "this {malloc}{} does not have `{}`; {} does",
            target.version.map(|version| format!(" {version}")).unwrap_or_default(),
            setting.name,
            releases.join(", ")
        )
    })
}

/// The message about a setting that `allocator` does not have: its own settings, and the mallocs that have this one.
fn no_such_setting(name: &str, allocator: &str) -> String {
    let malloc = family(allocator);
    let of = |malloc: &str| -> Vec<&str> {
        SETTINGS.iter().filter(|one| one.is_of(malloc)).map(|one| one.name).collect()
    };
    let known = of(malloc);
    let mut message = if known.is_empty() {
        format!("masu knows no settings of {malloc}, so not `{name}` either")
    } else {
        format!("{malloc} has no setting `{name}`; known: {}", known.join(", "))
    };
    if malloc == "masu" {
        message.push_str(", and each option of `masu list --options`");
    }
    let common = Setting::named(name).map_or(name, |setting| setting.near.unwrap_or(setting.name));
    let near: Vec<&str> = SETTINGS
        .iter()
        .filter(|one| one.is_of(malloc) && (one.near == Some(common) || one.name == common))
        .map(|one| one.name)
        .collect();
    if !near.is_empty() {
        message.push_str(&format!("; nearest: {}", near.join(", ")));
    }
    if let Some(setting) = Setting::named(name) {
        let mut others: Vec<&str> = setting.cells.iter().map(|cell| cell.malloc).collect();
        others.dedup();
        message.push_str(&format!("; `{name}` is a setting of {}", others.join(", ")));
    }
    message.push_str("; env.NAME=VALUE sets any variable");
    if ["glibc", "jemalloc"].contains(&malloc) {
        message.push_str(", conf.NAME=VALUE any option");
    }
    message
}
