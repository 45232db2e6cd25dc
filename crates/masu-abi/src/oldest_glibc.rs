//! Lets `libmasu.so` load on every glibc since 2.17, wherever it was linked.
//!
//! It relies on `--wrap` in `build.rs`, which redirects the calls of two functions to this file. The hard idea: a
//! linker binds a reference to the newest version it knows: for these two functions 2.34, when glibc moved `libpthread`
//! into itself. Before, these functions were in a library that a program without threads does not load. So the
//! references here are to the oldest version, and weak: where no library defines them there are no threads, and
//! reporting that no key could be made is true. `libmasu.a` is not affected: its references must find an unversioned
//! function in a static glibc.

#[cfg(target_arch = "x86_64")]
macro_rules! oldest {
    ($name:literal) => {
        core::arch::global_asm!(
            concat!(".weak masu_weak_", $name),
            concat!(".symver masu_weak_", $name, ", ", $name, "@GLIBC_2.2.5"),
            concat!(".globl __wrap_", $name),
            concat!(".hidden __wrap_", $name),
            concat!(".type __wrap_", $name, ", @function"),
            concat!("__wrap_", $name, ":"),
            concat!("mov rax, qword ptr [rip + masu_weak_", $name, "@GOTPCREL]"),
            "test rax, rax",
            "jz 2f",
            "jmp rax",
            "2:",
            "mov eax, {missing}",
            "ret",
            concat!(".size __wrap_", $name, ", . - __wrap_", $name),
            missing = const crate::libc::ENOSYS,
        );
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! oldest {
    ($name:literal) => {
        core::arch::global_asm!(
            concat!(".weak masu_weak_", $name),
            concat!(".symver masu_weak_", $name, ", ", $name, "@GLIBC_2.17"),
            concat!(".globl __wrap_", $name),
            concat!(".hidden __wrap_", $name),
            concat!(".type __wrap_", $name, ", %function"),
            concat!("__wrap_", $name, ":"),
            concat!("adrp x8, :got:masu_weak_", $name),
            concat!("ldr x8, [x8, :got_lo12:masu_weak_", $name, "]"),
            "cbz x8, 2f",
            "br x8",
            "2:",
            "mov w0, {missing}",
            "ret",
            concat!(".size __wrap_", $name, ", . - __wrap_", $name),
            missing = const crate::libc::ENOSYS,
        );
    };
}

// COUPLING: the list in `build.rs`.
oldest!("pthread_key_create");
oldest!("pthread_setspecific");
