//! The last step before `exec`: the child drops its copy of the lab, so that the peak RSS which the kernel reports is
//! the program's own.
//!
//! The kernel folds the memory of the process before `exec`, a copy of the lab, into a program's peak. So the child
//! drops its heap, unused stack and code, asks the kernel to forget the peak, and then calls `exec`. Nothing may need
//! the heap by then: arguments and environment lie in a mapping of their own, and only stack, registers and one
//! function of the C library are used. Where the kernel forgets no peak (built without `CONFIG_PROC_PAGE_MONITOR`), the
//! floor is higher and is reported.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use super::memory::Mapping;
use super::os_page_bytes;
use super::sample::configured_cpus;
use crate::mapping;

/// The report of the future program before it calls `exec`: the floor under its peak RSS, and the kernel's error if
/// `exec` returned.
#[derive(Debug)]
pub(crate) struct ExecReport(io::PipeReader);

/// Makes `command`, which inherits the environment and is called `name`, drop its copy of this process before it
/// becomes the program. This hook is the last one: it calls `exec` itself.
pub(crate) fn prepare(command: &mut Command, name: &OsStr) -> io::Result<ExecReport> {
    let (reader, writer) = io::pipe()?;
    super::make_nonblocking(reader.as_fd())?;
    let parcel = Parcel::pack(&words(command, name)?)?;
    let hook = move || -> io::Result<()> {
        // The whole parcel belongs to the hook, and is mapped for as long.
        let parcel: &Parcel = &parcel;
        // Only an address and a number are captured: the hook itself lies in the heap that is about to go, and a larger
        // capture would be passed as a place there.
        let (contents, pipe) = (parcel.0.start().cast().as_ptr(), writer.as_raw_fd());
        // SAFETY: This is the process between `fork` and `exec`, and the parcel is mapped in it.
        unsafe { become_program(contents, pipe) }
    };
    // SAFETY: The hook allocates nothing, takes no lock and calls only async-signal-safe functions.
    unsafe { command.pre_exec(hook) };
    Ok(ExecReport(reader))
}

/// Starts the command that [`prepare`] has prepared. Returns it with the most that the floor under its peak RSS is
/// likely to be, in bytes, where that is known.
pub(crate) fn spawn(
    command: &mut Command,
    pending_report: ExecReport,
) -> io::Result<(Child, Option<u64>)> {
    let mut child = command.spawn()?;
    let (floor, errno) = pending_report.read();
    if let Some(errno) = errno {
        child.wait()?;
        return Err(io::Error::from_raw_os_error(errno));
    }
    Ok((child, floor))
}

impl ExecReport {
    /// The floor in bytes and the error of `exec`. The kernel counts resident pages on each CPU and adds them
    /// up when a batch is full (32 or two a CPU, of anonymous and of file pages each), so what it said may be
    /// too little by two batches for each CPU that the process ran on, which before `exec` is hardly more than
    /// two; the arguments come on top.
    fn read(mut self) -> (Option<u64>, Option<i32>) {
        const BATCHES: u64 = 4;
        const ARGUMENT_PAGES: u64 = 16;
        let (mut floor, mut errno) = ([0; size_of::<libc::c_long>()], [0; 4]);
        if self.0.read_exact(&mut floor).is_err() {
            return (None, None);
        }
        let pages = BATCHES * (2 * configured_cpus() as u64).max(32) + ARGUMENT_PAGES;
        let pending_report = u64::try_from(libc::c_long::from_ne_bytes(floor)).unwrap_or(0) * 1024;
        let floor = pending_report + pages * os_page_bytes();
        let failed = self.0.read_exact(&mut errno).is_ok();
        (Some(floor), failed.then(|| i32::from_ne_bytes(errno)))
    }
}

struct Words {
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

fn words(command: &Command, name: &OsStr) -> io::Result<Words> {
    let text = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::from);
    let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => variables.insert(name.to_owned(), value.to_owned()),
            None => variables.remove(name),
        };
    }
    let environment = variables.into_iter().map(|(name, value)| {
        let mut line = name.into_vec();
        line.push(b'=');
        line.extend_from_slice(value.as_bytes());
        CString::new(line).map_err(io::Error::from)
    });
    let arguments = std::iter::once(name).chain(command.get_args());
    Ok(Words {
        path: text(command.get_program().as_bytes())?,
        arguments: arguments.map(|word| text(word.as_bytes())).collect::<io::Result<_>>()?,
        environment: environment.collect::<io::Result<_>>()?,
    })
}

/// The start of a parcel; the pointers are into the same parcel.
struct Contents {
    path: *const libc::c_char,
    /// The words as `exec` takes them, ended by null.
    arguments: *const *const libc::c_char,
    environment: *const *const libc::c_char,
    /// Addresses and lengths in bytes of the ranges that can be dropped, ended by an address of zero.
    spare: *const [usize; 2],
    /// The start of the mapping with the main thread's stack; zero where it is not this thread's.
    stack: usize,
    os_page_bytes: usize,
}

/// A mapping of its own with all that is needed once the heap is gone. The mapping is shared, so the kernel never
/// merges it with its neighbors.
#[derive(Debug)]
struct Parcel(Mapping);

// SAFETY: The memory is written before anyone else has it, and never again.
unsafe impl Sync for Parcel {}

impl Parcel {
    fn pack(words: &Words) -> io::Result<Parcel> {
        const WORD: usize = size_of::<usize>();
        const FIRST: usize = size_of::<Contents>();
        let texts = || {
            let all = words.arguments.iter().chain(&words.environment);
            std::iter::once(&words.path).chain(all).map(|text| text.as_bytes_with_nul())
        };
        let (spare, stack) = spare();
        // There are two numbers for each range and for their end, and one for each pointer and for both their ends.
        let numbers = 2 * (spare.len() + 1) + words.arguments.len() + words.environment.len() + 2;
        let bytes = FIRST + numbers * WORD + texts().map(<[u8]>::len).sum::<usize>();
        let memory = Mapping::with(bytes, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1)?;
        let mapped = memory.start().as_ptr();
        let numbers_at = mapped.addr() + FIRST;
        let mut next = numbers_at + numbers * WORD;
        let places = texts().map(|text| {
            let place = next;
            next += text.len();
            place
        });
        let places: Vec<usize> = places.collect();
        let (path, pointers) = places.split_first().unwrap_or((&0, &[]));
        let (arguments, environment) = pointers.split_at(words.arguments.len());
        let mut content: Vec<usize> = Vec::with_capacity(numbers);
        content.extend(spare.iter().flat_map(|range| [range.start, range.len()]));
        content.extend([0, 0]);
        let arguments_at = content.len();
        content.extend(arguments.iter().chain(&[0]));
        let environment_at = content.len();
        content.extend(environment.iter().chain(&[0]));
        let text: Vec<u8> = texts().flatten().copied().collect();
        let at = |index: usize| mapped.with_addr(numbers_at + index * WORD);
        let contents = Contents {
            path: mapped.with_addr(*path).cast(),
            arguments: at(arguments_at).cast(),
            environment: at(environment_at).cast(),
            spare: at(0).cast(),
            stack: stack.unwrap_or(0),
            os_page_bytes: usize::try_from(os_page_bytes()).map_err(io::Error::other)?,
        };
        // SAFETY: The mapping is as long as all three together, begins at a page and is known to nobody else.
        unsafe {
            mapped.cast::<Contents>().write(contents);
            std::ptr::copy_nonoverlapping(content.as_ptr(), at(0).cast(), content.len());
            std::ptr::copy_nonoverlapping(text.as_ptr(), at(content.len()).cast(), text.len());
        }
        Ok(Parcel(memory))
    }
}

/// The memory that a copy of this process can do without between `fork` and `exec`, as the kernel lists it now, and the
/// start of the stack's mapping. Such memory is first the contents of files, which come back when they are needed:
/// code, and the first part of a program or library, which is never written. Second, it is writable memory of no file,
/// except all that may be more than heap: mappings with this thread's stack or its thread-local variables, and the
/// variables of a program or library, right behind their file's mapping.
fn spare() -> (Vec<Range<usize>>, Option<usize>) {
    let here = 0_u8;
    // SAFETY: The call returns the address of a thread-local variable.
    let thread_local = unsafe { libc::__errno_location() }.addr();
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    spare_of(&maps, (&raw const here).addr(), thread_local)
}

/// The same from the text of such a list.
fn spare_of(maps: &str, here: usize, thread_local: usize) -> (Vec<Range<usize>>, Option<usize>) {
    let (mut heap, mut of_files, mut stack) = (Vec::new(), Vec::new(), None);
    // The end of the last mapping of a file.
    let mut file_end = 0;
    for one in mapping::Mapping::all(maps) {
        let mapping::Mapping { start, end, access, offset, path } = one;
        // Addresses of this process fit its `usize`.
        let (start, end) = (start as usize, end as usize);
        let has = |address| (start..end).contains(&address);
        if path.starts_with('/') {
            if access == "r-xp" || (access == "r--p" && offset == 0) {
                of_files.push(start..end);
            }
            file_end = end;
        } else if path == "[stack]" {
            stack = has(here).then_some(start);
        } else if (path.is_empty() || path == "[heap]" || path.starts_with("[anon:"))
            && access == "rw-p"
            && start != file_end
            && !has(here)
            && !has(thread_local)
        {
            heap.push(start..end);
        }
    }
    // Code comes last, because the code that drops the rest is dropped too.
    heap.extend(of_files);
    (heap, stack)
}

/// Drops all memory that can be dropped, reports the floor and becomes the program. If that fails it reports the error
/// and ends, because there is nothing to return to.
///
/// # Safety
///
/// - This process was just forked and has only this thread.
/// - `contents` are those of a parcel that is still mapped.
unsafe fn become_program(contents: *const Contents, pipe: RawFd) -> ! {
    // SAFETY: They were written when the parcel was packed (second condition), and never again.
    let contents: &Contents = unsafe { &*contents };
    // SAFETY: All-zero is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: The path ends in NUL and lives for ever. Without the file nothing is written below.
    let peak =
        unsafe { libc::open(c"/proc/self/clear_refs".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    let five = b'5';
    if contents.stack != 0 {
        // One page stays below this function's own variables; `usage` is one of them.
        let used = contents.stack + contents.os_page_bytes;
        let unused = (&raw const usage).addr().saturating_sub(used);
        let unused = unused / contents.os_page_bytes * contents.os_page_bytes;
        // SAFETY: Nothing below this function's variables is in use: the functions called before have returned.
        unsafe { libc::syscall(libc::SYS_madvise, contents.stack, unused, libc::MADV_DONTNEED) };
    }
    let mut next = contents.spare;
    loop {
        // SAFETY: The list lies in the parcel (second condition), and its end was not passed.
        let [address, bytes] = unsafe { *next };
        if address == 0 {
            break;
        }
        // SAFETY: No other thread is here (first condition), and this one uses none of it from now on but what
        // comes back from files unchanged. A refusal only leaves the floor higher.
        unsafe { libc::syscall(libc::SYS_madvise, address, bytes, libc::MADV_DONTNEED) };
        // SAFETY: This was not the last entry.
        next = unsafe { next.add(1) };
    }
    // The peak becomes the current resident size, and the kernel is asked for its value.
    // SAFETY: The buffers are locals of the given length; bytes that cannot be written are not known.
    unsafe {
        libc::syscall(libc::SYS_write, peak, &raw const five, 1_usize);
        libc::syscall(libc::SYS_getrusage, libc::RUSAGE_SELF, &raw mut usage);
        let pending_report = &raw const usage.ru_maxrss;
        libc::syscall(libc::SYS_write, pipe, pending_report, size_of::<libc::c_long>());
    }
    // SAFETY: All three lie in the parcel and are as `exec` takes them (second condition).
    unsafe {
        let Contents { path, arguments, environment, .. } = *contents;
        libc::syscall(libc::SYS_execve, path, arguments, environment);
    }
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL).to_ne_bytes();
    // SAFETY: As above; nothing comes after the last call.
    unsafe {
        libc::write(pipe, errno.as_ptr().cast(), errno.len());
        libc::_exit(127)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_and_code_are_spare_and_variables_and_stacks_are_not() {
        let maps = include_str!("low_rss/maps.txt");
        let heap = [0x6000..0x9000, 0xc000..0xd000, 0xf000..0xf800];
        let of_files = [0x1000..0x2000, 0x2000..0x2800];
        let all = heap.into_iter().chain(of_files).collect::<Vec<_>>();
        assert_eq!(spare_of(maps, 0x10800, 0xa800), (all.clone(), Some(0x10000)));
        // This is another thread, whose stack is a mapping without a name.
        let mut fewer = all;
        fewer.remove(1);
        assert_eq!(spare_of(maps, 0xc800, 0xa800), (fewer, None));
        assert_eq!(spare_of("", 0, 0), (Vec::new(), None));
    }

    #[test]
    fn the_program_gets_its_name_its_arguments_and_the_changed_environment() {
        let _alone = crate::execute::alone();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo \"$0 $1 $SET ${PWD-}\"; exit 3", "called", "two words"]);
        command.env("SET", "yes").env_remove("PWD").stdout(std::process::Stdio::piped());
        let pending_report = prepare(&mut command, OsStr::new("shell")).unwrap();
        let (child, floor) = spawn(&mut command, pending_report).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        // The shell sets PWD itself.
        assert!(said.starts_with("called two words yes "), "{said}");
        assert_eq!(output.status.code(), Some(3));
        assert!(floor.is_some());
    }

    #[test]
    fn long_words_arrive_whole_and_too_long_ones_are_refused_as_such() {
        let _alone = crate::execute::alone();
        let start = |words: usize| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", "printf %s \"$@\" | wc -c", "sh"]);
            command.args(std::iter::repeat_n("x".repeat(100_000), words));
            command.stdout(std::process::Stdio::piped());
            let pending_report = prepare(&mut command, OsStr::new("sh")).unwrap();
            spawn(&mut command, pending_report)
        };
        let output = start(9).unwrap().0.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "900000");
        assert_eq!(start(100).unwrap_err().raw_os_error(), Some(libc::E2BIG));
    }

    #[test]
    fn a_program_that_cannot_be_started_says_why_and_leaves_no_process() {
        let _alone = crate::execute::alone();
        let mut command = Command::new("/no/such/program");
        let pending_report = prepare(&mut command, OsStr::new("program")).unwrap();
        let error = spawn(&mut command, pending_report).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        // The path is a folder, for which the kernel has another error.
        let mut command = Command::new("/");
        let pending_report = prepare(&mut command, OsStr::new("folder")).unwrap();
        let error = spawn(&mut command, pending_report).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EACCES));
        let mut command = Command::new("/bin/true");
        command.env("SET", "nul\0byte");
        let error = prepare(&mut command, OsStr::new("true")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
