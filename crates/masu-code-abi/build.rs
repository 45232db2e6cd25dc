//! Link arguments of `libmasu_code.so`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A program that links with `-lmasu_code` asks for this name, wherever it was built.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmasu_code.so");
}
