//! The thread slot on x86-64 in libraries that are loaded late: "ELF Handling For Thread-Local Storage" (U. Drepper, 2013),
//! section 4.4.1, general dynamic.
//!
//! Relies on the C library's `__tls_get_addr`, which may allocate with the program's malloc when a thread first calls it.
//! Linkers know this sequence: in a program they turn it into the two instructions of the other model.

/// The address of this thread's variable whose name begins so.
macro_rules! place {
    ($name:literal) => {{
        let place;
        // SAFETY: The linker and the dynamic linker know the variable; the call returns the address of this thread's, and
        // clobbers what any function may.
        unsafe {
            core::arch::asm!(
                ".byte 0x66",
                concat!("lea rdi, [rip + ", $name, suffix!(), "@TLSGD]"),
                ".byte 0x66, 0x66, 0x48",
                "call __tls_get_addr@PLT",
                out("rax") place,
                clobber_abi("C"),
            );
        }
        place
    }};
}

/// Reads the variable whose name begins so.
macro_rules! read_word {
    ($name:literal) => {{
        let place = arch::place!($name);
        // SAFETY: The variable is this thread's and lives as long as it does.
        unsafe { core::ptr::read(place) }
    }};
}

/// Writes it.
macro_rules! write_word {
    ($name:literal, $value:expr) => {{
        let place = arch::place!($name);
        // SAFETY: As in `read_word`.
        unsafe { core::ptr::write(place, $value) }
    }};
}

pub(super) use {place, read_word, write_word};
