//! The alternative without a loader: keeps each method's object, links many into one library in the
//! background, loads it, and points the entries there.
//!
//! Relies on the system's compiler driver as linker and on the dynamic linker. It is kept beside the arena for
//! comparison, and for programs that must not load code in any other way. Each library gets a new
//! file name, because the dynamic linker identifies libraries by their files.

use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;

use crate::error::Error;
use crate::process;

/// A library that was linked from many objects and is loaded while this exists.
#[derive(Debug)]
pub struct Library {
    handle: usize,
    path: PathBuf,
}

/// Links objects into one shared library at `path` by `driver` (such as `cc`) and loads it, on a
/// thread of its own.
///
/// # Errors
///
/// The handle's result: [`Error::Relink`] with the message of the linker or the dynamic linker.
///
/// # Panics
///
/// If the system refuses a thread.
///
/// # Safety
///
/// - The objects' initializers are sound to run; the objects are position-independent.
pub unsafe fn relink(
    driver: &str,
    objects: Vec<PathBuf>,
    path: PathBuf,
) -> JoinHandle<Result<Library, Error>> {
    let driver = driver.to_owned();
    std::thread::spawn(move || {
        // The dynamic linker looks for a name without a folder elsewhere.
        let path = std::path::absolute(&path)
            .map_err(|error| Error::Relink(format!("{}: {error}", path.display())))?;
        link(&driver, &objects, &path)?;
        let file = CString::new(path.as_os_str().as_encoded_bytes())
            .map_err(|_| Error::Relink(format!("{}: a name with a zero", path.display())))?;
        let handle = process::open_library(&file)
            .map_err(|why| Error::Relink(format!("{}: {why}", path.display())))?;
        Ok(Library { handle, path })
    })
}

fn link(driver: &str, objects: &[PathBuf], path: &Path) -> Result<(), Error> {
    // Thousands of objects do not fit a command line: their names go into a file next to the library.
    let mut list = path.as_os_str().to_owned();
    list.push(".list");
    let list = PathBuf::from(list);
    let mut names = Vec::new();
    for object in objects {
        names.push(b'"');
        for &byte in object.as_os_str().as_encoded_bytes() {
            names.extend(matches!(byte, b'\\' | b'"').then_some(b'\\'));
            names.push(byte);
        }
        names.extend(b"\"\n");
    }
    std::fs::write(&list, names)
        .map_err(|error| Error::kernel(format!("cannot write {}", list.display()), error))?;
    let mut command = Command::new(driver);
    command.arg("-shared").arg("-o").arg(path).arg(format!("@{}", list.display()));
    let output = command.output().map_err(|error| Error::Relink(format!("{driver}: {error}")));
    let _ = std::fs::remove_file(&list);
    let output = output?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::Relink(format!("{driver} -shared: {}: {}", output.status, said.trim())))
}

impl Library {
    /// The address of a symbol, for [`crate::Entry::replace_at`]; valid until the library is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::NoSymbol`].
    pub fn symbol(&self, name: &str) -> Result<*const c_void, Error> {
        let found = CString::new(name).ok().and_then(|name| process::symbol_of(self.handle, &name));
        let object = || self.path.display().to_string();
        let found =
            found.ok_or_else(|| Error::NoSymbol { object: object(), symbol: name.to_owned() })?;
        Ok(found as *const c_void)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        process::close_library(self.handle);
    }
}
