//! The ways to read the bytes of a process's statistics page.
//!
//! The page is a link in `/proc/PID/fd` that its user may open; if the process has closed it, `/proc/PID/maps` and
//! `/proc/PID/mem` have it, which the kernel shows to fewer users. The process chooses the files behind its
//! descriptors: only a file with the page's name is opened, without waiting, and read up to the length of a page.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::VARIABLE;
use super::page::{self, NoPage, Page};
use super::system::{self, hidden, mappings};
use crate::mapping::Mapping;
use crate::{Error, kernel};

/// The kernel's name for the file.
const FILE: &str = "/memfd:masu-statistics";
/// The number of times that a page that is being written is read again, and the pause between.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug, Clone)]
pub(super) struct Reach {
    pid: u32,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    Descriptor(PathBuf),
    Memory(u64),
}

impl Reach {
    pub(super) fn find(pid: u32) -> Result<Reach, Error> {
        let maps = mappings(pid, "maps")?;
        let Some(mapped) = maps.lines().find(|line| line.contains(FILE)) else {
            return Err(Error::Process { pid, reason: without_page(&maps) });
        };
        let place = match descriptor(pid) {
            Some(path) => Place::Descriptor(path),
            None => Place::Memory(Mapping::read(mapped).map_or(0, |one| one.start)),
        };
        Ok(Reach { pid, place })
    }

    pub(super) fn read(&self) -> Result<Page, Error> {
        let mut last = NoPage::Foreign;
        for _ in 0..TRIES {
            let (bytes, sequence) = self.bytes()?;
            let parsed = match Page::parse(&bytes) {
                Ok(_) if page::sequence(&bytes) != sequence => Err(NoPage::Torn),
                parsed => parsed,
            };
            match parsed {
                Ok(page) if !system::is_called(self.pid, page.process) => last = NoPage::Inherited,
                Ok(page) => return Ok(page),
                // A page that was made just now is all zeros.
                Err(NoPage::Version(version)) => {
                    last = NoPage::Version(version);
                    break;
                }
                Err(none) => last = none,
            }
            std::thread::sleep(PAUSE);
        }
        Err(Error::Process { pid: self.pid, reason: last.to_string() })
    }

    fn bytes(&self) -> Result<(Vec<u8>, Option<u64>), Error> {
        let refused = |error| match &self.place {
            Place::Descriptor(_) => hidden(self.pid, &error),
            Place::Memory(_) => Error::Process {
                pid: self.pid,
                reason: format!(
                    "it has closed the descriptor of its statistics page, and reading its memory is \
                     refused ({error}); try as root"
                ),
            },
        };
        let (file, start) = match &self.place {
            Place::Descriptor(path) => (open_page(path).map_err(refused)?, 0),
            Place::Memory(start) => {
                let file = File::open(format!("/proc/{}/mem", self.pid)).map_err(refused)?;
                (file, *start)
            }
        };
        let bytes = read_at(&file, start, page::PAGE_BYTES).map_err(refused)?;
        let head = read_at(&file, start, 64).map_err(refused)?;
        Ok((bytes, page::sequence(&head)))
    }
}

/// Reads from `start` on as far as there are bytes, `most` of them at most.
fn read_at(mut file: &File, start: u64, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(most);
    file.seek(SeekFrom::Start(start))?;
    let read = file.take(most as u64).read_to_end(&mut bytes);
    // An error behind some bytes says that there is nothing to read behind the mapping.
    if bytes.is_empty() { read.map(|_| bytes) } else { Ok(bytes) }
}

/// Opens the target of a descriptor of the process, if it has a page's name.
fn open_page(path: &Path) -> io::Result<File> {
    if !leads_to_a_page(path) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let file = OpenOptions::new().read(true).custom_flags(kernel::OPEN_AT_ONCE).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

fn leads_to_a_page(path: &Path) -> bool {
    fs::read_link(path).is_ok_and(|link| link.to_string_lossy().starts_with(FILE))
}

/// The descriptor of the process's own page: the highest one, because the descriptors of a parent's pages come before.
fn descriptor(pid: u32) -> Option<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    paths.filter(|path| leads_to_a_page(path)).max_by_key(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.parse::<u32>().ok())
    })
}

/// The reason why a process that this user may look into has no page, and a remedy.
fn without_page(maps: &str) -> String {
    let library = maps.lines().any(|line| line.contains("/libmasu"));
    let how = format!("start it with `masu run -- PROGRAM`, or with {VARIABLE}=1");
    if library {
        format!("it runs on masu, but keeps no statistics page: {how}")
    } else {
        format!("it does not run on masu, or keeps no statistics page: {how}")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn a_process_that_is_not_there_has_ended() {
        // Numbers of processes are at most 2²².
        assert!(matches!(Reach::find(u32::MAX), Err(Error::Ended { pid: u32::MAX })));
    }

    #[test]
    fn a_process_without_masu_gets_the_command_for_it() {
        let Err(error) = Reach::find(std::process::id()) else { panic!("no page is here") };
        assert!(error.to_string().contains("masu run --"), "{error}");
    }

    #[test]
    fn reading_ends_where_the_file_does() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"short", 0).unwrap();
        assert_eq!(read_at(&file, 0, 64).unwrap(), b"short");
        assert_eq!(read_at(&file, 1, 2).unwrap(), b"ho");
        assert_eq!(read_at(&file, 100, 64).unwrap(), b"");
    }

    #[test]
    fn only_what_is_called_as_a_page_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        assert!(open_page(&link).is_err());
    }
}
