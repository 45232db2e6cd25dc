//! What a machine must have before the chores can run, and how it gets there.
//!
//! One table says what the tests and the comparison need, how to see that it is there, which Debian
//! package brings it, and why. What is there already, from wherever, is never installed again.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::commands;

/// How to see that something is there.
#[derive(Clone, Copy)]
enum Sign {
    Program(&'static str),
    /// A shared library in one of the usual folders.
    Library(&'static str),
    File(&'static str),
}

/// Something a chore needs that cargo does not bring.
pub struct Need {
    sign: Sign,
    package: &'static str,
    reason: &'static str,
}

impl Need {
    /// What is looked for.
    pub fn name(&self) -> &'static str {
        match self.sign {
            Sign::Program(name) | Sign::Library(name) | Sign::File(name) => name,
        }
    }
}

const fn program(name: &'static str, package: &'static str, reason: &'static str) -> Need {
    Need { sign: Sign::Program(name), package, reason }
}

const fn library(name: &'static str, package: &'static str, reason: &'static str) -> Need {
    Need { sign: Sign::Library(name), package, reason }
}

const fn file(path: &'static str, package: &'static str, reason: &'static str) -> Need {
    Need { sign: Sign::File(path), package, reason }
}

/// The mallocs that masu is compared with.
pub const PEERS: &[Need] = &[
    library("libjemalloc.so.2", "libjemalloc2", "jemalloc, a malloc to compare with"),
    library("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4", "gperftools' tcmalloc, likewise"),
    library("libmimalloc.so.2", "libmimalloc2.0", "mimalloc, likewise"),
];

/// What builds and tries the mallocs that no package has: see `peers.rs`.
pub const PEER_BUILDS: &[Need] = &[
    program("gcc", "gcc", "compiles mimalloc and jemalloc"),
    program("g++", "g++", "compiles jemalloc's operators of C++"),
    program("clang++", "clang", "compiles snmalloc, rpmalloc and Google's tcmalloc"),
    program("cmake", "cmake", "builds mimalloc, snmalloc and Google's tcmalloc"),
    program("make", "make", "builds the peers"),
    program("python3", "python3", "shows that a peer serves a real program"),
];

/// Mallocs that pay for safety, and what builds one of them.
pub const HARDENED_PEERS: &[Need] = &[
    file(
        "/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.scudo_standalone-x86_64.so",
        "libclang-rt-19-dev",
        "scudo, a hardened malloc to compare with",
    ),
    program("clang++-19", "clang-19", "compiles hardened_malloc, whose sources are C23"),
    program("ld.lld-19", "lld-19", "links it"),
];

/// What builds the allocators in C and C++ that are crates: see `rust.rs`.
pub const RUST_PEERS: &[Need] = &[
    program("gcc", "gcc", "compiles mimalloc and jemalloc"),
    program("make", "make", "builds jemalloc"),
    program("clang++", "clang", "compiles snmalloc and Google's tcmalloc"),
    program("cmake", "cmake", "builds snmalloc"),
    program("musl-gcc", "musl-tools", "compiles mimalloc and jemalloc for musl"),
];

/// What builds the allocation patterns.
pub const PATTERNS: &[Need] = &[
    program("gcc", "gcc", "compiles the allocation patterns"),
    program("make", "make", "builds the allocation patterns"),
];

/// What builds them for musl.
pub const MUSL_PATTERNS: &[Need] =
    &[program("musl-gcc", "musl-tools", "compiles the allocation patterns for musl")];

/// The real programs that `bench` measures, and what makes what they read.
pub const PROGRAMS: &[Need] = &[
    file("/usr/bin/python3", "python3", "measured; and writes what the others read"),
    program("perl", "perl", "measured"),
    program("lua5.4", "lua5.4", "measured"),
    program("g++", "g++", "measured: a compiler"),
    program("sqlite3", "sqlite3", "measured: a database"),
    program("redis-server", "redis-server", "measured: a cache server"),
    program("z3", "z3", "measured: a solver"),
    program("jq", "jq", "measured"),
    program("xmllint", "libxml2-utils", "measured"),
];

/// What is diagnosed beside them as ordinary programs.
pub const ORDINARY: &[Need] = &[
    program("xz", "xz-utils", "diagnosed: a compressor"),
    program("gzip", "gzip", "diagnosed: likewise"),
    program("sort", "coreutils", "diagnosed"),
];

/// What is diagnosed and then measured to judge the diagnosis, beside those above: see `judge.rs`.
pub const JUDGED: &[Need] = &[
    program("gawk", "gawk", "judged: an interpreter"),
    program("mawk", "mawk", "judged: another"),
    program("convert", "imagemagick", "judged: pictures"),
    program("rsvg-convert", "librsvg2-bin", "judged: drawings"),
    program("clang++", "clang", "judged: a compiler"),
    program("dot", "graphviz", "judged: graph layout"),
    program("cppcheck", "cppcheck", "judged: looks through source code"),
    program("xsltproc", "xsltproc", "judged: stylesheets"),
    program("gp", "pari-gp", "judged: algebra"),
    program("ledger", "ledger", "judged: accounts"),
    program("php", "php-cli", "judged: an interpreter"),
    program("luajit", "luajit", "judged: a compiler at run time"),
    program("xz", "xz-utils", "judged: a compressor"),
    program("zstd", "zstd", "judged: another"),
    program("groff", "groff", "judged: typesetting"),
    program("cmark", "cmark", "judged: Markdown"),
    program("bison", "bison", "judged: makes parsers"),
    program("m4", "m4", "judged: macros"),
    program("cvc5", "cvc5", "judged: a solver"),
    program("tclsh", "tcl", "judged: an interpreter"),
    program("swipl", "swi-prolog-nox", "judged: an interpreter of logic"),
    program("protoc", "protobuf-compiler", "judged: a compiler of messages"),
    program("tidy", "tidy", "judged: pages of the web"),
    program("glpsol", "glpk-utils", "judged: linear programs"),
    program("samtools", "samtools", "judged: reads of genes"),
    program("ruby", "ruby", "judged: an interpreter"),
    program("node", "nodejs", "judged: a compiler at run time"),
    program("guile", "guile-3.0", "judged: an interpreter"),
    program("sbcl", "sbcl", "judged: Lisp"),
    program("gs", "ghostscript", "judged: PostScript"),
    program("pdftotext", "poppler-utils", "judged: PDF"),
    program("iverilog", "iverilog", "judged: circuits"),
    program("nasm", "nasm", "judged: an assembler"),
    program("git", "git", "judged: histories; and makes one"),
    program("sort", "coreutils", "judged: lines"),
    program("optipng", "optipng", "judged: a compressor of pictures"),
    program("flac", "flac", "judged: a compressor of sound"),
];

/// The programs that the tests run under masu or look at it with.
pub const TESTED: &[Need] = &[
    program("gcc", "gcc", "compiles C tests; itself run under masu"),
    program("g++", "g++", "compiles C++ tests; itself run under masu"),
    program("clang++", "clang", "compiles objects that the code arena loads"),
    program("gdb", "gdb", "stops in code that the arena loaded"),
    program("musl-gcc", "musl-tools", "links C programs against musl"),
    file("/usr/lib/x86_64-linux-gnu/libz.a", "zlib1g-dev", "a real library's objects, loaded"),
    file("/usr/lib/x86_64-linux-gnu/libsqlite3.a", "libsqlite3-dev", "likewise"),
    file("/usr/lib/x86_64-linux-gnu/libbz2.a", "libbz2-dev", "likewise"),
    file("/usr/lib/x86_64-linux-gnu/liblzma.a", "liblzma-dev", "likewise"),
    file("/usr/lib/x86_64-linux-gnu/libpng.a", "libpng-dev", "likewise"),
    file("/usr/lib/x86_64-linux-gnu/libgmp.a", "libgmp-dev", "likewise"),
    file("/usr/lib/x86_64-linux-gnu/libcrypto.a", "libssl-dev", "likewise"),
    file("/usr/lib/x86_64-linux-gnu/libgtest.a", "libgtest-dev", "a real library of C++, likewise"),
    file("/usr/src/googletest/googletest/CMakeLists.txt", "googletest", "its own tests"),
    program("valgrind", "valgrind", "checks what the code arena loads"),
    program("strace", "strace", "counts system calls"),
    program("qemu-x86_64", "qemu-user", "counts lines that threads move between caches"),
    program("pkg-config", "pkgconf", "finds masu for programs in C"),
    program("cmake", "cmake", "likewise, for programs that CMake builds"),
    program("readelf", "binutils", "lists what the library exports and needs"),
    program("ps", "procps", "looks at processes that should be gone"),
    program("time", "time", "a second opinion on peak memory"),
    program("git", "git", "run under masu"),
    program("javac", "default-jdk-headless", "Java, run under masu"),
    program("node", "nodejs", "run under masu"),
    program("perl", "perl", "run under masu"),
    program("php", "php-cli", "run under masu: its modules bind deeply"),
    file("/usr/lib/php/20220829/dom.so", "php-xml", "such a module"),
    program("python3", "python3", "run under masu"),
    program("python3.11", "python3.11", "run under masu: Debian's own, whose tests are known"),
    file(
        "/usr/lib/python3.11/test/test_array.py",
        "libpython3.11-testsuite",
        "tests that CPython ships, run under masu",
    ),
    program("nginx", "nginx-light", "a server that the lab's tests compare"),
    program("redis-server", "redis-server", "a server that is linked with jemalloc, likewise"),
    program("redis-benchmark", "redis-tools", "the load on it"),
    program("sqlite3", "sqlite3", "run under masu"),
    program("bash", "bash", "reads masu's completions"),
    program("zsh", "zsh", "likewise"),
    program("fish", "fish", "likewise"),
    program("script", "bsdutils", "a terminal for xquo's tests"),
    program("groff", "groff-base", "sets masu's manual pages"),
    file(
        "/usr/bin/linux.uml",
        "user-mode-linux",
        "a kernel of its own: memory counted when promised",
    ),
    program("xz", "xz-utils", "run under masu"),
    program("zstd", "zstd", "run under masu"),
];

/// What makes Debian packages: see `package/debian.rs`.
pub const DPKG_DEV: Need =
    program("dpkg-shlibdeps", "dpkg-dev", "says which packages a package needs");
/// What takes debug information out of what is packaged.
pub const BINUTILS: Need = program("strip", "binutils", "makes packages small");
/// What shows manual pages.
pub const MAN: Need = program("man", "man-db", "shows the package's manual pages");

/// What a wheel is installed with: see `package/wheel.rs`.
pub const PYTHON: Need = program("python3", "python3", "installs the wheel");

/// What builds and runs programs of another CPU: see `matrix.rs`.
pub const FOREIGN: &[Need] = &[
    program("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu", "compiles C for aarch64"),
    program("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu", "compiles C++ for aarch64"),
    file("/usr/aarch64-linux-gnu/lib/libc.so.6", "libc6-dev-arm64-cross", "aarch64's C library"),
    program("qemu-aarch64", "qemu-user", "runs programs of aarch64"),
];

/// What builds kernels of another CPU and runs them: see `boot.rs`.
pub const GUEST: &[Need] = &[
    program("qemu-system-aarch64", "qemu-system-arm", "emulates a machine with an aarch64 CPU"),
    program("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu", "compiles kernels for aarch64"),
    file("/usr/aarch64-linux-gnu/lib/libc.so.6", "libc6-dev-arm64-cross", "aarch64's C library"),
    file("/usr/src/linux-source-6.1.tar.xz", "linux-source-6.1", "the kernel's source"),
    program("make", "make", "builds kernels"),
    program("gcc", "gcc", "compiles what builds kernels"),
    program("flex", "flex", "reads a kernel's configuration"),
    program("bison", "bison", "likewise"),
    program("bc", "bc", "reckons what a kernel is compiled with"),
    program("xz", "xz-utils", "unpacks the kernel's source"),
];

/// What counts the lines that threads move between caches: see `scale.rs`.
pub const EMULATED: &[Need] = &[
    program("qemu-x86_64", "qemu-user", "runs programs under a plugin that counts"),
    program("nm", "binutils", "names what lies at an address"),
    program("addr2line", "binutils", "names the line of an instruction"),
];

/// The target whose programs bring no C library with them.
pub const MUSL: &str = "x86_64-unknown-linux-musl";

/// The target of this machine's own programs.
pub const HOST: &str = "x86_64-unknown-linux-gnu";

/// Another CPU, under an emulator: `matrix.rs`.
pub const OTHER_CPU: &str = "aarch64-unknown-linux-gnu";

/// The same for programs that bring no C library with them.
pub const OTHER_CPU_MUSL: &str = "aarch64-unknown-linux-musl";

/// Systems on which `masu` hands requests to the system's allocator: it must compile for them.
pub const OTHER_SYSTEMS: &[&str] = &["x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

/// The oldest Rust that the libraries compile with. COUPLING: `rust-version` in their manifests.
pub const OLDEST_RUST: &str = "1.88.0";

/// Installs what is missing of all these lists: [`provide`].
pub fn provide_all(lists: &[&[Need]]) -> Result<()> {
    provide(&lists.iter().copied().flatten().collect::<Vec<_>>())
}

/// The same where a chore works with fewer: a failure is printed.
pub fn provide_what_there_is(lists: &[&[Need]]) {
    if let Err(error) = provide_all(lists) {
        println!("going on without: {error:#}");
    }
}

/// Installs what is missing of `needs`, as root by apt-get.
pub fn provide(needs: &[&Need]) -> Result<()> {
    let missing: Vec<&Need> = needs.iter().copied().filter(|need| !is_there(need.sign)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for Need { package, reason, .. } in &missing {
        println!("missing: {package} ({reason})");
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    let by_hand = format!("apt-get install --no-install-recommends {}", packages.join(" "));
    if !is_root() || !is_there(Sign::Program("apt-get")) {
        bail!("install what is missing, on Debian as root by `{by_hand}`, then run this again");
    }
    println!("installing as root: {by_hand}");
    // The list of packages may be old or empty, so a first failure is answered with a fresh one.
    if apt_get(&["install"], &packages).is_err() {
        apt_get(&["update"], &[])?;
        apt_get(&["install"], &packages)?;
    }
    match missing.iter().find(|need| !is_there(need.sign)) {
        Some(need) => bail!("{} was installed and is still not found", need.package),
        None => Ok(()),
    }
}

fn apt_get(action: &[&str], packages: &[&str]) -> Result<()> {
    let _started = NothingStarts::new();
    let mut command = Command::new("apt-get");
    command.args(["--yes", "--quiet=2", "--no-install-recommends"]).args(action).args(packages);
    command.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    commands::run(&mut command)
}

/// While this lives, Debian's packages start none of the servers that they install: tests start their own.
struct NothingStarts(Option<&'static Path>);

impl NothingStarts {
    /// Where Debian asks whether a service may be started (invoke-rc.d(8)).
    const POLICY: &str = "/usr/sbin/policy-rc.d";

    fn new() -> NothingStarts {
        let policy = Path::new(NothingStarts::POLICY);
        // A policy that is there is the machine's own.
        let is_written = !policy.exists()
            && fs::write(policy, "#!/bin/sh\nexit 101\n").is_ok()
            && fs::set_permissions(policy, Permissions::from_mode(0o755)).is_ok();
        NothingStarts(is_written.then_some(policy))
    }
}

impl Drop for NothingStarts {
    fn drop(&mut self) {
        if let Some(policy) = self.0 {
            let _ = fs::remove_file(policy);
        }
    }
}

fn is_there(sign: Sign) -> bool {
    match sign {
        Sign::Program(name) => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
        }
        Sign::Library(name) => {
            let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"];
            folders.iter().any(|folder| Path::new(folder).join(name).exists())
        }
        Sign::File(path) => Path::new(path).exists(),
    }
}

/// Whether programs that are started from here may install packages.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Adds what the Rust toolchain lacks, by rustup.
pub fn provide_toolchain(root: &Path) -> Result<()> {
    let answers = |tool: &str| {
        let mut command = commands::cargo(root, &[tool, "--version"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    for (tool, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if !answers(tool) {
            rustup(root, &["component", "add", component])?;
        }
    }
    for target in [MUSL, OTHER_CPU, OTHER_CPU_MUSL].iter().chain(OTHER_SYSTEMS) {
        provide_target(root, target)?;
    }
    let mut oldest = Command::new("rustup");
    oldest.args(["run", OLDEST_RUST, "rustc", "--version"]);
    if !oldest.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success() {
        rustup(root, &["toolchain", "install", OLDEST_RUST, "--profile", "minimal"])?;
    }
    Ok(())
}

/// Adds the standard library for `target` where the toolchain lacks it.
pub fn provide_target(root: &Path, target: &str) -> Result<()> {
    if has_standard_library(root, target)? {
        return Ok(());
    }
    rustup(root, &["target", "add", target])
}

fn has_standard_library(root: &Path, target: &str) -> Result<bool> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--print", "target-libdir", "--target", target])
        .current_dir(root)
        .output()
        .context("cannot start rustc")?;
    let folder = String::from_utf8_lossy(&output.stdout);
    Ok(Path::new(folder.trim()).is_dir())
}

fn rustup(root: &Path, arguments: &[&str]) -> Result<()> {
    println!("running rustup {}", arguments.join(" "));
    let mut command = Command::new("rustup");
    command.args(arguments).current_dir(root);
    commands::run(&mut command).context("the Rust toolchain lacks a part that rustup would add")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_missed() {
        assert!(!is_there(Sign::Program("no-program-has-this-name")));
        assert!(is_there(Sign::Program("cargo")));
    }

    #[test]
    fn a_library_that_is_not_there_is_missed() {
        assert!(!is_there(Sign::Library("libno-library-has-this-name.so.1")));
    }

    #[test]
    fn each_package_is_listed_once() {
        let mut packages: Vec<_> = PEERS.iter().chain(TESTED).map(|need| need.package).collect();
        packages.sort_unstable();
        let count = packages.len();
        packages.dedup();
        assert_eq!(packages.len(), count);
    }
}
