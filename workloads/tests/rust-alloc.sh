# title: The tests of Rust's `alloc` library (Debian's source of Rust 1.96, built by its compiler), with masu as the program's `#[global_allocator]`
# runs: /debug/deps/alloctests
# left out: examples in comments; one file that brings an allocator of its own
all() {
    RUSTFLAGS=--cap-lints=allow RUSTC=$PWD/package/usr/bin/rustc RUSTC_BOOTSTRAP=1 \
        LD_LIBRARY_PATH=$PWD/package/usr/lib/x86_64-linux-gnu rust_tests x86_64-unknown-linux-gnu --manifest-path library/alloctests/Cargo.toml "$@"
}
case $1 in
make)
    need cc gcc
    need cargo cargo
    [ -e package/done ] || {
        files_of libstd-rust-web-dev
        std=$(dpkg-deb -f ./libstd-rust-web-dev_*.deb Depends | grep -o 'libstd-rust-web-[0-9.]*')
        for part in rustc-web rust-web-src "$std"; do files_of "$part"; done
        files_of "$(dpkg-deb -f ./"$std"_*.deb Depends | grep -o 'libllvm[0-9]*')"
        : >package/done
    }
    rm -f log
    [ -e library ] || {
        mkdir library
        cp -r package/usr/src/rustc-*/library/alloc package/usr/src/rustc-*/library/alloctests library/
        cat >library/alloctests/Cargo.toml <<'MANIFEST'
[package]
name = "alloctests"
version = "0.0.0"
edition = "2024"
autotests = false
autobenches = false
[lib]
path = "lib.rs"
[[test]]
name = "alloctests"
path = "tests/lib.rs"
[dev-dependencies]
rand = { version = "0.9.0", default-features = false, features = ["alloc"] }
rand_xorshift = "0.4.0"
MANIFEST
        with_masu library/alloctests lib.rs tests/lib.rs
    }
    PRELOAD='' all --no-run && PRELOAD=libmasu all --no-run || exit
    ;;
run) all --offline || : ;;
esac
