//! The C interface of the code arena: `include/masu_code.h`.
//!
//! Relies on [`Arena`] and adds nothing to it. It is a crate of its own, because cargo gives a library that is made for
//! C one file name for every build, and programs in Rust that link the arena are built in more than one way. The hard
//! part is the owner of each piece of memory: an arena, a reader and an entry are boxes that C holds by pointer and
//! gives back once; the text of an error is its thread's.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uint, c_void};

use code_arena::{
    Arena, Entry, Error, Handle, Options, Place, Reader, Resolver, Source, Tools, Writing,
};

#[repr(C)]
pub(crate) struct COptions {
    size: usize,
    place: c_int,
    near_to: *const c_void,
    writing: c_int,
    tools: c_uint,
    keep: c_int,
    resolver: Option<unsafe extern "C" fn(*const c_char, *mut c_void) -> *mut c_void>,
    context: *mut c_void,
}

thread_local! {
    static ERROR: RefCell<CString> = RefCell::new(CString::default());
}

/// Keeps an error for `masu_code_error`, except where the thread ends and its variables have ended.
fn tell(error: &str) {
    let text = CString::new(error.replace('\0', "?")).unwrap_or_default();
    let _ = ERROR.try_with(|kept| kept.replace(text));
}

/// The value, or `otherwise` with the error kept.
fn or<T>(result: Result<T, Error>, otherwise: T) -> T {
    result.unwrap_or_else(|error| {
        tell(&error.to_string());
        otherwise
    })
}

fn pointer<T>(result: Result<T, Error>) -> *mut T {
    or(result.map(|value| Box::into_raw(Box::new(value))), std::ptr::null_mut())
}

/// # Safety
///
/// - The text is a C string, or null.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Error> {
    if text.is_null() {
        return Err(Error::Options("a name is NULL".to_owned()));
    }
    // SAFETY: The caller's condition.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Error::Options("a name is not UTF-8".to_owned()))
}

/// The arguments of most functions, as an error calls them.
const ARENA: &str = "the arena";
const ENTRY: &str = "the entry";

/// The value that a pointer leads to; the error names the argument.
///
/// # Safety
///
/// - The pointer is null, or leads to a value that stays during the call.
unsafe fn given<'a, T>(pointer: *const T, argument: &str) -> Result<&'a T, Error> {
    // SAFETY: The caller's condition.
    unsafe { pointer.as_ref() }.ok_or_else(|| is_null(argument))
}

fn is_null(argument: &str) -> Error {
    Error::Unsupported { object: argument.to_owned(), what: "it is NULL".to_owned() }
}

/// An array of so many values; the pointer may be null where there are none.
///
/// # Safety
///
/// - There are as many values, or the pointer is null.
unsafe fn array<'a, T>(first: *const T, count: usize, argument: &str) -> Result<&'a [T], Error> {
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: The caller's condition.
    let first = unsafe { given(first, argument)? };
    // SAFETY: As above.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

fn options(given: &COptions) -> Result<Options, Error> {
    let wrong =
        |what: &str, value: c_int| Error::Options(format!("{what} {value}: see masu_code.h"));
    let place = match given.place {
        0 => Place::NearProgram,
        1 => Place::Near(given.near_to as usize),
        2 => Place::Low,
        3 => Place::NearLibraries,
        other => return Err(wrong("place", other)),
    };
    let writing = match given.writing {
        0 => Writing::Any,
        1 => Writing::Dual,
        2 => Writing::Batches,
        other => return Err(wrong("writing", other)),
    };
    let tools = Tools {
        debugger: given.tools & 1 != 0,
        unwinder: given.tools & 2 != 0,
        perf_map: given.tools & 4 != 0,
        jitdump: None,
    };
    let resolver = given.resolver.map(|function| {
        let context = given.context as usize;
        let resolver: Resolver = Box::new(move |name| {
            let name = CString::new(name).ok()?;
            // SAFETY: The caller's function gets the arguments of its type.
            let found = unsafe { function(name.as_ptr(), context as *mut c_void) };
            (!found.is_null()).then_some(found as usize)
        });
        resolver
    });
    Ok(Options { size: given.size, place, writing, tools, keep: given.keep != 0, resolver })
}

/// # Safety
///
/// - The options are null, or as the header describes them.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_open(given: *const COptions) -> *mut Arena {
    // SAFETY: The caller's condition.
    let chosen = match unsafe { given.as_ref() } {
        None => Ok(Options::default()),
        Some(given) => options(given),
    };
    pointer(chosen.and_then(Arena::open))
}

/// # Safety
///
/// - The arena is null, or came from `masu_code_open` and was not closed before.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_close(arena: *mut Arena) {
    // SAFETY: The caller's condition.
    unsafe { close(arena) };
}

/// # Safety
///
/// - The pointer came from [`pointer`] and is given back once, or is null.
unsafe fn close<T>(given: *mut T) {
    if !given.is_null() {
        // SAFETY: The caller's condition.
        drop(unsafe { Box::from_raw(given) });
    }
}

/// # Safety
///
/// - The name is a C string, the bytes are `size`, or the pointers are null.
unsafe fn source(name: *const c_char, object: *const c_void, size: usize) -> Result<Source, Error> {
    // SAFETY: The caller's conditions.
    unsafe { Ok(Source::new(text(name)?, array(object.cast::<u8>(), size, "the object's bytes")?)) }
}

/// # Safety
///
/// - As for [`Arena::load`]; the arena is open.
unsafe fn load(arena: *const Arena, source: Result<Source, Error>) -> u64 {
    // SAFETY: The caller's conditions.
    or(source.and_then(|source| unsafe { given(arena, ARENA)?.load(source) }).map(u64::from), 0)
}

/// # Safety
///
/// - As for [`Arena::load`]; the arena is open, the name a C string, the bytes are `size`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_load(
    arena: *const Arena,
    name: *const c_char,
    object: *const c_void,
    size: usize,
) -> u64 {
    // SAFETY: The caller's conditions.
    unsafe { load(arena, source(name, object, size)) }
}

/// # Safety
///
/// - As for [`masu_code_load`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_load_private(
    arena: *const Arena,
    name: *const c_char,
    object: *const c_void,
    size: usize,
) -> u64 {
    // SAFETY: The caller's conditions.
    unsafe { load(arena, source(name, object, size).map(Source::private)) }
}

/// # Safety
///
/// - As for [`Arena::load`]; the arena is open, the path a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_load_file(
    arena: *const Arena,
    path: *const c_char,
) -> u64 {
    // SAFETY: The caller's conditions.
    let source = unsafe { text(path) }.and_then(Source::file);
    // SAFETY: As above.
    unsafe { load(arena, source) }
}

/// # Safety
///
/// - As for [`masu_code_load`], for each of `count` objects; there is room for `count` handles.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_load_all(
    arena: *const Arena,
    count: usize,
    names: *const *const c_char,
    objects: *const *const c_void,
    sizes: *const usize,
    handles: *mut u64,
) -> c_int {
    let sources = || -> Result<Vec<Source>, Error> {
        // SAFETY: The caller's conditions: there are `count` of each.
        let names = unsafe { array(names, count, "the names")? };
        // SAFETY: As above.
        let objects = unsafe { array(objects, count, "the objects' bytes")? };
        // SAFETY: As above.
        let sizes = unsafe { array(sizes, count, "the sizes")? };
        // SAFETY: As above.
        unsafe { array(handles, count, "the room for objects")? };
        let each = names.iter().zip(objects).zip(sizes);
        // SAFETY: As above.
        each.map(|((&name, &object), &size)| unsafe { source(name, object, size) }).collect()
    };
    // SAFETY: The caller's conditions.
    let loaded = sources().and_then(|sources| unsafe { given(arena, ARENA)?.load_all(sources) });
    let done = loaded.map(|loaded| {
        for (index, handle) in loaded.iter().enumerate() {
            // SAFETY: As above.
            unsafe { *handles.add(index) = (*handle).into() };
        }
        0
    });
    or(done, -1)
}

/// Writes generated code: the bytes, their number, the address that they will run at, and the caller's context.
type Write = unsafe extern "C" fn(*mut c_void, usize, *const c_void, *mut c_void);

/// # Safety
///
/// - The arena is open, the name a C string; `write` keeps to its bytes, and may be called with `context`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_load_code(
    arena: *const Arena,
    name: *const c_char,
    size: usize,
    align: usize,
    write: Option<Write>,
    context: *mut c_void,
) -> u64 {
    let load = || {
        let function = write.ok_or_else(|| is_null("the function that writes"))?;
        let write = |address: usize, bytes: &mut [u8]| {
            let (to, size) = (bytes.as_mut_ptr().cast(), bytes.len());
            // SAFETY: The caller's condition.
            unsafe { function(to, size, address as *const c_void, context) };
        };
        // SAFETY: The caller's conditions.
        unsafe { given(arena, ARENA)?.load_code(text(name)?, size, align, write) }
    };
    or(load().map(u64::from), 0)
}

/// # Safety
///
/// - The arena is open, the name a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_symbol(
    arena: *const Arena,
    object: u64,
    name: *const c_char,
) -> *const c_void {
    // SAFETY: The caller's conditions.
    let found = unsafe {
        text(name).and_then(|name| given(arena, ARENA)?.symbol(Handle::from(object), name))
    };
    or(found, std::ptr::null())
}

/// # Safety
///
/// - The arena is open, the name a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_find(
    arena: *const Arena,
    name: *const c_char,
) -> *const c_void {
    // SAFETY: The caller's conditions.
    let found = unsafe { text(name).and_then(|name| Ok((given(arena, ARENA)?.find(name), name))) };
    let found = found.and_then(|(found, name)| {
        let (object, symbol) = ("the arena".to_owned(), name.to_owned());
        found.ok_or(Error::NoSymbol { object, symbol })
    });
    or(found, std::ptr::null())
}

/// # Safety
///
/// - The arena is open.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_unload(arena: *const Arena, object: u64) -> c_int {
    // SAFETY: The caller's condition.
    or(
        unsafe { given(arena, ARENA) }
            .and_then(|arena| arena.unload(Handle::from(object)))
            .map(|()| 0),
        -1,
    )
}

/// # Safety
///
/// - The arena is open; there are `count` handles.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_unload_all(
    arena: *const Arena,
    count: usize,
    objects: *const u64,
) -> c_int {
    // SAFETY: The caller's condition.
    let handles = unsafe { array(objects, count, "the objects") };
    let handles = handles.map(|all| all.iter().copied().map(Handle::from).collect::<Vec<_>>());
    // SAFETY: As above.
    or(
        handles
            .and_then(|handles| unsafe { given(arena, ARENA)?.unload_all(&handles) })
            .map(|()| 0),
        -1,
    )
}

/// # Safety
///
/// - The arena is open.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_collect(arena: *const Arena) -> usize {
    // SAFETY: The caller's condition.
    or(unsafe { given(arena, ARENA) }.map(Arena::collect), 0)
}

/// # Safety
///
/// - The arena is open.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_compact(arena: *const Arena) -> c_long {
    // SAFETY: The caller's condition.
    let moved = unsafe { given(arena, ARENA) }.and_then(Arena::compact);
    or(moved.map(|moved| c_long::try_from(moved).unwrap_or(c_long::MAX)), -1)
}

/// # Safety
///
/// - The arena is open.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_reader_open(arena: *const Arena) -> *mut Reader {
    // SAFETY: The caller's condition.
    pointer(unsafe { given(arena, ARENA) }.map(Arena::reader))
}

/// # Safety
///
/// - The reader is null, or came from `masu_code_reader_open` and was not closed before.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_reader_close(reader: *mut Reader) {
    // SAFETY: The caller's condition.
    unsafe { close(reader) };
}

/// # Safety
///
/// - The reader is open.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_quiescent(reader: *const Reader) {
    // SAFETY: The caller's condition.
    or(unsafe { given(reader, "the reader") }.map(Reader::quiescent), ());
}

/// # Safety
///
/// - The reader is open.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_away(reader: *const Reader) {
    // SAFETY: The caller's condition.
    or(unsafe { given(reader, "the reader") }.map(Reader::away), ());
}

/// # Safety
///
/// - The reader is open.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_back(reader: *const Reader) {
    // SAFETY: The caller's condition.
    or(unsafe { given(reader, "the reader") }.map(Reader::back), ());
}

/// # Safety
///
/// - The arena is open, the names are C strings.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_entry_open(
    arena: *const Arena,
    name: *const c_char,
    object: u64,
    symbol: *const c_char,
) -> *mut Entry {
    // SAFETY: The caller's conditions.
    let names = unsafe { text(name).and_then(|name| Ok((name, text(symbol)?))) };
    // SAFETY: As above.
    pointer(names.and_then(|(name, symbol)| unsafe {
        given(arena, ARENA)?.entry(name, Handle::from(object), symbol)
    }))
}

/// # Safety
///
/// - The arena is open, the name a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_entry_at(
    arena: *const Arena,
    name: *const c_char,
    address: *const c_void,
) -> *mut Entry {
    // SAFETY: The caller's conditions.
    pointer(unsafe { text(name).and_then(|name| given(arena, ARENA)?.entry_at(name, address)) })
}

/// # Safety
///
/// - The entry is open.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_entry_get(entry: *const Entry) -> *const c_void {
    // SAFETY: The caller's condition.
    or(unsafe { given(entry, ENTRY) }.map(Entry::address), std::ptr::null())
}

/// # Safety
///
/// - The entry is open, the symbol a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_entry_replace(
    entry: *const Entry,
    object: u64,
    symbol: *const c_char,
) -> c_int {
    // SAFETY: The caller's conditions.
    let done = unsafe {
        text(symbol).and_then(|symbol| given(entry, ENTRY)?.replace(Handle::from(object), symbol))
    };
    or(done.map(|()| 0), -1)
}

/// # Safety
///
/// - The entry is open.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_entry_replace_at(
    entry: *const Entry,
    address: *const c_void,
) -> c_int {
    // SAFETY: The caller's condition.
    or(unsafe { given(entry, ENTRY) }.and_then(|entry| entry.replace_at(address)).map(|()| 0), -1)
}

/// # Safety
///
/// - The entry is null, or came from a function of the header and was not closed before.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn masu_code_entry_close(entry: *mut Entry) {
    // SAFETY: The caller's condition.
    unsafe { close(entry) };
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn masu_code_error() -> *const c_char {
    ERROR.try_with(|kept| kept.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}
