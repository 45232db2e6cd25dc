//! Loaded objects: the object that holds an address, and its unwind tables.
//!
//! Relies on the C library's list (`dl_iterate_phdr`), which holds a recursive lock of the dynamic linker's while it is
//! read, and so while tables are read; an object is searched for without it where a `fork` may have left that lock held. The
//! list is read for each frame whose rules are not cached: an array of all objects would take a tenth of the smallest stack.

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

impl Tables {
    /// The expression at a place in the tables: its length, then its bytes.
    pub(super) fn expression(&self, place: usize) -> Option<Reader> {
        let mut code = self.all.at(place)?;
        let length = code.uleb()?;
        code.split(length)
    }
}

/// The result of `read` on the tables that cover `address`. Their object stays loaded until `read` returns. `None`
/// without tables. In a forked child where the lock may be lost, the object must not be unloaded.
pub(super) fn with_tables<T>(
    address: usize,
    mut read: impl FnMut(&Tables) -> Option<T>,
) -> Option<T> {
    let mut result = None;
    libc::for_each_object(&mut |object| {
        let extent = Extent::of(object).filter(|extent| extent.holds(address));
        result = extent.and_then(|extent| read(&extent.tables()));
        extent.is_none()
    });
    result.or_else(|| read(&search_without_lock(address)?.tables()))
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
