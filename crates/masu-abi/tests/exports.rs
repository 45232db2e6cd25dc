//! `libmasu.so` for the dynamic linker: its exports, its imports, its flags.
//!
//! It relies on the `object` crate and on this machine's C and C++ libraries, whose exports define the malloc family. A
//! missing export lets a program mix two mallocs, and a surplus one takes a name from the program. So the lists of both
//! libraries are read from their files, and every omitted name is listed here with its reason.

mod library;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol};

type Names = BTreeSet<String>;

/// Exports of glibc around memory that libmasu omits. A `*` stands for any ending.
const LEFT_TO_GLIBC: &[(&str, &str)] = &[
    ("_IO_*", "buffers of streams, which come from malloc in turn"),
    ("*obstack_*", "a library of stacks above malloc"),
    ("obstack_alloc_failed_handler", "as above"),
    ("__libc_alloc_buffer_*", "private: slices of a buffer that the caller has"),
    ("__libc_alloca_cutoff", "private: may this much go on the stack?"),
    ("__libc_allocate_once_slow", "private: a once-cell"),
    ("__libc_allocate_rtsig", "hands out signal numbers"),
    ("__libc_scratch_buffer_*", "private: a buffer that starts on the stack"),
    ("__libc_freeres", "frees glibc's own blocks at exit, through free"),
    ("__libc_reallocarray", "private to glibc's own libraries, which need it not to be replaced"),
    ("__malloc_hook", "the hooks of old binaries: glibc has ignored them since 2.34"),
    ("__malloc_initialize_hook", "as above"),
    ("__realloc_hook", "as above"),
    ("__memalign_hook", "as above"),
    ("__free_hook", "as above"),
    ("malloc_get_state", "dumps glibc's own heap, for old binaries only; fails since 2.26"),
    ("malloc_set_state", "as above"),
    ("__sched_cpualloc", "CPU sets, through malloc"),
    ("__sched_cpufree", "as above"),
    ("fallocate*", "room in a file"),
    ("posix_fallocate*", "room in a file"),
    ("pkey_alloc", "memory protection keys"),
    ("pkey_free", "as above"),
    ("freeaddrinfo", "frees what its own library made, through free"),
    ("freeifaddrs", "as above"),
    ("freelocale", "as above"),
    ("__freelocale", "as above"),
    ("globfree*", "as above"),
    ("if_freenameindex", "as above"),
    ("regfree", "as above"),
    ("wordfree", "as above"),
    ("xdr_free", "as above"),
    ("inet6_option_alloc", "a place in the caller's buffer"),
];

/// Exports of libmasu that this machine's libraries may lack.
const OURS_TO_HAVE: &[(&str, &str)] = &[
    ("free_sized", "C23, in newer glibc"),
    ("free_aligned_sized", "C23, in newer glibc"),
    (
        "dlopen",
        "without RTLD_DEEPBIND, by which a library would free masu's blocks with glibc's free",
    ),
    ("__posix_memalign", "a second name that glibc had for binaries of its time"),
    ("mallocx", "jemalloc's, which BIND's named calls beside malloc"),
    ("rallocx", "as above"),
    ("xallocx", "as above"),
    ("sallocx", "as above"),
    ("dallocx", "as above"),
    ("sdallocx", "as above"),
    ("nallocx", "as above"),
];

fn matches(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(rest), Some(_)) => name.contains(&rest[..rest.len() - 1]),
        (None, Some(start)) => name.starts_with(start),
        _ => name == pattern,
    }
}

fn is_listed(list: &[(&str, &str)], name: &str) -> bool {
    list.iter().any(|(pattern, _reason)| matches(pattern, name))
}

/// The names that a shared library defines for others.
fn exports(bytes: &[u8]) -> Names {
    let file = object::File::parse(bytes).expect("a shared library");
    file.dynamic_symbols()
        .filter(|symbol| symbol.is_definition())
        .map(|symbol| symbol.name().expect("names are UTF-8").to_owned())
        // Version names are symbols too.
        .filter(|name| !name.starts_with("GLIBC") && !name.starts_with("CXXABI"))
        .collect()
}

/// A library of this machine's compiler.
fn of_the_system(compiler: &str, name: &str) -> Names {
    let option = format!("-print-file-name={name}");
    let path = library::succeeds(Command::new(compiler).arg(option));
    let bytes = fs::read(path.trim()).unwrap_or_else(|error| panic!("{name}: {error}"));
    exports(&bytes)
}

fn malloc_family_of_glibc() -> Names {
    let words = ["alloc", "free", "memalign", "mallopt", "mallinfo"];
    of_the_system("cc", "libc.so.6")
        .into_iter()
        .filter(|name| words.iter().any(|word| name.contains(word)))
        .filter(|name| !is_listed(LEFT_TO_GLIBC, name))
        .collect()
}

fn operators_of_libstdcxx() -> Names {
    let operators = ["_Znw", "_Zna", "_Zdl", "_Zda"];
    of_the_system("c++", "libstdc++.so.6")
        .into_iter()
        .filter(|name| operators.iter().any(|operator| name.starts_with(operator)))
        .collect()
}

fn our_bytes() -> Vec<u8> {
    fs::read(library::path()).expect("the library was built")
}

#[test]
fn the_system_lists_are_as_long_as_expected() {
    // Guards the two tests below, which an empty list would pass.
    let (family, operators) = (malloc_family_of_glibc(), operators_of_libstdcxx());
    for name in ["malloc", "free", "reallocarray", "malloc_info", "__libc_memalign"] {
        assert!(family.contains(name), "glibc has no {name}: {family:?}");
    }
    assert_eq!(operators.len(), 20, "{operators:?}");
}

#[test]
fn nothing_that_the_system_exports_is_missing() {
    let wanted = &malloc_family_of_glibc() | &operators_of_libstdcxx();
    let missing: Vec<_> = wanted.difference(&exports(&our_bytes())).cloned().collect();
    assert!(missing.is_empty(), "export these or write down why not: {missing:?}");
    for (name, _reason) in OURS_TO_HAVE {
        assert!(exports(&our_bytes()).contains(*name), "{name} is missing");
    }
}

#[test]
fn nothing_extra_is_exported() {
    let wanted = &malloc_family_of_glibc() | &operators_of_libstdcxx();
    let extra: Vec<_> = exports(&our_bytes())
        .into_iter()
        .filter(|name| !wanted.contains(name) && !is_listed(OURS_TO_HAVE, name))
        .filter(|name| !declared().contains(name))
        .collect();
    assert!(
        extra.is_empty(),
        "these would take names from programs; declare them in include/masu.h: {extra:?}"
    );
}

/// The functions that `include/masu.h` declares: the name before the first parenthesis that follows
/// `MASU_API`.
fn declared() -> Names {
    let header = fs::read_to_string(library::header()).expect("the header is there");
    let mut code = String::new();
    for (number, part) in header.split("/*").enumerate() {
        code.push_str(if number == 0 { part } else { part.split_once("*/").expect("closed").1 });
    }
    let is_directive = |line: &&str| line.trim_start().starts_with('#');
    let code: Vec<&str> = code.lines().filter(|line| !is_directive(line)).collect();
    code.join("\n")
        .split("MASU_API ")
        .skip(1)
        .map(|declaration| {
            let before = declaration.split('(').next().unwrap_or_default();
            let is_of_a_name = |letter: char| letter.is_alphanumeric() || letter == '_';
            before.rsplit(|letter| !is_of_a_name(letter)).next().unwrap_or_default().to_owned()
        })
        .collect()
}

#[test]
fn every_function_of_the_header_is_exported() {
    let declared = declared();
    for name in ["malloc", "malloc_info", "masu_version", "masu_option_set"] {
        assert!(declared.contains(name), "the header was not understood: {declared:?}");
    }
    let missing: Vec<_> = declared.difference(&exports(&our_bytes())).cloned().collect();
    assert!(missing.is_empty(), "the header declares these, and nobody defines them: {missing:?}");
}

#[test]
fn glibc_2_17_is_new_enough() {
    let bytes = our_bytes();
    let file = parse(&bytes);
    let endian = file.endian();
    let sections = file.elf_section_table();
    let (mut needs, strings) = sections
        .gnu_verneed(endian, &*bytes)
        .expect("well-formed")
        .expect("the library uses versioned symbols");
    let strings = sections.strings(endian, &*bytes, strings).expect("well-formed");
    let mut versions = Vec::new();
    while let Some((_library, mut names)) = needs.next().expect("well-formed") {
        while let Some(name) = names.next().expect("well-formed") {
            let name = name.name(endian, strings).expect("well-formed");
            versions.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    assert!(!versions.is_empty());
    for version in &versions {
        let numbers = version.strip_prefix("GLIBC_").unwrap_or_else(|| panic!("{version}"));
        let numbers: Vec<u32> =
            numbers.split('.').map(|number| number.parse().expect("a number")).collect();
        assert!(numbers <= vec![2, 17], "{version} is too new for old systems: {versions:?}");
    }
}

type Library<'a> = ElfFile64<'a, Endianness>;

fn parse(bytes: &[u8]) -> Library<'_> {
    Library::parse(bytes).expect("an ELF library")
}

#[test]
fn it_needs_only_the_c_library_has_one_name_is_never_unloaded_and_binds_at_start() {
    let bytes = our_bytes();
    let file = parse(&bytes);
    let table = file.elf_dynamic_table().expect("well-formed");
    let of = |tag| table.iter().filter(move |entry| entry.tag == tag);
    let strings = |tag| -> Vec<_> {
        let strings = of(tag).map(|entry| table.string(entry).expect("well-formed"));
        strings.map(|string| String::from_utf8_lossy(string).into_owned()).collect()
    };
    assert_eq!(strings(elf::DT_NEEDED), ["libc.so.6"]);
    assert_eq!(strings(elf::DT_SONAME), ["libmasu.so"], "wherever it was built");
    let flags: Vec<u64> = of(elf::DT_FLAGS_1).map(|entry| entry.val).collect();
    let [flags] = flags[..] else { panic!("no flags") };
    assert_ne!(flags & elf::DF_1_NODELETE.0, 0, "-z nodelete");
    assert_ne!(flags & elf::DF_1_NOW.0, 0, "-z now");
}

#[test]
fn no_page_is_writable_and_executable() {
    let bytes = our_bytes();
    let file = parse(&bytes);
    for segment in file.elf_program_headers() {
        let flags = segment.p_flags(file.endian());
        let both = elf::PF_W.0 | elf::PF_X.0;
        assert_ne!(flags.0 & both, both);
    }
}

/// Decodes a function of the library from its start to its first return.
#[cfg(target_arch = "x86_64")]
fn straight_line(library: &Library<'_>, name: &str) -> Vec<iced_x86::Instruction> {
    let symbol = library
        .dynamic_symbols()
        .find(|symbol| symbol.name() == Ok(name))
        .unwrap_or_else(|| panic!("{name} is not exported"));
    let text = library.section_by_name(".text").expect("the library has code");
    let code = text
        .data_range(symbol.address(), symbol.size())
        .expect("well-formed")
        .expect("functions lie in .text");
    let mut decoder =
        iced_x86::Decoder::with_ip(64, code, symbol.address(), iced_x86::DecoderOptions::NONE);
    let mut instructions = Vec::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        instructions.push(instruction);
        if instruction.flow_control() == iced_x86::FlowControl::Return {
            return instructions;
        }
    }
    panic!("{name} does not return");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn hot_functions_are_leaves_of_few_instructions() {
    use iced_x86::{FlowControl, Mnemonic, OpKind, Register};

    let bytes = our_bytes();
    let library = parse(&bytes);
    for name in ["malloc", "free", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdlPvSt11align_val_t"] {
        for instruction in straight_line(&library, name) {
            let shape = format!("{name}: {:?}", instruction.code());
            assert!(instruction.stack_pointer_increment() >= 0, "{shape} pushes");
            assert_ne!(instruction.op0_register(), Register::RSP, "{shape} makes a frame");
            let leaves = [FlowControl::Call, FlowControl::IndirectCall];
            assert!(!leaves.contains(&instruction.flow_control()), "{shape} calls");
            // Later loads would wait for such a store: crates/masu/src/blocks/slot/register.
            let stores =
                instruction.op0_kind() == OpKind::Memory && instruction.mnemonic() == Mnemonic::Mov;
            let index = instruction.memory_index();
            assert!(!stores || index == Register::None, "{shape} stores at two registers added");
        }
    }
    let pair = straight_line(&library, "malloc").len() + straight_line(&library, "free").len();
    assert!(pair <= 30, "a hot pair takes {pair} instructions, goal 30 (docs/design.md)");
}
