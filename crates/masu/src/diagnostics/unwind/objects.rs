//! Loaded objects: the object that holds an address, and its unwind tables.
//!
//! Relies on the C library's list (`dl_iterate_phdr`), read once a walk: it takes a recursive lock of the dynamic
//! linker's. Objects that do not fit the array are searched for one by one, and so is each where a `fork` may have left
//! that lock held. The hard idea: an object that was read may be unloaded since. So the lock is taken again while
//! tables are read, where the C library's count of changes says whether the array still holds.

use super::reader::Reader;
use crate::platform::libc::{self, Object, Segment};

/// The bounds of an object, and of its table of contents.
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
    /// The number of objects loaded or unloaded until the walk began, if the C library counts them.
    changes: Option<u64>,
}

impl Objects {
    pub(super) fn loaded() -> Objects {
        let extents = [Extent::default(); KEPT];
        let mut objects = Objects { extents, count: 0, are_all: true, changes: None };
        libc::for_each_object(&mut |object| {
            objects.changes = object.changes;
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

    /// The result of `read` on the tables that cover `address`. Their object stays loaded until `read` returns. `None`
    /// without tables. In a forked child where the lock may be lost, the object must not be unloaded.
    pub(super) fn with_tables<T>(
        &self,
        address: usize,
        mut read: impl FnMut(&Tables) -> Option<T>,
    ) -> Option<T> {
        let mut result = None;
        libc::for_each_object(&mut |object| {
            let is_current =
                self.are_all && object.changes.is_some_and(|_| object.changes == self.changes);
            let extent = if is_current {
                self.extents[..self.count].iter().copied().find(|extent| extent.holds(address))
            } else {
                Extent::of(object).filter(|extent| extent.holds(address))
            };
            result = extent.and_then(|extent| read(&extent.tables()));
            !is_current && extent.is_none()
        });
        result.or_else(|| read(&search_without_lock(address)?.tables()))
    }
}

fn search_without_lock(address: usize) -> Option<Extent> {
    let [start, end, contents] = libc::object_without_lock(address)?;
    Some(Extent { start, end, contents, contents_end: end })
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

    fn holds(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }

    fn tables(self) -> Tables {
        // SAFETY: The object is loaded while the tables are read, by the lock that `with_tables` holds, and they are constant.
        let contents = unsafe { Reader::new(self.contents, self.contents_end) };
        // SAFETY: As above; the tables lie in the object, before or behind their table of contents.
        let all = unsafe { Reader::new(self.start, self.end) };
        Tables { contents, contents_start: self.contents, all }
    }
}
