//! The place of code, and its memory's permissions.

mod fixture;

use fixture::{
    CC, WAYS, Workshop, access, call, executable_mappings, holds_in_child, load, load_all,
    mapping_of,
};
use masu_code::{Arena, Error, Handle, Memory, Options, Place, Tools, Writing};

const SIZE: usize = 64 << 20;

fn open(writing: Writing) -> Result<Arena, Error> {
    Arena::open(Options { size: SIZE, writing, tools: Tools::none(), ..Options::default() })
}

#[test]
fn at_most_two_mappings_are_executable_and_none_writable_too() {
    let workshop = Workshop::open();
    let text = "static const char s[] = \"constant\"; int n; long f(void) { return s[n]; }";
    let source = workshop.c("f.c", text).private();
    for &writing in WAYS {
        let arena = open(writing).unwrap();
        assert_eq!(arena.report().dual, writing == Writing::Dual);
        let mut objects = Vec::new();
        for round in 0..300 {
            objects.push(load(&arena, &source));
            if round % 3 == 2 {
                arena.unload(objects.swap_remove(round / 3)).unwrap();
            }
            if round % 50 == 0 {
                assert!(executable_mappings(&arena, SIZE) <= 2);
            }
        }
        assert!(executable_mappings(&arena, SIZE) <= 2);
        assert!(objects.iter().all(|&object| call(&arena, object, "f") == i64::from(b'c')));
    }
}

#[test]
fn text_and_read_only_data_cannot_be_written() {
    let workshop = Workshop::open();
    let source = workshop.c("f.c", "const long fixed = 7; long f(void) { return fixed; }");
    for &writing in WAYS {
        let arena = open(writing).unwrap();
        let object = load(&arena, &source);
        for name in ["f", "fixed"] {
            let address = arena.symbol(object, name).unwrap() as usize;
            let line = mapping_of(address);
            assert!(!access(&line).contains('w'), "{line}");
            // The names of private memory are an option of the kernel's.
            if writing == Writing::Dual {
                assert!(line.contains("masu-code"), "mappings are named: {line}");
            }
        }
    }
}

#[test]
fn functions_lie_close_together_and_never_a_power_of_two_apart() {
    let workshop = Workshop::open();
    // 256 bytes of code, the worst of all sizes.
    let text = "long f(void) { __asm__(\".skip 246, 0x90\"); return 1; }";
    let mut flags = vec!["-O2", "-fPIC", "-fno-asynchronous-unwind-tables"];
    flags.push(if cfg!(target_arch = "x86_64") { "-fcf-protection=none" } else { "-O2" });
    let text =
        if cfg!(target_arch = "x86_64") { text.to_owned() } else { text.replace("0x90", "0") };
    let source = workshop.source(CC, "f.c", &text, &flags).private();
    let arena = open(WAYS[0]).unwrap();
    let objects = load_all(&arena, vec![source; 100]);
    let at = |object: &Handle| arena.text_of(*object).unwrap().0;
    for pair in objects.windows(2) {
        let distance = at(&pair[1]) - at(&pair[0]);
        assert!(distance < 300 && distance % 16 == 0 && distance % 128 != 0, "{distance}");
    }
}

#[test]
fn the_range_lies_where_it_is_wanted() {
    let near = |base: usize, what: usize| base.abs_diff(what) < 2 << 30;
    let here = near as fn(usize, usize) -> bool as usize;
    assert!(near(open(WAYS[0]).unwrap().report().base, here), "the program");
    let libc = libc::getpid as unsafe extern "C" fn() -> i32 as usize;
    let tools = Tools::none;
    let options = Options { place: Place::Near(libc), tools: tools(), ..Options::default() };
    assert!(near(Arena::open(options).unwrap().report().base, libc), "the C library");
    if cfg!(target_arch = "x86_64") {
        let options = Options { place: Place::Low, tools: tools(), ..Options::default() };
        assert!(Arena::open(options).unwrap().report().base < 1 << 31);
    }
}

#[test]
fn many_arenas_find_room() {
    let arenas: Vec<Arena> = (0..8).map(|_| open(WAYS[0]).unwrap()).collect();
    let mut bases: Vec<usize> = arenas.iter().map(|arena| arena.report().base).collect();
    bases.sort_unstable();
    assert!(bases.windows(2).all(|pair| pair[1] - pair[0] >= SIZE));
}

#[test]
fn a_forked_child_gets_an_error_where_code_is_shared_and_continues_elsewhere() {
    let workshop = Workshop::open();
    let source = workshop.c("f.c", "long f(void) { return 5; }").private();
    for &writing in WAYS {
        let arena = open(writing).unwrap();
        let object = load(&arena, &source);
        let is_right = holds_in_child(|| {
            // SAFETY: No initializers.
            let refused = unsafe { arena.load(&source) };
            let is_right = match (writing, refused) {
                (Writing::Dual, Err(Error::Forked)) => true,
                (Writing::Batches, Ok(new)) => call(&arena, new, "f") == 5,
                _ => false,
            };
            is_right && call(&arena, object, "f") == 5
        });
        assert!(is_right, "{writing:?}");
        assert_eq!(call(&arena, object, "f"), 5);
    }
}

/// Refuses a system call on this thread from now on, where one of its arguments has all bits of a
/// mask: `None` refuses it always.
#[cfg(target_arch = "x86_64")]
fn refuse(call: libc::c_long, argument: Option<(u32, u32)>) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let jump = |code: u32, k: u32, jf: u8| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let refusal =
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EACCES as u32);
    let mut filter = vec![statement(load, 0)];
    let same = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    match argument {
        None => filter.extend([jump(same, call as u32, 1), refusal]),
        Some((index, mask)) => filter.extend([
            jump(same, call as u32, 3),
            statement(load, 16 + 8 * index),
            jump(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, mask, 1),
            refusal,
        ]),
    }
    filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: Both calls concern this thread only, which ends with the test.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program),
            0
        );
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn where_one_way_of_writing_code_is_refused_the_other_works() {
    let workshop = Workshop::open();
    let source = workshop.c("f.c", "long f(void) { return 9; }").private();
    let works = |arena: &Arena| call(arena, load(arena, &source), "f") == 9;
    std::thread::scope(|scope| {
        let no_file = scope.spawn(|| {
            refuse(libc::SYS_memfd_create, None);
            let arena = open(Writing::Any).unwrap();
            assert!(works(&arena) && !arena.report().dual);
            assert!(open(Writing::Dual).is_err());
        });
        no_file.join().unwrap();
        let no_change = scope.spawn(|| {
            refuse(libc::SYS_mprotect, Some((2, libc::PROT_EXEC as u32)));
            let arena = open(Writing::Any).unwrap();
            assert!(works(&arena) && arena.report().dual);
            assert!(open(Writing::Batches).is_err());
            refuse(libc::SYS_memfd_create, None);
            let error = open(Writing::Any).err().unwrap().to_string();
            assert!(error.contains("executable") && error.contains("file in memory"), "{error}");
        });
        no_change.join().unwrap();
    });
}

#[cfg(target_arch = "x86_64")]
#[test]
fn what_is_allocated_after_pages_could_not_be_sealed_is_writable() {
    let thread = std::thread::spawn(|| {
        let arena = open(Writing::Dual).unwrap();
        let mut memory = arena.in_place();
        let mut write = |kind| {
            let (_, at) = memory.allocate("block", kind, 8, 8).unwrap();
            // SAFETY: The block has 8 bytes.
            unsafe { at.cast::<u64>().write(1) };
        };
        write(Memory::Constants);
        write(Memory::Code);
        refuse(libc::SYS_mprotect, Some((2, libc::PROT_EXEC as u32)));
        // Constants are sealed now, but code is not.
        assert!(memory.seal().is_err());
        let (_, at) = memory.allocate("block", Memory::Constants, 8, 8).unwrap();
        // SAFETY: The block has 8 bytes.
        unsafe { at.cast::<u64>().write(1) };
    });
    thread.join().unwrap();
}

#[cfg(target_arch = "x86_64")]
#[test]
fn an_arena_opens_without_proc() {
    let workshop = Workshop::open();
    let source = workshop.c("f.c", "long f(void) { return 9; }").private();
    let thread = std::thread::spawn(move || {
        refuse(libc::SYS_openat, None);
        let arena = open(Writing::Any).unwrap();
        assert_eq!(call(&arena, load(&arena, &source), "f"), 9);
    });
    thread.join().unwrap();
}

/// Whether `check` holds in a child with a limit of its own. The child asks the dynamic linker nothing: another thread
/// may hold its lock.
fn holds_under(resource: libc::__rlimit_resource_t, most: u64, check: fn() -> bool) -> bool {
    holds_in_child(|| {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: The limit is the child's own.
        let is_set = unsafe { libc::setrlimit(resource, &raw const limit) } == 0;
        is_set && check()
    })
}

/// As [`open`], near this program's code.
fn open_near(writing: Writing) -> Result<Arena, Error> {
    let place = Place::Near(open_near as fn(_) -> _ as usize);
    let tools = Tools::none();
    Arena::open(Options { size: SIZE, writing, place, tools, ..Options::default() })
}

#[test]
fn a_limit_of_file_sizes_is_an_error_and_the_other_way_works() {
    // The kernel ends a process that makes a larger file.
    assert!(holds_under(libc::RLIMIT_FSIZE, 1 << 20, || {
        open_near(Writing::Dual).is_err()
            && open_near(Writing::Any).is_ok_and(|arena| !arena.report().dual)
    }));
}

#[test]
fn a_limit_of_addresses_is_an_error() {
    assert!(holds_under(libc::RLIMIT_AS, 8 << 20, || open_near(Writing::Any).is_err()));
}
