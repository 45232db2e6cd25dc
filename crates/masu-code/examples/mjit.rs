//! Ruby's MJIT in the code arena, without a change of Ruby: a library to preload, `LD_PRELOAD=libmjit.so MASU_MJIT=arena`.
//!
//! MJIT has the C compiler make an object of each method and the linker a library of each object, which it loads with
//! `dlopen`. Here the object takes the library's name before the linker starts, and `dlopen` of an object is a load
//! into the arena. Ruby starts compilers by `vfork` and `execv`, so the replacement of `execv` runs in a child that
//! shares the parent's memory: there the replacement only makes system calls. `MASU_MJIT=own` loads libraries as Ruby
//! does, and makes the compiler refuse the library into which Ruby would compact all methods.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use masu_code::{Arena, Handle, Options, Place, Source};

/// The C library's functions of these names.
struct Real {
    dlopen: unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void,
    dlsym: unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void,
    dlclose: unsafe extern "C" fn(*mut c_void) -> c_int,
    execv: unsafe extern "C" fn(*const c_char, *const *const c_char) -> c_int,
}

/// The destination of MJIT's objects.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// A library for each object, as Ruby has them until it compacts.
    Own,
    /// Objects in the arena.
    Arena,
}

static REAL: OnceLock<Real> = OnceLock::new();
static WAY: OnceLock<Option<Way>> = OnceLock::new();
static ARENA: OnceLock<Option<Arena>> = OnceLock::new();

unsafe extern "C" {
    // Not every version of the crate `libc` has this function.
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Runs before the program: its threads would meet a half-made environment.
extern "C" fn start() {
    real();
    WAY.get_or_init(|| match std::env::var("MASU_MJIT").as_deref() {
        Ok("arena") => Some(Way::Arena),
        Ok("own") => Some(Way::Own),
        _ => None,
    });
    // SAFETY: The program still has one thread. The programs that Ruby starts, compilers above all, must not load this
    // library.
    unsafe { std::env::remove_var("LD_PRELOAD") };
}

fn real() -> &'static Real {
    REAL.get_or_init(|| {
        // The version of `dlsym` differs by CPU and by the C library's age.
        let versions = [c"GLIBC_2.34", c"GLIBC_2.17", c"GLIBC_2.2.5"];
        let found = versions.iter().find_map(|version| {
            // SAFETY: Both texts end in NUL.
            let found = unsafe { dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
            (!found.is_null()).then_some(found)
        });
        let Some(found) = found else { fail("there is no other dlsym") };
        // SAFETY: The C library's function of this name has this type.
        let dlsym: unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void =
            unsafe { std::mem::transmute(found) };
        let next = |name: &CStr| {
            // SAFETY: The name ends in NUL.
            let found = unsafe { dlsym(libc::RTLD_NEXT, name.as_ptr()) };
            if found.is_null() { fail("the C library lacks a function") } else { found }
        };
        // SAFETY: As above, for each of them.
        unsafe {
            Real {
                dlopen: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void,
                >(next(c"dlopen")),
                dlsym,
                dlclose: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut c_void) -> c_int,
                >(next(c"dlclose")),
                execv: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*const c_char, *const *const c_char) -> c_int,
                >(next(c"execv")),
            }
        }
    })
}

fn fail(why: &str) -> ! {
    eprintln!("mjit: {why}");
    std::process::abort()
}

fn way() -> Option<Way> {
    *WAY.get()?
}

/// The arena, near the library that objects call most.
fn arena() -> Option<&'static Arena> {
    let made = ARENA.get_or_init(|| {
        // SAFETY: The name ends in NUL.
        let ruby = unsafe { (real().dlsym)(libc::RTLD_DEFAULT, c"ruby_init".as_ptr()) };
        let options = Options { place: Place::Near(ruby as usize), ..Options::default() };
        Arena::open(options).inspect_err(|error| eprintln!("mjit: {error}")).ok()
    });
    made.as_ref()
}

/// The object in the file of this name; `None` if the file is anything else.
fn load(path: &CStr) -> Option<*mut c_void> {
    let path = Path::new(std::ffi::OsStr::from_bytes(path.to_bytes()));
    let bytes = std::fs::read(path).ok()?;
    // An ELF file's type: 1 for an object, 3 for a library.
    if bytes.get(..4) != Some(b"\x7fELF") || bytes.get(16..18) != Some(&1_u16.to_le_bytes()) {
        return None;
    }
    let name = path.file_name()?.to_string_lossy().into_owned();
    // SAFETY: A compiler made the object for this process. The object has no initializers.
    let object = unsafe { arena()?.load(Source::new(name, bytes).private()) };
    let object = object.inspect_err(|error| eprintln!("mjit: {error}")).ok()?;
    // The dynamic linker's handles are even.
    Some(std::ptr::without_provenance_mut((u64::from(object) as usize) << 1 | 1))
}

/// The object that a handle of [`load`] stands for.
fn object(handle: *mut c_void) -> Option<Handle> {
    let number = handle.addr();
    (number & 1 == 1 && handle != libc::RTLD_NEXT).then(|| Handle::from((number >> 1) as u64))
}

/// # Safety
///
/// - `path` is NULL or a text that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    if way() == Some(Way::Arena) && !path.is_null() {
        // SAFETY: The caller's condition.
        let name = unsafe { CStr::from_ptr(path) };
        if is_method(name.to_bytes())
            && let Some(handle) = load(name)
        {
            return handle;
        }
    }
    // SAFETY: The caller's condition.
    unsafe { (real().dlopen)(path, flags) }
}

/// # Safety
///
/// - `handle` came from `dlopen`, or stands for libraries as `RTLD_NEXT` does; `name` is a text that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    if let Some(object) = object(handle) {
        // SAFETY: The caller's condition.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let found = arena().and_then(|arena| arena.symbol(object, &name).ok());
        return found.unwrap_or(std::ptr::null()).cast_mut();
    }
    // SAFETY: The caller's condition.
    unsafe { (real().dlsym)(handle, name) }
}

/// # Safety
///
/// - `handle` came from `dlopen`, and no thread runs code of the object or library that it stands for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    match object(handle) {
        Some(object) => match arena().map(|arena| arena.unload(object)) {
            Some(Ok(())) => 0,
            _ => -1,
        },
        // SAFETY: The caller's condition.
        None => unsafe { (real().dlclose)(handle) },
    }
}

/// The function that Ruby's children call to become a compiler or a linker.
///
/// # Safety
///
/// - As for the C library's function: texts that end in NUL, and the list of texts in NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, words: *const *const c_char) -> c_int {
    // SAFETY: The caller's condition.
    let instead = way().and_then(|way| unsafe { instead(way, words) });
    if let Some(end) = instead {
        // SAFETY: This ends only the child, without the parent's work at exit.
        unsafe { libc::_exit(end) };
    }
    // SAFETY: The caller's condition.
    unsafe { (real().execv)(path, words) }
}

/// The exit code with which the child of this command must end at once; `None` where the command must run.
///
/// # Safety
///
/// - As for `words` of [`execv`].
unsafe fn instead(way: Way, words: *const *const c_char) -> Option<c_int> {
    let (mut output, mut input, mut is_compiling) = (None, None, false);
    let mut is_output = false;
    for at in 0.. {
        // SAFETY: The list goes on up to its NULL.
        let word = unsafe { *words.add(at) };
        if word.is_null() {
            break;
        }
        // SAFETY: The caller's condition.
        let word = unsafe { CStr::from_ptr(word) };
        match word.to_bytes() {
            _ if std::mem::take(&mut is_output) => output = Some(word),
            b"-o" => is_output = true,
            b"-c" => is_compiling = true,
            text if is_method(text) => input = Some(word),
            _ => {}
        }
    }
    let (input, output) = (input?, output?);
    match way {
        Way::Arena if !is_compiling && output.to_bytes().ends_with(b".so") => {
            // SAFETY: Two texts that end in NUL. The object's own name is removed by MJIT.
            Some(c_int::from(unsafe { libc::link(input.as_ptr(), output.as_ptr()) } != 0))
        }
        _ if is_compiling && is_compaction(input) => Some(1),
        _ => None,
    }
}

/// Whether a file is one of MJIT's for a method: `/tmp/_ruby_mjit_p123u4.c`. The header that all methods share is not.
fn is_method(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    name.starts_with(b"_ruby_mjit_p")
        && [&b".c"[..], b".o", b".so"].iter().any(|end| name.ends_with(end))
}

/// Whether MJIT wrote several methods into this file: each begins on a line of its own.
fn is_compaction(path: &CStr) -> bool {
    const BEGIN: &[u8] = b"\nVALUE\n_mjit";
    // SAFETY: The path ends in NUL.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    let (mut methods, mut matched) = (0, 0);
    let mut buffer = [0_u8; 4096];
    while methods < 2 {
        // SAFETY: The buffer has this length.
        let read = unsafe { libc::read(file, buffer.as_mut_ptr().cast(), buffer.len()) };
        let Some(read @ 1..) = usize::try_from(read).ok() else { break };
        for byte in &buffer[..read] {
            matched = match matched {
                at if *byte == BEGIN[at] => at + 1,
                _ => usize::from(*byte == BEGIN[0]),
            };
            if matched == BEGIN.len() {
                (methods, matched) = (methods + 1, 0);
            }
        }
    }
    // SAFETY: The file was opened above; closing a file that could not be opened is refused.
    unsafe { libc::close(file) };
    methods > 1
}
