//! Link arguments of `libmasu_code.so`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A program that links with `-lmasu_code` asks for this name, wherever it was built.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmasu_code.so");
    // The C library calls this library when threads end, and loaded code does at any time: `dlclose` keeps the library.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
