//! Each rule on planted text: the text that it reports, and the text that it accepts.

use super::*;

type Check = fn(&Tree) -> Vec<Finding>;

/// The lines at which `rule` is broken.
fn found(check: Check, rule: &str, files: &[(&str, &str)]) -> Vec<usize> {
    let findings = check(&Tree::planted(files)).into_iter();
    findings.filter(|finding| finding.rule == rule).map(|finding| finding.line).collect()
}

/// A path, a text, and how much there is to find.
fn counts<const N: usize>(check: Check, rule: &str, cases: [(&str, &str, usize); N]) {
    for (path, text, count) in cases {
        assert_eq!(found(check, rule, &[(path, text)]).len(), count, "{path}: {text}");
    }
}

/// A text, and the lines that are found in it.
fn lines<const N: usize>(check: Check, rule: &str, path: &str, cases: [(&str, &[usize]); N]) {
    for (text, lines) in cases {
        assert_eq!(found(check, rule, &[(path, text)]), lines, "{text}");
    }
}

#[test]
fn arrows_that_are_not_drawn_are_found() {
    for (package, rest, count) in [
        ("masu-lab", "[dependencies]\nmasu = \"0.1\"", 1),
        ("masu-lab", "[dev-dependencies]\nmasu-abi = \"0.1\"", 1),
        ("masu-lab", "[dependencies]\na = { package = \"masu\" }", 1),
        ("masu-abi", "[dependencies]\nmasu-cli.workspace = true", 1),
        ("masu-abi", "[dependencies]\na = { package = \"masu\" }", 0),
        ("masu-cli", "[dependencies]\nmasu-lab = \"0.1\"\nclap = \"4\"", 0),
        ("masu", "[dependencies]\nlibc = \"0.2\"", 1),
        ("masu", "[build-dependencies]\ncc = \"1\"", 1),
        ("masu", "[dependencies]\nloom = \"0.7\"", 1),
        ("masu", "[target.'cfg(loom)'.dependencies]\nloom = \"0.7\"", 0),
        ("masu", "[dev-dependencies]\nproptest = \"1\"", 0),
        ("masu-new", "", 1),
    ] {
        let text = format!("[package]\nname = \"{package}\"\n{rest}");
        counts(manifest::check, "arrow", [(&format!("crates/{package}/Cargo.toml"), &text, count)]);
    }
}

#[test]
fn pages_are_listed_once() {
    for (summary, count) in [
        ("- [A](a.md)", 1),
        ("- [A](a.md)\n- [C](b/c.md)", 0),
        ("- [A](a.md)\n- [C](b/c.md)\n- [A again](a.md)", 1),
    ] {
        let pages = [("docs/a.md", ""), ("docs/b/c.md", ""), ("docs/plot.svg", "")];
        let files = [&[("docs/SUMMARY.md", summary)], &pages[..]].concat();
        assert_eq!(found(pages::check, "book", &files).len(), count, "{summary}");
    }
}

#[test]
fn doors_are_the_only_way() {
    let call = "asm!(\n    \"syscall\",\n)";
    let foreign = "unsafe extern \"C\" {\n    fn abort() -> !;\n}";
    let atomics = "use core::sync::atomic::AtomicU32;";
    let (page, lab) = ("crates/masu/src/page.rs", "crates/masu-lab/src/run.rs");
    for (path, text, rules) in [
        (page, call, &["kernel-door", "assembly"][..]),
        ("crates/masu/src/blocks/slot.rs", call, &["kernel-door"]),
        ("crates/masu/src/platform/kernel/x86_64.rs", call, &[]),
        (page, "f(SYS_mmap)", &["kernel-door"]),
        (page, foreign, &["c-library-door"]),
        ("crates/masu/src/platform/libc.rs", foreign, &[]),
        ("crates/masu-abi/src/malloc.rs", foreign, &["c-library-door"]),
        (lab, foreign, &["kernel-door"]),
        ("crates/masu-chunk/src/pool.rs", foreign, &["kernel-door"]),
        (page, "pub extern \"C\" fn malloc(size: usize) {", &[]),
        (lab, "libc::fork()", &["kernel-door"]),
        ("crates/masu-run/src/kernel.rs", "libc::fork()", &[]),
        ("crates/masu-cli/src/main.rs", "libc::fork()", &["kernel-door"]),
        (lab, "crate::libc::fork()", &[]),
        (page, atomics, &["atomics-door"]),
        ("crates/masu/src/platform/atomics.rs", atomics, &[]),
        (lab, atomics, &[]),
        (page, &format!("#[cfg(test)]\nmod tests {{\n{atomics}\n}}"), &[]),
    ] {
        let found = doors::check(&Tree::planted(&[(path, text)]));
        let found: Vec<&str> = found.iter().map(|finding| finding.rule).collect();
        assert_eq!(found, rules, "{path}: {text}");
    }
}

#[test]
fn the_page_of_figures_is_what_the_records_make() {
    let record = ("benches/record/2026-11-22-patterns.md", "# Patterns, 2026-11-22\n");
    let made = xtask::benchmarks::page([(Path::new(record.0), record.1)].into_iter());
    let other = made.replace("22", "23");
    let page = xtask::benchmarks::PAGE;
    for (files, count) in
        [(&[record, (page, &made)][..], 0), (&[record, (page, &other)], 1), (&[record], 1)]
    {
        assert_eq!(found(pages::check, "figures", files).len(), count);
    }
}

#[test]
fn files_open_with_their_purpose_and_have_names_that_say_something() {
    counts(
        rust::check,
        "file-top",
        [
            ("crates/masu/src/a.rs", "//! Pages.\nfn a() {}", 0),
            ("crates/masu/src/b.rs", "// Pages.\nfn a() {}", 1),
            ("xtask/src/c.rs", "", 1),
            ("workloads/d.rs", "fn main() {}", 0),
        ],
    );
    counts(
        rust::check,
        "file-name",
        [
            ("crates/masu/src/utils.rs", "", 1),
            ("crates/masu/src/common/page.rs", "", 1),
            ("crates/masu/src/page/mod.rs", "", 1),
            ("crates/masu/tests/oracle/mod.rs", "", 0),
            ("crates/masu/src/page.rs", "", 0),
        ],
    );
}

const CRATE: &str = "// Below.\nmod kernel;\nmod memory;\n\n// Above.\npub mod arena;\n#[cfg(test)]\nmod fixtures;\n\n\
                     pub use arena::{Arena,\n    Error as Wrong};\npub use memory::Page;\n";

#[test]
fn imports_that_climb_and_circles_are_found() {
    let (kernel, arena) = ("crates/a/src/kernel.rs", "crates/a/src/arena.rs");
    for (path, text, count) in [
        (kernel, "use crate::arena::Arena;", 1),
        ("crates/a/src/kernel/f.rs", "use crate::{\n    memory::{A, B},\n    arena::C,\n};", 1),
        (kernel, "fn f() { crate::arena::f() }", 1),
        (kernel, "use crate::{Page, Wrong};", 1),
        (arena, "use crate::{kernel, memory::{kernel, A}};", 0),
        (kernel, "use crate::memory;", 0),
        (kernel, "use crate::memory::{arena, b};", 0),
        (kernel, "#[cfg(test)]\nmod tests {\n    use crate::arena;\n}", 0),
        (kernel, "// crate::arena is above", 0),
    ] {
        let files = [("crates/a/src/lib.rs", CRATE), (path, text)];
        assert_eq!(found(layers::check, "layers", &files).len(), count, "{path}: {text}");
    }
    let circle = [
        ("crates/a/src/lib.rs", CRATE),
        (kernel, "use crate::memory;"),
        ("crates/a/src/memory.rs", "use crate::kernel;"),
    ];
    assert_eq!(found(layers::check, "layers", &circle).len(), 2);
}

#[test]
fn a_climb_inside_a_folder_is_found_at_any_depth() {
    let slice = "crates/a/src/memory/slice.rs";
    let kept = "crates/a/src/memory/ranges/kept.rs";
    for (path, text, count) in [
        (slice, "use crate::memory::ranges::Run;", 1),
        (slice, "use crate::memory::Ranges;", 1),
        (slice, "use crate::{\n  memory::{\n    slice::A,\n    ranges as b,\n  },\n};", 1),
        (slice, "use super::ranges;", 1),
        (slice, "fn f() { super::ranges::f::<u8>() }", 1),
        (slice, "use crate::front;", 1),
        (slice, "use super::super::front;", 1),
        ("crates/a/src/memory/slice/kind.rs", "use super::super::ranges;", 1),
        (kept, "use super::held::f;", 1),
        ("crates/a/src/memory/ranges/kept/x.rs", "use crate::memory::ranges::held;", 1),
        (kept, "use crate::memory::slice::Slice;", 0),
        (slice, "use super::ARENA;", 0),
        ("crates/a/src/front.rs", "use crate::memory::ranges;", 0),
    ] {
        let files = [
            ("crates/a/src/lib.rs", "mod memory;\n\nmod front;\n"),
            (
                "crates/a/src/memory.rs",
                "mod slice;\n\n// Above.\nmod ranges;\npub(crate) use ranges::Ranges;\n",
            ),
            ("crates/a/src/memory/ranges.rs", "mod kept;\n\nmod held;\n"),
            (path, text),
        ];
        assert_eq!(found(layers::check, "layers", &files).len(), count, "{path}: {text}");
    }
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let other = "# A `b`: c?\n\n```sh\n# no heading\n```\n";
    for (page, count) in [
        ("See [this](missing.md) and [that](b.md).", 1),
        ("See [this](/docs/b.md).", 1),
        ("See [this](../../b.md).", 1),
        ("[a](b.md) [b](../crates/c) [c](../crates/c/d.rs#L3)", 0),
        ("[a](https://example.org/x#y) [b](mailto:a@example.org)", 0),
        ("```\n[a](missing.md)\n```", 0),
        ("# Here\n[a](b.md#a-b-c) [b](#here)", 0),
        ("# Here\n[a](b.md#a-b) [b](#there) [c](b.md#no-heading)", 3),
    ] {
        let files = [("docs/a.md", page), ("docs/b.md", other), ("crates/c/d.rs", "")];
        assert_eq!(found(pages::check, "dead-link", &files).len(), count, "{page}");
    }
    for (code, count) in [
        ("// docs/a.md has it, and `docs/a.md`.\n\"see docs/a.md\"", 0),
        ("// docs/b.md has it.\n\"see docs/gone.md\"", 2),
    ] {
        let files = [("docs/a.md", ""), ("src/b.rs", code)];
        assert_eq!(found(pages::check, "dead-link", &files).len(), count, "{code}");
    }
}

#[test]
fn each_dependency_has_its_reason() {
    lines(
        manifest::check,
        "dependency-reason",
        "crates/masu/Cargo.toml",
        [
            ("[dependencies]\nlibc = \"0.2\"", &[2]),
            ("[target.'cfg(loom)'.dev-dependencies]\nloom = \"0.7\"", &[2]),
            ("[dependencies]\n# The C ABI.\nlibc = \"0.2\"", &[]),
            ("[dependencies]\n# A.\na = \"1\"\nb = \"1\"", &[4]),
            ("[dependencies.libc]\nversion = \"0.2\"", &[1]),
        ],
    );
}

#[test]
fn each_ordering_is_explained_nearby() {
    let far = format!("// ORDERING: alone.\n{}X.load(Ordering::Acquire);", "a();\n".repeat(16));
    lines(
        rust::check,
        "ordering-comment",
        "crates/masu/src/a.rs",
        [
            ("fn a() {\n    X.load(Ordering::Relaxed);\n}", &[2]),
            ("fn a() {\n    X.load(atomic::Ordering::SeqCst);\n}", &[2]),
            (
                "fn a() {\n// ORDERING: alone.\n// More.\nlet a = X\n.load(Ordering::Relaxed);\n\
                 Y.load(Ordering::Relaxed);\n\nZ.load(Ordering::Relaxed);\n}",
                &[8],
            ),
            ("// ORDERING: alone.\nfn a() {\nX.load(Ordering::Relaxed);\n}", &[3]),
            (&far, &[18]),
            ("use core::sync::atomic::Ordering::*;", &[1]),
            ("use core::sync::atomic::{AtomicU32, Ordering};", &[]),
            ("fn a() {\n    match o { Ordering::Less => 1 }\n}", &[]),
        ],
    );
}

#[test]
fn unsafe_functions_state_their_conditions() {
    lines(
        rust::check,
        "safety-comment",
        "crates/masu/src/a.rs",
        [
            ("/// A.\npub unsafe fn a() {}", &[2]),
            ("/// A.\npub unsafe extern \"C\" fn a() {}", &[2]),
            ("/// A.\n///\n/// # Safety\n///\n/// - B.\n#[inline]\npub unsafe fn a() {}", &[]),
            ("type F = unsafe extern \"C\" fn(*mut u8);", &[]),
            ("impl A for B {\n    unsafe fn a(&self) {}\n}", &[]),
            ("impl B {\n    unsafe fn a(&self) {}\n}", &[2]),
        ],
    );
}

#[test]
fn words_phrases_and_late_subjects_are_found_where_they_are_looked_for() {
    let lab = "crates/masu-lab/src/a.rs";
    let questions = "# What it is\n\n| What |\n\n```\nWhat now\n```\nWhat is it? That.\n\nIt says\nWhat goes on.\n";
    counts(
        words::check,
        "words",
        [
            ("docs/a.md", "Whoever reads.\n\nPlain.\nIt is told.", 2),
            (lab, "//! A file.\n/// Made anew.\nfn a() {}", 1),
            ("xtask/src/a.rs", "fn a() {} // the house's own", 1),
            (lab, "/// What it takes.\nfn a() {}\n// Plain. What fails is named.", 2),
            (lab, "/// A name that tells\n/// What it is.\nfn a() {} // What", 0),
            (lab, "//! A.\nfn told() { say(\"whoever\"); }\n// `endear`, untold", 1),
            ("workloads/a.c", "/* Whoever. */", 1),
            ("workloads/a.c", "/* Its Neighbours and unoptimised behavior. */", 1),
            ("docs/a.svg", "told", 0),
            ("benches/record/a.md", "told. What fails is named.", 0),
            ("docs/a.md", "Plain. What fails is named.\n\n- Of two, one.\n", 2),
            ("README.md", "It runs.\nWho reads it has time.", 1),
            ("docs/a.md", "Keep the malloc you have.", 1),
            ("docs/a.md", questions, 0),
        ],
    );
}
