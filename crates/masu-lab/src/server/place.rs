//! The place of a server while it runs: a port that is free and a data folder of its own.

use std::ffi::{OsStr, OsString};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use masu_run::error::Doing;
use masu_run::parameter::{Values, substitute};
use masu_run::{Error, Input, Row, Workload, scratch};

/// These ports are below those that the kernel gives to clients, which might take a server's port before it starts.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// The values of `{port}`, `{dir}`, `{variant}` in one start of a server; the folder is removed on drop.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) port: u16,
    folder: Folder,
    values: Values,
}

impl Place {
    pub(super) fn new(label: &str) -> Result<Place, Error> {
        let port = free_port()?;
        let folder = Folder::new()?;
        let values = vec![
            ("port".to_owned(), port.to_string()),
            ("dir".to_owned(), folder.0.to_string_lossy().into_owned()),
            ("variant".to_owned(), label.to_owned()),
        ];
        Ok(Place { port, folder, values })
    }

    /// The row's command with the values of this place. A server reads nothing from standard input.
    pub(super) fn workload(&self, row: &Row) -> Workload {
        let arguments = row.workload.arguments.iter();
        Workload {
            arguments: arguments.map(|word| substitute(word, &self.values)).collect(),
            input: Input::Empty,
            ..row.workload.clone()
        }
    }

    pub(super) fn text(&self, text: &str, row: &Row) -> String {
        self.words(text.as_ref(), row).to_string_lossy().into_owned()
    }

    pub(super) fn words(&self, text: &OsStr, row: &Row) -> OsString {
        substitute(&substitute(text, &self.values), &row.variant.parameters)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }
}

/// A free port. Each call continues after the last port; the first port depends on this process's number.
fn free_port() -> Result<u16, Error> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let count = u64::from(PORTS.end - PORTS.start);
    for _ in 0..count {
        // ORDERING: Relaxed: a counter that guards no other data.
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let offset = (u64::from(std::process::id()) * 101 + step) % count;
        let port = PORTS.start + u16::try_from(offset).unwrap_or(0);
        // The port is tried on all addresses, because a server may listen on any.
        if TcpListener::bind(("0.0.0.0", port)).is_ok() {
            return Ok(port);
        }
    }
    let none = std::io::Error::from(std::io::ErrorKind::AddrInUse);
    Err(none).doing(|| format!("looking for a free port from {} on", PORTS.start))
}

/// A folder that only this user can enter, removed with everything in it when dropped.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    /// The path is absolute, because a server that changes its folder must still find its data.
    fn new() -> Result<Folder, Error> {
        scratch::new_folder("server").map(Folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // An error has no reader any more. Files of another user and mounted file systems stay.
        let _ = scratch::remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use masu_run::Variant;

    fn row(arguments: &[&str]) -> Row {
        let workload = Workload::new(arguments.iter().copied(), Input::Empty).unwrap();
        let parameters = vec![("size".to_owned(), "7".to_owned())];
        Row { variant: Variant { parameters, ..Variant::default() }, workload, optional: false }
    }

    #[test]
    fn two_places_share_nothing_and_take_their_folders_with_them() {
        let places = [Place::new("a").unwrap(), Place::new("a").unwrap()];
        assert_ne!(places[0].port, places[1].port);
        assert_ne!(places[0].folder.0, places[1].folder.0);
        let file = places[0].file("x");
        fs::write(&file, "x").unwrap();
        drop(places);
        assert!(!file.exists() && !file.parent().unwrap().exists());
    }

    #[test]
    fn a_folder_goes_with_what_a_server_made_read_only_in_it() {
        let place = Place::new("a").unwrap();
        let inner = place.file("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("x"), "x").unwrap();
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o500)).unwrap();
        let folder = place.folder.0.clone();
        assert!(folder.is_absolute());
        drop(place);
        assert!(!folder.exists());
    }

    #[test]
    fn the_command_and_the_texts_get_the_place() {
        let place = Place::new("glibc").unwrap();
        let row = row(&["sh", "-c", "{port} {dir} {variant} {other} $1"]);
        let folder = place.folder.0.to_str().unwrap();
        let expected = format!("{} {folder} glibc {{other}} $1", place.port);
        assert_eq!(place.workload(&row).arguments[2], *expected);
        let text = place.text("http://127.0.0.1:{port}/{size}", &row);
        assert_eq!(text, format!("http://127.0.0.1:{}/7", place.port));
    }
}
