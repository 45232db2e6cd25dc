//! `docs/options.md` is written from the table of options.
//!
//! `SNAPSHOTS=overwrite cargo test -p masu --test options page` overwrites it.

use masu::options::{ALL, Description, TEXTS};

use crate::section;

const BEGIN: &str = "<!-- options: written by the test `options` of masu -->\n";
const END: &str = "<!-- end of options -->\n";

/// The text of an option.
fn text_of(option: &Description) -> String {
    let Description { name, variable, accepted, meaning, default, holds, .. } = option;
    let meaning = meaning.trim().replace("\n ", "\n");
    format!(
        "### {name}\n\n`{variable}=…`, `.{name}(…)`: {accepted}. By default: {default}.\n\n\
         {meaning} A change under way holds {holds}.\n\n"
    )
}

#[test]
fn the_page_has_every_option_and_no_other() {
    let mut sections: String = ALL.iter().map(text_of).collect();
    sections.push_str("### Variables that hold a text\n\n");
    for text in TEXTS {
        let (variable, accepted, meaning) = (text.variable, text.accepted, text.meaning);
        sections.push_str(&format!("`{variable}=…`: {accepted}. {meaning}\n\n"));
    }
    section::check(BEGIN, &format!("\n{sections}"), END);
}
