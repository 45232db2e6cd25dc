//! masu in libraries: plug-ins that are loaded and unloaded, on glibc and on musl, Rust's shared libraries, and several
//! copies of masu in one program. The linker or the dynamic linker refuses impossible cases, with a name that gives the
//! reason.
//!
//! It relies on the cargo that runs the tests, on crates made here that need nothing fetched, and on `cc` and
//! `musl-gcc` for the host programs; without these compilers the tests report that they did nothing. The crates are
//! always built for release and for both C libraries, so tests built for release or for musl would repeat the same, and
//! are empty.
#![cfg(all(debug_assertions, target_env = "gnu"))]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A linker's message where masu is in the program twice, or only in a library.
const ONE_COPY: &str = "one_copy_in_one_program_or_library";

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Makes a crate with this manifest, after the package's lines, and this source.
fn make(folder: &Path, name: &str, manifest: &str, source: &str) -> PathBuf {
    let folder = folder.join(name);
    let kind = if manifest.contains("crate-type") { "lib.rs" } else { "main.rs" };
    fs::create_dir_all(folder.join("src")).expect("a folder for the crate");
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n{manifest}\n[workspace]\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).expect("a manifest");
    fs::write(folder.join("src").join(kind), source).expect("a source");
    folder
}

/// A dependency on this crate, as a line of a manifest.
fn masu(more: &str) -> String {
    format!("masu = {{ path = {:?}{more} }}\n", env!("CARGO_MANIFEST_DIR"))
}

/// Builds a crate for release with these arguments and flags of the compiler.
fn build(folder: &Path, arguments: &[&str], flags: &str) -> Output {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--offline", "--quiet", "--target-dir"]);
    cargo.arg(folder.join("target")).args(arguments).current_dir(folder);
    for variable in ["CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        cargo.env_remove(variable);
    }
    cargo.env("RUSTFLAGS", flags).output().expect("cargo starts")
}

fn builds(folder: &Path, arguments: &[&str], flags: &str) {
    let output = build(folder, arguments, flags);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles `tests/plugins/SOURCE`; `None` without the compiler.
fn compile(compiler: &str, source: &str, result: &Path, arguments: &[&str]) -> Option<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugins").join(source);
    let mut command = Command::new(compiler);
    command.arg("-pthread").arg(source).arg("-o").arg(result).args(arguments);
    let Ok(output) = command.output() else {
        eprintln!("not tested: there is no {compiler}");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

fn run(command: &mut Command) -> (bool, String) {
    let output = command.output().expect("the program starts");
    (output.status.success(), format!("{}\n{}", output.status, printed(&output)))
}

/// A plug-in without Rust's standard library, which has no shared form on musl.
const PLUGIN: &str = r#"#![no_std]
extern crate alloc;
use alloc::{boxed::Box, vec::Vec};

#[global_allocator]
static GLOBAL: masu::Masu = masu::Masu::new();

// `core` names it in its unwind tables; nothing here unwinds.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[unsafe(no_mangle)]
pub extern "C" fn plugin_work(count: usize) -> usize {
    let boxes: Vec<Box<[usize]>> = (0..count).map(|n| alloc::vec![n; n % 300 + 1].into()).collect();
    boxes.iter().enumerate().filter(|(n, numbers)| numbers.iter().all(|m| m == n)).count()
}
"#;

/// Builds the plug-in in a folder of this name; returns its file.
fn plugin(name: &str, features: &str, arguments: &[&str], flags: &str) -> PathBuf {
    let manifest = format!(
        "[lib]\ncrate-type = [\"cdylib\"]\n[profile.release]\npanic = \"abort\"\n[dependencies]\n{}",
        masu(features)
    );
    let folder = make(&folder(name), "plugin", &manifest, PLUGIN);
    builds(&folder, arguments, flags);
    let target = arguments.iter().skip_while(|argument| **argument != "--target").nth(1);
    folder.join("target").join(target.unwrap_or(&"")).join("release/libplugin.so")
}

#[test]
fn a_plug_in_can_be_unloaded() {
    let library = plugin("plug-in", "", &[], "");
    let host = folder("host");
    if compile("cc", "host.c", &host, &["-ldl"]).is_none() {
        return;
    }
    let (is_fine, said) = run(Command::new(&host).arg(&library));
    assert!(is_fine, "{said}");
    // Also with a relative path, which is no longer valid when the plug-in allocates.
    let beside = library.parent().expect("a file is in a folder");
    let (is_fine, said) = run(Command::new(&host).arg("./libplugin.so").current_dir(beside));
    assert!(is_fine, "{said}");
}

/// Once other libraries have used up glibc's reserve of static thread-local storage, the dynamic linker refuses the
/// plug-in, unless it has `tls-dynamic`.
#[test]
fn a_plug_in_without_static_tls_left_needs_tls_dynamic() {
    let host = folder("host-late");
    if compile("cc", "host.c", &host, &["-ldl"]).is_none() {
        return;
    }
    // Each library takes the rest if it fits, so no room for a slot is left.
    let sizes = [4096, 2048, 1024, 512, 256, 128, 64, 32, 16, 8, 8, 8];
    let hungry: Vec<PathBuf> = sizes
        .iter()
        .enumerate()
        .map(|(number, bytes)| {
            let library = folder(&format!("hungry-{number}.so"));
            let size = format!("-DSIZE={bytes}");
            compile("cc", "hungry.c", &library, &["-shared", "-fPIC", &size]);
            library
        })
        .collect();
    let late = |plugin: &Path| run(Command::new(&host).arg(plugin).args(&hungry));
    let (is_fine, said) = late(&plugin("plug-in-late", "", &[], ""));
    assert!(!is_fine && said.contains("plugin.so: cannot allocate memory in static TLS"), "{said}");
    let dynamic = ", features = [\"tls-dynamic\"]";
    let (is_fine, said) = late(&plugin("plug-in-dynamic", dynamic, &[], ""));
    assert!(is_fine, "{said}");
}

#[test]
fn a_plug_in_on_musl_needs_tls_dynamic() {
    let host = folder("host-musl");
    if !cfg!(target_arch = "x86_64") || compile("musl-gcc", "host.c", &host, &[]).is_none() {
        return;
    }
    // Without this the linker of a glibc machine would find glibc for `-lc`.
    let empty = folder("no-c-library");
    fs::create_dir_all(&empty).expect("a folder");
    fs::write(empty.join("libc.so"), "/* An empty linker script. */\n").expect("a script");
    let flags = format!(
        "-C target-feature=-crt-static -C link-arg=-nostdlib -C link-arg=-nostartfiles \
         -C link-self-contained=no -L {}",
        empty.display()
    );
    let arguments = ["--target", "x86_64-unknown-linux-musl"];
    let dynamic =
        plugin("plug-in-musl-dynamic", ", features = [\"tls-dynamic\"]", &arguments, &flags);
    let (is_fine, said) = run(Command::new(&host).arg(dynamic));
    assert!(is_fine, "{said}");
    let usual = plugin("plug-in-musl", "", &arguments, &flags);
    let (is_fine, said) = run(Command::new(&host).arg(usual));
    assert!(!is_fine && said.contains("initial-exec TLS resolves to dynamic"), "{said}");
}

const SHARED: &str = r"
#[global_allocator]
static GLOBAL: masu::Masu = masu::Masu::new();

pub fn words(count: usize) -> Vec<String> {
    (0..count).map(|n| n.to_string()).collect()
}

pub fn live() -> usize {
    masu::c::statistics().live_bytes
}
";

const USER: &str = r#"
fn main() {
    let before = shared::live();
    let words = shared::words(10_000);
    let more: Vec<Box<[u8]>> = (0..1_000).map(|n| vec![1; n].into()).collect();
    let grown = shared::live() - before;
    assert!(grown > 500_000, "both sides' blocks are masu's: {grown} bytes live");
    let length = std::thread::spawn(move || words.concat().len()).join().unwrap();
    println!("{} {length}", more.len());
}
"#;

/// A program that links a Rust `dylib` with masu in it.
fn program_with_dylib(name: &str, more: &str, source: &str) -> (PathBuf, Output) {
    let root = folder(name);
    let manifest = format!("[lib]\ncrate-type = [\"dylib\"]\n[dependencies]\n{}", masu(""));
    make(&root, "shared", &manifest, SHARED);
    let manifest = format!("[dependencies]\nshared = {{ path = \"../shared\" }}\n{more}");
    let user = make(&root, "user", &manifest, source);
    let output = build(&user, &[], "-C prefer-dynamic");
    (user.join("target/release"), output)
}

#[test]
fn a_rust_dylib_serves_the_program_that_links_it() {
    let (built, output) = program_with_dylib("dylib", "", USER);
    assert!(output.status.success(), "{}", printed(&output));
    let root = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--print", "target-libdir"])
        .output()
        .expect("rustc starts");
    let standard = String::from_utf8_lossy(&root.stdout).trim().to_owned();
    let path = format!("{0}:{0}/deps:{standard}", built.display());
    let (is_fine, said) = run(Command::new(built.join("user")).env("LD_LIBRARY_PATH", path));
    assert!(is_fine && said.contains("1000 38890"), "{said}");
}

#[test]
fn the_linker_refuses_direct_calls_of_masu_inside_a_dylib() {
    let source = "fn main() {\n    let block = masu::c::malloc(shared::words(1).len());\n    \
                  // SAFETY: The block is live.\n    unsafe { masu::c::free(block) };\n}\n";
    let (_, output) = program_with_dylib("dylib-beside", &masu(""), source);
    let said = printed(&output);
    assert!(!output.status.success() && said.contains(ONE_COPY), "{said}");
}

/// A copy of this crate with another version.
fn copy(folder: &Path, version: &str) -> PathBuf {
    fn copy_all(from: &Path, to: &Path) {
        fs::create_dir_all(to).expect("a folder");
        for entry in fs::read_dir(from).expect("sources").map(|entry| entry.expect("an entry")) {
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            if from.is_dir() {
                copy_all(&from, &to);
            } else {
                fs::copy(&from, &to).expect("the folder is writable");
            }
        }
    }
    let copy = folder.join(format!("masu-{version}"));
    copy_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &copy.join("src"));
    let manifest = format!(
        "[package]\nname = \"masu\"\nversion = \"{version}\"\nedition = \"2024\"\n\
         [features]\ntls-dynamic = []\n[workspace]\n"
    );
    fs::write(copy.join("Cargo.toml"), manifest).expect("a manifest");
    copy
}

const TWO: &str = r#"
#[global_allocator]
static GLOBAL: masu::Masu = masu::Masu::new();

fn main() {
    let (ours, theirs) = (masu::c::statistics, other::c::statistics);
    let before = (ours().live_bytes, theirs().live_bytes);
    let block = other::c::malloc(10 << 20);
    let text = vec![1_u8; 20 << 20];
    assert!(theirs().live_bytes - before.1 < 12 << 20);
    assert!((20 << 20..22 << 20).contains(&(ours().live_bytes - before.0)));
    let work = || {
        let blocks: Vec<_> = (1..5_000).map(|n| (vec![n; n % 50 + 1], other::c::malloc(n) as usize)).collect();
        for (numbers, block) in blocks {
            assert!(numbers.iter().all(|n| *n == numbers[0]));
            // SAFETY: The block is live.
            unsafe { other::c::free(block as *mut u8) };
        }
    };
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(work)).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    // SAFETY: As above.
    unsafe { other::c::free(block) };
    println!("both {}", text.len());
}
"#;

fn program_with_two(name: &str, version: &str) -> (PathBuf, Output) {
    let root = folder(name);
    let other = copy(&root, version);
    let other = format!("other = {{ package = \"masu\", path = {:?} }}\n", other.display());
    let user = make(&root, "two", &format!("[dependencies]\n{}{other}", masu("")), TWO);
    let output = build(&user, &[], "");
    (user.join("target/release/two"), output)
}

#[test]
fn two_versions_in_one_program_are_two_heaps() {
    let (program, output) = program_with_two("two-versions", "77.0.0");
    assert!(output.status.success(), "{}", printed(&output));
    let (is_fine, said) = run(&mut Command::new(program));
    assert!(is_fine && said.contains("both"), "{said}");
}

#[test]
fn the_linker_refuses_one_version_twice() {
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    let (_, output) = program_with_two("one-version-twice", &format!("{major}.{minor}.77"));
    let said = printed(&output);
    assert!(!output.status.success() && said.contains(ONE_COPY), "{said}");
}
