//! Loaded objects: which one holds an address, and where its unwind tables are.
//!
//! Relies on the C library's list (`dl_iterate_phdr`), read once a walk: it takes a recursive lock of the dynamic linker's.
//! Objects that do not fit the array are searched for one by one, and so is each where a `fork` may have left that lock held.

use super::reader::Reader;
use crate::platform::libc::{self, Object, Segment};

/// Where an object lies, and its table of contents.
#[derive(Clone, Copy, Default)]
struct Extent {
    start: usize,
    end: usize,
    contents: usize,
    contents_end: usize,
}

/// The unwind tables of one object.
pub(super) struct Tables {
    /// The table of contents (`.eh_frame_hdr`), and all of the object, which it may refer to.
    pub(super) contents: Reader,
    pub(super) contents_start: usize,
    pub(super) all: Reader,
}

const KEPT: usize = 48;

/// The objects loaded when the walk began.
pub(super) struct Objects {
    extents: [Extent; KEPT],
    count: usize,
    are_all: bool,
}

impl Objects {
    pub(super) fn loaded() -> Objects {
        let mut objects = Objects { extents: [Extent::default(); KEPT], count: 0, are_all: true };
        libc::for_each_object(&mut |object| {
            let Some(extent) = Extent::of(object) else { return true };
            match objects.extents.get_mut(objects.count) {
                Some(place) => {
                    *place = extent;
                    objects.count += 1;
                }
                None => objects.are_all = false,
            }
            objects.are_all
        });
        objects
    }

    /// The tables that cover `address`.
    pub(super) fn tables_of(&mut self, address: usize) -> Option<Tables> {
        let holds = |extent: &&Extent| (extent.start..extent.end).contains(&address);
        let found = self.extents[..self.count].iter().find(holds).copied();
        let found = found.or_else(|| if self.are_all { None } else { search(address) });
        found.or_else(|| search_without_lock(address)).map(Extent::tables)
    }
}

fn search_without_lock(address: usize) -> Option<Extent> {
    let [start, end, contents] = libc::object_without_lock(address)?;
    Some(Extent { start, end, contents, contents_end: end })
}

fn search(address: usize) -> Option<Extent> {
    let mut found = None;
    libc::for_each_object(&mut |object| {
        let extent = Extent::of(object);
        found = extent.filter(|extent| (extent.start..extent.end).contains(&address));
        found.is_none()
    });
    found
}

impl Extent {
    /// The extent of an object with unwind tables.
    #[inline(never)]
    fn of(object: &Object) -> Option<Extent> {
        let mut extent = Extent { start: usize::MAX, ..Extent::default() };
        for segment in object.segments() {
            let start = object.address.wrapping_add(segment.address);
            let end = start.wrapping_add(segment.length);
            match segment.kind {
                Segment::LOADED => {
                    extent.start = extent.start.min(start);
                    extent.end = extent.end.max(end);
                }
                Segment::UNWIND_TABLES => {
                    (extent.contents, extent.contents_end) = (start, end);
                }
                _ => {}
            }
        }
        (extent.contents != 0).then_some(extent)
    }

    fn tables(self) -> Tables {
        // SAFETY: The object is loaded, because a function of it is running, and its tables are constant.
        let contents = unsafe { Reader::new(self.contents, self.contents_end) };
        // SAFETY: As above; the tables lie in the object, before or behind their table of contents.
        let all = unsafe { Reader::new(self.start, self.end) };
        Tables { contents, contents_start: self.contents, all }
    }
}
