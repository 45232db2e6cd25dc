//! Link arguments of `libmasu.so`.
//!
//! It relies on the system's linker, GNU's or LLVM's, behind the compiler driver that rustc calls.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");

    // A program that links with `-lmasu` asks for this name, wherever it was built.
    link_arg("-Wl,-soname,libmasu.so");
    // Blocks, thread-exit hooks and thread slots outlive any `dlclose`.
    link_arg("-Wl,-z,nodelete");
    // Every symbol is bound at start: no call of the allocator ends up in the dynamic linker,
    // which allocates.
    link_arg("-Wl,-z,now");
    // `src/start.rs` runs before other libraries' constructors, where the dynamic linker can do it.
    link_arg("-Wl,-z,initfirst");
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
