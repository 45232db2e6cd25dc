//! What the manual says beyond the help: what masu is, variants, exit codes, environment, files.

use clap_mangen::roff::{Roff, bold, roman};

use super::paragraphs;
use crate::exit::{FAILED, GATE_FAILED, INTERRUPTED, RUN_CANNOT_START, RUN_FAILED, RUN_NOT_FOUND};

pub(super) const DESCRIPTION: &[&str] = &[
    "Where a program's memory comes from can decide how fast it runs: one setting of the malloc it \
     already has may halve its time in the kernel, another malloc may let its threads run instead \
     of wait, and often neither matters. masu runs a program under every malloc it finds and says \
     which is better, by how much, and how sure that is.",
    "masu is one file: it carries a malloc of its own, libmasu.so, and puts it in place of a \
     program's malloc by the dynamic linker's preload. Programs are not changed. What cannot be \
     preloaded into is refused with the reason: statically linked programs, those with more rights \
     than their user (setuid, setgid, capabilities), those built with a sanitizer, and 32-bit ones. \
     Whether a preload took effect is not taken for granted: the library must be mapped, and must \
     be seen to serve an allocation.",
];

pub(super) const EXAMPLES: &[&str] = &[
    "masu diagnose -- ./job input",
    "masu compare -- ./job input",
    "masu compare -a system -a glibc:arenas=2 -a jemalloc -- ./job input",
    "masu compare -P bin=./old,./new -- {bin} input",
    "masu tune --budget 10m -- ./job input",
    "masu run -a mimalloc -- ./server",
    "masu top -p 1234",
    "masu code map -p 1234",
    "masu code load build/ --call main",
    "masu doctor",
    "masu list --settings",
    "masu list --options",
    "masu report runs.jsonl -o runs.html",
    "MASU_PROFILE=/tmp/heap masu run -- ./job",
    "masu heap show /tmp/heap.4711.0.pb -o heap.svg",
];

pub(super) fn variants(roff: &mut Roff) {
    roff.control("SH", ["VARIANTS"]);
    paragraphs(roff, &["A variant is a malloc with its settings:"]);
    roff.control("PP", []);
    roff.text([bold("ALLOCATOR"), roman("[:"), bold("NAME=VALUE"), roman(","), roman("…]")]);
    let kinds = [
        ("system", "The malloc that the program has anyway; nothing is preloaded."),
        ("masu", "The one that masu carries."),
        (
            "glibc, jemalloc, mimalloc, tcmalloc, …",
            "One that is installed; `masu list` names them with their versions.",
        ),
        ("/path/to/libmymalloc.so", "Any other library; a path has a slash in it."),
    ];
    for (term, meaning) in kinds {
        roff.control("TP", []);
        roff.text([bold(term)]);
        roff.text([roman(meaning)]);
    }
    paragraphs(
        roff,
        &[
            "Settings have common names where they ask the same of several mallocs \
             (glibc:top_pad=64M, jemalloc:purge_delay=0); each becomes what that malloc itself \
             reads, and comparisons show what that is. `masu list --settings` has them all. A name \
             or a value that the malloc does not know is an error.",
            "conf.NAME=VALUE sets an option of jemalloc's (MALLOC_CONF) or a tunable of glibc's \
             that has no common name, env.NAME=VALUE an environment variable; neither is checked. \
             A comma that belongs to a value is written with a backslash before it. Sizes may end \
             in K, M or G, powers of 1024.",
        ],
    );
}

pub(super) fn exit_codes(page: &str) -> Vec<(String, &'static str)> {
    let done = (0, "Done.");
    let failed = (FAILED, "The arguments were wrong, or something kept masu from its work.");
    let gate = (GATE_FAILED, "With --fail-if-slower: one is surely slower by more than that.");
    let stopped =
        (INTERRUPTED, "Stopped by Ctrl-C; what was measured until then was shown and kept.");
    let run = [
        (RUN_FAILED, "masu run: masu itself failed; the program was not started."),
        (RUN_CANNOT_START, "masu run: the program is there, but cannot be started."),
        (RUN_NOT_FOUND, "masu run: there is no such program."),
    ];
    let codes = match page {
        "masu" => [&[done, gate, failed][..], &run, &[stopped]].concat(),
        "masu-compare" => vec![
            done,
            gate,
            (
                FAILED,
                "The arguments were wrong, something kept masu from its work, or a gate had too \
                 few runs to judge by.",
            ),
            stopped,
        ],
        "masu-tune" => vec![
            done,
            failed,
            (INTERRUPTED, "Stopped by Ctrl-C; what was found until then was shown."),
        ],
        "masu-run" => {
            let mut all = vec![("*", "The program's own, or its signal.")]
                .into_iter()
                .map(|(code, meaning)| (code.to_owned(), meaning))
                .collect::<Vec<_>>();
            all.extend(
                run.map(|(code, meaning)| (code.to_string(), &meaning["masu run: ".len()..])),
            );
            return all;
        }
        "masu-experiment" => {
            let ended = (INTERRUPTED, "Stopped by Ctrl-C; the runs made until then were kept.");
            vec![done, failed, ended]
        }
        "masu-diagnose" => {
            let judged = (INTERRUPTED, "Stopped by Ctrl-C; what was seen until then was judged.");
            vec![done, failed, judged]
        }
        _ => vec![done, failed],
    };
    codes.into_iter().map(|(code, meaning)| (code.to_string(), meaning)).collect()
}

pub(super) fn environment(page: &str) -> Vec<(String, &'static str)> {
    let colors = [
        ("NO_COLOR", "Where it is set, nothing is colored."),
        ("CLICOLOR_FORCE", "Where it is set, output has colors even if it is no terminal."),
    ];
    let runs = [
        (
            "LD_PRELOAD, GLIBC_TUNABLES, MALLOC_CONF",
            "What they hold is kept, and the variant's own added before it; where both speak of \
             the same thing, the variant wins.",
        ),
        (
            "XDG_CACHE_HOME, HOME, XDG_RUNTIME_DIR, TMPDIR",
            "Where libmasu.so is laid out for the dynamic linker: the first of these folders that \
             is safe from others and may hold code; else one in /tmp, /var/tmp or /dev/shm.",
        ),
    ];
    let statistics = (
        "MASU_STATISTICS_PAGE",
        "Set to 1 for programs under masu, so that `masu top` finds their statistics, unless it is \
         set already.",
    );
    let temporary = [("TMPDIR", "Where standard input is kept, and --scratch makes its folders.")];
    let input = [("TMPDIR", "Where standard input is kept.")];
    let chosen = match page {
        "masu" => [&colors[..], &runs].concat(),
        "masu-compare" | "masu-tune" | "masu-experiment" => {
            [&colors[..], &runs, &temporary].concat()
        }
        "masu-diagnose" => [&colors[..], &runs, &input].concat(),
        "masu-run" => [&runs[..], &[statistics]].concat(),
        "masu-doctor" | "masu-list" | "masu-report" => colors.to_vec(),
        _ => Vec::new(),
    };
    chosen.into_iter().map(|(name, meaning)| (name.to_owned(), meaning)).collect()
}

pub(super) fn files(page: &str) -> Vec<(String, &'static str)> {
    let library = (
        "~/.cache/masu/libmasu-*.so",
        "The malloc that masu carries, under a name with its hash, checked before each use. May be \
         removed at any time that no program runs under it.",
    );
    let results = (
        "runs.jsonl",
        "What --json FILE writes: a line of JSON for every run, written when the run is over. \
         Arguments of the program are in it, and environment variables as far as a variant sets \
         them; --redact keeps names out.",
    );
    let experiments = (
        "~/.cache/masu/experiments",
        "What experiments built and made, kept for the next time; `masu experiment --clean` removes it.",
    );
    let chosen = match page {
        "masu" | "masu-run" | "masu-diagnose" | "masu-tune" => vec![library],
        "masu-experiment" => vec![experiments, library],
        "masu-compare" => vec![results, library],
        _ => Vec::new(),
    };
    chosen.into_iter().map(|(name, meaning)| (name.to_owned(), meaning)).collect()
}

pub(super) fn see_also(page: &str) -> &'static [&'static str] {
    match page {
        "masu" => &["malloc(3)", "mallopt(3)", "ld.so(8)"],
        "masu-diagnose" => &["masu-compare(1)", "masu-doctor(1)", "strace(1)"],
        "masu-compare" => &["masu-report(1)", "masu-list(1)"],
        "masu-tune" => &["masu-compare(1)", "masu-run(1)", "masu-list(1)"],
        "masu-run" => &["masu-compare(1)", "masu-top(1)", "ld.so(8)"],
        "masu-top" => &["masu-run(1)", "malloc_stats(3)"],
        "masu-report" => &["masu-compare(1)"],
        "masu-code" => &["ld(1)", "dlopen(3)", "gdb(1)"],
        "masu-doctor" => &["masu-list(1)", "masu-compare(1)"],
        "masu-experiment" => &["masu-compare(1)", "masu-diagnose(1)", "masu-report(1)"],
        _ => &[],
    }
}
