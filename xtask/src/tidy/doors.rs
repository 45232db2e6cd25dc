//! One door to the kernel, one to the C library, one to atomics: what only certain files of a
//! crate may name.
//!
//! The doors are data: a crate, what is behind the door, and the files that are it. Test code may
//! go anywhere.

use std::path::Path;

use super::Finding;
use super::source::{Line, Source};
use super::tree::Tree;

/// Something that only `files` of `room` may name.
struct Door {
    rule: &'static str,
    room: &'static str,
    /// Whether a line names something behind the door.
    names: fn(&Line) -> bool,
    /// Files under the room's `src`, without ending: `kernel` is `kernel.rs` and all of `kernel/`.
    files: &'static [&'static str],
    remedy: &'static str,
}

const DOORS: &[Door] = &[
    Door {
        rule: "kernel-door",
        room: "crates/masu",
        names: names_system_call,
        files: &["platform/kernel"],
        remedy: "only src/platform/kernel.rs makes system calls: add a function there and call it",
    },
    Door {
        rule: "assembly",
        room: "crates/masu",
        names: |line| line.code.contains("asm!"),
        files: &[
            "platform/kernel",
            "platform/libc",
            "platform/bytes",
            "diagnostics/unwind/registers",
            "blocks/slot",
        ],
        remedy: "assembly belongs to the kernel door, the C library's door, the thread slot, musl's `memcpy` or the unwinder's registers",
    },
    Door {
        rule: "c-library-door",
        room: "crates/masu",
        names: declares_foreign_functions,
        files: &["platform/kernel", "platform/libc"],
        remedy: "only src/platform/libc.rs declares functions of the C library: add it there",
    },
    Door {
        rule: "atomics-door",
        room: "crates/masu",
        names: names_atomics,
        files: &["platform/atomics"],
        remedy: "take atomics from `crate::platform::sync`, so that loom can stand behind them",
    },
    Door {
        rule: "lock",
        room: "crates/masu",
        names: |line| line.code.contains("Lock::new("),
        // COUPLING: `crates/masu/src/threads/fork.rs` lists what visits the locks of these files.
        files: &[
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
        remedy: "`fork` has to hold every lock: visit it in an `each_lock` that src/threads/fork.rs lists, then name the file here",
    },
    Door {
        rule: "kernel-door",
        room: "crates/masu-abi",
        names: names_system_call,
        files: &[],
        remedy: "the ABI holds no system call: the allocator's kernel door makes them",
    },
    Door {
        rule: "c-library-door",
        room: "crates/masu-abi",
        names: declares_foreign_functions,
        files: &["libc"],
        remedy: "only src/libc.rs declares functions of the C library: add it there",
    },
    Door {
        rule: "kernel-door",
        room: "crates/masu-code",
        names: |line| declares_foreign_functions(line) || names_c_library_crate(line),
        // The dynamic linker's door is `process`; `debugger` holds the two symbols debuggers look for.
        files: &["kernel", "process", "debugger"],
        remedy: "only src/kernel.rs talks to the kernel, src/process.rs to the dynamic linker",
    },
    Door {
        rule: "atomics-door",
        room: "crates/masu-code",
        names: names_atomics,
        files: &["sync"],
        remedy: "take atomics from `crate::sync`, so that loom can stand behind them",
    },
    Door {
        rule: "kernel-door",
        room: "crates/masu-chunk",
        names: |line| declares_foreign_functions(line) || names_c_library_crate(line),
        files: &["kernel"],
        remedy: "only src/kernel.rs talks to the kernel: add a function there",
    },
    Door {
        rule: "kernel-door",
        room: "crates/masu-lab",
        names: |line| declares_foreign_functions(line) || names_c_library_crate(line),
        files: &["kernel"],
        remedy: "only src/kernel.rs talks to the kernel and the C library: add a function there",
    },
    Door {
        rule: "kernel-door",
        room: "crates/masu-cli",
        names: |line| declares_foreign_functions(line) || names_c_library_crate(line),
        // Laying the carried library down safely is all that the command does by itself.
        files: &["carried"],
        remedy: "the command asks the lab; the lab's kernel door asks the kernel",
    },
    Door {
        rule: "allocator-not-linked",
        room: "crates/masu-lab",
        names: names_the_allocator,
        files: &[],
        remedy: "the lab never links the allocator it judges: it runs processes",
    },
    Door {
        rule: "allocator-not-linked",
        room: "crates/masu-cli",
        names: names_the_allocator,
        files: &[],
        remedy: "the command carries libmasu.so as bytes and never links it",
    },
];

/// Lines outside a door that name something behind it.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    DOORS.iter().flat_map(|door| tree.sources.iter().flat_map(|s| door.check(s))).collect()
}

impl Door {
    fn check(&self, source: &Source) -> Vec<Finding> {
        let Ok(file) = source.path.strip_prefix(Path::new(self.room).join("src")) else {
            return Vec::new();
        };
        let stem = file.with_extension("");
        if self.files.iter().any(|door| stem.starts_with(door)) {
            return Vec::new();
        }
        let lines = source.lines.iter().enumerate();
        lines
            .filter(|(_, line)| !line.in_test && (self.names)(line))
            .map(|(index, _)| Finding::at(&source.path, index, self.rule, self.remedy))
            .collect()
    }
}

fn names_system_call(line: &Line) -> bool {
    let instruction = line.text.split_whitespace().next();
    matches!(instruction, Some("syscall" | "svc" | "sysenter")) || line.code.contains("SYS_")
}

fn declares_foreign_functions(line: &Line) -> bool {
    let code: String = line.code.split_whitespace().collect();
    code.contains("extern\"\"{") || code.contains("extern{")
}

fn names_c_library_crate(line: &Line) -> bool {
    ["libc::", "rustix::", "nix::"].iter().any(|path| has_path(&line.code, path))
}

fn names_the_allocator(line: &Line) -> bool {
    has_path(&line.code, "masu::") || has_path(&line.code, "alloc_core::")
}

fn names_atomics(line: &Line) -> bool {
    let code: String = line.code.split_whitespace().collect();
    code.contains("sync::atomic") && !code.contains("crate::sync::atomic")
}

/// Whether `path` stands in the code as a path of its own and not as the end of a longer name.
fn has_path(code: &str, path: &str) -> bool {
    code.match_indices(path).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    })
}
