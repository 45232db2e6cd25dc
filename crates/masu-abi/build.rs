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
    separate_cold_parts();
    // Every symbol is bound at start: no call of the allocator ends up in the dynamic linker,
    // which allocates.
    link_arg("-Wl,-z,now");
    // `src/start.rs` runs before other libraries' constructors, where the dynamic linker can do it.
    link_arg("-Wl,-z,initfirst");
    // A relocated segment begins on an OS page of its own, so it never shares one by chance.
    link_arg("-Wl,-z,separate-code");
    // The kernel maps sixteen OS pages around each touched place of the code. So cold code, the
    // constructor with it, lies at the end, and nothing runs at the beginning. The compiler's start
    // files would run there, and do nothing here.
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

/// Modules that run only for a heap profile, guarded blocks, first-class heaps or `fork`, as mangled
/// names have them.
const COLD_MODULES: [&str; 15] = [
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
    "4masu7threads4fork",
    "4masu7threads5cache10heap_cache",
    "4masu8requests4heap",
    "4masu1c4heap",
    "masu_heap_",
];

/// Tables far longer than an OS page, of which most programs use the beginning, as mangled names
/// have them. ARENAS and STRIPES are neighbors: a program that writes the number of arenas, at the
/// end of their table, also writes the first stripe.
const TABLES: [&str; 6] = [
    "4masu6blocks5shard6SHARDS",
    "4masu6blocks5shard7SAMPLED",
    "4masu6blocks8transfer8TRANSFER",
    "4masu6memory5arena6ARENAS",
    "4masu6memory6ranges7stripes7STRIPES",
    "4masu6memory6ranges7stripes3SUM",
];

/// Puts cold code into a segment of its own, behind everything else, and long tables behind the
/// other zeroed data, so that the rest shares an OS page.
///
/// The kernel maps sixteen OS pages around touched code, so code beside what runs at a program's
/// start is resident in every program. A section `….masu_cold.…` is not, as long as nobody calls it;
/// nor are the sections of the cold modules' functions. Unwind tables are read as rarely and lie
/// behind (four OS pages). GNU's linker and LLVM's both add this to their own layout.
fn separate_cold_parts() {
    let patterns: String = COLD_MODULES
        .iter()
        .map(|module| format!(" *(.text.*{module}* .rodata.*{module}*)"))
        .collect();
    let tables = TABLES.map(|table| format!(" *(.bss.*{table}*)")).concat();
    let text = format!(
        "SECTIONS {{\n\
         .masu_tables (NOLOAD) : {{{tables} }}\n\
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

/// Leaves the C library's functions undefined; the program that loads the library has them all.
///
/// A linker on a glibc machine would take glibc for `-lc`, but a musl process has just one C library.
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
