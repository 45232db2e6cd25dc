//! Weak references on x86-64, as `masu-abi` has them and says why.

/// The address of a function of the C library that a program may lack, 0 then.
macro_rules! weak_function {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: One word of the global offset table is read, which is constant once the program
        // runs.
        unsafe {
            core::arch::asm!(
                concat!(".weak masu_weak_", $name),
                concat!(".symver masu_weak_", $name, ", ", $name, "@GLIBC_2.2.5"),
                concat!("mov {address}, qword ptr [rip + masu_weak_", $name, "@GOTPCREL]"),
                address = out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }};
}

/// The address of the headers of the program or library that this code is in; 0 where the linker does
/// not say.
macro_rules! own_headers {
    () => {{
        let address: usize;
        // SAFETY: As above.
        unsafe {
            core::arch::asm!(
                ".weak __ehdr_start",
                ".hidden __ehdr_start",
                "mov {address}, qword ptr [rip + __ehdr_start@GOTPCREL]",
                address = out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }};
}

pub(super) use {own_headers, weak_function};
