//! Where the usual way to ask for loaded objects is always open: musl's `fork` gives the child its lock back.

/// Nothing is to be looked for.
pub(crate) fn look_for_finder() {}

/// There is no other way, and no need for one.
pub(super) fn has_finder() -> bool {
    false
}

/// Nobody asks.
pub(super) fn find_object(_address: usize) -> Option<[usize; 3]> {
    None
}
