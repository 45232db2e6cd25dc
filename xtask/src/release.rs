//! `cargo xtask release X.Y.Z`: the conditions that must hold before a version is published, and the files that are
//! published.
//!
//! It relies on `package` for the packages and their tests, on `interface` for the public items, on `docs` for the
//! book, and on `cargo-deny` and `cargo-cyclonedx`, which [`tools`] installs. Everything is built twice, in two clones
//! with different paths: a file that is not the same byte for byte both times is not reproducible, and ends the
//! chore. Nothing is published and no tag is set: the last lines name the commands that do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::package::debian;
use crate::package::{PLACEHOLDER, VERSION};
use crate::{commands, docs, files, interface, machine, registry, tidy, tools};

/// Check that a version can be published; build it twice, test it, leave it in target/release-X.Y.Z (an hour; a second call
/// goes on where the first was stopped)
#[derive(Debug, clap::Parser)]
pub(crate) struct Request {
    /// The version, that of Cargo.toml
    version: String,
    /// Only say what is missing: builds nothing (seconds)
    #[arg(long, conflicts_with = "rehearse")]
    check: bool,
    /// Go to the end and succeed, whatever is missing
    #[arg(long)]
    rehearse: bool,
}

/// The folder that a published build shows as its own, in panics and debug information.
const SEEMING: &str = "/masu";

pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    let state = State::read(root)?;
    let missing = state.missing(&request.version);
    for line in &missing {
        println!("release: {line}");
    }
    // Before an hour of building, not after it.
    ensure!(
        request.rehearse || missing.is_empty(),
        "the above {} stand in the way of {}; `--rehearse` builds all the same",
        missing.len(),
        request.version
    );
    if request.check {
        println!("release: nothing is in the way of {}", request.version);
        return Ok(());
    }
    let target = commands::target_folder()?;
    commands::step("house rules", || tidy::run(root))?;
    commands::step("book", || docs::run(root))?;
    commands::step("dependencies", || {
        let words = ["deny", "check", "bans", "licenses", "sources"];
        commands::run(&mut tools::command(root, "cargo-deny", &words)?)
    })?;
    commands::step("public interface", || {
        interface::check(root)?;
        match &state.tag {
            None => println!("no earlier version to compare with"),
            Some(tag) => interface::since(root, tag)?,
        }
        Ok(())
    })?;
    let out = target.join(format!("release-{VERSION}"));
    // The second name is longer, so that a path inside a file shows. The commit is in both: cargo keeps unpacked
    // packages by the path of their folder, and an earlier commit's must not be built for this one's.
    let folder = out.join("clones").join(&state.commit);
    let clones = ["first", "second-in-a-longer-folder"].map(|name| folder.join(name));
    if folder.exists() {
        println!("release: going on with what an earlier call built of this commit");
    } else {
        let _ = fs::remove_dir_all(&out);
    }
    // Both at once: commits that are made while the first is built are in neither.
    for clone in clones.iter().filter(|clone| !clone.exists()) {
        let mut git = Command::new("git");
        commands::run(git.args(["clone", "--quiet", "--no-hardlinks"]).arg(root).arg(clone))?;
    }
    for (clone, tests) in clones.iter().zip([true, false]) {
        commands::step(&format!("packages in {}", clone.display()), || build(clone, tests))?;
    }
    let [first, second] = clones.each_ref().map(|clone| clone.join("target/packages"));
    commands::step("bills of materials", || {
        clones.iter().try_for_each(|clone| write_bills(root, clone))
    })?;
    let mut files = commands::step("same bytes", || same_files(&first, &second))?;
    for file in &mut files {
        let to = out.join(file.file_name().unwrap_or_default());
        fs::copy(&*file, &to).with_context(|| file.display().to_string())?;
        *file = to;
    }
    let notes = out.join("NOTES.md");
    let text = state.section(&request.version).or_else(|| state.section("Unreleased"));
    files::write(&notes, text.unwrap_or_default())?;
    files.push(notes);
    write_sums(&out, &files)?;
    fs::remove_dir_all(out.join("clones"))?;
    println!("\n{}:", out.display());
    for file in &files {
        println!("  {}", file.file_name().unwrap_or_default().to_string_lossy());
    }
    if !missing.is_empty() {
        let not_yet = missing.join("\n  ");
        println!(
            "\nrelease: rehearsed. {} must not be published yet:\n  {not_yet}",
            request.version
        );
        return Ok(());
    }
    println!(
        "\nTo publish: git tag -s v{VERSION} && cargo publish --workspace --locked, then upload these files."
    );
    Ok(())
}

struct State {
    commit: String,
    /// Files that differ from the commit, as git lists them.
    changes: String,
    changelog: String,
    manifest: String,
    /// The newest earlier version's.
    tag: Option<String>,
    has_maintainer: bool,
}

impl State {
    fn read(root: &Path) -> Result<State> {
        let git =
            |words: &[&str]| commands::output(Command::new("git").args(words).current_dir(root));
        let read = |name: &str| files::read(&root.join(name));
        let tag = git(&["describe", "--tags", "--abbrev=0", "--match", "v*"]).ok();
        Ok(State {
            commit: git(&["rev-parse", "HEAD"])?.trim().to_owned(),
            changes: git(&["status", "--porcelain"])?,
            changelog: read("CHANGELOG.md")?,
            manifest: read("Cargo.toml")?,
            tag: tag.map(|tag| tag.trim().to_owned()),
            has_maintainer: debian::email().is_some(),
        })
    }

    /// All that is in the way, a line each.
    fn missing(&self, version: &str) -> Vec<String> {
        let conditions = [
            (version == VERSION, format!("Cargo.toml has version {VERSION}, not {version}")),
            (
                self.changes.is_empty(),
                format!(
                    "the tree differs from its commit; commit or remove:\n{}",
                    self.changes.trim_end()
                ),
            ),
            (
                self.section(version).is_some(),
                format!(
                    "CHANGELOG.md has no section \"## {version}\" with text; rename \"## Unreleased\""
                ),
            ),
            (
                self.tag.as_deref() != Some(&format!("v{version}")),
                format!("tag v{version} is there already"),
            ),
            (
                !self.manifest.contains(PLACEHOLDER),
                "`repository` and `homepage` are placeholders: set both in Cargo.toml, [workspace.package], which every crate reads"
                    .to_owned(),
            ),
            (
                self.has_maintainer,
                "DEBEMAIL (and DEBFULLNAME) are not set: who answers for the Debian package".to_owned(),
            ),
        ];
        conditions.into_iter().filter(|(holds, _)| !holds).map(|(_, what)| what).collect()
    }

    /// The text below a heading of the changelog.
    fn section(&self, heading: &str) -> Option<&str> {
        let head = format!("\n## {heading}");
        let (_, rest) = self.changelog.split_once(&head)?;
        // The rest of the heading's line is the date.
        let (_, rest) = rest.split_once('\n')?;
        let notes = rest.split("\n## ").next().unwrap_or_default().trim();
        (!notes.is_empty()).then_some(notes)
    }
}

/// Packages a clone as if it lay in [`SEEMING`].
fn build(clone: &Path, tests: bool) -> Result<()> {
    let flags = format!(
        "--remap-path-prefix={}={SEEMING} --remap-path-prefix={}=/cargo",
        clone.display(),
        registry::cargo_home()?.display()
    );
    let mut package = commands::cargo(clone, &["xtask", "package", "all"]);
    package.args(tests.then_some("--test")).env("RUSTFLAGS", flags);
    for variable in ["CARGO_TARGET_DIR", "CARGO_ENCODED_RUSTFLAGS", "CARGO_MANIFEST_DIR"] {
        package.env_remove(variable);
    }
    commands::run(&mut package)
}

/// The programs and libraries that packages carry: the file of each that cargo-cyclonedx writes, and its name as a
/// published file.
const BILLS: [(&str, &str); 4] = [
    ("crates/masu-cli/masu_bin", "masu"),
    ("crates/masu-xquo/xquo_bin", "xquo"),
    ("crates/masu-abi/masu_cdylib-staticlib", "libmasu"),
    ("crates/masu-code-abi/masu_code_cdylib-staticlib", "libmasu_code"),
];

/// The ending of files that list the components of a program, by the specification CycloneDX.
const BILL: &str = "cdx.json";

/// Writes what each program and library is made of beside the packages of a clone: no crate that only builds or tests
/// it, and none of the chores.
fn write_bills(root: &Path, clone: &Path) -> Result<()> {
    let words = "cyclonedx --quiet --format json --spec-version 1.5 --describe binaries --no-build-deps --target";
    let words: Vec<&str> = words.split(' ').chain([machine::HOST]).collect();
    let mut list = tools::command(root, "cargo-cyclonedx", &words)?;
    // With it the tool leaves out the random number of a document, and takes this for the hour of its making.
    list.current_dir(clone).env("SOURCE_DATE_EPOCH", debian::changed(clone)?);
    commands::run(&mut list)?;
    let written = files::below(clone, &format!("*_*.{BILL}"))?;
    for (file, name) in BILLS {
        let place = clone.join(format!("{file}.{BILL}"));
        let bill = files::read(&place)?;
        let to = clone.join("target/packages").join(format!("{name}-{VERSION}.{BILL}"));
        files::write(&to, bill.replace(&*clone.to_string_lossy(), SEEMING))?;
    }
    // Packages of crates are made of clean trees only.
    for file in written.iter().filter(|file| !file.starts_with("target")) {
        fs::remove_file(clone.join(file)).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

/// The files of the first folder, each of which the second must have with the same bytes.
fn same_files(first: &Path, second: &Path) -> Result<Vec<PathBuf>> {
    let mut diff = Command::new("diff");
    commands::run(diff.arg("--report-identical-files").arg("--brief").args([first, second]))
        .context("built twice, these are not the same; `diffoscope` shows where")?;
    let mut paths = files::list(first)?;
    paths.retain(|path| path.is_file());
    Ok(paths)
}

/// Writes `SHA256SUMS`, which `sha256sum --check` reads.
fn write_sums(out: &Path, files: &[PathBuf]) -> Result<()> {
    let names = files.iter().filter_map(|file| file.file_name());
    let sums = commands::output(Command::new("sha256sum").args(names).current_dir(out))?;
    files::write(&out.join("SHA256SUMS"), sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_in_the_way_is_said_at_once() {
        let mut state = State {
            commit: String::new(),
            changes: " M README.md\n".to_owned(),
            changelog: "# Changelog\n\n## Unreleased\n\ntext\n".to_owned(),
            manifest: "homepage = \"https://example.org/masu\"".to_owned(),
            tag: Some(format!("v{VERSION}")),
            has_maintainer: false,
        };
        assert_eq!(state.missing(VERSION).len(), 5);
        assert_eq!(state.missing("77.0.0").len(), 5);
        // A rehearsal's notes.
        assert_eq!(state.section("Unreleased"), Some("text"));
        state.changes.clear();
        state.changelog =
            format!("# Changelog\n\n## {VERSION} - 2026-11-24\n\n- A line.\n\n## 0.0.1\n\nold\n");
        state.manifest.clear();
        state.tag = None;
        state.has_maintainer = true;
        assert_eq!(state.missing(VERSION), Vec::<String>::new());
        assert_eq!(state.section(VERSION), Some("- A line."));
    }
}
