//! The thread slot on aarch64: "ELF for the Arm 64-bit Architecture" (IHI 0056), static and
//! initial-exec thread-local storage.

/// Reads the variable whose name begins so.
macro_rules! read_word {
    ($name:literal) => {{
        let value;
        // SAFETY: The linker fills in the variable's offset from the thread pointer; the read has no side effect.
        unsafe {
            core::arch::asm!(
                concat!("adrp {offset}, :gottprel:", $name, suffix!()),
                concat!("ldr {offset}, [{offset}, :gottprel_lo12:", $name, suffix!(), "]"),
                "mrs {value}, tpidr_el0",
                "ldr {value}, [{value}, {offset}]",
                value = out(reg) value,
                offset = out(reg) _,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        value
    }};
}

/// Writes it.
macro_rules! write_word {
    ($name:literal, $value:expr) => {
        // SAFETY: As in `read_word`; the word belongs to this thread.
        unsafe {
            core::arch::asm!(
                concat!("adrp {offset}, :gottprel:", $name, suffix!()),
                concat!("ldr {offset}, [{offset}, :gottprel_lo12:", $name, suffix!(), "]"),
                "mrs {base}, tpidr_el0",
                "str {value}, [{base}, {offset}]",
                base = out(reg) _,
                offset = out(reg) _,
                value = in(reg) $value,
                options(nostack, preserves_flags),
            );
        }
    };
}

pub(super) use {read_word, write_word};
