//! Static libraries: only the needed members are loaded.
//!
//! Relies on the `object` crate. A member is taken if it defines a symbol that is still undefined; it may need more, in
//! any of the libraries, in any order.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::read::archive::{ArchiveFile, ArchiveMember, ArchiveOffset};

use crate::error::Error;
use crate::object::{Home, NAMES, Object};
use crate::source::Source;

/// A static library (`lib….a`), from which [`crate::Arena::load_with`] takes the members that it needs.
///
/// Copies share the bytes. A thin library (`ar --thin`) names its objects' files, which are read when they are needed.
#[derive(Clone)]
pub struct Archive {
    name: String,
    data: Arc<Vec<u8>>,
    /// The folder that a thin library's names are relative to.
    folder: PathBuf,
    /// The file offset of the member that defines a symbol.
    index: Arc<HashMap<Box<[u8]>, u64>>,
    is_inert: bool,
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Archive({:?}, {} symbols)", self.name, self.index.len())
    }
}

impl Archive {
    /// A static library in a file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is no static library.
    pub fn file(path: impl AsRef<Path>) -> Result<Archive, Error> {
        let path = path.as_ref();
        let data = std::fs::read(path)
            .map_err(|error| Error::kernel(format!("cannot read {}", path.display()), error))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Archive::of(path.display().to_string(), data, folder)
    }

    /// A static library in memory. The names of a thin library are relative to the current folder.
    ///
    /// # Errors
    ///
    /// When the bytes are no static library.
    pub fn new(name: impl Into<String>, bytes: &[u8]) -> Result<Archive, Error> {
        Archive::of(name.into(), bytes.to_vec(), PathBuf::new())
    }

    fn of(name: String, data: Vec<u8>, folder: PathBuf) -> Result<Archive, Error> {
        let wrong = |error| Error::malformed(&name, format!("as a static library: {error}"));
        let archive = ArchiveFile::parse(&*data).map_err(wrong)?;
        // Names may share their ends, as in an object.
        let (mut index, mut names) = (HashMap::new(), data.len().saturating_mul(NAMES));
        for symbol in archive.symbols().map_err(wrong)?.into_iter().flatten() {
            let symbol = symbol.map_err(wrong)?;
            let left = names.checked_sub(symbol.name().len());
            names = left.ok_or_else(|| Error::malformed(&name, "its names overlap too often"))?;
            // If two members define a symbol, the first one counts.
            index.entry(symbol.name().into()).or_insert(symbol.offset().0);
        }
        let (data, index) = (Arc::new(data), Arc::new(index));
        Ok(Archive { name, data, folder, index, is_inert: false })
    }

    /// Makes the library inert: initializers and destructors of its members are not run ([`Source::inert`]).
    #[must_use]
    pub fn inert(mut self) -> Archive {
        self.is_inert = true;
        self
    }

    /// All objects of the library, in its order.
    ///
    /// # Errors
    ///
    /// When the library is broken, or an object of a thin library cannot be read.
    pub fn members(&self) -> Result<Vec<Source>, Error> {
        let archive = self.parse()?;
        let mut sources = Vec::new();
        for member in archive.members() {
            sources.extend(self.source(&member.map_err(|error| self.wrong(error))?)?);
        }
        Ok(sources)
    }

    fn wrong(&self, error: object::read::Error) -> Error {
        Error::malformed(&self.name, format!("as a static library: {error}"))
    }

    fn parse(&self) -> Result<ArchiveFile<'_>, Error> {
        ArchiveFile::parse(&**self.data).map_err(|error| self.wrong(error))
    }

    /// A member; `None` for a member that is no object, such as rustc's metadata.
    fn source(&self, member: &ArchiveMember<'_>) -> Result<Option<Source>, Error> {
        let of = String::from_utf8_lossy(member.name());
        let mut source = if member.is_thin() {
            let path = self.folder.join(of.as_ref());
            // A device may have no end.
            if std::fs::metadata(&path).is_ok_and(|file| !file.is_file()) {
                let why = format!("its member {} is no regular file", path.display());
                return Err(Error::malformed(&self.name, why));
            }
            Source::file(path)?
        } else {
            let data = member.data(&**self.data).map_err(|error| self.wrong(error))?;
            if !data.starts_with(b"\x7fELF") {
                return Ok(None);
            }
            Source::new("", data)
        };
        source.name = format!("{}({of})", self.name);
        source.is_inert = self.is_inert;
        Ok(Some(source))
    }

    /// The member that defines a symbol, by the library's own index.
    fn member_with(&self, symbol: &[u8], taken: &mut Taken) -> Result<Option<Source>, Error> {
        let Some(&offset) = self.index.get(symbol) else { return Ok(None) };
        if !taken.members.insert(offset) {
            return Ok(None);
        }
        let archive = self.parse()?;
        let member = archive.member(ArchiveOffset(offset)).map_err(|error| self.wrong(error))?;
        if !member.is_thin() {
            // Each member is copied, so that those of a small library could take all memory.
            taken.bytes = taken.bytes.saturating_add(member.size());
            if taken.bytes > self.data.len() as u64 {
                return Err(Error::malformed(&self.name, "its members lie over each other"));
            }
        }
        self.source(&member)
    }
}

/// The members that were taken of a library.
#[derive(Default, Clone)]
struct Taken {
    members: HashSet<u64>,
    /// The bytes of those that lie in the library.
    bytes: u64,
}

impl Source {
    /// All objects of a static library (`lib….a`), in its order: [`Archive::members`].
    ///
    /// # Errors
    ///
    /// When the bytes are no such library.
    pub fn archive(name: &str, bytes: &[u8]) -> Result<Vec<Source>, Error> {
        Archive::new(name, bytes)?.members()
    }
}

/// Adds the members of `archives` that a batch needs; `is_known` says whether a symbol is loaded already.
pub(crate) fn add_needed(
    sources: &mut Vec<Source>,
    archives: &[Archive],
    is_known: impl Fn(&[u8]) -> bool,
) -> Result<(), Error> {
    for archive in archives {
        // Some libraries are empty: their contents moved to other libraries.
        if archive.index.is_empty() && archive.parse()?.members().next().is_some() {
            let why = "a static library without an index of symbols: `ranlib` makes one";
            return Err(Error::malformed(&archive.name, why));
        }
    }
    let mut taken = vec![Taken::default(); archives.len()];
    let mut symbols = Symbols::default();
    sources.iter().try_for_each(|source| symbols.note(source))?;
    while let Some(symbol) = symbols.wanted.pop_front() {
        if symbols.defined.contains(&symbol) || is_known(&symbol) {
            continue;
        }
        for (archive, taken) in archives.iter().zip(&mut taken) {
            if let Some(source) = archive.member_with(&symbol, taken)? {
                symbols.note(&source)?;
                sources.push(source);
                break;
            }
        }
    }
    Ok(())
}

/// The symbols that a batch defines and needs.
#[derive(Default)]
struct Symbols {
    defined: HashSet<Box<[u8]>>,
    wanted: VecDeque<Box<[u8]>>,
}

impl Symbols {
    fn note(&mut self, source: &Source) -> Result<(), Error> {
        let object = Object::read(&source.name, &source.data)?;
        let global =
            object.symbols.iter().filter(|symbol| !symbol.is_local && !symbol.name.is_empty());
        for symbol in global {
            // A weak symbol may stay undefined, and takes no member.
            match symbol.home {
                Home::Undefined if symbol.is_weak => {}
                Home::Undefined => self.wanted.push_back(symbol.name.into()),
                _ if source.is_private => {}
                _ => drop(self.defined.insert(symbol.name.into())),
            }
        }
        Ok(())
    }
}
