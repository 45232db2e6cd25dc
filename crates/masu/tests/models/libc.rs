//! The C library's door of the models: threads end where a model says so, nothing forks, and the end of the program is
//! a panic, which loom reports with the steps that led to it.

extern crate std;

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};

type Destructor = unsafe extern "C" fn(*mut c_void);
type ForkHandler = extern "C" fn();

std::thread_local! {
    static DESTRUCTOR: Cell<Option<Destructor>> = const { Cell::new(None) };
}

loom::thread_local! {
    static VALUE: Cell<*const c_void> = Cell::new(std::ptr::null());
}

#[derive(Clone, Copy)]
pub(crate) struct Key;

impl Key {
    pub(crate) fn new(destructor: Destructor) -> Option<Key> {
        DESTRUCTOR.set(Some(destructor));
        Some(Key)
    }

    pub(crate) fn set(self, value: *const c_void) {
        VALUE.with(|place| place.set(value));
    }
}

/// Ends this thread, as far as the allocator is concerned.
pub(crate) fn end_thread() {
    let value = VALUE.with(|place| place.replace(std::ptr::null()));
    if let Some(destructor) = DESTRUCTOR.get()
        && !value.is_null()
    {
        // SAFETY: As the C library calls it.
        unsafe { destructor(value.cast_mut()) };
    }
}

pub(crate) fn abort() -> ! {
    panic!("{}", crate::platform::kernel::message());
}

pub(crate) fn set_errno(_: c_int) {}

pub(crate) fn environment() -> *const *const c_char {
    std::ptr::null()
}

pub(crate) fn is_secure() -> bool {
    false
}

pub(crate) fn at_exit(_: extern "C" fn(*mut c_void)) -> bool {
    true
}

pub(crate) fn at_fork(_: ForkHandler, _: ForkHandler, _: ForkHandler) {}

pub(crate) fn forget_walkers(_: bool) {}

pub(crate) fn hold_streams() {}

pub(crate) fn let_go_streams() {}

pub(crate) fn forget_streams() {}

pub(crate) fn load_finder() {}

pub(crate) fn pin() {}

/// A program header of ELF; the models have none.
pub(crate) struct Segment {
    pub(crate) kind: u32,
    pub(crate) address: usize,
    pub(crate) length: usize,
}

impl Segment {
    pub(crate) const LOADED: u32 = 1;
    pub(crate) const UNWIND_TABLES: u32 = 0x6474_e550;
}

/// A loaded object; the unwinder sees none.
pub(crate) struct Object {
    pub(crate) address: usize,
    pub(crate) changes: Option<u64>,
}

impl Object {
    pub(crate) fn segments(&self) -> &[Segment] {
        &[]
    }

    pub(crate) fn name(&self) -> &std::ffi::CStr {
        c""
    }
}

pub(crate) fn for_each_object(_: &mut dyn FnMut(&Object) -> bool) {}

pub(crate) fn object_changes() -> Option<u64> {
    None
}

pub(crate) fn object_without_lock(_: usize) -> Option<[usize; 3]> {
    None
}

/// Faults of memory; a model has none.
pub(crate) mod signals {
    use core::ffi::c_void;

    pub(crate) struct MemoryFault {
        pub(crate) address: usize,
        pub(crate) context: *const c_void,
    }

    pub(crate) fn on_fault(_: fn(&MemoryFault)) {}

    pub(crate) unsafe fn call_on(
        _: *mut u8,
        call: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
    ) {
        // SAFETY: The caller's condition.
        unsafe { call(argument) };
    }

    pub(crate) unsafe fn was_write(_: *const c_void) -> Option<bool> {
        None
    }
}
