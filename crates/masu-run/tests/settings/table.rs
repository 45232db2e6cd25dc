//! The page for users, `docs/settings.md`, agrees with the table in code.
//!
//! `SNAPSHOTS=overwrite cargo test -p masu-run --test settings` overwrites it.

use std::path::Path;

use masu_run::variant::settings::SETTINGS;

use super::proofs::PROOFS;

const BEGIN: &str = "<!-- tables: written by the test `settings` of masu-run -->\n";
const END: &str = "<!-- end of tables -->\n";

/// Both tables, as they must be in the page.
fn tables() -> String {
    let mut text = "\n| setting | what it does |\n| --- | --- |\n".to_owned();
    for setting in &SETTINGS {
        let alias = setting.alias.map(|name| format!(" (or `{name}`)")).unwrap_or_default();
        let value = setting.unit.placeholder().replace('|', "\\|");
        text.push_str(&format!("| `{}={value}`{alias} | {} |\n", setting.name, setting.meaning));
    }
    text.push_str("\n| of | becomes | remark | proved by |\n| --- | --- | --- | --- |\n");
    for setting in &SETTINGS {
        for cell in setting.cells {
            let is_it = |malloc, name| malloc == cell.malloc && name == setting.name;
            let proof = PROOFS.iter().find(|proof| is_it(proof.malloc, proof.setting)).unwrap();
            text.push_str(&format!(
                "| `{}:{}` | `{}` | {} | {} |\n",
                cell.malloc,
                setting.name,
                cell.shown().join("` `").replace('|', "\\|"),
                cell.remark(),
                proof.evidence(),
            ));
        }
    }
    text.push('\n');
    text
}

#[test]
fn the_page_of_settings_says_what_the_code_does() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page marks where its tables begin");
    let (_, after) = rest.split_once(END).expect("the page marks where its tables end");
    let wanted = format!("{before}{BEGIN}{}{END}{after}", tables());
    if std::env::var_os("SNAPSHOTS").is_some_and(|what| what == "overwrite") {
        std::fs::write(&file, wanted).unwrap();
        return;
    }
    assert!(page == wanted, "SNAPSHOTS=overwrite writes {} again:\n{wanted}", file.display());
}
