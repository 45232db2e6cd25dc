//! Where the code of methods is: nowhere, in libraries, or in a code arena.
//!
//! Relies on gcc for objects and libraries. Each way has two sides: a [`Place`], which the request thread reads, and its
//! [`Compiler`], which the compiling thread owns in the regime `cold`. The compiling thread writes the address of loaded
//! code into the JIT's own [`Table`], the same for libraries and for the arena, so that calls differ only in the code's
//! address. No code is unloaded: old libraries stay, as in the report, because frames could be running in them.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};

use masu_code::{Arena, Handle, Options, Source};

use crate::library::{self, Outcome};
use crate::method::{Code, Method, symbol};
use crate::objects::{Made, library, object};

/// Methods that are linked into one library at first; then as many again as it has, so that no method is linked often.
const TOGETHER: usize = 16;

/// What the thread of the requests sees.
pub(crate) trait Place: Sync {
    /// The code of a method; none where it is not compiled.
    fn code(&self, method: usize) -> Option<Code>;

    /// Puts the code of all methods in place, of which gcc made this before.
    fn load(&self, made: &Made) -> Outcome<()>;

    /// What compiles for this place, method by method; none where nothing is compiled.
    fn compiler(&self) -> Option<impl Compiler>;
}

/// What the compiling thread does.
pub(crate) trait Compiler: Send {
    /// Compiles a method and puts its code in place; how long putting it there took, loading included.
    fn add(&mut self, method: &Method) -> Outcome<Duration>;

    /// No method waits.
    fn rest(&mut self) -> Outcome<()> {
        Ok(())
    }
}

pub(crate) struct Nowhere;

impl Place for Nowhere {
    #[inline(always)]
    fn code(&self, _: usize) -> Option<Code> {
        None
    }

    fn load(&self, _: &Made) -> Outcome<()> {
        Ok(())
    }

    fn compiler(&self) -> Option<impl Compiler> {
        None::<LibraryCompiler<'_>>
    }
}

/// Where the code of each method is; null where it is not compiled.
struct Table(Vec<AtomicPtr<c_void>>);

impl Table {
    fn new(methods: usize) -> Table {
        Table((0..methods).map(|_| AtomicPtr::default()).collect())
    }

    /// Has calls of a method run the code at `address`, which stays loaded and is of the type [`Code`].
    fn lead(&self, method: usize, address: *mut c_void) {
        // ORDERING: Release publishes the loaded code to `code`.
        self.0[method].store(address, Ordering::Release);
    }

    #[inline(always)]
    fn code(&self, method: usize) -> Option<Code> {
        // ORDERING: Acquire pairs with the Release of `lead`: the code that was loaded before is seen.
        let address = self.0[method].load(Ordering::Acquire);
        // SAFETY: The address is null or was given to `lead`, which asks for this type and for code that stays.
        (!address.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Code>(address) })
    }
}

pub(crate) struct Libraries {
    table: Table,
    folder: PathBuf,
    is_single: bool,
}

impl Libraries {
    pub(crate) fn open(methods: usize, folder: &Path, is_single: bool) -> Libraries {
        Libraries { table: Table::new(methods), folder: folder.to_owned(), is_single }
    }

    /// Loads a library and points calls of these methods to its code.
    fn lead(&self, library: &Path, methods: &[usize]) -> Outcome<()> {
        let handle = library::open(library)?;
        for method in methods {
            self.table.lead(*method, library::symbol(handle, &symbol(*method))?);
        }
        Ok(())
    }
}

impl Place for Libraries {
    #[inline(always)]
    fn code(&self, method: usize) -> Option<Code> {
        self.table.code(method)
    }

    fn load(&self, made: &Made) -> Outcome<()> {
        let methods: Vec<usize> = (0..self.table.0.len()).collect();
        if self.is_single {
            return self.lead(&library(&self.folder, "all", &made.objects)?, &methods);
        }
        made.libraries.iter().zip(methods.chunks(1)).try_for_each(|(one, own)| self.lead(one, own))
    }

    fn compiler(&self) -> Option<impl Compiler> {
        Some(LibraryCompiler { place: self, added: Vec::new(), objects: Vec::new(), linked: 0 })
    }
}

/// Compiles methods into libraries.
struct LibraryCompiler<'a> {
    place: &'a Libraries,
    /// The methods so far.
    added: Vec<usize>,
    objects: Vec<PathBuf>,
    /// How many of them are in the one library.
    linked: usize,
}

impl LibraryCompiler<'_> {
    /// Links all objects so far into one library and has every method lead there.
    fn link(&mut self) -> Outcome<()> {
        let name = format!("all-{}", self.added.len());
        self.place.lead(&library(&self.place.folder, &name, &self.objects)?, &self.added)?;
        self.linked = self.added.len();
        Ok(())
    }
}

impl Compiler for LibraryCompiler<'_> {
    fn add(&mut self, method: &Method) -> Outcome<Duration> {
        let folder = &self.place.folder;
        self.objects.push(object(folder, method)?);
        self.added.push(method.number);
        let last = self.added.len() - 1;
        let library = library(folder, &method.symbol(), &self.objects[last..])?;
        let start = Instant::now();
        self.place.lead(&library, &self.added[last..])?;
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

pub(crate) struct ArenaPlace {
    arena: Arena,
    table: Table,
    folder: PathBuf,
}

impl ArenaPlace {
    pub(crate) fn open(methods: usize, folder: &Path) -> Outcome<ArenaPlace> {
        let arena = Arena::open(Options::default())?;
        Ok(ArenaPlace { arena, table: Table::new(methods), folder: folder.to_owned() })
    }

    /// Points calls of a method to its object's code.
    fn lead(&self, method: usize, object: Handle) -> Outcome<()> {
        let address = self.arena.symbol(object, &symbol(method))?;
        self.table.lead(method, address.cast_mut().cast());
        Ok(())
    }
}

impl Place for ArenaPlace {
    #[inline(always)]
    fn code(&self, method: usize) -> Option<Code> {
        self.table.code(method)
    }

    fn load(&self, made: &Made) -> Outcome<()> {
        let sources = made.objects.iter().map(Source::file).collect::<Result<Vec<_>, _>>()?;
        // SAFETY: The objects have no initialisers.
        let loaded = unsafe { self.arena.load_all(sources)? };
        loaded.into_iter().enumerate().try_for_each(|(method, object)| self.lead(method, object))
    }

    fn compiler(&self) -> Option<impl Compiler> {
        Some(ArenaCompiler(self))
    }
}

struct ArenaCompiler<'a>(&'a ArenaPlace);

impl Compiler for ArenaCompiler<'_> {
    fn add(&mut self, method: &Method) -> Outcome<Duration> {
        let object = object(&self.0.folder, method)?;
        let start = Instant::now();
        let source = Source::file(object)?;
        // SAFETY: The object has no initialisers.
        let loaded = unsafe { self.0.arena.load(source)? };
        self.0.lead(method.number, loaded)?;
        Ok(start.elapsed())
    }
}
