//! Code that the program generates itself, without an object file.
//!
//! Relies on [`crate::memory`]. [`Arena::load_code`] gives a function's address and a place to write its bytes at. The
//! two differ where code is mapped twice, so that functions are packed. [`InPlace`] is for generators that write where
//! the code will run: it takes whole OS pages of its own, which are writable until they are sealed. Each block is an
//! object, so it is unloaded as objects are: when nothing leads to it and every reader was quiescent.

use std::ops::Range as Bytes;
use std::ptr::NonNull;

use super::load::MANY;
use super::{Arena, Handle, refuse_fork};
use crate::error::Error;
use crate::kernel;
use crate::link;
use crate::memory::{PART, Region};
use crate::perf::{Named, Perf};
use crate::relocation::HOST;
use crate::state::{Loaded, State, Symbols, Taken, numbers};
use crate::sync::Arc;

/// The use of a block of [`InPlace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Executable once it is sealed.
    Code,
    /// Read-only once it is sealed.
    Constants,
    /// Writable.
    Data,
}

impl Memory {
    fn region(self) -> Region {
        match self {
            Memory::Code => Region::Text,
            Memory::Constants => Region::Sealed,
            Memory::Data => Region::Data,
        }
    }
}

impl Arena {
    /// Loads a function that the program generates itself, such as copies of stencils: `write` gets the address that
    /// the function will run at, and `size` bytes to write it into. The bytes hold zeros or old contents before.
    ///
    /// `name` is its symbol for [`Arena::function`] and [`Arena::entry`], and for perf; it is published to no other
    /// object. The arena knows no unwind table of the function, and does not know the functions that it calls: unload
    /// those later.
    ///
    /// ```
    /// use masu_code::{Arena, Options};
    ///
    /// # fn main() -> Result<(), masu_code::Error> {
    /// let arena = Arena::open(Options::default())?;
    /// # #[cfg(target_arch = "x86_64")]
    /// let code = [0x8d, 0x47, 0x01, 0xc3]; // lea eax, [rdi + 1]; ret
    /// # #[cfg(target_arch = "aarch64")]
    /// # let code = [0x00, 0x04, 0x00, 0x11, 0xc0, 0x03, 0x5f, 0xd6];
    /// let object = arena.load_code("next", code.len(), 16, |_, bytes| bytes.copy_from_slice(&code))?;
    /// // SAFETY: The code is that of `int next(int)`.
    /// let next = unsafe { arena.function::<extern "C" fn(i32) -> i32>(object, "next")? };
    /// assert_eq!(next(41), 42);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Full`], [`Error::Forked`], [`Error::Kernel`]; [`Error::Unsupported`] for an alignment that is no power of
    /// two up to 256 KiB. Nothing stays loaded then, nor when `write` panics.
    pub fn load_code(
        &self,
        name: &str,
        size: usize,
        align: usize,
        write: impl FnOnce(usize, &mut [u8]),
    ) -> Result<Handle, Error> {
        self.collect();
        let mut state = self.shared.lock();
        refuse_fork(&state)?;
        if !state.range.is_dual() {
            drop(state);
            let mut memory = self.in_place();
            let (object, at) = memory.allocate(name, Memory::Code, size, align)?;
            let unfinished = Unfinished { arena: self, object, pin: None };
            // SAFETY: The block is new, and writable until it is sealed.
            let bytes = unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), size) };
            write(at.as_ptr() as usize, bytes);
            memory.seal()?;
            return Ok(unfinished.finish());
        }
        let (size_spaced, align) = needs(name, Region::Text, size, align)?;
        let fresh = fresh(&state);
        let code = state.take(Region::Text, size_spaced, align)?;
        let at = code.start;
        let (reuses, written) = (at < fresh, state.range.written(at));
        let (object, pin) = enter(&mut state, name, Region::Text, code, at);
        // Code of others runs without the lock; the pin keeps the block.
        drop(state);
        let unfinished = Unfinished { arena: self, object, pin: Some(pin) };
        // SAFETY: This is the second mapping of a block that has no other owner, for as long as the arena exists.
        let bytes = unsafe { std::slice::from_raw_parts_mut(written as *mut u8, size) };
        write(at, bytes);
        kernel::make_executable(written, at, size);
        if reuses || cfg!(target_arch = "aarch64") {
            kernel::synchronize_cores();
        }
        let mut state = self.shared.lock();
        tell_perf(&mut state.perf, [(name, at..at + size)]);
        if size > MANY {
            state.range.forget_alias(&(at..at + size));
        }
        drop(state);
        Ok(unfinished.finish())
    }

    /// Memory for a generator that writes code where it will run, and constants and data beside it.
    pub fn in_place(&self) -> InPlace {
        let (pieces, rest, blocks) = (Vec::new(), Vec::new(), Vec::new());
        InPlace { arena: self.clone(), open: [0..0, 0..0], pieces, rest, blocks, reuses: false }
    }
}

/// An object whose code is being written: it is unloaded where its writer panics or its page cannot be sealed.
struct Unfinished<'a> {
    arena: &'a Arena,
    object: Handle,
    /// Keeps the block from a collection; where the code is written in place, [`InPlace`] holds a pin.
    pin: Option<Arc<()>>,
}

impl Unfinished<'_> {
    fn finish(mut self) -> Handle {
        self.pin = None;
        std::mem::ManuallyDrop::new(self).object
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.pin = None;
        // A forked child's memory is not its own to free.
        let _ = self.arena.unload(self.object);
    }
}

/// A block that is not sealed yet.
struct Block {
    object: Handle,
    bytes: Bytes<usize>,
    /// Keeps an unloaded block until its page may hold other code.
    _pin: Arc<()>,
}

/// Memory that a code generator writes in place.
///
/// Code and constants lie on OS pages that are writable and not executable until [`InPlace::seal`], and never writable
/// again. A block that is sealed alone therefore takes an OS page: seal many at once, or use [`Arena::load_code`].
/// Dropping this value seals the blocks and keeps them: they belong to the arena, by their handles.
///
/// ```
/// use masu_code::{Arena, Memory, Options};
///
/// # fn main() -> Result<(), masu_code::Error> {
/// let arena = Arena::open(Options::default())?;
/// let mut memory = arena.in_place();
/// let (object, at) = memory.allocate("table", Memory::Constants, 8, 8)?;
/// // SAFETY: The block has 8 bytes, and is writable until it is sealed.
/// unsafe { at.cast::<u64>().write(42) };
/// memory.seal()?;
/// arena.unload(object)?;
/// # Ok(())
/// # }
/// ```
pub struct InPlace {
    arena: Arena,
    /// The rest of the open pieces of text and of read-only data.
    open: [Bytes<usize>; 2],
    /// Pieces of whole OS pages that are writable now.
    pieces: Vec<(Region, Bytes<usize>)>,
    /// Bytes in these pieces that no block has.
    rest: Vec<(Region, Bytes<usize>)>,
    blocks: Vec<Block>,
    /// Whether some of the text replaces earlier code.
    reuses: bool,
}

/// Cache lines of 64 bytes between the functions of neighboring pages: an odd number of them.
const COLOR: usize = 13 * 64;

impl InPlace {
    /// Allocates a block of `size` bytes; returns its object and its address. The block holds zeros or old bytes, and
    /// is writable until [`InPlace::seal`], or for good if it is data. `name` is its only symbol, as for
    /// [`Arena::load_code`]; it may be empty.
    ///
    /// # Errors
    ///
    /// As for [`Arena::load_code`].
    pub fn allocate(
        &mut self,
        name: &str,
        memory: Memory,
        size: usize,
        align: usize,
    ) -> Result<(Handle, NonNull<u8>), Error> {
        let region = memory.region();
        let (size_spaced, align) = needs(name, region, size, align)?;
        let shared = Arc::clone(&self.arena.shared);
        let mut state = shared.lock();
        refuse_fork(&state)?;
        let (bytes, start) = if region == Region::Data {
            let bytes = state.take(region, size_spaced, align)?;
            (bytes.clone(), bytes.start)
        } else {
            self.cut(&mut state, region, size_spaced, align)?
        };
        let at = NonNull::new(start as *mut u8).ok_or(Error::NoObject)?;
        let written = start..start + size;
        let (object, pin) = enter(&mut state, name, region, bytes, start);
        if region != Region::Data {
            self.blocks.push(Block { object, bytes: written, _pin: pin });
        }
        Ok((object, at))
    }

    /// Cuts a block off the open piece, or off a new piece. Returns the bytes taken, and the address where the block
    /// begins.
    fn cut(
        &mut self,
        state: &mut State,
        region: Region,
        size: usize,
        align: usize,
    ) -> Result<(Bytes<usize>, usize), Error> {
        let open = self.open[region as usize].clone();
        let at = open.start.next_multiple_of(align);
        if at + size <= open.end {
            self.rest.push((region, open.start..at));
            self.open[region as usize] = at + size..open.end;
            return Ok((at..at + size, at));
        }
        self.rest.push((region, open));
        self.open[region as usize] = 0..0;
        let new = self.open_piece(state, region, size, align)?;
        let at = (new.start + self.color(state, &new, size)).next_multiple_of(align);
        let at = if at + size <= new.end { at } else { new.start };
        self.open[region as usize] = at + size..new.end;
        // The bytes before the block are taken with it: as free bytes they would make holes of a page's size that hold
        // no whole page.
        Ok((new.start..at + size, at))
    }

    /// The offset in a batch's first piece of text from which on the piece is used. Functions that are sealed one by
    /// one would otherwise lie at equal offsets of their OS pages, and compete for the same cache sets.
    fn color(&self, state: &State, piece: &Bytes<usize>, size: usize) -> usize {
        let is_first = self.pieces.iter().filter(|(of, _)| *of == Region::Text).count() == 1;
        if !is_first || !state.range.bytes(Region::Text).contains(&piece.start) {
            return 0;
        }
        // Half of the room, for the functions that follow.
        let room = piece.len().saturating_sub(size) / 2;
        (piece.start / state.range.page()).wrapping_mul(COLOR) % (room + 1)
    }

    /// Takes whole OS pages and makes them writable: as many as are open already, so that a batch has few pieces.
    fn open_piece(
        &mut self,
        state: &mut State,
        region: Region,
        size: usize,
        align: usize,
    ) -> Result<Bytes<usize>, Error> {
        let page = state.range.page();
        let same = self.pieces.iter().filter(|(of, _)| *of == region);
        let had: usize = same.map(|(_, piece)| piece.len()).sum();
        let fresh = fresh(state);
        let wanted = size.max(had.min(PART)).next_multiple_of(page);
        let piece = state
            .take(region, wanted, page.max(align))
            .or_else(|_| state.take(region, size.next_multiple_of(page), page.max(align)))?;
        // SAFETY: The pages were free, so nothing on them runs or is read.
        if let Err(error) = unsafe { state.range.unseal(&piece) } {
            state.free(region, &piece);
            return Err(error);
        }
        self.reuses |= region == Region::Text && piece.start < fresh;
        self.pieces.push((region, piece.clone()));
        Ok(piece)
    }

    /// Makes all code executable and all constants read-only that were allocated since the last time.
    ///
    /// # Errors
    ///
    /// [`Error::Kernel`], [`Error::Forked`]; then it may be tried again.
    pub fn seal(&mut self) -> Result<(), Error> {
        let mut state = self.arena.shared.lock();
        refuse_fork(&state)?;
        // Where a page cannot be sealed, other pages are sealed already. So blocks that are allocated before the next
        // try lie elsewhere.
        for (region, open) in [Region::Text, Region::Sealed].into_iter().zip(&mut self.open) {
            self.rest.push((region, std::mem::replace(open, 0..0)));
        }
        for (region, piece) in &self.pieces {
            if *region == Region::Text {
                kernel::make_executable(piece.start, piece.start, piece.len());
            }
            state.range.seal(piece, *region)?;
        }
        if std::mem::take(&mut self.reuses) || cfg!(target_arch = "aarch64") {
            kernel::synchronize_cores();
        }
        self.pieces.clear();
        for (region, rest) in self.rest.drain(..) {
            state.free(region, &rest);
        }
        let blocks = std::mem::take(&mut self.blocks);
        let text = state.range.bytes(Region::Text);
        let State { perf, objects, .. } = &mut *state;
        let code = blocks.iter().filter(|block| text.contains(&block.bytes.start));
        let named = code.filter_map(|block| {
            let name = objects.get(&block.object.0)?.symbols.object();
            Some((name, block.bytes.clone()))
        });
        tell_perf(perf, named);
        drop(state);
        drop(blocks);
        self.arena.collect();
        Ok(())
    }
}

impl Drop for InPlace {
    fn drop(&mut self) {
        if !self.blocks.is_empty() && self.seal().is_err() {
            // The pages of these blocks cannot hold other code, so the blocks stay taken.
            std::mem::take(&mut self.blocks).into_iter().for_each(std::mem::forget);
        }
    }
}

impl std::fmt::Debug for InPlace {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "InPlace({} blocks are not sealed)", self.blocks.len())
    }
}

/// The address from which on text never held code.
fn fresh(state: &State) -> usize {
    state.range.bytes(Region::Text).start + state.space(Region::Text).high()
}

/// Size and alignment of a block, with its spacing.
fn needs(name: &str, region: Region, size: usize, align: usize) -> Result<(usize, usize), Error> {
    let refuse = |what| Error::Unsupported { object: name.to_owned(), what };
    if !align.is_power_of_two() || align > PART {
        return Err(refuse(format!("alignment {align}: powers of two up to {PART} can be used")));
    }
    if size > HOST.largest {
        return Err(refuse(format!("no block can have {size} bytes")));
    }
    Ok(link::needs_of_block(size.max(1), align, region))
}

/// Makes a block an object whose symbol is at `start`, with a pin that keeps it.
fn enter(
    state: &mut State,
    name: &str,
    region: Region,
    bytes: Bytes<usize>,
    start: usize,
) -> (Handle, Arc<()>) {
    let symbols = Symbols::new(name, vec![(name.as_bytes(), false, start)]);
    let mut taken = Taken::default();
    *taken.bytes_mut(region) = bytes;
    let mut loaded = Loaded::new(taken, symbols);
    loaded.is_private = true;
    let pin = loaded.pin();
    let number = numbers(1);
    state.objects.insert(number, Box::new(loaded));
    (Handle(number), pin)
}

fn tell_perf<'a>(perf: &mut Perf, functions: impl IntoIterator<Item = (&'a str, Bytes<usize>)>) {
    if !perf.is_on() {
        return;
    }
    let named = functions.into_iter().map(|(name, at)| {
        // SAFETY: The code was just written, and a pin keeps it.
        let code = unsafe { std::slice::from_raw_parts(at.start as *const u8, at.len()) };
        Named { address: at.start, size: at.len(), name: name.as_bytes(), code }
    });
    // A full disk must not keep code from running.
    let _ = perf.tell(&named.collect::<Vec<_>>());
}
