//! The count page: the number of times a program and its children asked for memory, counted by the counting build of
//! `libmasu.so`.
//!
//! The counting build maps the file named by `MASU_COUNT_FILE` into every process and adds to it: preload it in a run
//! that is not timed. Any process of the tree may write into the page, so its contents are checked and never used as a
//! size or an address.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::Doing;
use crate::{Error, Variant};

const VARIABLE: &str = "MASU_COUNT_FILE";

// COUPLING: the layout stands in `crates/masu-abi/src/count.rs` too; a change of either is a new
// version. Words of 64 bits in the machine's byte order: magic, version, then the counters.
const MAGIC: [u8; 8] = *b"masucnt\0";
const VERSION: u64 = 2;
const PAGE_BYTES: usize = 4096;
const WORD_BYTES: usize = 8;

/// The counts over all processes that were served by the counting library.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Programs that found the page: forked processes count with the process they came from. 0 says that the library
    /// was never loaded, and the other counts then say nothing.
    pub programs: u64,
    /// Blocks asked for or resized: `malloc`, `calloc`, `realloc`, the aligned ones, `operator new`.
    pub requests: u64,
    /// Bytes asked for, as the program gave them.
    pub requested_bytes: u64,
}

/// A page to count into. Its file is removed when this is dropped.
#[derive(Debug)]
pub struct CountPage {
    path: PathBuf,
}

impl CountPage {
    /// Makes an empty page: a new file at `path`, which must be absolute, because programs change their working folder.
    /// Only this user may write to it. A file that is there already is an error.
    pub fn create(path: &Path) -> Result<CountPage, Error> {
        let doing = || format!("making the count page {}", path.display());
        if !path.is_absolute() {
            let why = std::io::Error::other("its path must be absolute");
            return Err(Error::System { doing: doing(), source: why });
        }
        let mut content = vec![0; PAGE_BYTES];
        content[..WORD_BYTES].copy_from_slice(&MAGIC);
        content[WORD_BYTES..2 * WORD_BYTES].copy_from_slice(&VERSION.to_ne_bytes());
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).doing(doing)?;
        let page = CountPage { path: path.to_owned() };
        file.write_all(&content).doing(doing)?;
        Ok(page)
    }

    /// The variant that counts into the page, by the counting build at `library`.
    pub fn variant(&self, library: &Path) -> Variant {
        Variant {
            label: "counting".to_owned(),
            allocator: "masu".to_owned(),
            library: Some(library.to_owned()),
            variables: vec![(VARIABLE.to_owned(), self.path.to_string_lossy().into_owned())],
            ..Variant::default()
        }
    }

    /// The counts so far; exact once every counted process has ended.
    pub fn totals(&self) -> Result<Totals, Error> {
        let doing = || format!("reading the count page {}", self.path.display());
        let mut content = Vec::new();
        let file = File::open(&self.path).doing(doing)?;
        // A program may have given the file any length; one byte more than expected shows that.
        file.take(PAGE_BYTES as u64 + 1).read_to_end(&mut content).doing(doing)?;
        parse(&content).ok_or_else(|| {
            let why = "it is no count page any more: the program overwrote it; count it again";
            Error::System { doing: doing(), source: std::io::Error::other(why) }
        })
    }
}

impl Drop for CountPage {
    fn drop(&mut self) {
        // A file that cannot be removed is 4 KiB in a folder that its owner cleans.
        let _ = fs::remove_file(&self.path);
    }
}

fn parse(content: &[u8]) -> Option<Totals> {
    let (words, []) = content.as_chunks::<WORD_BYTES>() else { return None };
    let mut words = words.iter().copied();
    if words.len() != PAGE_BYTES / WORD_BYTES || words.next()? != MAGIC {
        return None;
    }
    let mut words = words.map(u64::from_ne_bytes);
    if words.next()? != VERSION {
        return None;
    }
    Some(Totals {
        programs: words.next()?,
        requests: words.next()?,
        requested_bytes: words.next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("masu-count-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_new_page_has_counted_nothing() {
        let page = CountPage::create(&fresh("new")).unwrap();
        assert_eq!(page.totals().unwrap(), Totals::default());
        let [(name, path)] = &page.variant(Path::new("counting.so")).variables[..] else {
            panic!()
        };
        assert_eq!((&**name, Path::new(path)), ("MASU_COUNT_FILE", page.path.as_path()));
    }

    #[test]
    fn what_lies_in_the_words_is_what_is_read() {
        let page = CountPage::create(&fresh("words")).unwrap();
        let mut content = fs::read(&page.path).unwrap();
        for word in 2..5_u8 {
            content[usize::from(word) * WORD_BYTES] = word;
        }
        fs::write(&page.path, &content).unwrap();
        let expected = Totals { programs: 2, requests: 3, requested_bytes: 4 };
        assert_eq!(page.totals().unwrap(), expected);
    }

    #[test]
    fn a_page_that_was_overwritten_is_an_error() {
        let page = CountPage::create(&fresh("overwritten")).unwrap();
        for content in [&b""[..], b"masucnt\0", &[0; PAGE_BYTES], &[0; 2 * PAGE_BYTES]] {
            fs::write(&page.path, content).unwrap();
            let message = page.totals().unwrap_err().to_string();
            assert!(message.contains("masu-count-overwritten"), "{message}");
        }
    }

    #[test]
    fn a_file_that_is_there_is_not_taken() {
        let path = fresh("taken");
        let page = CountPage::create(&path).unwrap();
        assert!(CountPage::create(&path).is_err());
        drop(page);
        assert!(!path.exists());
        assert!(CountPage::create(Path::new("relative")).is_err());
    }
}
