//! masu-code-cranelift: memory for `cranelift-jit` in a code arena.
//!
//! A [`Provider`] gives a `JITModule` memory near the program and near other modules of the arena. [`Blocks`] frees one
//! function of a module, or hands it to an entry; the module's own providers free everything or nothing.
//!
//! The crate does not pack functions that are finalized apart. A module writes where its code will run, so each
//! `finalize_definitions` begins at an OS page. Functions as objects of `cranelift-object` are packed.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use cranelift_module::{ModuleError, ModuleResult};
use jit::{BranchProtection, JITMemoryKind, JITMemoryProvider};
use masu_code::{Arena, Error, Handle, InPlace, Memory};

/// The blocks of a module, by their addresses. Copies are the same.
#[derive(Debug, Clone)]
pub struct Blocks {
    arena: Arena,
    handles: Arc<Mutex<HashMap<usize, Handle>>>,
}

impl Blocks {
    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Handle>> {
        self.handles.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The object of a function or of data, by the address that `get_finalized_function` or `get_finalized_data`
    /// returned. Its symbol, for [`Arena::entry`], is the empty name.
    pub fn handle(&self, start: *const u8) -> Option<Handle> {
        self.lock().get(&(start as usize)).copied()
    }

    /// Frees a function or data: at once, or when every reader of the arena was quiescent and no entry leads to it.
    ///
    /// # Safety
    ///
    /// - Threads that may run or read the block registered as readers of the arena.
    /// - Code that was compiled to refer to the block is freed before, and the module compiles no more such code.
    ///
    /// # Errors
    ///
    /// [`Error::NoObject`] where no block begins there, or the block was freed; [`Error::Forked`].
    pub unsafe fn free(&self, start: *const u8) -> Result<(), Error> {
        let handle = self.lock().remove(&(start as usize)).ok_or(Error::NoObject)?;
        self.arena.unload(handle)
    }
}

/// Memory for one `JITModule`: `JITBuilder::memory_provider(Box::new(provider))`.
///
/// A module that is dropped keeps its code, as with its own providers: the code is freed with the arena, or by
/// [`Blocks::free`]. Branch target identification of Arm is not enforced: its instructions do nothing.
#[derive(Debug)]
pub struct Provider {
    memory: InPlace,
    blocks: Blocks,
}

impl Provider {
    /// A provider, and the blocks that it will hand out.
    pub fn new(arena: &Arena) -> (Provider, Blocks) {
        let blocks = Blocks { arena: arena.clone(), handles: Arc::default() };
        (Provider { memory: arena.in_place(), blocks: blocks.clone() }, blocks)
    }
}

impl JITMemoryProvider for Provider {
    fn allocate(&mut self, size: usize, align: u64, kind: JITMemoryKind) -> io::Result<*mut u8> {
        let memory = match kind {
            JITMemoryKind::Executable => Memory::Code,
            JITMemoryKind::Writable => Memory::Data,
            JITMemoryKind::ReadOnly => Memory::Constants,
        };
        let align = usize::try_from(align).unwrap_or(usize::MAX);
        let (handle, at) =
            self.memory.allocate("", memory, size, align).map_err(io::Error::other)?;
        self.blocks.lock().insert(at.as_ptr() as usize, handle);
        Ok(at.as_ptr())
    }

    unsafe fn free_memory(&mut self) {
        let handles: Vec<Handle> = self.blocks.lock().drain().map(|(_, handle)| handle).collect();
        for handle in handles {
            // The block was unloaded by its handle, or this is a forked child, which must not free the memory.
            let _ = self.blocks.arena.unload(handle);
        }
        let _ = self.memory.seal();
    }

    fn finalize(&mut self, _branch_protection: BranchProtection) -> ModuleResult<()> {
        self.memory.seal().map_err(|error| ModuleError::Backend(anyhow::Error::msg(error)))
    }
}
