//! An object's bytes, and its name in errors and reports.
//!
//! A source owns the bytes; its clones share them.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use crate::error::Error;

/// An object to be loaded.
///
/// If an object is loaded by value, its bytes go to the debugger as they are; if by reference, the debugger gets a
/// copy.
#[derive(Debug, Clone)]
pub struct Source {
    pub(crate) name: String,
    pub(crate) data: Arc<Vec<u8>>,
    pub(crate) is_private: bool,
    pub(crate) is_inert: bool,
}

/// For an object that is loaded more than once.
impl From<&Source> for Source {
    fn from(source: &Source) -> Source {
        source.clone()
    }
}

impl Source {
    /// An object in memory. A vector is taken as it is; borrowed bytes are copied.
    pub fn new<'a>(name: impl Into<String>, bytes: impl Into<Cow<'a, [u8]>>) -> Source {
        Source::of(name.into(), bytes.into().into_owned())
    }

    fn of(name: String, data: Vec<u8>) -> Source {
        Source { name, data: Arc::new(data), is_private: false, is_inert: false }
    }

    /// An object in a file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn file(path: impl AsRef<Path>) -> Result<Source, Error> {
        let path = path.as_ref();
        let data = std::fs::read(path)
            .map_err(|error| Error::kernel(format!("cannot read {}", path.display()), error))?;
        Ok(Source::of(path.display().to_string(), data))
    }

    /// Makes the object private: its symbols are reached through its handle alone. Later objects are not linked to
    /// them, and other objects may define the same symbols. For a JIT that loads a function's next version.
    #[must_use]
    pub fn private(mut self) -> Source {
        self.is_private = true;
        self
    }

    /// Makes the object inert: its initializers and destructors are not run.
    #[must_use]
    pub fn inert(mut self) -> Source {
        self.is_inert = true;
        self
    }

    /// The object's name in errors and reports.
    pub fn name(&self) -> &str {
        &self.name
    }
}
