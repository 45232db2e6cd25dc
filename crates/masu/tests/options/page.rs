//! `docs/options.md` is written from the table of options.
//!
//! `SNAPSHOTS=overwrite cargo test -p masu --test options page` overwrites it.

use std::fs;
use std::path::Path;

use masu::options::{ALL, Description, TEXTS};

const BEGIN: &str = "<!-- options: written by the test `options` of masu -->\n";
const END: &str = "<!-- end of options -->\n";

/// The section of an option.
fn section(option: &Description) -> String {
    let Description { name, variable, accepted, meaning, default, holds, .. } = option;
    let meaning = meaning.trim().replace("\n ", "\n");
    format!(
        "### {name}\n\n`{variable}=…`, `.{name}(…)`: {accepted}. By default: {default}.\n\n\
         {meaning} A change under way holds {holds}.\n\n"
    )
}

#[test]
fn the_page_has_every_option_and_no_other() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/options.md");
    let page = fs::read_to_string(&file).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("the page marks where options begin");
    let (_, after) = rest.split_once(END).expect("the page marks where options end");
    let mut sections: String = ALL.iter().map(section).collect();
    sections.push_str("### Variables that hold a text\n\n");
    for text in TEXTS {
        let (variable, accepted, meaning) = (text.variable, text.accepted, text.meaning);
        sections.push_str(&format!("`{variable}=…`: {accepted}. {meaning}\n\n"));
    }
    let wanted = format!("{before}{BEGIN}\n{sections}{END}{after}");
    if std::env::var_os("SNAPSHOTS").is_some_and(|what| what == "overwrite") {
        fs::write(&file, wanted).expect("the page may be written");
        return;
    }
    assert!(page == wanted, "SNAPSHOTS=overwrite writes {} again:\n{wanted}", file.display());
}
