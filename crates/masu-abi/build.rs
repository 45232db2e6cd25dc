//! Link arguments of `libmasu.so`.
//!
//! It relies on the system's linker, GNU's or LLVM's, behind the compiler driver that rustc calls.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");

    // A program that links with `-lmasu` asks for this name, wherever it was built.
    let is_secure = env::var_os("CARGO_FEATURE_SECURE").is_some();
    let name = if is_secure { "libmasu-secure.so" } else { "libmasu.so" };
    link_arg(&format!("-Wl,-soname,{name}"));
    // Blocks, thread-exit hooks and thread slots outlive any `dlclose`.
    link_arg("-Wl,-z,nodelete");
    lay_cold_code_apart();
    // Every symbol is bound at start: no call of the allocator ends up in the dynamic linker,
    // which allocates.
    link_arg("-Wl,-z,now");
    // `src/start.rs` runs before other libraries' constructors, where the dynamic linker can do it.
    link_arg("-Wl,-z,initfirst");
    // What is relocated begins on an OS page of its own, and so never lies on two by chance.
    link_arg("-Wl,-z,separate-code");
    // Around each place of the code that a program touches, sixteen OS pages are mapped. So what is
    // marked cold lies at the end, the constructor with it, and nothing runs at the beginning:
    // the compiler's own start files would, and do nothing here.
    link_arg("-Wl,-z,keep-text-section-prefix");
    link_arg("-nostartfiles");
    // The library's own calls stay inside: a program whose `calloc` calls `__libc_calloc` must not
    // be called back.
    link_arg("-Wl,-Bsymbolic-functions");
    match variable("CARGO_CFG_TARGET_ENV").as_str() {
        "gnu" => {
            // COUPLING: the list in `src/oldest_glibc.rs`, which says why.
            link_arg("-Wl,--wrap=pthread_key_create");
            link_arg("-Wl,--wrap=pthread_setspecific");
        }
        "musl" => link_no_c_library(),
        other => println!("cargo::error=masu knows glibc and musl, not `{other}`"),
    }
}

/// Rooms that run while a heap profile is taken, for guarded blocks or for first-class heaps, and at no other time, as mangled
/// names have them.
const COLD_ROOMS: [&str; 14] = [
    "4masu7profile",
    "4masu11diagnostics8sampling",
    "4masu11diagnostics6unwind",
    "4masu11diagnostics6guards",
    "4masu6blocks5shard7guarded",
    "4masu8platform4libc7signals",
    "4masu7threads5cache7counted",
    "4masu8requests5front7counted",
    "4masu8platform6kernel4file",
    "4masu6blocks5owner",
    "4masu7threads5cache4near",
    "4masu8requests4heap",
    "4masu1c4heap",
    "masu_heap_",
];

/// Gives code that programs hardly ever run a segment of its own, behind everything else.
///
/// Where code is touched the kernel maps sixteen OS pages of it around, so whatever lies beside what runs
/// when a program starts is resident in every program. What is called `….masu_cold.…` in the source
/// is not, as long as nobody calls it; nor are whole rooms of which that is true, whose functions' sections
/// are named after them. Unwind tables are read as rarely, and lie behind it: four OS pages. GNU's linker
/// and LLVM's both take this for an addition to their own layout.
fn lay_cold_code_apart() {
    let patterns: String =
        COLD_ROOMS.iter().map(|room| format!(" *(.text.*{room}* .rodata.*{room}*)")).collect();
    let text = format!(
        "SECTIONS {{\n\
         .masu_cold : ALIGN(CONSTANT(MAXPAGESIZE)) {{ *(.text.masu_cold.* .rodata.masu_cold.*){patterns} }}\n\
         .eh_frame_hdr : {{ *(.eh_frame_hdr) }}\n\
         .eh_frame : {{ KEEP(*(.eh_frame)) }}\n\
         }} INSERT AFTER .bss;\n"
    );
    let script = Path::new(&variable("OUT_DIR")).join("cold.ld");
    match fs::write(&script, text) {
        Ok(()) => link_arg(&format!("-Wl,-T,{}", script.display())),
        Err(error) => println!("cargo::error={}: {error}", script.display()),
    }
}

/// Leaves the C library's functions open; the program that loads the library has them all.
///
/// A linker on a glibc machine would else take glibc for `-lc`, and on any machine there is just
/// one C library in a musl process.
fn link_no_c_library() {
    let folder = variable("OUT_DIR");
    let script = Path::new(&folder).join("libc.so");
    match fs::write(&script, "/* An empty linker script. */\n") {
        Ok(()) => link_arg(&format!("-L{folder}")),
        Err(error) => println!("cargo::error={}: {error}", script.display()),
    }
}

fn link_arg(argument: &str) {
    println!("cargo::rustc-cdylib-link-arg={argument}");
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}
