//! The results file of a comparison under way: only whole lines, written one at a time.
//!
//! The lab's memory is copied for each run it starts, and is a floor under the run's peak RSS where the kernel
//! cannot reset the peak (`kernel/low_rss.rs`). So runs of finished tables wait in the file; where the file cannot be
//! read back (a pipe, `/dev/full`), they wait in a file without a name. Half a line that a full disk left is cut away.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{Record, understand};
use crate::Redact;
use masu_run::Error;
use masu_run::error::Doing;
use masu_run::workload::unlinked_file;

#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    /// The length of the whole lines written, in bytes.
    whole: u64,
    /// The copy that is read back where `file` cannot be.
    copy: Option<File>,
    /// True if there was no file before.
    is_new: bool,
    /// Lines that wait for the first run, as long as the file holds the results of another comparison.
    waiting: Option<Vec<u8>>,
    redact: Redact,
}

impl Journal {
    /// Replaces the results at `path` once there is a run, and no other file; without a path the records go to a file
    /// without a name.
    pub(crate) fn create(path: Option<&Path>, redact: &Redact) -> Result<Journal, Error> {
        let redact = redact.clone();
        let Some(path) = path else {
            let file = unlinked_file()?;
            let path = PathBuf::from("results without a file");
            let (is_new, copy, waiting) = (false, None, None);
            return Ok(Journal { path, file, whole: 0, copy, is_new, waiting, redact });
        };
        let is_new = fs::symlink_metadata(path).is_err();
        let mut options = File::options();
        // The file is not truncated before the lock is held: another masu may be writing.
        options.read(true).write(true).create(true).truncate(false);
        // A pipe cannot always be opened for reading too.
        let file = options.open(path).or_else(|_| File::create(path));
        let file = file.doing(|| format!("creating {}", path.display()))?;
        lock(&file, path)?;
        let metadata = file.metadata().ok().filter(fs::Metadata::is_file);
        if metadata.is_some() {
            refuse_others(&file, path)?;
        }
        let copy = if metadata.is_some() { None } else { Some(unlinked_file()?) };
        let waiting = metadata.filter(|metadata| metadata.len() > 0).map(|_| Vec::new());
        Ok(Journal { path: path.to_owned(), file, whole: 0, copy, is_new, waiting, redact })
    }

    /// Opens the file at `path` to append to its whole lines, and returns their records.
    pub(crate) fn resume(path: &Path, redact: &Redact) -> Result<(Journal, Vec<Record>), Error> {
        let opened = File::options().read(true).write(true).open(path);
        let mut file = opened.doing(|| format!("opening {} to resume", path.display()))?;
        lock(&file, path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).doing(|| format!("reading {}", path.display()))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let records = match &bytes[..whole] {
            // The file was cut off before the header was whole: nothing was measured.
            [] if bytes.is_empty() || bytes.starts_with(BEGINNING) => Vec::new(),
            [] => understand(path, &bytes)?,
            lines => understand(path, lines)?,
        };
        let redact = redact.clone();
        let path = path.to_owned();
        let (is_new, copy, waiting) = (false, None, None);
        let mut journal =
            Journal { path, file, whole: whole as u64, copy, is_new, waiting, redact };
        journal.cut()?;
        Ok((journal, records))
    }

    pub(crate) fn clear(&mut self) -> Result<(), Error> {
        if let Some(waiting) = &mut self.waiting {
            waiting.clear();
            return Ok(());
        }
        self.whole = 0;
        self.cut()
    }

    /// Writes one whole line or nothing.
    pub(crate) fn write(&mut self, record: &Record) -> Result<(), Error> {
        let doing = || format!("writing {}", self.path.display());
        let mut record = record.clone();
        self.redact.all_of(&mut record);
        let mut line = serde_json::to_vec(&record).map_err(std::io::Error::from).doing(doing)?;
        line.push(b'\n');
        if let Some(mut waiting) = self.waiting.take() {
            waiting.append(&mut line);
            if !matches!(record, Record::Run(_)) {
                self.waiting = Some(waiting);
                return Ok(());
            }
            self.cut()?;
            line = waiting;
        }
        if let Some(copy) = &mut self.copy {
            copy.write_all(&line).doing(|| "keeping a copy of the results")?;
        }
        if let Err(source) = self.file.write_all(&line) {
            // A reader recognizes half a line anyway; cutting it only spares the reader the effort.
            let _ = self.cut();
            let advice = match self.whole {
                0 => "make room, then start again",
                _ => "what is in it stays valid: make room, then --resume it",
            };
            let doing = format!("writing {} ({advice})", self.path.display());
            return Err(Error::System { doing, source });
        }
        self.whole += line.len() as u64;
        Ok(())
    }

    pub(crate) fn read_back(&mut self) -> Result<Vec<Record>, Error> {
        if let Some(waiting) = &self.waiting {
            return understand(&self.path, waiting);
        }
        let doing = || format!("reading {} back", self.path.display());
        let file = self.copy.as_mut().unwrap_or(&mut self.file);
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).doing(doing)?;
        file.read_to_end(&mut bytes).doing(doing)?;
        understand(&self.path, &bytes)
    }

    /// Cuts away everything behind the whole lines.
    fn cut(&mut self) -> Result<(), Error> {
        if self.copy.is_some() {
            // Bytes that went through a pipe cannot be taken back.
            return Ok(());
        }
        let doing = || format!("cutting what is no whole line off {}", self.path.display());
        self.file.set_len(self.whole).doing(doing)?;
        self.file.seek(SeekFrom::Start(self.whole)).doing(doing)?;
        Ok(())
    }
}

impl Drop for Journal {
    /// Leaves no new file where a comparison ends before there is anything to keep.
    fn drop(&mut self) {
        if self.is_new && self.whole == 0 {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The first bytes of every results file.
pub(super) const BEGINNING: &[u8] = b"{\"record\":\"header\"";

/// Refuses a file that has content but no results: a typing mistake must not empty it.
fn refuse_others(mut file: &File, path: &Path) -> Result<(), Error> {
    let mut beginning = Vec::new();
    // A user may be allowed to write the file but not to read it; the lab then does not know its content either.
    let _ = Read::by_ref(&mut file).take(BEGINNING.len() as u64).read_to_end(&mut beginning);
    file.rewind().doing(|| format!("reading {}", path.display()))?;
    if BEGINNING.starts_with(&beginning) {
        return Ok(());
    }
    let reason = "this is no results file, and results would replace it; name another".to_owned();
    Err(Error::Results { path: path.to_owned(), line: 1, reason })
}

/// The longest wait for the lock: a child shares it from its fork to its exec, whichever thread started the child.
const PATIENCE: Duration = Duration::from_secs(2);

/// Keeps a second masu away, except where files cannot be locked (some network mounts).
fn lock(file: &File, path: &Path) -> Result<(), Error> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Resume {
                    path: path.to_owned(),
                    reason: "another masu writes it; wait for that one, or name another file"
                        .to_owned(),
                });
            }
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
        }
    }
}
