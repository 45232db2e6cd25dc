//! gcc's output for methods: an object each, libraries of them, and a folder that keeps both for later runs.
//!
//! Relies on gcc in the path. A file's name holds a hash of its source, of gcc's release and of its arguments. A file is
//! written elsewhere and renamed when complete, so a run may be interrupted, and several may run at once.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::library::{Outcome, compile};
use crate::method::Method;

/// How gcc makes an object.
const OBJECT: [&str; 4] = ["-O1", "-fPIC", "-fcf-protection=none", "-c"];

/// How it makes a library.
const LIBRARY: [&str; 2] = ["-shared", "-nostdlib"];

/// Has gcc make an object of a method in `folder`; its path.
pub(crate) fn object(folder: &Path, method: &Method) -> Outcome<PathBuf> {
    let [source, object] = ["c", "o"].map(|end| format!("{}.{end}", method.symbol()));
    fs::write(folder.join(&source), method.text())?;
    compile(folder, &[&OBJECT[..], &[&source, "-o", &object]].concat())?;
    Ok(folder.join(object))
}

/// Has gcc link objects into the library `name` in `folder`; its path. The dynamic linker takes a path that it knows for
/// the library that it has, so a name is used once.
pub(crate) fn library(folder: &Path, name: &str, objects: &[PathBuf]) -> Outcome<PathBuf> {
    let (list, library) = (format!("{name}.list"), format!("{name}.so"));
    let lines = objects.iter().map(|object| format!("\"{}\"\n", object.display()));
    fs::write(folder.join(&list), lines.collect::<String>())?;
    compile(folder, &[&LIBRARY[..], &[&format!("@{list}"), "-o", &library]].concat())?;
    Ok(folder.join(library))
}

/// A folder that keeps an object and a library of each method.
pub(crate) struct Kept {
    folder: PathBuf,
    /// The release of gcc, for another one makes other code.
    compiler: Vec<u8>,
}

/// What gcc made of methods, in their order.
pub(crate) struct Made {
    pub(crate) objects: Vec<PathBuf>,
    /// A library each.
    pub(crate) libraries: Vec<PathBuf>,
}

impl Kept {
    /// The folder at `folder`, which may not be there yet.
    pub(crate) fn at(folder: &Path) -> Outcome<Kept> {
        // gcc runs in another folder, and the dynamic linker looks a name without any elsewhere.
        let folder = std::path::absolute(folder)?;
        let compiler = Command::new("gcc").arg("-dumpfullversion").output()?.stdout;
        Ok(Kept { folder, compiler })
    }

    /// Where a method's file that ends in `end` is, once it is made.
    fn path(&self, method: &Method, end: &str) -> PathBuf {
        // Another release of Rust may hash in another way, and then all is made again.
        let mut hasher = DefaultHasher::new();
        (method.text(), &self.compiler, OBJECT, LIBRARY).hash(&mut hasher);
        self.folder.join(format!("{}-{:016x}.{end}", method.symbol(), hasher.finish()))
    }

    /// Has gcc make what is not there yet, on all CPUs.
    pub(crate) fn make(&self, methods: &[Method]) -> Outcome<()> {
        fs::create_dir_all(&self.folder)?;
        // Inside, because a file is renamed within one file system only.
        let work = tempfile::tempdir_in(&self.folder)?;
        let next = AtomicUsize::new(0);
        let worker = || {
            // ORDERING: Relaxed, because each number is drawn once, and nothing else is read by it.
            while let Some(method) = methods.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.make_one(work.path(), method).map_err(|error| error.to_string())?;
            }
            Ok::<(), String>(())
        };
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..cpus).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().try_for_each(|worker| {
                Ok(worker.join().map_err(|_| "a thread that compiles panicked")??)
            })
        })
    }

    fn make_one(&self, work: &Path, method: &Method) -> Outcome<()> {
        let [kept_object, kept_library] = ["o", "so"].map(|end| self.path(method, end));
        if kept_object.exists() && kept_library.exists() {
            return Ok(());
        }
        let object = object(work, method)?;
        let library = library(work, &method.symbol(), std::slice::from_ref(&object))?;
        fs::rename(object, kept_object)?;
        fs::rename(library, kept_library)?;
        Ok(())
    }

    /// What was made of these methods.
    pub(crate) fn find(&self, methods: &[Method]) -> Outcome<Made> {
        let find = |end: &str| -> Outcome<Vec<PathBuf>> {
            let paths: Vec<PathBuf> = methods.iter().map(|method| self.path(method, end)).collect();
            if let Some(path) = paths.iter().find(|path| !path.exists()) {
                let (folder, count) = (self.folder.display(), methods.len());
                let advice = format!("make it with `jit prepare {folder} {count}`");
                return Err(format!("there is no {}; {advice}", path.display()).into());
            }
            Ok(paths)
        };
        Ok(Made { objects: find("o")?, libraries: find("so")? })
    }
}
