//! Lets `libmasu.so` load on every glibc since 2.17, wherever it was linked.
//!
//! It relies on `--wrap` in `build.rs`, which redirects the calls of two functions to this file. The hard idea: a
//! linker binds a reference to the newest version it knows: for these two functions 2.34, when glibc moved `libpthread`
//! into itself. Before, these functions were in a library that a program without threads does not load. So the
//! references here are to the oldest version, and weak: where no library defines them there are no threads, and
//! reporting that no key could be made is true. `libmasu.a` is not affected: its references must find an unversioned
//! function in a static glibc.

/// The instructions that jump to a function, or return `{missing}` where no library defines it.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    ($name:literal) => {
        concat!(
            "mov rax, qword ptr [rip + masu_weak_",
            $name,
            "@GOTPCREL]\n",
            "test rax, rax\njz 2f\njmp rax\n",
            "2:\nmov eax, {missing}\nret",
        )
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    ($name:literal) => {
        concat!(
            "adrp x8, :got:masu_weak_",
            $name,
            "\n",
            "ldr x8, [x8, :got_lo12:masu_weak_",
            $name,
            "]\n",
            "cbz x8, 2f\nbr x8\n",
            "2:\nmov w0, {missing}\nret",
        )
    };
}

macro_rules! wrap {
    ($name:literal) => {
        core::arch::global_asm!(
            concat!(".weak masu_weak_", $name),
            crate::libc::weak::oldest!($name),
            concat!(".globl __wrap_", $name),
            concat!(".hidden __wrap_", $name),
            concat!(".type __wrap_", $name, ", %function"),
            concat!("__wrap_", $name, ":"),
            jump!($name),
            concat!(".size __wrap_", $name, ", . - __wrap_", $name),
            missing = const crate::libc::ENOSYS,
        );
    };
}

// COUPLING: the list in `build.rs`.
wrap!("pthread_key_create");
wrap!("pthread_setspecific");
