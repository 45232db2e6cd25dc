//! Settings of glibc's malloc: applied as in the table, and not otherwise.
//!
//! It relies on `tests/c/interface.c`, which prints the options, and on `tests/c/freed.c`, which shows their effect.
//! These settings were made for another malloc, so each test also checks the options that they must *not* change.

mod library;
#[path = "../../masu/tests/options/section.rs"]
mod section;
#[path = "../src/glibc/table.rs"]
#[expect(unreachable_pub, dead_code, reason = "it is written for the library and the command")]
mod table;

use std::process::Command;

use library::program;
use table::{ALL, Becomes, Setting};

program!("freed.c", &[]);

const MIB: usize = 1 << 20;
/// The default of `retain_min`.
const DEFAULT: usize = 4 * MIB;

/// A command that prints `option`.
fn show(option: &str) -> Command {
    let program = library::compile("interface.c", "glibc", &library::linked_by_name());
    let mut command = Command::new(program);
    command.args(["show", option]);
    command
}

fn held(command: &mut Command) -> usize {
    let printed = library::succeeds(command);
    printed.trim().parse().unwrap_or_else(|error| panic!("{printed}: {error}"))
}

fn retain_min(variables: &[(&str, &str)]) -> usize {
    held(show("retain_min").envs(variables.iter().copied()))
}

#[test]
fn settings_that_retain_more_apply() {
    for (variable, value, bytes) in [
        ("MALLOC_TRIM_THRESHOLD_", "67108864", 64 * MIB),
        ("MALLOC_TOP_PAD_", "0x4000000", 64 * MIB),
        ("MALLOC_TRIM_THRESHOLD_", "-1", isize::MAX.cast_unsigned()),
        ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=0400000000", 64 * MIB),
        ("GLIBC_TUNABLES", "glibc.malloc.check=1:glibc.malloc.top_pad=8388608:x=y", 8 * MIB),
    ] {
        assert_eq!(retain_min(&[(variable, value)]), bytes, "{variable}={value}");
    }
    let both = [("MALLOC_TOP_PAD_", "16777216"), ("MALLOC_TRIM_THRESHOLD_", "8388608")];
    assert_eq!(retain_min(&both), 16 * MIB, "the greater one");
}

#[test]
fn settings_that_retain_less_or_are_invalid_do_not_apply() {
    for (variable, value) in [
        ("MALLOC_TRIM_THRESHOLD_", "131072"),
        ("MALLOC_TRIM_THRESHOLD_", "0"),
        ("MALLOC_TRIM_THRESHOLD_", "much"),
        ("MALLOC_TRIM_THRESHOLD_", ""),
        ("MALLOC_TRIM_THRESHOLD_", "64M"),
        ("MALLOC_TRIM_THRESHOLD", "67108864"),
        ("MALLOC_", "67108864"),
        ("MALLOC_MMAP_THRESHOLD_", "67108864"),
        ("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=67108864"),
        ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold"),
        ("GLIBC_TUNABLES", ":=::glibc.malloc.=67108864"),
    ] {
        assert_eq!(retain_min(&[(variable, value)]), DEFAULT, "{variable}={value}");
    }
}

#[test]
fn masu_s_variable_overrides_them() {
    let glibc = ("MALLOC_TRIM_THRESHOLD_", "67108864");
    assert_eq!(retain_min(&[glibc, ("MASU_RETAIN_MIN", "1M")]), MIB);
    assert_eq!(held(show("retain_min").args(["67108864"]).env("MASU_RETAIN_MIN", "1M")), MIB);
}

#[test]
fn mallopt_applies_in_the_same_way() {
    let after = |threshold: &str| held(show("retain_min").arg(threshold));
    assert_eq!(after("67108864"), 64 * MIB);
    assert_eq!(after("-1"), isize::MAX.cast_unsigned());
    assert_eq!(after("131072"), DEFAULT);
    library::succeeds(Command::new(show("").get_program()).arg("parameters"));
}

#[test]
fn huge_pages_start_with_the_first_one_if_requested() {
    let tunable = |value| {
        let mut command = show("huge_pages_from");
        command.env("GLIBC_TUNABLES", format!("glibc.malloc.hugetlb={value}"));
        command
    };
    assert_eq!((held(&mut tunable("1")), held(&mut tunable("2"))), (2 * MIB, 2 * MIB));
    // The default is no number: it depends on the size of huge pages.
    assert_eq!(held(&mut tunable("0")), usize::MAX);
}

#[test]
fn applied_settings_take_effect() {
    let kept = |variables: &[(&str, &str)]| -> i64 {
        let mut command = library::preloaded(program());
        let printed = library::succeeds(command.envs(variables.iter().copied()));
        printed.trim().parse().expect("a number")
    };
    assert!(kept(&[("MALLOC_TRIM_THRESHOLD_", "1073741824")]) > 180);
    // The minimum, and as much more as the time that the program took leaves of the grace.
    let usual = 3..=96;
    for kept in [kept(&[]), kept(&[("MALLOC_TRIM_THRESHOLD_", "0")])] {
        assert!(usual.contains(&kept), "{kept} MiB");
    }
}

#[test]
fn no_setting_causes_a_warning() {
    let mut command = library::preloaded(program());
    for setting in ALL.iter().filter(|setting| !setting.variable.is_empty()) {
        command.env(setting.variable, "1");
    }
    assert_eq!(String::from_utf8_lossy(&library::success(&mut command).stderr), "");
}

#[test]
fn the_table_has_every_tunable_of_this_machine_s_glibc() {
    // This machine's dynamic linker lists the tunables of its malloc.
    let linker = library::succeeds(Command::new("cc").arg("-print-file-name=ld-linux-x86-64.so.2"));
    let listed = Command::new(linker.trim()).arg("--list-tunables").output();
    let Some(listed) = listed.ok().filter(|listed| listed.status.success()) else {
        eprintln!("not tested: this dynamic linker lists no tunables");
        return;
    };
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split(':').next())
        .filter(|name| name.starts_with("glibc.malloc."))
        .collect();
    assert!(names.len() > 8, "{listed}");
    for name in names {
        assert!(ALL.iter().any(|setting| setting.tunable == name), "{name} is not in the table");
    }
}

const BEGIN: &str = "<!-- glibc: written by the test `glibc` of masu-abi -->\n";
const END: &str = "<!-- end of glibc -->\n";

fn row(setting: &Setting) -> String {
    let Setting { parameter, variable, tunable, becomes, remark, .. } = setting;
    let names = [*parameter, *variable, *tunable].map(|name| match name {
        "" => String::new(),
        name => format!("`{name}`"),
    });
    let becomes = match becomes {
        Becomes::RetainMin => "`retain_min`",
        Becomes::HugePagesFrom => "`huge_pages_from`",
        Becomes::Ignored => "ignored",
    };
    let names = names.iter().filter(|name| !name.is_empty()).cloned().collect::<Vec<_>>();
    format!("| {} | {becomes} | {} |\n", names.join("<br>"), remark.trim())
}

#[test]
fn the_page_has_every_setting() {
    let rows: String = ALL.iter().map(row).collect();
    let head = "\n| set for glibc | becomes | because |\n| --- | --- | --- |\n";
    section::check(BEGIN, &format!("{head}{rows}\n"), END);
}
