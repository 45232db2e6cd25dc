//! Sampling: the blocks in the heap profile, with the stacks that allocated them.
//!
//! Relies on metadata for its memory, on the unwinder, and on the layers above to count requests
//! (`threads/cache/counted.rs`) and report blocks. Bytes are sampled, so the chance of a block grows with its size; the
//! figures written are estimates of the whole. While no profile is taken, nothing is counted, and no fast path that
//! allocates or frees tests for it.
//!
//! Without the feature `profile`, [`current`] is a constant `None`, and code that only a profile needs is not linked.

mod destination;
mod message;
pub(crate) mod probability;
mod samples;
mod store;

use core::ffi::{CStr, c_void};
use core::fmt;

use crate::diagnostics::unwind;
use crate::memory::metadata;
use crate::platform::environment::Environment;
use crate::platform::kernel::Errno;
use crate::platform::kernel::file::{self, File};
use crate::platform::sync::{AtomicU32, AtomicUsize, Lock, Ordering, Visit};
use crate::platform::{kernel, libc};
use crate::settings;
use crate::settings::line::Line;
use destination::{Destination, Name};
use message::Message;
pub(crate) use samples::Extent;
use samples::Samples;

/// The default average number of bytes between two samples.
pub const INTERVAL_BYTES: usize = 512 << 10;

/// The most frames kept of a stack, innermost first.
const FRAMES_MAX: usize = 96;

/// The reason why a profile was not started or not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The program was built without masu's feature `profile`.
    Feature,
    /// A profile is being taken already.
    Running,
    /// No profile was started.
    None,
    /// There is no memory for a profile.
    Memory,
    /// The interval is 0 bytes.
    Interval,
    /// The program has more rights than the user who started it (`AT_SECURE`).
    Secure,
    /// The file could not be made or written; the error number is the kernel's.
    File(i32),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Refusal::Feature => "this program was built without masu's feature `profile`",
            Refusal::Running => "a heap profile is being taken already; stop it first",
            Refusal::None => "no heap profile was started",
            Refusal::Memory => "there is no memory for a heap profile",
            Refusal::Interval => "a heap profile needs an interval of at least one byte",
            Refusal::Secure => "programs with more rights than their user take no heap profile",
            Refusal::File(number) => {
                return write!(formatter, "the heap profile was not written (errno {number})");
            }
        })
    }
}

impl core::error::Error for Refusal {}

/// The interval in bytes while a profile is taken, else 0.
static INTERVAL: AtomicUsize = AtomicUsize::new(0);
/// A count of starts and stops, and of other occasions to draw again.
static SESSION: AtomicU32 = AtomicU32::new(0);

struct Profile {
    samples: Samples,
    destination: Destination,
}

/// The profile, which is large and so allocated only when the first one is taken.
static PROFILE: Lock<Option<&'static mut Profile>> = Lock::new(None);

/// The profile, allocated if there is none; `None` without memory.
fn place<'a>(profile: &'a mut Option<&'static mut Profile>) -> Option<&'a mut Profile> {
    if profile.is_none() {
        const WORDS: usize = size_of::<Profile>() / size_of::<usize>();
        let words = metadata::words(WORDS)?.as_mut_ptr().cast::<Profile>();
        let none = Profile { samples: Samples::new(0), destination: Destination::none() };
        // SAFETY: There are as many words, aligned, and nothing else uses them.
        unsafe { words.write(none) };
        // SAFETY: Written just now, never freed, and reached through the lock alone.
        *profile = Some(unsafe { &mut *words });
    }
    profile.as_deref_mut()
}

/// Whether this build has profiles.
pub(crate) const IS_BUILT_IN: bool = cfg!(feature = "profile");

/// The interval in bytes and the session of the profile that is being taken, if one is.
#[inline(always)]
pub(crate) fn current() -> Option<(usize, u32)> {
    if !IS_BUILT_IN {
        return None;
    }
    // ORDERING: Relaxed in both: a thread that sees a profile late, or takes it for the previous one, counts a few bytes
    // more or less.
    let interval = INTERVAL.load(Ordering::Relaxed);
    (interval > 0).then(|| (interval, SESSION.load(Ordering::Relaxed)))
}

/// A number that changes whenever threads that count must draw again.
#[inline(always)]
pub(crate) fn session() -> u32 {
    // ORDERING: Relaxed, as above.
    SESSION.load(Ordering::Relaxed)
}

/// Has threads that count draw again, although no profile starts or stops.
pub(crate) fn renew() {
    // ORDERING: Relaxed, as above.
    SESSION.fetch_add(1, Ordering::Relaxed);
}

#[inline(always)]
pub(crate) fn is_running() -> bool {
    current().is_some()
}

/// The interval in bytes for a new profile: `asked`, else the option's.
pub(crate) fn interval_for(asked: Option<usize>) -> Result<usize, Refusal> {
    libc::load_finder();
    let interval_bytes = asked.or_else(settings::profile_interval).unwrap_or(INTERVAL_BYTES);
    if libc::is_secure() {
        return Err(Refusal::Secure);
    }
    if interval_bytes == 0 { Err(Refusal::Interval) } else { Ok(interval_bytes) }
}

/// Starts a profile. The caller has made pages for sampled blocks, and after this makes all threads count their
/// requests.
pub(crate) fn begin(interval_bytes: usize) -> Result<(), Refusal> {
    let mut held = PROFILE.lock();
    if is_running() {
        return Err(Refusal::Running);
    }
    let Some(profile) = place(&mut held) else { return Err(Refusal::Memory) };
    profile.samples.reset(interval_bytes);
    // ORDERING: Relaxed, as in `current`.
    SESSION.fetch_add(1, Ordering::Relaxed);
    // ORDERING: As above.
    INTERVAL.store(interval_bytes, Ordering::Relaxed);
    Ok(())
}

/// Ends the profile that is being taken, if one is. It can be written until another is started: later frees do not change
/// it.
pub fn stop() {
    let profile = PROFILE.lock();
    // ORDERING: Relaxed, as in `current`.
    INTERVAL.store(0, Ordering::Relaxed);
    // ORDERING: As above.
    SESSION.fetch_add(1, Ordering::Relaxed);
    drop(profile);
}

/// Writes the profile as it is now to a new file at `path` that only its owner can read: an uncompressed message of pprof's
/// `profile.proto`, with addresses instead of names.
///
/// # Errors
///
/// If no profile was started, or the file cannot be created, as where it exists.
pub fn write(path: &CStr) -> Result<(), Refusal> {
    if libc::is_secure() {
        return Err(Refusal::Secure);
    }
    let message = collect()?;
    let file = File::create_private(path).map_err(|error| Refusal::File(error.0))?;
    message.write_to(&file).map_err(|error| Refusal::File(error.0))
}

/// The profile as it is now. The file is written later, without the lock, because a file system may take any time: neither an
/// allocation nor a `fork` waits for it.
#[inline(never)]
fn collect() -> Result<Message, Refusal> {
    let mut message = Message::new();
    let mappings = message.add_mappings();
    let held = PROFILE.lock();
    let Some(profile) = held.as_deref().filter(|profile| profile.samples.interval > 0) else {
        return Err(Refusal::None);
    };
    message.add_samples(&profile.samples, &mappings);
    drop(held);
    if message.is_whole() { Ok(message) } else { Err(Refusal::Memory) }
}

/// Bytes that the samples take, at most 64 MiB; they count as metadata.
#[must_use]
pub fn own_bytes() -> usize {
    PROFILE.lock().as_deref().map_or(0, |profile| profile.samples.bytes())
}

/// Adds a sampled block and this thread's stack.
#[cold]
#[inline(never)]
pub(crate) fn add(address: usize, bytes: usize) {
    let mut frames = [0; FRAMES_MAX];
    let count = unwind::capture(&mut frames);
    let mut held = PROFILE.lock();
    let Some(profile) = held.as_deref_mut() else { return };
    if is_running() {
        let extent = Extent { bytes, exposed_bytes: bytes };
        profile.samples.add(address, extent, &frames[..count]);
    }
    let checks = profile.destination.begin_check();
    drop(held);
    if checks {
        serve_request();
    }
}

/// Writes the profile if another process requested it.
#[cold]
#[inline(never)]
fn serve_request() {
    let mut name = Name::none();
    with_destination(|it| it.name_request(&mut name));
    if file::exists(name.as_path()) {
        write_next(&mut name);
        with_destination(|it| it.name_request(&mut name));
        file::remove(name.as_path());
    }
    with_destination(Destination::end_check);
}

/// Runs `work` under the lock.
fn with_destination(work: impl FnOnce(&mut Destination)) {
    if let Some(profile) = PROFILE.lock().as_deref_mut() {
        work(&mut profile.destination);
    }
}

/// Removes a sampled block that was freed.
#[cold]
#[inline(never)]
pub(crate) fn remove(address: usize) {
    if is_running()
        && let Some(profile) = PROFILE.lock().as_deref_mut()
    {
        profile.samples.remove(address);
    }
}

/// Changes a sampled block to `bytes`, of which `more` are new; returns whether the block is in the profile.
#[cold]
#[inline(never)]
pub(crate) fn resize(address: usize, bytes: usize, more: usize) -> bool {
    is_running()
        && PROFILE
            .lock()
            .as_deref_mut()
            .is_some_and(|profile| profile.samples.resize(address, bytes, more))
}

/// Whether the environment requests a profile; reads the files' prefix. In a build without profiles it is a constant
/// false, so that nothing is linked.
#[inline(always)]
pub(crate) fn is_requested(environment: &Environment) -> bool {
    read(environment) && IS_BUILT_IN
}

#[cold]
#[inline(never)]
fn read(environment: &Environment) -> bool {
    let Some(prefix) = environment.get("MASU_PROFILE") else { return false };
    if !IS_BUILT_IN {
        kernel::write_error(
            b"masu: MASU_PROFILE needs a program built with masu's feature `profile`; no profile is taken\n",
        );
        return false;
    }
    let mut destination = Destination::none();
    if !destination.set(prefix.to_bytes()) {
        kernel::write_error(
            b"masu: MASU_PROFILE must be the start of a file's name, such as /tmp/heap, of at \
            most 1000 bytes; no profile is taken\n",
        );
        return false;
    }
    // Said at the start: many programs close their standard error before the profile is written.
    let mut folder = Name::none();
    if destination.name_folder(&mut folder) && !file::exists(folder.as_path()) {
        kernel::write_error(b"masu: there is no folder ");
        kernel::write_error(folder.as_bytes());
        kernel::write_error(b" for MASU_PROFILE; no profile is taken\n");
        return false;
    }
    let mut held = PROFILE.lock();
    let profile = place(&mut held);
    profile.is_some_and(|profile| {
        profile.destination = destination;
        true
    })
}

/// Writes the profile that the environment requested, when the program ends.
pub(crate) extern "C" fn end(_: *mut c_void) {
    let mut name = Name::none();
    write_next(&mut name);
    if settings::profile_leaks() {
        report_live(&name);
    }
}

/// The most existing files that are skipped.
const TRIES: usize = 1000;

/// Writes the profile to its next file, or prints the reason why not; sets `name` to the file's.
#[inline(never)]
fn write_next(name: &mut Name) {
    let mut file = Err(Errno::EXIST);
    for _ in 0..TRIES {
        with_destination(|it| it.name_next(name));
        file = File::create_private(name.as_path());
        if !matches!(file, Err(Errno::EXIST)) {
            break;
        }
    }
    let write = |file: File| collect().map_err(|_| Errno::NOMEM)?.write_to(&file);
    if let Err(error) = file.and_then(write) {
        kernel::write_error(b"masu: the heap profile could not be written to ");
        kernel::write_error(name.as_bytes());
        let number = error.0.unsigned_abs() as usize;
        Line::new().text(" (errno ").number(number).text(")").write();
    }
}

/// Prints the bytes and the number of live blocks, which the file with this name lists.
fn report_live(name: &Name) {
    let (mut parts, mut bytes) = (0_usize, 0_usize);
    if let Some(profile) = PROFILE.lock().as_deref() {
        profile.samples.for_each_stack(|sums, _, _| {
            parts = parts.wrapping_add(sums.live_parts);
            bytes = bytes.wrapping_add(sums.live_bytes);
        });
    }
    let mut line = Line::new();
    line.text("masu: about ").number(bytes).text(" bytes in ");
    line.number(parts >> samples::PARTS_LOG2).text(" blocks were live at exit; `masu heap show ");
    kernel::write_error(line.as_bytes());
    kernel::write_error(name.as_bytes());
    kernel::write_error(b"` says who allocated them\n");
}

/// Visits this module's lock, for `fork`.
pub(crate) fn each_lock(visit: Visit<'_>) {
    visit.see(PROFILE.raw());
}

#[cfg(all(test, not(loom), not(feature = "secure"), feature = "profile", feature = "guards"))]
mod tests {
    extern crate std;

    use core::ptr;

    use super::*;
    use crate::diagnostics::guards::{self, Request};
    use crate::memory::class::Class;
    use crate::platform::alone::{self, run_alone};
    use crate::{c, options, profile, statistics};

    #[test]
    fn a_slot_is_not_used_again_before_its_sample_is_removed() {
        run_alone!();
        options::set("guard_slots", Some(1)).expect("an option");
        options::set("guard_rate", Some(1)).expect("an option");
        profile::start(Some(1)).expect("none is taken");
        let block = c::malloc(100).expose_provenance();
        assert_eq!(statistics::now().guarded_blocks, 1, "the test would show nothing");
        let held = PROFILE.lock();
        // SAFETY: The block is live, and nothing uses it.
        let free = move || unsafe { c::free(ptr::with_exposed_provenance_mut(block)) };
        let other = std::thread::spawn(free);
        while !held.has_sleepers() && !other.is_finished() {
            std::thread::yield_now();
        }
        let class = Class::of_size(100);
        let next = guards::take(Request { class, size: 100, align: 16, is_exact: true }, 0);
        assert_eq!(next, 0, "the only slot is used again while its sample is there");
        drop(held);
        other.join().expect("it ends");
    }
}
