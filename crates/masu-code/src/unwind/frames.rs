//! Registers frames with libgcc's unwinder.
//!
//! Relies on libgcc's functions, found through the dynamic linker. From version 13 on, libgcc finds a registration by a
//! tree of addresses without a lock: each table is a registration of its own, which stays as long as its object.
//!
//! Before 13 it has a list of registrations under a lock. Each exception walks the list, so that a registration for
//! each object would be too many: here one registration stands for a whole *section* of the arena's text.
//! `_Unwind_Find_FDE` reads the registration's note once more *after it has released the lock*, so a note must not be
//! freed or registered again while any thread may be unwinding. Notes therefore stay until the arena goes. Only the
//! sorted vector of frames that a note leads to changes: the new vector is stored in the note, then the lock is taken
//! and released once, and only then is the old vector freed. A thread that found the old vector did so under the lock,
//! and reads no vector outside the lock.
//!
//! ```text
//! unwinding thread                         this module
//! lock; vector = note.vector
//!                                          note.vector = new
//! search vector; unlock                    lock (waits); unlock
//! read note's encoding                     free(old vector)
//! ```

use std::alloc::{Layout, handle_alloc_error};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ops::Range as Bytes;
use std::sync::OnceLock;

use crate::kernel;
use crate::process;
use crate::sync::{AtomicUsize, Ordering};

/// A table at an address, and its object's text.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) text: Bytes<usize>,
    pub(crate) at: usize,
}

/// The address of a frame description, and the code that it describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) code: Bytes<usize>,
    pub(crate) at: usize,
}

/// Bytes of text that share a registration. A change copies the frames of its sections, an exception walks all sections.
const SECTION: usize = 16 << 10;

/// The unwinder's frames of an arena.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The sections by the first address of their text, where libgcc has a list. A frame is in each section that its
    /// code reaches into.
    sections: BTreeMap<usize, Section>,
    /// Frames that were copied for changes.
    #[cfg(test)]
    pub(crate) copied: usize,
}

// SAFETY: Notes and vectors belong to their section, and to libgcc, which reads them under a lock of its own.
unsafe impl Send for Frames {}

impl Frames {
    /// No frames yet. The dynamic linker is asked for the unwinder here, and not under the arena's lock.
    pub(crate) fn open() -> Frames {
        Unwinder::of_process();
        Frames::default()
    }

    /// Registers frames with the unwinder, in a process that has one.
    ///
    /// # Safety
    ///
    /// - Each of `tables` passed [`super::check`] at that address, has frames, and ends with four zeros.
    /// - `frames` are all frames that the checks returned.
    /// - The tables stay until they are given to [`Frames::remove`].
    pub(crate) unsafe fn add(&mut self, tables: &[Table], frames: Vec<Frame>) {
        match Unwinder::of_process() {
            Unwinder::None => {}
            Unwinder::Tables { add, .. } => {
                for table in tables {
                    // SAFETY: The caller's conditions.
                    unsafe { add(table.at as *const c_void) };
                }
            }
            Unwinder::List(list) => self.insert(list, frames),
        }
    }

    /// Removes all frames of objects.
    pub(crate) fn remove(&mut self, tables: &[Table]) {
        match Unwinder::of_process() {
            Unwinder::None => {}
            Unwinder::Tables { remove, .. } => {
                for table in tables {
                    // SAFETY: The table was registered, and is removed once.
                    unsafe { remove(table.at as *const c_void) };
                }
            }
            Unwinder::List(list) => self.take_out(list, tables),
        }
    }

    fn insert(&mut self, list: List, frames: Vec<Frame>) {
        let mut changes: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        for frame in frames {
            for start in sections_of(&frame.code) {
                changes.entry(start).or_default().push((frame.code.start, frame.at));
            }
        }
        // No code of a new section runs yet, so that nothing is missed while the section has no frames.
        let new = changes.keys().filter(|start| !self.sections.contains_key(start));
        let new: Vec<(usize, Section)> =
            new.map(|&at| (at, Section::register(list, at, 0))).collect();
        if !new.is_empty() {
            list.pass_lock();
        }
        for (start, section) in new {
            section.wait_for_vector(list, start);
            self.sections.insert(start, section);
        }
        self.change(list, changes, Section::insert);
    }

    fn take_out(&mut self, list: List, tables: &[Table]) {
        let mut changes: BTreeMap<usize, Vec<Bytes<usize>>> = BTreeMap::new();
        for table in tables {
            for start in sections_of(&table.text) {
                let texts = changes.entry(start).or_default();
                if texts.last() != Some(&table.text) {
                    texts.push(table.text.clone());
                }
            }
        }
        self.change(list, changes, Section::take_out);
    }

    /// Calls `edit` on each section that has changes, then shows libgcc all that changed.
    fn change<C>(
        &mut self,
        list: List,
        changes: BTreeMap<usize, C>,
        edit: impl Fn(&mut Section, C),
    ) {
        let mut old = Vec::with_capacity(changes.len());
        for (start, change) in changes {
            let Some(section) = self.sections.get_mut(&start) else { continue };
            let before = section.codes.len();
            edit(section, change);
            if section.codes.len() != before {
                #[cfg(test)]
                {
                    self.copied += section.codes.len();
                }
                old.push(section.show());
            }
        }
        if old.is_empty() {
            return;
        }
        list.pass_lock();
        for vector in old {
            // SAFETY: The vector came from `malloc`, here or in libgcc, and no note leads to it since the lock was
            // passed.
            unsafe { kernel::free(vector) };
        }
    }

    /// The number of registrations, where libgcc has a list.
    #[cfg(test)]
    pub(crate) fn sections(&self) -> usize {
        self.sections.len()
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        if let Unwinder::List(list) = Unwinder::of_process() {
            for section in std::mem::take(&mut self.sections).into_values() {
                section.deregister(list);
            }
        }
    }
}

/// The first addresses of the sections that code reaches into.
fn sections_of(code: &Bytes<usize>) -> impl Iterator<Item = usize> + use<> {
    (code.start / SECTION * SECTION..code.end).step_by(SECTION)
}

/// libgcc's note of a registration (`struct object`): six words at most in any version.
type Note = [usize; 8];

/// The words of a note that are used here: the least address of code, the vector of sorted frames, the kind of the
/// note, and the next note of the list.
const BEGIN: usize = 0;
const VECTOR: usize = 3;
const KIND: usize = 4;
const NEXT: usize = 5;

/// The words of a note before it is registered.
const UNTOUCHED: usize = usize::MAX;

/// The bits of [`KIND`] of a note that has a sorted vector of frames, each in an encoding of its own.
const SORTED: usize = 1 | 4;

/// A registration of a table without code, which gives the note its first address and makes it one of mixed encodings.
#[derive(Debug)]
struct Section {
    /// The start of each frame's code, in order, and the frames' addresses.
    codes: Vec<usize>,
    frames: Vec<usize>,
    table: *mut EmptyTable,
    note: *mut Note,
}

type EmptyTable = [u64; 13];

/// The words of the two frames of an [`EmptyTable`].
const OWN_FRAMES: [usize; 2] = [2, 8];

/// A table of two frames of `length` bytes from `start` on, whose addresses are of different encodings.
fn empty_table(start: usize, length: u64) -> EmptyTable {
    let entry = |length: u64, distance: u64| length | distance << 32;
    let letters = |bytes: [u8; 8]| u64::from_le_bytes(bytes);
    let code = start as u64;
    let mut table = [0; 13];
    // A common entry of the oldest kind, where an address is a number, and its frame.
    table[..2].copy_from_slice(&[entry(12, 0), letters([1, 0, 1, 0x78, 16, 0, 0, 0])]);
    table[2..5].copy_from_slice(&[entry(20, 20), code, length]);
    // A common entry that says that an address has eight bytes (4), and its frame; the end.
    table[5..8].copy_from_slice(&[entry(20, 0), letters([1, b'z', b'R', 0, 1, 0x78, 16, 1]), 4]);
    table[8..11].copy_from_slice(&[entry(28, 28), code, length]);
    table
}

impl Section {
    /// Registers a section; libgcc makes its vector at the next search.
    fn register(list: List, start: usize, length: u64) -> Section {
        let table = Box::into_raw(Box::new(empty_table(start, length)));
        let note = Box::into_raw(Box::new([UNTOUCHED; 8]));
        let null = std::ptr::null();
        // SAFETY: The table ends with 0; it and the note stay until `deregister`.
        unsafe { (list.register)(table.cast(), note, null, null) };
        Section { codes: Vec::new(), frames: Vec::new(), table, note }
    }

    /// A word of the note, which libgcc may write at any time.
    fn word(&self, index: usize) -> &AtomicUsize {
        // SAFETY: The note is the section's, and its words are aligned.
        unsafe { AtomicUsize::from_ptr(self.note.cast::<usize>().add(index)) }
    }

    /// Whether libgcc has made the vector. Without memory it searches tables instead.
    fn has_vector(&self) -> bool {
        // ORDERING: Relaxed; libgcc wrote it under the lock, which this thread has had since.
        self.word(KIND).load(Ordering::Relaxed) & SORTED == SORTED
    }

    /// Searches until libgcc has memory for the vector.
    fn wait_for_vector(&self, list: List, start: usize) {
        for _ in 0..1000 {
            if self.has_vector() {
                return;
            }
            list.search(start);
        }
        handle_alloc_error(Layout::new::<[usize; 4]>());
    }

    fn insert(&mut self, mut added: Vec<(usize, usize)>) {
        if added.len() > 1 {
            added.extend(self.codes.drain(..).zip(self.frames.drain(..)));
            added.sort_unstable();
            (self.codes, self.frames) = added.into_iter().unzip();
        } else if let Some((code, frame)) = added.pop() {
            let at = self.codes.partition_point(|&other| other < code);
            self.codes.insert(at, code);
            self.frames.insert(at, frame);
        }
    }

    /// Takes out the frames of code that begins in one of `texts`.
    fn take_out(&mut self, texts: Vec<Bytes<usize>>) {
        for text in texts {
            let below = |end: usize| self.codes.partition_point(|&code| code < end);
            let gone = below(text.start)..below(text.end);
            self.codes.drain(gone.clone());
            self.frames.drain(gone);
        }
    }

    /// Replaces the vector by a vector of the current frames; returns the old vector.
    fn show(&self) -> usize {
        let count = self.frames.len();
        // libgcc frees the last vector by `free`.
        let vector = kernel::malloc((2 + count) * size_of::<usize>()) as *mut usize;
        if vector.is_null() {
            handle_alloc_error(Layout::new::<usize>());
        }
        // SAFETY: Two words and one a frame were allocated.
        unsafe {
            vector.cast::<[usize; 2]>().write([self.table as usize, count]);
            vector.add(2).copy_from_nonoverlapping(self.frames.as_ptr(), count);
        }
        // ORDERING: Release publishes the vector's words to searching threads.
        self.word(VECTOR).swap(vector as usize, Ordering::Release)
    }

    /// No thread may be unwinding through the section's code.
    fn deregister(self, list: List) {
        // SAFETY: The table was registered, and is removed once.
        unsafe { (list.deregister)(self.table.cast()) };
        // SAFETY: The note came from a box, and libgcc no longer has it.
        drop(unsafe { Box::from_raw(self.note) });
        // SAFETY: As above.
        drop(unsafe { Box::from_raw(self.table) });
    }
}

/// The way in which this process's unwinder takes tables.
#[derive(Clone, Copy)]
enum Unwinder {
    None,
    List(List),
    /// Each table by itself.
    Tables {
        add: Single,
        remove: Single,
    },
}

type Single = unsafe extern "C" fn(*const c_void);
type Register = unsafe extern "C" fn(*const c_void, *mut Note, *const c_void, *const c_void);
type Deregister = unsafe extern "C" fn(*const c_void) -> *mut Note;
/// Takes code and leads to three words to fill.
type Search = unsafe extern "C" fn(usize, *mut [usize; 3]) -> *const c_void;

/// libgcc's functions, where it has a list of registrations.
#[derive(Debug, Clone, Copy)]
struct List {
    register: Register,
    deregister: Deregister,
    search: Search,
}

impl List {
    fn search(self, code: usize) {
        // SAFETY: Any address may be searched for.
        unsafe { (self.search)(code, &mut [0; 3]) };
    }

    /// Takes libgcc's lock and releases it; new registrations have vectors then.
    fn pass_lock(self) {
        // At this address libgcc searches one registration of the list and each new one.
        self.search(usize::MAX);
    }

    /// Whether libgcc has a list, and notes and vectors as this module changes them.
    fn is_known(self) -> bool {
        /// Data that never runs.
        static CODE: u64 = 0;
        let start = &raw const CODE as usize;
        let section = Section::register(self, start, 1);
        // ORDERING: Relaxed, as in `has_vector`.
        let word = |index| section.word(index).load(Ordering::Relaxed);
        // A note of a list says which note comes next.
        let mut is_known = word(NEXT) != UNTOUCHED;
        if is_known {
            self.pass_lock();
            is_known = section.has_vector() && word(BEGIN) == start;
        }
        if is_known {
            let table = section.table as usize;
            let vector = word(VECTOR) as *const [usize; 4];
            let own = OWN_FRAMES.map(|word| table + word * size_of::<u64>());
            // SAFETY: A sorted note of two frames leads to four words at least.
            is_known = unsafe { *vector } == [table, 2, own[0], own[1]];
        }
        section.deregister(self);
        is_known
    }
}

impl Unwinder {
    fn of_process() -> Unwinder {
        static FOUND: OnceLock<Unwinder> = OnceLock::new();
        *FOUND.get_or_init(|| {
            // LLVM's unwinder has functions of the same names that take other arguments.
            if process::symbol(b"__unw_add_dynamic_eh_frame_section").is_some() {
                return Unwinder::None;
            }
            Unwinder::find().unwrap_or(Unwinder::None)
        })
    }

    fn find() -> Option<Unwinder> {
        let register = process::symbol(b"__register_frame_info_bases")?;
        let deregister = process::symbol(b"__deregister_frame_info_bases")?;
        let search = process::symbol(b"_Unwind_Find_FDE")?;
        let (add, remove) =
            (process::symbol(b"__register_frame")?, process::symbol(b"__deregister_frame")?);
        // SAFETY: libgcc's functions have these types.
        let (list, add, remove) = unsafe {
            let list = List {
                register: std::mem::transmute::<usize, Register>(register),
                deregister: std::mem::transmute::<usize, Deregister>(deregister),
                search: std::mem::transmute::<usize, Search>(search),
            };
            let single = |address| std::mem::transmute::<usize, Single>(address);
            (list, single(add), single(remove))
        };
        Some(if list.is_known() { Unwinder::List(list) } else { Unwinder::Tables { add, remove } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stands for libgcc: each registration has a vector at once.
    fn list() -> List {
        extern "C" fn register(
            table: *const c_void,
            note: *mut Note,
            _: *const c_void,
            _: *const c_void,
        ) {
            let vector = kernel::malloc(16) as *mut [usize; 2];
            // SAFETY: The vector has this size.
            unsafe { vector.write([table as usize, 0]) };
            // SAFETY: This is the caller's note.
            unsafe { *note = [0, 0, 0, vector as usize, SORTED, 0, 0, 0] };
        }
        extern "C" fn deregister(_: *const c_void) -> *mut Note {
            std::ptr::null_mut()
        }
        extern "C" fn search(_: usize, _: *mut [usize; 3]) -> *const c_void {
            std::ptr::null()
        }
        List { register, deregister, search }
    }

    /// A frame of `length` bytes from each multiple of `step` on.
    fn frames(count: usize, step: usize, length: usize) -> Vec<Frame> {
        let code = (1..=count).map(|number| number * step).map(|start| start..start + length);
        code.map(|code| Frame { at: code.start + 1, code }).collect()
    }

    /// The addresses of frames that libgcc sees in a section.
    fn shown(section: &Section) -> Vec<usize> {
        let vector = section.word(VECTOR).load(Ordering::Relaxed) as *const usize;
        // SAFETY: The vector begins with the table and how many frames follow.
        let words = unsafe { std::slice::from_raw_parts(vector, 2 + *vector.add(1)) };
        assert_eq!(words[0], section.table as usize);
        words[2..].to_vec()
    }

    fn end(mut frames: Frames) {
        for section in std::mem::take(&mut frames.sections).into_values() {
            let vector = section.word(VECTOR).load(Ordering::Relaxed);
            section.deregister(list());
            // SAFETY: The test's libgcc leaves the vector to this test.
            unsafe { kernel::free(vector) };
        }
    }

    #[test]
    fn frames_come_in_any_order_and_go_with_their_objects() {
        let all = frames(5000, 16, 10);
        let mut known = Frames::default();
        for frame in all.iter().rev().step_by(2).chain(all.iter().step_by(2)) {
            known.insert(list(), vec![frame.clone()]);
        }
        assert_eq!(known.sections(), 5001 * 16 / SECTION + 1);
        let at: Vec<usize> = all.iter().map(|frame| frame.at).collect();
        assert_eq!(known.sections.values().flat_map(shown).collect::<Vec<_>>(), at);
        // Objects of seven functions, each but every fifth gone.
        let kept = |number: usize| number.is_multiple_of(5);
        let objects =
            all.chunks(7).map(|frames| frames[0].code.start..frames.last().unwrap().code.end);
        let gone = objects.enumerate().filter(|(number, _)| !kept(*number));
        let gone: Vec<Table> = gone.map(|(_, text)| Table { text, at: 0 }).collect();
        known.take_out(list(), &gone);
        let left: Vec<usize> = at
            .chunks(7)
            .enumerate()
            .filter(|(number, _)| kept(*number))
            .flat_map(|(_, at)| at.to_vec())
            .collect();
        assert_eq!(known.sections.values().flat_map(shown).collect::<Vec<_>>(), left);
        end(known);
    }

    #[test]
    fn a_frame_is_in_each_section_that_its_code_reaches_into() {
        let mut known = Frames::default();
        let code = SECTION - 1..3 * SECTION + 1;
        known.insert(list(), vec![Frame { code: code.clone(), at: 7 }]);
        assert_eq!(known.sections.values().map(shown).collect::<Vec<_>>(), vec![vec![7]; 4]);
        known.take_out(list(), &[Table { text: code, at: 0 }]);
        assert!(known.sections.values().all(|section| shown(section).is_empty()));
        end(known);
    }
}
