//! Weak references on x86-64; `masu-abi` has the same and says why.

/// The address of a function of the C library, 0 where the program lacks it.
macro_rules! weak_function {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: One word of the global offset table is read, which is constant once the program runs.
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

/// The address of the ELF headers of the program or library that holds this code; 0 where the linker does not define it.
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
