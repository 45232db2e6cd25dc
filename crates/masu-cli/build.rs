//! Builds the `libmasu.so` that `masu` carries inside, once for programs on glibc and once for
//! programs on musl; and each again as the library that counts requests, and as the hardened build.
//!
//! `libmasu/` holds links to the sources of `masu` and `masu-abi`; `cargo package` puts what they
//! point to into this crate, so an installed `masu` is built from its own package and never asks
//! the network. The hard part is a cargo inside a cargo: the sources are copied into a workspace
//! of their own, whose target folder nobody else locks. It lies in the target folder of the outer
//! build, so that all profiles, clippy and tests carry libraries that were built once.
//!
//! The library for the C library that `masu` itself is built for must build. The other one is optional: where its
//! Rust target is not installed, or the feature `both-c-libraries` is off, the file is empty, and `masu` names the
//! missing part at run time.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;

/// Separates the flags in `CARGO_ENCODED_RUSTFLAGS`, as cargo's reference says.
const FLAG_SEPARATOR: char = '\u{1f}';

fn main() -> ExitCode {
    match build_libraries() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("cargo::error=libmasu.so, which masu carries inside: {why}");
            ExitCode::FAILURE
        }
    }
}

fn build_libraries() -> Result<(), String> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let target = variable("TARGET")?;
    let own = variable("CARGO_CFG_TARGET_ENV")?;
    if variable("CARGO_CFG_TARGET_OS")? != "linux" {
        return Err("masu works on Linux only".to_owned());
    }
    let arch = target.split('-').next().unwrap_or_default();
    let workspace = Workspace::lay_out(&out).map_err(|error| format!("its sources: {error}"))?;
    let builds = [("gnu", "glibc"), ("musl", "musl")].map(|(env, libc)| {
        let is_own = env == own;
        let target = if is_own { target.clone() } else { format!("{arch}-unknown-linux-{env}") };
        Build { workspace: &workspace.folder, target, env, libc, is_own }
    });
    // Each has a target folder of its own; cargo shares the CPUs among them.
    let outcomes: Vec<_> = thread::scope(|scope| {
        let running = builds.each_ref().map(|build| scope.spawn(|| build.all_kinds()));
        running.into_iter().map(|build| build.join()).collect()
    });
    for (build, outcome) in builds.iter().zip(outcomes) {
        let absence = match outcome.map_err(|_| "the build script panicked".to_owned())? {
            Err(why) if build.is_own => return Err(why),
            Err(why) => why,
            Ok(()) => String::new(),
        };
        for kind in &KINDS {
            let prefix = kind.carried;
            let carried = out.join(format!("{prefix}-{}.so", build.libc));
            let done = if absence.is_empty() {
                fs::copy(build.library(kind), &carried).map(drop)
            } else {
                fs::write(&carried, [])
            };
            done.map_err(|error| format!("{}: {error}", carried.display()))?;
            let name = format!("{prefix}-{}-absent", build.libc).replace('-', "_").to_uppercase();
            println!("cargo::rustc-env={name}={absence}");
        }
    }
    // A test checks which packages the libraries were built from.
    let lock = workspace.folder.join("Cargo.lock");
    fs::copy(&lock, out.join("libmasu.lock"))
        .map_err(|error| format!("{}: {error}", lock.display()))?;
    Ok(())
}

/// A `libmasu.so`, as a package and a library of the workspace: a name of its own has cargo build several at once.
struct Kind {
    package: &'static str,
    library: &'static str,
    /// The feature of `masu-abi` that selects this kind.
    feature: Option<&'static str>,
    /// The name of the carried file, up to the C library's name.
    carried: &'static str,
}

/// The ordinary library, the counting library and the hardened library.
const KINDS: [Kind; 3] = [
    Kind { package: "masu-abi", library: "masu", feature: None, carried: "libmasu" },
    Kind {
        package: "masu-abi-count",
        library: "masu_count",
        feature: Some("count"),
        carried: "libmasu-count",
    },
    Kind {
        package: "masu-abi-secure",
        library: "masu_secure",
        feature: Some("secure"),
        carried: "libmasu-secure",
    },
];

/// The libraries for one C library.
struct Build<'a> {
    workspace: &'a Path,
    target: String,
    /// The C library as the target names it, and as people do.
    env: &'static str,
    libc: &'static str,
    /// True if `masu` itself runs on it.
    is_own: bool,
}

impl Build<'_> {
    fn all_kinds(&self) -> Result<(), String> {
        if !self.is_own && env::var_os("CARGO_FEATURE_BOTH_C_LIBRARIES").is_none() {
            let why = "masu was built without its feature both-c-libraries, as `cargo xtask try` does; \
                       `cargo build --release` has it";
            return Err(why.to_owned());
        }
        if !self.is_own && !is_installed(&self.target)? {
            return Err(format!(
                "the Rust target {0} was not installed when masu was built; \
                 `rustup target add {0}` and build masu again",
                self.target
            ));
        }
        // The hardened library needs its own build of `masu`; the other two share one.
        let (in_common, hardened) = KINDS.split_at(2);
        self.cargo(in_common)?;
        self.cargo(hardened)
    }

    fn cargo(&self, kinds: &[Kind]) -> Result<(), String> {
        let mut cargo = Command::new(variable("CARGO")?);
        cargo
            .args(["build", "--offline", "--quiet", "--release"])
            .arg("--manifest-path")
            .arg(self.workspace.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(self.target_folder())
            .args(["--target", &self.target])
            .env("CARGO_ENCODED_RUSTFLAGS", self.flags()?)
            // The outer cargo's facts about its own build must not reach this one: clippy's wrapper, above all, would
            // check instead of build.
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("CARGO_BUILD_TARGET_DIR")
            .env_remove("CARGO_BUILD_BUILD_DIR")
            .env_remove("CARGO_BUILD_TARGET");
        for Kind { package, feature, .. } in kinds {
            cargo.args(["--package", package]);
            cargo.args(feature.map(|feature| format!("--features={package}/{feature}")));
        }
        let output = cargo.output().map_err(|error| format!("starting cargo: {error}"))?;
        if !output.status.success() {
            // Cargo shows this text when the build fails; when the build goes on without the library, only with `-vv`.
            let text = String::from_utf8_lossy(&output.stderr);
            eprintln!("{text}");
            let reason = text.lines().find(|line| line.starts_with("error"));
            let reason = reason.unwrap_or("cargo failed");
            return Err(format!("building it for {} failed: {reason}", self.target));
        }
        Ok(())
    }

    fn target_folder(&self) -> PathBuf {
        self.workspace.join("target").join(self.libc)
    }

    fn library(&self, kind: &Kind) -> PathBuf {
        let file = format!("lib{}.so", kind.library);
        self.target_folder().join(&self.target).join("release").join(file)
    }

    /// The compiler flags of the outer build as far as they make sense for the library.
    ///
    /// Coverage and sanitizers need a runtime that a `no_std` library does not have, and a shared library is never
    /// linked statically. Linker flags are meant for the outer target alone.
    fn flags(&self) -> Result<OsString, String> {
        let encoded = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
        let mut flags = Vec::new();
        let mut words = encoded.split(FLAG_SEPARATOR).filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            let flag = match word {
                "-C" | "-Z" | "--codegen" => {
                    let option = words.next().unwrap_or_default();
                    format!("{}{option}", if word == "-Z" { "-Z" } else { "-C" })
                }
                _ => word.to_owned(),
            };
            let never =
                ["crt-static", "instrument-coverage", "sanitizer", "prefer-dynamic", "profile-"];
            let own_only = ["-Clink", "-Crelocation-model", "-Clinker"];
            if !never.iter().any(|part| flag.contains(part))
                && (self.is_own || !own_only.iter().any(|start| flag.starts_with(start)))
            {
                flags.push(flag);
            }
        }
        flags.push("--cap-lints=allow".to_owned());
        if self.env == "musl" {
            flags.push("-Ctarget-feature=-crt-static".to_owned());
            flags.push(format!("-Clink-arg=-L{}", no_c_library(self.workspace)?));
        }
        Ok(flags.join(&FLAG_SEPARATOR.to_string()).into())
    }
}

/// The workspace of `masu` and `masu-abi`, while no other build script uses it.
struct Workspace {
    folder: PathBuf,
    _lock: File,
}

impl Workspace {
    /// Lays the workspace out.
    ///
    /// The manifests are the real ones, cut to the parts that are built; the workspace made here holds the values that
    /// they inherit.
    fn lay_out(out: &Path) -> io::Result<Workspace> {
        let folder = shared_folder(out).join("libmasu");
        fs::create_dir_all(&folder)?;
        let lock = File::create(folder.join("lock"))?;
        lock.lock()?;
        let links = Path::new("libmasu");
        mirror(&links.join("masu/src"), &folder.join("masu/src"))?;
        let manifest = fs::read_to_string(links.join("masu/manifest.toml"))?;
        write_changed(&folder.join("masu/Cargo.toml"), without_development(&manifest))?;
        let manifest = fs::read_to_string(links.join("masu-abi/manifest.toml"))?;
        let manifest = without_development(&manifest).replace(", \"staticlib\"", "");
        for Kind { package, library, .. } in &KINDS {
            let to = folder.join(package);
            mirror(&links.join("masu-abi/src"), &to.join("src"))?;
            write_changed(&to.join("build.rs"), fs::read(links.join("masu-abi/build.rs"))?)?;
            let named = manifest.replace("name = \"masu-abi\"", &format!("name = \"{package}\""));
            let named = named.replace("name = \"masu\"", &format!("name = \"{library}\""));
            write_changed(&to.join("Cargo.toml"), named)?;
        }
        // Cargo watches a folder with everything in it, and follows links.
        println!("cargo::rerun-if-changed={}", links.display());
        println!("cargo::rerun-if-changed=build.rs");
        let members: Vec<&str> = KINDS.iter().map(|kind| kind.package).chain(["masu"]).collect();
        let manifest = format!(
            "[workspace]\n\
             resolver = \"3\"\n\
             members = {members:?}\n\
             [workspace.package]\n\
             version = \"{}\"\n\
             edition = \"2024\"\n\
             rust-version = \"{}\"\n\
             license = \"MIT OR Apache-2.0\"\n\
             authors = []\n\
             repository = \"\"\n\
             homepage = \"\"\n\
             [workspace.lints]\n\
             [profile.release]\n\
             panic = \"abort\"\n\
             lto = \"fat\"\n\
             codegen-units = 1\n\
             strip = \"debuginfo\"\n",
            env!("CARGO_PKG_VERSION"),
            env!("CARGO_PKG_RUST_VERSION"),
        );
        write_changed(&folder.join("Cargo.toml"), manifest)?;
        Ok(Workspace { folder, _lock: lock })
    }
}

/// The target folder of the outer build, which cargo marks; where no mark is found, this script's own folder.
fn shared_folder(out: &Path) -> &Path {
    // `TARGET_FOLDER/[TRIPLE/]PROFILE/build/PACKAGE/out`.
    let mut above = out.ancestors().skip(4).take(2);
    above.find(|folder| folder.join("CACHEDIR.TAG").exists()).unwrap_or(out)
}

/// Makes `to` hold what `from` holds, following links. An unchanged file keeps its time, by which the nested cargo sees
/// changes; a changed file gets a new time, however old its source is.
fn mirror(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(to)? {
        let path = entry?.path();
        if !from.join(path.file_name().unwrap_or_default()).exists() {
            if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
    }
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() {
            mirror(&from, &to)?;
        } else {
            write_changed(&to, fs::read(&from)?)?;
        }
    }
    Ok(())
}

/// Writes a file unless it already has these contents.
fn write_changed(path: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    if fs::read(path).is_ok_and(|present| present == contents.as_ref()) {
        return Ok(());
    }
    fs::write(path, contents)
}

/// Returns `manifest` without the parts for tests, benchmarks and examples, which are not copied, and without optional
/// crates and the features that name them, which may be on no disk when masu is installed.
fn without_development(manifest: &str) -> String {
    let is_optional = |line: &&str| line.contains("optional = true");
    let optional = manifest.lines().filter(is_optional).filter_map(|line| line.split(" = ").next());
    let optional: Vec<String> = optional.map(|name| format!("\"{name}")).collect();
    let is_header = |line: &str| line.starts_with('[');
    let is_development = |header: &str| {
        let parts = ["dev-dependencies", "[[test]]", "[[bench]]", "[[example]]"];
        parts.iter().any(|part| header.contains(part))
    };
    let mut keeps = true;
    let mut kept = String::new();
    for line in manifest.lines() {
        if is_header(line) {
            keeps = !is_development(line);
        }
        let names_optional = optional.iter().any(|name| line.contains(name));
        if keeps && !is_optional(&line) && !names_optional {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// True if the compiler has a standard library for `target`.
fn is_installed(target: &str) -> Result<bool, String> {
    let output = Command::new(variable("RUSTC")?)
        .args(["--print", "target-libdir", "--target", target])
        .output()
        .map_err(|error| format!("starting rustc: {error}"))?;
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    // rustup writes this list whenever a target is added, so adding one builds masu again.
    if let Some(rustlib) = folder.parent().and_then(Path::parent) {
        let components = rustlib.join("components");
        if components.exists() {
            println!("cargo::rerun-if-changed={}", components.display());
        }
    }
    Ok(output.status.success() && folder.is_dir())
}

/// Makes a folder with an empty C library, for linking on a machine whose own C library is the wrong one: the linker
/// would link glibc into a library meant for musl. The symbols stay undefined; the program that preloads the library
/// has them all.
fn no_c_library(workspace: &Path) -> Result<String, String> {
    let folder = workspace.join("no-c-library");
    let made = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("libc.so"), "/* an empty linker script */\n"));
    made.map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder.display().to_string())
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("cargo did not set {name}"))
}
