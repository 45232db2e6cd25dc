//! Weak references on aarch64.
//!
//! It relies on the address of an undefined weak symbol being 0 in the global offset table, static
//! programs included. The hard idea: as on x86-64, `.symver` asks for the oldest version, which is
//! 2.17 here, the first glibc for this CPU.

/// The address of a symbol; 0 where no library defines it.
macro_rules! weak {
    ($symbol:expr $(, $directive:expr)?) => {{
        let address: usize;
        // SAFETY: One word of the global offset table is read, which is constant once the program
        // runs.
        unsafe {
            core::arch::asm!(
                concat!(".weak ", $symbol),
                $($directive,)?
                concat!("adrp {address}, :got:", $symbol),
                concat!("ldr {address}, [{address}, :got_lo12:", $symbol, "]"),
                address = out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }};
}

/// The address of a C library function; 0 in a static program, which lacks it.
#[cfg(target_env = "gnu")]
macro_rules! weak_function {
    ($name:literal) => {
        crate::libc::weak!(
            concat!("masu_weak_", $name),
            concat!(".symver masu_weak_", $name, ", ", $name, "@GLIBC_2.17")
        )
    };
}

/// The address of a C library function; 0 in a static program, which lacks it.
#[cfg(not(target_env = "gnu"))]
macro_rules! weak_function {
    ($name:literal) => {
        crate::libc::weak!($name)
    };
}

pub(crate) use weak;
pub(super) use weak_function;
