//! The folders in which `libmasu.so` may be laid, best first, and the reasons that make a folder unfit.
//!
//! A folder is fit when nobody but its owner and root could have put a file there or could swap a folder above it,
//! when programs may be mapped from it, and when its path survives `LD_PRELOAD`.
//!
//! All may read it: a program that root starts may become another user, whose loader must still find the library.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;

/// Write permission for the group or for all others.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;
/// Where root's files lie that all may read. Root's home is closed to others.
const CACHE_OF_THE_SYSTEM: &str = "/var/cache/masu";

/// The facts about this process that decide where files may lie.
pub(super) struct Surroundings {
    pub(super) user: u32,
    pub(super) cache_home: Option<OsString>,
    pub(super) home: Option<OsString>,
    pub(super) runtime_folder: Option<OsString>,
    pub(super) temporary_folder: Option<OsString>,
}

impl Surroundings {
    pub(super) fn of_this_process() -> Self {
        Self {
            user: rustix::process::geteuid().as_raw(),
            cache_home: env::var_os("XDG_CACHE_HOME"),
            home: env::var_os("HOME"),
            runtime_folder: env::var_os("XDG_RUNTIME_DIR"),
            temporary_folder: env::var_os("TMPDIR"),
        }
    }
}

/// The named folder, unless its path is relative: relative paths are ignored, as the XDG specification asks.
fn absolute(folder: &Option<OsString>) -> Option<PathBuf> {
    folder.as_ref().map(PathBuf::from).filter(|folder| folder.is_absolute())
}

/// masu's own folder in the user's cache.
pub(super) fn cache(surroundings: &Surroundings) -> Option<PathBuf> {
    let cache = absolute(&surroundings.cache_home)
        .or_else(|| absolute(&surroundings.home).map(|home| home.join(".cache")));
    cache.map(|folder| folder.join("masu"))
}

/// The folders to try, best first.
pub(super) fn candidates(surroundings: &Surroundings) -> Vec<PathBuf> {
    let own = format!("masu-{}", surroundings.user);
    let mut folders = Vec::new();
    if surroundings.user == 0 && absolute(&surroundings.cache_home).is_none() {
        folders.push(PathBuf::from(CACHE_OF_THE_SYSTEM));
    }
    folders.extend(cache(surroundings));
    folders.extend(absolute(&surroundings.runtime_folder).map(|folder| folder.join("masu")));
    folders.extend(absolute(&surroundings.temporary_folder).map(|folder| folder.join(&own)));
    folders.extend(["/tmp", "/var/tmp", "/dev/shm"].map(|folder| Path::new(folder).join(&own)));
    folders
}

/// Makes `folder` if it is missing, for all to read; missing folders above it are for their owner alone. Returns its true
/// path if the folder is fit, otherwise the reason why not.
pub(super) fn prepare(folder: &Path) -> Result<PathBuf, String> {
    make(folder).map_err(|error| format!("cannot be made: {error}"))?;
    // The folder itself must not be a link: in a shared folder anyone could have left one. Links above the folder are
    // resolved here, once, and their targets are judged.
    let own = fs::symlink_metadata(folder).map_err(|error| error.to_string())?;
    if !own.is_dir() {
        return Err("is not a folder (a link, perhaps)".to_owned());
    }
    let folder = fs::canonicalize(folder).map_err(|error| error.to_string())?;
    survives_preload(&folder)?;
    let user = rustix::process::geteuid().as_raw();
    if own.uid() != user {
        return Err(format!("belongs to user {}, not to you (user {user})", own.uid()));
    }
    if own.mode() & OTHERS_WRITE != 0 {
        return Err("others may write to it".to_owned());
    }
    // In a user namespace root may have no number, but `/` still belongs to root.
    let top = fs::metadata("/").map_err(|error| error.to_string())?.uid();
    for above in folder.ancestors().skip(1) {
        let metadata = fs::metadata(above).map_err(|error| error.to_string())?;
        if !is_safe_above(&metadata, &[user, 0, top]) {
            return Err(format!("others may rename it, through {}", above.display()));
        }
    }
    let mount = rustix::fs::statvfs(&folder).map_err(|error| error.to_string())?;
    lets_programs_run(mount.f_flag)?;
    Ok(folder)
}

/// The dynamic linker cannot map code from a mount that forbids programs.
fn lets_programs_run(mount: StatVfsMountFlags) -> Result<(), String> {
    if mount.contains(StatVfsMountFlags::NOEXEC) {
        return Err("is mounted noexec".to_owned());
    }
    Ok(())
}

fn make(folder: &Path) -> io::Result<()> {
    if let Some(above) = folder.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(above)?;
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        // Root's mask may forbid others to read.
        Ok(()) => fs::set_permissions(folder, Permissions::from_mode(0o755)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// True if nobody but the `trusted` users could rename the files in the folder of `metadata`.
fn is_safe_above(metadata: &Metadata, trusted: &[u32]) -> bool {
    trusted.contains(&metadata.uid())
        && (metadata.mode() & OTHERS_WRITE == 0 || metadata.mode() & STICKY != 0)
}

/// `LD_PRELOAD` is split at colons and white space, and glibc expands `$ORIGIN` and its like.
fn survives_preload(folder: &Path) -> Result<(), String> {
    let breaks = |byte: &u8| *byte == b':' || *byte == b'$' || byte.is_ascii_whitespace();
    if folder.as_os_str().as_bytes().iter().any(breaks) {
        return Err("LD_PRELOAD cannot hold a path with a space, a colon or a `$`".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
