//! Where the code of methods is put: nowhere, libraries, or a code arena.
//!
//! Relies on gcc for objects and libraries. Each way has two sides: a [`Place`], which the thread of the requests reads, and
//! its [`Compiler`], which the compiling thread owns. Libraries that are no longer called stay loaded, as the report's did
//! while frames could be running in them.

use std::ffi::c_void;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};

use masu_code::{Arena, Entry, Options, Reader, Source};

use crate::library::{Outcome, compile, open, symbol};
use crate::method::{Code, Method};

/// Methods that are linked into one library at first; then as many again as it has, so that no method is linked often.
const TOGETHER: usize = 16;

/// What the thread of the requests sees.
pub(crate) trait Place: Sync {
    /// The code of a method; none where it is not compiled.
    fn code(&self, method: usize) -> Option<Code>;

    /// What says that a thread runs no code, where that is asked for.
    fn reader(&self) -> Option<Reader> {
        None
    }

    /// What compiles for this place; none where nothing is compiled.
    fn compiler(&self) -> Option<impl Compiler>;
}

/// What the compiling thread does.
pub(crate) trait Compiler: Send {
    /// Compiles a method and puts its code in place; how long putting it there took, loading included.
    ///
    /// # Errors
    ///
    /// When gcc fails, or what it made cannot be loaded.
    fn add(&mut self, method: &Method) -> Outcome<Duration>;

    /// No method waits.
    ///
    /// # Errors
    ///
    /// As of [`Compiler::add`].
    fn rest(&mut self) -> Outcome<()> {
        Ok(())
    }
}

/// No JIT.
pub(crate) struct Nowhere;

impl Place for Nowhere {
    #[inline(always)]
    fn code(&self, _: usize) -> Option<Code> {
        None
    }

    fn compiler(&self) -> Option<impl Compiler> {
        None::<LibraryCompiler<'_>>
    }
}

/// Where the code of each method is in libraries; null where it is not compiled.
pub(crate) struct Libraries {
    entries: Vec<AtomicPtr<c_void>>,
    folder: PathBuf,
    is_single: bool,
}

impl Libraries {
    pub(crate) fn open(methods: usize, folder: &Path, is_single: bool) -> Libraries {
        let entries = (0..methods).map(|_| AtomicPtr::default()).collect();
        Libraries { entries, folder: folder.to_owned(), is_single }
    }
}

impl Place for Libraries {
    #[inline(always)]
    fn code(&self, method: usize) -> Option<Code> {
        // ORDERING: Acquire pairs with the Release of `lead`: the code that was loaded before is seen.
        let address = self.entries[method].load(Ordering::Acquire);
        // SAFETY: The entry is null or leads to the method, whose type this is, in a library that stays loaded.
        (!address.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Code>(address) })
    }

    fn compiler(&self) -> Option<impl Compiler> {
        Some(LibraryCompiler { place: self, added: Vec::new(), linked: 0 })
    }
}

/// Compiles methods into libraries.
struct LibraryCompiler<'a> {
    place: &'a Libraries,
    /// The methods so far: number and name.
    added: Vec<(usize, String)>,
    /// How many of them are in the one library.
    linked: usize,
}

impl LibraryCompiler<'_> {
    /// Loads a library and has the entries of its methods lead into it.
    fn lead(&self, library: &str, methods: &[(usize, String)]) -> Outcome<()> {
        let handle = open(&self.place.folder.join(library))?;
        for (number, name) in methods {
            // ORDERING: Release publishes the loaded code to `Libraries::code`.
            self.place.entries[*number].store(symbol(handle, name)?, Ordering::Release);
        }
        Ok(())
    }

    /// Links all objects so far into one library and has every method lead there.
    fn link(&mut self) -> Outcome<()> {
        let folder = &self.place.folder;
        let objects = self.added.iter().map(|(_, name)| format!("{name}.o\n"));
        fs::write(folder.join("objects"), objects.collect::<String>())?;
        // The dynamic linker takes a name that it knows for the library that it has.
        let library = format!("all-{}.so", self.added.len());
        compile(folder, &["-shared", "-nostdlib", "@objects", "-o", &library])?;
        self.lead(&library, &self.added)?;
        self.linked = self.added.len();
        Ok(())
    }
}

impl Compiler for LibraryCompiler<'_> {
    fn add(&mut self, method: &Method) -> Outcome<Duration> {
        let folder = &self.place.folder;
        let object = object(folder, method)?;
        let name = method.symbol();
        let library = format!("{name}.so");
        compile(folder, &["-shared", "-nostdlib", &object, "-o", &library])?;
        let start = Instant::now();
        self.added.push((method.number, name));
        self.lead(&library, &self.added[self.added.len() - 1..])?;
        let took = start.elapsed();
        if self.place.is_single && self.added.len() >= TOGETHER.max(2 * self.linked) {
            self.link()?;
        }
        Ok(took)
    }

    fn rest(&mut self) -> Outcome<()> {
        if self.place.is_single && self.added.len() > self.linked { self.link() } else { Ok(()) }
    }
}

/// Has gcc make an object of a method; its file's name in `folder`.
fn object(folder: &Path, method: &Method) -> Outcome<String> {
    let [source, object] = ["c", "o"].map(|end| format!("{}.{end}", method.symbol()));
    fs::write(folder.join(&source), method.text())?;
    compile(folder, &["-O1", "-fPIC", "-fcf-protection=none", "-c", &source, "-o", &object])?;
    Ok(object)
}

/// The arena with an entry for each method, which leads to [`not_compiled`] at first.
pub(crate) struct ArenaPlace {
    arena: Arena,
    entries: Vec<Entry>,
    folder: PathBuf,
}

/// Where the entries of methods lead that are interpreted; never called.
extern "C" fn not_compiled(value: u64) -> u64 {
    value
}

impl ArenaPlace {
    pub(crate) fn open(methods: usize, folder: &Path) -> Outcome<ArenaPlace> {
        let arena = Arena::open(Options::default())?;
        let nothing = not_compiled as *const () as *const c_void;
        let entry = |method| arena.entry_at(&format!("method{method}"), nothing);
        let entries = (0..methods).map(entry).collect::<Result<_, _>>()?;
        Ok(ArenaPlace { arena, entries, folder: folder.to_owned() })
    }
}

impl Place for ArenaPlace {
    #[inline(always)]
    fn code(&self, method: usize) -> Option<Code> {
        // SAFETY: All that an entry leads to has this type; the thread of the requests has a reader, and keeps no code
        // over its quiescent states.
        let code = unsafe { self.entries[method].get::<Code>() };
        (code as *const () != not_compiled as *const ()).then_some(code)
    }

    fn reader(&self) -> Option<Reader> {
        Some(self.arena.reader())
    }

    fn compiler(&self) -> Option<impl Compiler> {
        Some(ArenaCompiler(self))
    }
}

/// Compiles methods into the arena.
struct ArenaCompiler<'a>(&'a ArenaPlace);

impl Compiler for ArenaCompiler<'_> {
    fn add(&mut self, method: &Method) -> Outcome<Duration> {
        let object = object(&self.0.folder, method)?;
        let start = Instant::now();
        let source = Source::file(self.0.folder.join(object))?;
        // SAFETY: The object has no initialisers.
        let loaded = unsafe { self.0.arena.load(source)? };
        self.0.entries[method.number].replace(loaded, &method.symbol())?;
        Ok(start.elapsed())
    }
}
