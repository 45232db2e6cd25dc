//! The options of an arena.
//!
//! Relies on nothing. Every default suits a JIT inside its program.

use std::path::PathBuf;

/// The place of the arena's range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// Within 2 GiB of the program's text, so that loaded code reaches it directly.
    #[default]
    NearProgram,
    /// Within 2 GiB of the C library and the libraries near it: code that a compiler made for programs (`-fPIE`, the
    /// default of many) reaches data such as `stderr` only from there.
    NearLibraries,
    /// Within 2 GiB of this address, for a program whose code is in a shared library.
    Near(usize),
    /// In the lowest 2 GiB, which non-PIC code of x86-64 takes for granted (`R_X86_64_32`,
    /// `R_X86_64_32S`).
    Low,
}

/// The way to write code, which must never be writable and executable at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Writing {
    /// [`Writing::Dual`]; where the machine refuses that, or a debugger holds the process and `Tools::debugger` is
    /// set, [`Writing::Batches`].
    #[default]
    Any,
    /// A file in memory is mapped twice: executable here, writable elsewhere. Code is packed across loads. A forked
    /// child shares the code with its parent and may not load; it must not call code that the parent unloads after the
    /// fork. Debuggers can put only hardware breakpoints there.
    Dual,
    /// Fresh pages are written, then made executable by `mprotect`. Every load begins at an OS page
    /// of its own. A forked child has a copy.
    Batches,
}

/// The tools that learn of loaded code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// gdb and lldb, by the JIT interface: breakpoints, source lines, frames.
    pub debugger: bool,
    /// The unwinder: exceptions pass through loaded code, `backtrace` sees it.
    pub unwinder: bool,
    /// `perf report`, by `/tmp/perf-PID.map`.
    pub perf_map: bool,
    /// `perf inject --jit`, by `jit-PID.dump` in this folder, which the arenas of a process share. A forked child's loads
    /// are in neither file.
    pub jitdump: Option<PathBuf>,
}

impl Default for Tools {
    fn default() -> Tools {
        Tools { debugger: true, unwinder: true, perf_map: false, jitdump: None }
    }
}

impl Tools {
    /// No tool learns of loaded code.
    pub fn none() -> Tools {
        Tools { debugger: false, unwinder: false, perf_map: false, jitdump: None }
    }
}

/// Resolves a symbol that neither a loaded object nor the process defines, to its address. Any thread may call it, and
/// it may use the arena; each load asks it again.
pub type Resolver = Box<dyn Fn(&[u8]) -> Option<usize> + Send + Sync>;

/// The options of an arena.
#[derive(Default)]
pub struct Options {
    /// Bytes of addresses to reserve, from 1 MiB to 1 GiB (aarch64: 248 MiB); 0 stands for 256 MiB (248 MiB). Half is
    /// for text, a quarter for read-only data, a quarter for writable data; only used addresses become memory.
    pub size: usize,
    /// The place of the range.
    pub place: Place,
    /// The way to write code.
    pub writing: Writing,
    /// The tools that learn of loaded code.
    pub tools: Tools,
    /// Keep a copy of each object, which [`crate::Arena::compact`] needs. The debugger needs a copy too, and both share
    /// one.
    pub keep: bool,
    /// The resolver, which is asked last for a symbol.
    pub resolver: Option<Resolver>,
}

/// The size for an option of 0.
pub(crate) const SIZE: usize = 256 << 20;
