//! The thread slot on x86-64: "ELF Handling For Thread-Local Storage" (U. Drepper, 2013), section
//! 4.4.6, initial-exec.

/// Reads the variable whose name begins so.
macro_rules! read_word {
    ($name:literal) => {{
        let value;
        // SAFETY: The linker fills in the variable's offset from the thread pointer; the read has no side effect.
        unsafe {
            core::arch::asm!(
                concat!("mov {value}, qword ptr [rip + ", $name, suffix!(), "@GOTTPOFF]"),
                "mov {value}, qword ptr fs:[{value}]",
                value = out(reg) value,
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
                concat!("mov {offset}, qword ptr [rip + ", $name, suffix!(), "@GOTTPOFF]"),
                "mov qword ptr fs:[{offset}], {value}",
                offset = out(reg) _,
                value = in(reg) $value,
                options(nostack, preserves_flags),
            );
        }
    };
}

pub(super) use {read_word, write_word};
