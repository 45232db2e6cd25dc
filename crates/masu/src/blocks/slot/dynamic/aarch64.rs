//! The thread slot on aarch64 in libraries that are loaded late: "ELF for the Arm 64-bit Architecture" (IHI 0056),
//! thread-local storage by descriptors.
//!
//! Relies on the dynamic linker's function behind the descriptor, which may allocate with the program's malloc when a thread
//! first calls it. Linkers know this sequence: in a program they turn it into the other model's.

/// The address of this thread's variable whose name begins so.
macro_rules! place {
    ($name:literal) => {{
        let place;
        // SAFETY: The linker and the dynamic linker know the variable; the call returns its offset from the thread
        // pointer.
        unsafe {
            core::arch::asm!(
                concat!("adrp x0, :tlsdesc:", $name, suffix!()),
                concat!("ldr x1, [x0, :tlsdesc_lo12:", $name, suffix!(), "]"),
                concat!("add x0, x0, :tlsdesc_lo12:", $name, suffix!()),
                concat!(".tlsdesccall ", $name, suffix!()),
                "blr x1",
                "mrs x1, tpidr_el0",
                "add x0, x0, x1",
                out("x0") place,
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
