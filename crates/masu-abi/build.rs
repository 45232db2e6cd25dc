//! Link arguments of `libmasu.so`, and the way for `masu-cli` to find this package's sources.
//!
//! It relies on cargo's `links` metadata: a package that depends on this one reads
//! `DEP_MASU_ABI_MANIFEST_DIR` in its own build script, in a workspace and from a registry alike.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let manifest_dir = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo::metadata=manifest_dir={manifest_dir}");

    // A program that links with `-lmasu` asks for this name, wherever it was built.
    link_arg("-Wl,-soname,libmasu.so");
    // Blocks, thread-exit hooks and thread slots outlive any `dlclose`.
    link_arg("-Wl,-z,nodelete");
    // Every symbol is bound at start: no call of the allocator ends up in the dynamic linker,
    // which allocates.
    link_arg("-Wl,-z,now");
    // COUPLING: the list in `src/oldest_glibc.rs`, which says why.
    if env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
        link_arg("-Wl,--wrap=pthread_key_create");
        link_arg("-Wl,--wrap=pthread_setspecific");
    }
}

fn link_arg(argument: &str) {
    println!("cargo::rustc-cdylib-link-arg={argument}");
}
