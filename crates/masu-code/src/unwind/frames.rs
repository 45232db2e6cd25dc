//! Registers tables with the unwinder and removes them.
//!
//! Relies on libgcc's functions, found through the dynamic linker. Libgcc before 13 walks a list of registrations for
//! each table removed and each frame of an exception, so neighbours share a registration, a *group*. A group never
//! changes: its successor is registered before it is removed, so that the unwinder always has the tables of live code. libgcc from 13 on has a tree of addresses instead, in which no two may be about the same
//! code: there each table is registered by itself.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::OnceLock;

use crate::process;

/// A table at an address, and where the text of its object begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Table {
    pub(crate) text: usize,
    pub(crate) at: usize,
}

/// Tables in a group, unless one object has more: so many are copied where one comes or goes.
const MOST: usize = 128;

/// What libgcc notes of a registration (`struct object`): six words at most in any version.
type Note = [usize; 8];

/// The word of a note that leads to the list's next, where there is a list.
const NEXT: usize = 5;

/// One registration: `tables` in the order of their objects' text.
#[derive(Debug)]
struct Group {
    tables: Vec<Table>,
    /// Addresses of the tables, as libgcc reads them.
    array: Box<[usize]>,
    note: *mut Note,
}

/// The unwinder's tables of an arena.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// By where the text of each group begins, which no other group's text reaches into.
    groups: BTreeMap<usize, Group>,
    /// Tables that were copied from one group to another.
    #[cfg(test)]
    pub(crate) copied: usize,
}

// SAFETY: A note belongs to its group, and to libgcc, which has a lock of its own.
unsafe impl Send for Frames {}

impl Frames {
    /// Tells the unwinder of tables, in a process that has one.
    ///
    /// # Safety
    ///
    /// - Each passed [`super::check`] at that address, has frames, and ends with four zeros.
    /// - It stays until it is given to [`Frames::remove`].
    pub(crate) unsafe fn add(&mut self, tables: Vec<Table>) {
        match Unwinder::of_process() {
            Unwinder::None => {}
            Unwinder::Tree { add, .. } => {
                for table in tables {
                    // SAFETY: The caller's conditions.
                    unsafe { add(table.at as *const c_void) };
                }
            }
            Unwinder::List(list) => self.change(list, tables, insert),
        }
    }

    /// Removes tables.
    pub(crate) fn remove(&mut self, tables: Vec<Table>) {
        match Unwinder::of_process() {
            Unwinder::None => {}
            Unwinder::Tree { remove, .. } => {
                for table in tables {
                    // SAFETY: It was registered, and is taken back once.
                    unsafe { remove(table.at as *const c_void) };
                }
            }
            Unwinder::List(list) => self.change(list, tables, take_out),
        }
    }

    /// Calls `edit` on the tables of each group that has some of `tables`.
    fn change(&mut self, list: List, tables: Vec<Table>, edit: impl Fn(&mut Vec<Table>, &[Table])) {
        let group_of = |table: Table| {
            let below = self.groups.range(..=table.text).next_back();
            let group = below.or_else(|| self.groups.first_key_value());
            (group.map(|(start, _)| *start), table)
        };
        let mut changes: Vec<(Option<usize>, Table)> = tables.into_iter().map(group_of).collect();
        changes.sort_unstable();
        for changes in changes.chunk_by(|one, other| one.0 == other.0) {
            let mut before = changes[0].0.and_then(|start| self.groups.remove(&start));
            let mut all =
                before.as_mut().map_or(Vec::new(), |group| std::mem::take(&mut group.tables));
            #[cfg(test)]
            {
                self.copied += all.len();
            }
            let changed: Vec<Table> = changes.iter().map(|(_, table)| *table).collect();
            edit(&mut all, &changed);
            if all.len() > MOST {
                for part in parts(&all) {
                    self.groups.insert(part[0].text, list.register(part.to_vec()));
                }
            } else if let Some(first) = all.first() {
                self.groups.insert(first.text, list.register(all));
            }
            if let Some(before) = before {
                list.deregister(before);
            }
        }
    }

    /// How many registrations there are, where groups are used.
    #[cfg(test)]
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }
}

/// Puts tables where they belong among those of a group.
fn insert(all: &mut Vec<Table>, new: &[Table]) {
    if let [table] = new {
        all.insert(all.partition_point(|other| other <= table), *table);
    } else {
        all.extend_from_slice(new);
        all.sort_unstable();
    }
}

/// Takes tables out of those of a group.
fn take_out(all: &mut Vec<Table>, old: &[Table]) {
    for table in old {
        if let Ok(at) = all.binary_search(table) {
            all.remove(at);
        }
    }
}

/// The same in as few parts of one size as groups allow. Those of one object, each of which may be about any of its
/// code, stay together.
fn parts(mut tables: &[Table]) -> Vec<&[Table]> {
    let mut parts = Vec::new();
    let size = tables.len().div_ceil(tables.len().div_ceil(MOST).max(1));
    while !tables.is_empty() {
        let last = tables[size.min(tables.len()) - 1].text;
        let (part, rest) = tables.split_at(tables.partition_point(|table| table.text <= last));
        parts.push(part);
        tables = rest;
    }
    parts
}

/// How this process's unwinder takes tables.
#[derive(Clone, Copy)]
enum Unwinder {
    None,
    List(List),
    Tree { add: Single, remove: Single },
}

type Single = unsafe extern "C" fn(*const c_void);
type Register = unsafe extern "C" fn(*const c_void, *mut Note, *const c_void, *const c_void);
type Deregister = unsafe extern "C" fn(*const c_void) -> *mut Note;

/// libgcc's functions for many tables at once.
#[derive(Debug, Clone, Copy)]
struct List {
    register: Register,
    deregister: Deregister,
}

/// A table without entries, at an address whose lower half is not 0: libgcc takes an array that
/// begins with such a half for one that was never registered.
#[repr(align(16))]
struct Empty([u64; 2]);

static EMPTY: Empty = Empty([0; 2]);

impl List {
    fn register(self, tables: Vec<Table>) -> Group {
        let first = &raw const EMPTY.0[1] as usize;
        let mut array = Vec::with_capacity(tables.len() + 2);
        array.push(first);
        array.extend(tables.iter().map(|table| table.at));
        array.push(0);
        let array = array.into_boxed_slice();
        let note = Box::into_raw(Box::new([0; 8]));
        let null = std::ptr::null();
        // SAFETY: The array ends with 0 and leads to tables; it and the note stay until `deregister`.
        unsafe { (self.register)(array.as_ptr().cast(), note, null, null) };
        Group { tables, array, note }
    }

    fn deregister(self, group: Group) {
        // SAFETY: It was registered, and is taken back once.
        unsafe { (self.deregister)(group.array.as_ptr().cast()) };
        // SAFETY: It came from a box, and libgcc has it no more.
        drop(unsafe { Box::from_raw(group.note) });
    }
}

impl Unwinder {
    fn of_process() -> Unwinder {
        static FOUND: OnceLock<Unwinder> = OnceLock::new();
        *FOUND.get_or_init(|| {
            // LLVM's unwinder has functions of the same names that take something else.
            if process::symbol(b"__unw_add_dynamic_eh_frame_section").is_some() {
                return Unwinder::None;
            }
            Unwinder::find().unwrap_or(Unwinder::None)
        })
    }

    fn find() -> Option<Unwinder> {
        let single = |name: &[u8]| {
            let address = process::symbol(name)?;
            // SAFETY: libgcc's functions have this type.
            Some(unsafe { std::mem::transmute::<usize, Single>(address) })
        };
        let register = |name: &[u8]| {
            let address = process::symbol(name)?;
            // SAFETY: As above.
            Some(unsafe { std::mem::transmute::<usize, Register>(address) })
        };
        let deregister = process::symbol(b"__deregister_frame_info_bases")?;
        // SAFETY: As above.
        let deregister = unsafe { std::mem::transmute::<usize, Deregister>(deregister) };
        if has_list(register(b"__register_frame_info_bases")?, deregister) {
            let register = register(b"__register_frame_info_table_bases")?;
            return Some(Unwinder::List(List { register, deregister }));
        }
        let (add, remove) = (single(b"__register_frame")?, single(b"__deregister_frame")?);
        Some(Unwinder::Tree { add, remove })
    }
}

/// Whether libgcc has a list of registrations: then it writes into the note what comes next.
fn has_list(register: Register, deregister: Deregister) -> bool {
    /// Code that never runs.
    static CODE: u8 = 0;
    const UNTOUCHED: usize = usize::MAX;
    // A common entry of the oldest kind, a frame of one byte, and the end.
    let common = [12, u64::from_le_bytes([1, 0, 1, 0x78, 16, 0, 0, 0])];
    let frame = [20 | 20 << 32, &raw const CODE as u64, 1];
    let table = Box::new([common[0], common[1], frame[0], frame[1], frame[2], 0]);
    let (note, null) = (Box::into_raw(Box::new([UNTOUCHED; 8])), std::ptr::null());
    // SAFETY: The table and the note stay until it is taken back.
    unsafe { register(table.as_ptr().cast(), note, null, null) };
    // SAFETY: The note is this function's, and libgcc may write it at any time.
    let next = unsafe { note.cast::<usize>().add(NEXT).read_volatile() };
    // SAFETY: It was registered just now.
    unsafe { deregister(table.as_ptr().cast()) };
    // SAFETY: It came from a box, and libgcc has it no more.
    drop(unsafe { Box::from_raw(note) });
    next != UNTOUCHED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(count: usize) -> Vec<Table> {
        (0..count).map(|number| Table { text: number * 16, at: number * 8 + 1 }).collect()
    }

    #[test]
    fn parts_are_of_one_size_and_keep_an_object_whole() {
        let sizes = |tables: &[Table]| parts(tables).iter().map(|part| part.len()).collect();
        let sized: Vec<Vec<usize>> =
            [0, 1, MOST, MOST + 1, 3 * MOST].map(|n| sizes(&tables(n))).into();
        assert_eq!(sized, [vec![], vec![1], vec![MOST], vec![65, 64], vec![MOST; 3]]);
        let of_one = tables(2 * MOST).into_iter().map(|table| Table { text: 16, ..table });
        assert_eq!(parts(&of_one.collect::<Vec<_>>()).len(), 1);
    }

    #[test]
    fn a_group_is_split_and_goes_with_its_last_table() {
        extern "C" fn register(_: *const c_void, _: *mut Note, _: *const c_void, _: *const c_void) {
        }
        extern "C" fn deregister(_: *const c_void) -> *mut Note {
            std::ptr::null_mut()
        }
        let list = List { register, deregister };
        let mut frames = Frames::default();
        // One by one, each before the others.
        for table in tables(1000).into_iter().rev() {
            frames.change(list, vec![table], insert);
        }
        assert!((8..=16).contains(&frames.groups()), "{}", frames.groups());
        let known = frames.groups.values().flat_map(|group| group.tables.clone());
        assert_eq!(known.collect::<Vec<_>>(), tables(1000));
        assert!(frames.groups.iter().all(|(start, group)| *start == group.tables[0].text));
        for table in tables(1000).chunks(7) {
            frames.change(list, table.to_vec(), take_out);
        }
        assert_eq!(frames.groups(), 0);
    }
}
