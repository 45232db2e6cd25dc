//! Weak references; `masu-abi` has the same and says why.

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

/// The address of a symbol, 0 where it is not defined, with a directive about it.
macro_rules! weak {
    ($symbol:expr, $directive:expr) => {{
        let address: usize;
        // SAFETY: One word of the global offset table is read, which is constant once the program runs.
        unsafe {
            core::arch::asm!(
                concat!(".weak ", $symbol),
                $directive,
                crate::platform::libc::weak::load!($symbol),
                address = out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }};
}

/// The address of a function of the C library, 0 where the program lacks it.
#[cfg(target_arch = "x86_64")]
macro_rules! weak_function {
    ($name:literal) => {
        crate::platform::libc::weak::weak!(
            concat!("masu_weak_", $name),
            concat!(".symver masu_weak_", $name, ", ", $name, "@GLIBC_2.2.5")
        )
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! weak_function {
    ($name:literal) => {
        crate::platform::libc::weak::weak!(
            concat!("masu_weak_", $name),
            concat!(".symver masu_weak_", $name, ", ", $name, "@GLIBC_2.17")
        )
    };
}

/// The address of the ELF headers of the program or library that holds this code; 0 where the linker does not define it.
macro_rules! own_headers {
    () => {
        crate::platform::libc::weak::weak!("__ehdr_start", ".hidden __ehdr_start")
    };
}

pub(super) use {load, own_headers, weak, weak_function};
