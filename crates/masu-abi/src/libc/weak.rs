//! Weak references.
//!
//! It relies on the address of an undefined weak symbol being 0 in the global offset table, static programs included.
//! The hard idea: a reference without a version takes the newest version of the glibc it was linked with (`dlsym` moved
//! into `libc.so.6` in 2.34 under a new version), and the library would refuse to load on older systems; `.symver` asks
//! for the oldest version.

/// The instructions that load a symbol's address from the global offset table.
#[cfg(target_arch = "x86_64")]
macro_rules! load {
    ($symbol:expr) => {
        concat!("mov {address}, qword ptr [rip + ", $symbol, "@GOTPCREL]")
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! load {
    ($symbol:expr) => {
        concat!(
            "adrp {address}, :got:",
            $symbol,
            "\nldr {address}, [{address}, :got_lo12:",
            $symbol,
            "]"
        )
    };
}

/// Gives a function's oldest version to a weak name of it.
#[cfg(all(target_env = "gnu", target_arch = "x86_64"))]
macro_rules! oldest {
    ($name:literal) => {
        concat!(".symver masu_weak_", $name, ", ", $name, "@GLIBC_2.2.5")
    };
}

/// The same with the first glibc for this CPU.
#[cfg(all(target_env = "gnu", target_arch = "aarch64"))]
macro_rules! oldest {
    ($name:literal) => {
        concat!(".symver masu_weak_", $name, ", ", $name, "@GLIBC_2.17")
    };
}

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
                $crate::libc::weak::load!($symbol),
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
        crate::libc::weak!(concat!("masu_weak_", $name), crate::libc::weak::oldest!($name))
    };
}

/// The address of a C library function; 0 in a static program, which lacks it.
#[cfg(not(target_env = "gnu"))]
macro_rules! weak_function {
    ($name:literal) => {
        crate::libc::weak!($name)
    };
}

#[cfg(target_env = "gnu")]
pub(crate) use oldest;
pub(super) use weak_function;
pub(crate) use {load, weak};
