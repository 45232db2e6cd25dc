//! `masu list --options`: every option of the allocator, and how the allocator reads glibc's settings.
//!
//! The tables of the allocator's own sources are compiled in: they are data, so no allocator is linked into the
//! command.

use masu_lab::report::wrap;
use masu_lab::variant::options as table;
use serde_json::{Value, json};

use super::{BOLD, DIM};

/// COUPLING: `libmasu/` leads to the sources; see `build.rs`.
#[path = "../../libmasu/masu-abi/src/glibc/table.rs"]
#[expect(unreachable_pub, reason = "it is written for the library")]
mod glibc;

const WIDTH: usize = 80;

/// The version of the JSON; a change that could break a reader needs a new version.
const VERSION: u32 = 1;

const INTRODUCTION: &str = "\
Options of the allocator, each as a variable of the environment, a function of
Rust's `Masu::new()`, and a name for `masu::options::set` and C's
`masu_option_set`. Bytes may end in K, M or G.";

const OF_GLIBC: &str = "\
What is set for glibc's malloc (mallopt, variables, GLIBC_TUNABLES), and what
libmasu.so makes of it. masu's own variables count more.";

pub(super) fn page() -> String {
    let mut page = format!("{INTRODUCTION}\n");
    for option in table::ALL {
        let table::Description { name, variable, accepted, default, meaning, holds, .. } = option;
        page.push_str(&format!("\n{BOLD}{name}{BOLD:#}  {variable}=…\n"));
        indented(&mut page, meaning);
        indented(&mut page, &format!("Accepts {accepted}. By default: {default}."));
        page.push_str(&format!("{DIM}"));
        indented(&mut page, &format!("A change under way holds {holds}."));
        page.push_str(&format!("{DIM:#}"));
    }
    for text in table::TEXTS {
        page.push_str(&format!("\n{BOLD}{}=…{BOLD:#}\n", text.variable));
        indented(&mut page, text.meaning);
        indented(&mut page, &format!("Accepts {}.", text.accepted));
    }
    page.push_str(&format!("\n{OF_GLIBC}\n"));
    for setting in glibc::ALL {
        let names = [setting.parameter, setting.variable, setting.tunable];
        let names = names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>();
        page.push_str(&format!("\n{BOLD}{}{BOLD:#}\n", names.join("  ")));
        let becomes = becomes(setting.becomes).unwrap_or("ignored");
        indented(&mut page, &format!("→ {becomes}. {}", setting.remark));
    }
    page
}

pub(super) fn json() -> String {
    let options: Vec<Value> = table::ALL.iter().map(option_as_json).collect();
    let texts: Vec<Value> = table::TEXTS.iter().map(text_as_json).collect();
    let settings: Vec<Value> = glibc::ALL.iter().map(setting_as_json).collect();
    let all = json!({
        "version": VERSION,
        "masu": env!("CARGO_PKG_VERSION"),
        "options": options,
        "texts": texts,
        "glibc": settings,
    });
    format!("{all:#}\n")
}

fn option_as_json(option: &table::Description) -> Value {
    let unit = match option.unit {
        table::Unit::Bytes => "bytes",
        table::Unit::Count => "count",
        table::Unit::Milliseconds => "milliseconds",
        table::Unit::Switch => "switch",
    };
    json!({
        "name": option.name,
        "variable": option.variable,
        "unit": unit,
        "least": option.least,
        "most": option.most,
        "accepts": option.accepted,
        "default": option.default,
        "holds": option.holds,
        "meaning": plain(option.meaning),
    })
}

fn text_as_json(text: &table::Text) -> Value {
    json!({
        "variable": text.variable,
        "accepts": text.accepted,
        "meaning": plain(text.meaning),
    })
}

fn setting_as_json(setting: &glibc::Setting) -> Value {
    let named = |name: &'static str| Some(name).filter(|name| !name.is_empty());
    json!({
        "parameter": named(setting.parameter),
        "number": named(setting.parameter).map(|_| setting.number),
        "variable": named(setting.variable),
        "tunable": named(setting.tunable),
        "becomes": becomes(setting.becomes),
        "remark": plain(setting.remark),
    })
}

fn becomes(becomes: glibc::Becomes) -> Option<&'static str> {
    match becomes {
        glibc::Becomes::RetainMin => Some("retain_min"),
        glibc::Becomes::HugePagesFrom => Some("huge_pages_from"),
        glibc::Becomes::Ignored => None,
    }
}

/// A text of the tables, joined into one line.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Adds a paragraph, two columns in.
fn indented(page: &mut String, text: &str) {
    for line in wrap(text, WIDTH - 2) {
        page.push_str(&format!("  {line}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_option_within_80_columns() {
        let page = anstream::adapter::strip_str(&page()).to_string();
        for line in page.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        for option in table::ALL {
            let head = format!("{}  {}=…", option.name, option.variable);
            assert!(page.lines().any(|line| line == head), "{head} is missing");
        }
        for setting in glibc::ALL {
            assert!(page.contains(setting.tunable), "{} is missing", setting.tunable);
        }
    }

    #[test]
    fn the_json_is_of_the_same_tables() {
        let all: Value = serde_json::from_str(&json()).expect("it is JSON");
        assert_eq!(all["version"], VERSION);
        let lists = [
            ("options", table::ALL.len()),
            ("texts", table::TEXTS.len()),
            ("glibc", glibc::ALL.len()),
        ];
        for (list, length) in lists {
            assert_eq!(all[list].as_array().map(Vec::len), Some(length), "{list}");
        }
        let retain =
            all["options"].as_array().and_then(|all| all.iter().find(|it| it["name"] == "retain"));
        let retain = retain.expect("there is such an option");
        assert_eq!(
            (&retain["variable"], &retain["unit"]),
            (&json!("MASU_RETAIN"), &json!("bytes"))
        );
        assert_eq!(all["glibc"][0]["becomes"], "retain_min");
        let becomes: Vec<_> = glibc::ALL.iter().filter_map(|it| becomes(it.becomes)).collect();
        for option in becomes {
            assert!(table::ALL.iter().any(|it| it.name == option), "{option} is no option");
        }
    }
}
