//! Link arguments of `libmasu.so`.
//!
//! It relies on the system's linker, GNU's or LLVM's, behind the compiler driver that rustc calls.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");

    // A program that links with `-lmasu` asks for this name, wherever it was built.
    let is_secure = env::var_os("CARGO_FEATURE_SECURE").is_some();
    let name = if is_secure { "libmasu-secure.so" } else { "libmasu.so" };
    link_arg(&format!("-Wl,-soname,{name}"));
    // Blocks, thread-exit hooks and thread slots outlive any `dlclose`.
    link_arg("-Wl,-z,nodelete");
    separate_cold_parts();
    // Every symbol is bound at start: no call of the allocator ends up in the dynamic linker,
    // which allocates.
    link_arg("-Wl,-z,now");
    // `src/start.rs` runs before other libraries' constructors, where the dynamic linker can do it.
    link_arg("-Wl,-z,initfirst");
    // Each segment begins on an OS page of its own, so none shares one by chance, and data and zeroed data fit into
    // one. The second argument is for LLVM's linker; GNU's linker does so anyway.
    link_arg("-Wl,-z,separate-code");
    link_arg("-Wl,-z,separate-loadable-segments");
    // The kernel maps sixteen OS pages around each touched place of the code. So cold code, the
    // constructor with it, lies at the end, and nothing runs at the beginning. The compiler's start
    // files would run there, and do nothing here.
    link_arg("-Wl,-z,keep-text-section-prefix");
    link_arg("-nostartfiles");
    // The library's own calls stay inside: a program whose `calloc` calls `__libc_calloc` must not
    // be called back.
    link_arg("-Wl,-Bsymbolic-functions");
    match variable("CARGO_CFG_TARGET_ENV").as_str() {
        "gnu" => {
            // COUPLING: the list in `src/oldest_glibc.rs`, which gives the reason.
            link_arg("-Wl,--wrap=pthread_key_create");
            link_arg("-Wl,--wrap=pthread_setspecific");
        }
        "musl" => link_no_c_library(),
        other => println!("cargo::error=masu knows glibc and musl, not `{other}`"),
    }
}

/// Modules and functions that run only for a heap profile, guarded blocks, first-class heaps, statistics, options, `fork`,
/// or without a class map, as mangled names have them.
const COLD: [&str; 46] = [
    "4masu7profile",
    "4masu11diagnostics8sampling",
    "4masu11diagnostics6unwind",
    "4masu11diagnostics6guards",
    "4masu8platform4libc7signals",
    "4masu7threads5cache7counted",
    "4masu8requests5front7counted",
    "4masu8platform6kernel4file",
    "4masu6blocks5owner",
    "4masu7threads4fork",
    "4masu7threads5cache10heap_cache",
    "4masu8requests4heap",
    "4masu1c4heap",
    "masu_heap_",
    "4masu6blocks5shard7sampled",
    "4masu10statistics",
    "4masu7threads10statistics",
    "4masu8platform6kernel6shared",
    "4masu8platform4libc11find_object",
    "4masu8settings4line",
    "4masu8settings4rule",
    "4masu8deepbind",
    "dlopen",
    "masu_option",
    "masu_profile_",
    "masu_statistics",
    "mallinfo",
    "malloc_info",
    "malloc_stats",
    "4masu6blocks4page14check_unmapped",
    "4masu6blocks4page*9mark_used",
    "4masu6blocks4page4Page13check_sampled",
    "4masu6memory6ranges5purge*7give_up",
    "4masu6memory6ranges7stripes7give_up",
    "4masu7options",
    "4masu7threads6thread5apply",
    "4masu8requests7reclaim",
    "4masu8settings7Sources",
    "4masu8settings9variables7nearest",
    "4masu4libc4warn",
    "4masu4libc11next_symbol",
    "4masu8requests7pointer16code_without_map",
    "4masu7foreign",
    "4masu3new12throw_target",
    "4masu3new17installed_handler",
    "4core3ops8function6FnOnce",
];

/// The same for code that runs where there are several threads, or a thread ends, and where blocks or runs of slices
/// return to their pages and ranges: most small programs do neither.
const LATER: [&str; 36] = [
    "4masu7threads5cache4idle",
    "4masu7threads5cache6remote",
    "4masu7threads6thread3end",
    "4masu7threads5cache5depth*12empty_stacks",
    "4masu7threads5cache5depth*16send_from_sparse",
    "4masu8platform4sync4lock*9lock_slow",
    "4masu6blocks8transfer4give",
    "4masu6blocks5shard5flush",
    "4masu6blocks5shard10ClassPages3put",
    "4masu6blocks5shard10ClassPages10note_empty",
    "4masu6blocks4page4Page11release_all",
    "4masu6blocks4page4Page10leave_line",
    "4masu6blocks4slot6ranges",
    "4masu6memory6ranges6Ranges4free",
    "4masu6memory6ranges6Ranges6insert",
    "4masu6memory6ranges6Ranges6remove",
    "4masu6memory6ranges6Ranges5split",
    "4masu6memory6ranges6Ranges9take_home",
    "4masu6memory6ranges6Ranges13release_whole",
    "4masu6memory6ranges4held4Held10bring_home",
    "4masu6memory6ranges4held4Held15bring_home_from",
    "4masu6memory6ranges5large",
    "4masu6memory6ranges4take*4grow",
    "4masu7threads5cache5depth*11send_oldest",
    "4masu7threads5cache5depth*16take_from_others",
    "4masu7threads5cache5depth5epoch*13flush_surplus",
    "4masu8requests5front11usable_size",
    "4masu8requests5large",
    "4masu8platform6kernel5unmap",
    "4masu8platform6kernel9cpu_count",
    "4masu8platform6kernel9page_size",
    "4masu8platform6kernel7discard",
    "4masu6memory6ranges4take*15take_among_many",
    "4masu6memory6ranges5purge*7look_at",
    "4masu1c13aligned_alloc",
    "4masu6malloc7aligned",
];

/// Tables far longer than an OS page, by their mangled names; most programs use only the beginning of each table.
/// ARENAS and STRIPES are neighbors: a program that writes the number of arenas, at the end of their table, also writes
/// the first stripe.
const TABLES: [&str; 9] = [
    "4masu6blocks5shard6SHARDS",
    "4masu6blocks5shard7SAMPLED",
    "4masu6blocks5shard6sparse6PASSES",
    "4masu6blocks8transfer8TRANSFER",
    "4masu6memory8metadata5POOLS",
    "4masu6memory5arena6ARENAS",
    "4masu6memory6ranges7stripes7STRIPES",
    "4masu6memory6ranges7stripes3SUM",
    "4masu6memory6ranges6probes4LAST",
];

/// Puts cold code, and code that a small program ends before it needs, into segments of their own, behind everything
/// else, and long tables behind the other zeroed data, so that the rest shares an OS page.
///
/// The kernel maps sixteen OS pages around touched code, so code beside the code of a program's start is resident in
/// every program. A section `….masu_cold.…` is not, as long as no program calls it; nor are the sections of the cold
/// functions. Unwind tables are read as rarely. Placed between, they keep the kernel from mapping one kind of code with
/// the other, and their header lies behind all code: LLVM's linker sorts it by distances without a sign, unwinders read
/// it with one. GNU's linker and LLVM's both add this to their own layout.
fn separate_cold_parts() {
    let code = |names: &[&str]| -> String {
        names.iter().map(|name| format!(" *(.text.*{name}* .rodata.*{name}*)")).collect()
    };
    let (cold, later) = (code(&COLD), code(&LATER));
    let tables = TABLES.map(|table| format!(" *(.bss.*{table}*)")).concat();
    let text = format!(
        "SECTIONS {{\n\
         .masu_tables (NOLOAD) : {{{tables} }}\n\
         .masu_later : ALIGN(CONSTANT(MAXPAGESIZE)) {{ *(.text.masu_cold.purge.* .text.masu_cold.several.*){later} }}\n\
         .eh_frame : {{ KEEP(*(.eh_frame)) }}\n\
         .masu_cold : ALIGN(CONSTANT(MAXPAGESIZE)) {{ *(.text.masu_cold.* .rodata.masu_cold.*){cold} }}\n\
         .eh_frame_hdr : {{ *(.eh_frame_hdr) }}\n\
         }} INSERT AFTER .bss;\n"
    );
    let script = Path::new(&variable("OUT_DIR")).join("cold.ld");
    match fs::write(&script, text) {
        Ok(()) => link_arg(&format!("-Wl,-T,{}", script.display())),
        Err(error) => println!("cargo::error={}: {error}", script.display()),
    }
}

/// Leaves the C library's functions undefined; the program that loads the library has them all.
///
/// A linker on a glibc machine would take glibc for `-lc`, but a musl process has just one C library.
fn link_no_c_library() {
    let folder = variable("OUT_DIR");
    let script = Path::new(&folder).join("libc.so");
    match fs::write(&script, "/* An empty linker script. */\n") {
        Ok(()) => link_arg(&format!("-L{folder}")),
        Err(error) => println!("cargo::error={}: {error}", script.display()),
    }
}

fn link_arg(argument: &str) {
    println!("cargo::rustc-cdylib-link-arg={argument}");
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}
