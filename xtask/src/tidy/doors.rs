//! The names that only certain files of a crate may use: one door to the kernel, one to the C library, one to
//! atomics.
//!
//! The doors are data. Test code may go anywhere.

use std::path::Path;

use super::Finding;
use super::source::{Line, Source};
use super::tree::Tree;

struct Door {
    rule: &'static str,
    /// Whether a line names something behind the door.
    names: fn(&Line) -> bool,
    /// Each crate with the files under its `src` that are the door, without ending: `kernel` is `kernel.rs` and all of
    /// `kernel/`.
    crates: &'static [(&'static str, &'static [&'static str])],
    remedy: &'static str,
}

const DOORS: &[Door] = &[
    Door {
        rule: "kernel-door",
        names: names_system_call,
        crates: &[("masu", &["platform/kernel"]), ("masu-abi", &[])],
        remedy: "only src/platform/kernel.rs of masu makes system calls: add a function there and call it",
    },
    Door {
        rule: "assembly",
        names: |line| line.code.contains("asm!"),
        crates: &[(
            "masu",
            &[
                "platform/kernel",
                "platform/libc",
                "platform/bytes",
                "diagnostics/unwind/registers",
                "blocks/slot",
            ],
        )],
        remedy: "assembly belongs to the kernel door, the C library's door, the thread slot, musl's `memcpy` or the unwinder's registers",
    },
    Door {
        rule: "c-library-door",
        names: declares_foreign_functions,
        crates: &[("masu", &["platform/kernel", "platform/libc"]), ("masu-abi", &["libc"])],
        remedy: "only the C library's door, a file `libc.rs`, declares functions of the C library: add it there",
    },
    Door {
        rule: "atomics-door",
        names: names_atomics,
        crates: &[("masu", &["platform/atomics"]), ("masu-code", &["sync"])],
        remedy: "take atomics from the crate's module `sync`, so that loom can stand behind them",
    },
    Door {
        rule: "lock",
        names: |line| line.code.contains("Lock::new("),
        // COUPLING: `crates/masu/src/threads/fork.rs` lists the functions that visit the locks of these files.
        crates: &[(
            "masu",
            &[
                "platform/sync",
                "threads/cache/all",
                "threads/cache/idle",
                "blocks/owner",
                "blocks/shard",
                "blocks/transfer",
                "diagnostics/unwind/rule_cache",
                "diagnostics/sampling",
                "diagnostics/guards/slots",
                "memory/metadata",
                "memory/arena",
                "memory/ranges/held",
                "settings",
                "memory/random",
            ],
        )],
        remedy: "`fork` has to hold every lock: visit it in an `each_lock` that src/threads/fork.rs lists, then name the file here",
    },
    Door {
        rule: "kernel-door",
        names: |line| {
            let crates = ["libc::", "rustix::", "nix::"];
            declares_foreign_functions(line) || crates.iter().any(|it| has_path(&line.code, it))
        },
        crates: &[
            // The dynamic linker's door is `process`; `debugger` holds the two symbols debuggers look for.
            ("masu-code", &["kernel", "process", "debugger"]),
            ("masu-chunk", &["kernel"]),
            ("masu-run", &["kernel"]),
            ("masu-lab", &[]),
            // Laying the embedded library down safely is all that the command does by itself.
            ("masu-cli", &["embedded"]),
        ],
        remedy: "only src/kernel.rs talks to the kernel and the C library: add a function there; the command asks the lab",
    },
];

/// Lines outside a door that name something behind it.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    DOORS.iter().flat_map(|door| tree.sources.iter().flat_map(|s| door.check(s))).collect()
}

impl Door {
    fn check(&self, source: &Source) -> Vec<Finding> {
        let is_outside = self.crates.iter().any(|(name, files)| {
            let file = source.path.strip_prefix(Path::new("crates").join(name).join("src"));
            file.is_ok_and(|file| {
                !files.iter().any(|door| file.with_extension("").starts_with(door))
            })
        });
        let lines = source.lines.iter().enumerate().filter(|_| is_outside);
        lines
            .filter(|(_, line)| !line.in_test && (self.names)(line))
            .map(|(index, _)| Finding::at(&source.path, index, self.rule, self.remedy))
            .collect()
    }
}

fn names_system_call(line: &Line) -> bool {
    let instruction = line.text.trim_matches('"').split_whitespace().next();
    matches!(instruction, Some("syscall" | "svc" | "sysenter")) || line.code.contains("SYS_")
}

fn declares_foreign_functions(line: &Line) -> bool {
    let code: String = line.code.split_whitespace().collect();
    code.contains("extern\"\"{") || code.contains("extern{")
}

fn names_atomics(line: &Line) -> bool {
    let code: String = line.code.split_whitespace().collect();
    code.contains("sync::atomic") && !code.contains("crate::sync::atomic")
}

/// Whether `path` is in the code as a path of its own and not as the end of a longer name.
fn has_path(code: &str, path: &str) -> bool {
    code.match_indices(path).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    })
}
