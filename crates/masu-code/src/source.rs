//! What is loaded: an object's bytes and the name that errors and reports call it by.
//!
//! Relies on the `object` crate for static libraries. A source has the bytes itself, so the caller
//! need not keep them; copies of a source share them.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use object::read::archive::ArchiveFile;

use crate::error::Error;
use crate::object::Aligned;

/// An object to be loaded.
///
/// Where it is loaded by value, its bytes go to the debugger as they are; where by reference, the
/// debugger gets a copy.
#[derive(Debug, Clone)]
pub struct Source {
    pub(crate) name: String,
    pub(crate) data: Arc<Aligned>,
    pub(crate) is_private: bool,
    pub(crate) is_inert: bool,
}

/// To be loaded more than once.
impl From<&Source> for Source {
    fn from(source: &Source) -> Source {
        source.clone()
    }
}

impl Source {
    /// An object in memory. A vector is taken as it is; borrowed bytes are copied.
    pub fn new<'a>(name: impl Into<String>, bytes: impl Into<Cow<'a, [u8]>>) -> Source {
        let data = match bytes.into() {
            Cow::Owned(bytes) => Aligned::of(bytes),
            Cow::Borrowed(bytes) => Aligned::copy(bytes),
        };
        Source::of(name.into(), data)
    }

    fn of(name: String, data: Aligned) -> Source {
        Source { name, data: Arc::new(data), is_private: false, is_inert: false }
    }

    /// An object in a file.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn file(path: impl AsRef<Path>) -> Result<Source, Error> {
        let path = path.as_ref();
        let data = Aligned::read(path)
            .map_err(|error| Error::kernel(format!("cannot read {}", path.display()), error))?;
        Ok(Source::of(path.display().to_string(), data))
    }

    /// All objects of a static library (`lib….a`), in its order.
    ///
    /// # Errors
    ///
    /// When the bytes are no such library.
    pub fn archive(name: &str, bytes: &[u8]) -> Result<Vec<Source>, Error> {
        let wrong = |error| Error::malformed(name, format!("as a static library: {error}"));
        let archive = ArchiveFile::parse(bytes).map_err(wrong)?;
        let mut sources = Vec::new();
        for member in archive.members() {
            let member = member.map_err(wrong)?;
            let data = member.data(bytes).map_err(wrong)?;
            // rustc puts its metadata beside the objects.
            if data.starts_with(b"\x7fELF") {
                let of = String::from_utf8_lossy(member.name()).into_owned();
                sources.push(Source::new(format!("{name}({of})"), data));
            }
        }
        Ok(sources)
    }

    /// Its symbols are reached through its handle alone: later objects are not linked to them, and
    /// they may be defined elsewhere, too. For a JIT that loads a function's next version.
    #[must_use]
    pub fn private(mut self) -> Source {
        self.is_private = true;
        self
    }

    /// Its initialisers and destructors are not run.
    #[must_use]
    pub fn inert(mut self) -> Source {
        self.is_inert = true;
        self
    }

    /// What errors and reports call it.
    pub fn name(&self) -> &str {
        &self.name
    }
}
