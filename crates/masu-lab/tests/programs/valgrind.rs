//! Under valgrind's cachegrind, which runs every instruction of the program in its own machine and,
//! other than memcheck, leaves the program its malloc.

use crate::program::Program;

#[test]
fn sed_under_cachegrind_runs_the_same() {
    let left = Program::new("valgrind", "valgrind")
        .arguments(["--tool=cachegrind", "--cachegrind-out-file=profile", "--quiet"])
        .arguments(["sed", "-rf", "primes49.sed"])
        .file("primes49.sed", include_str!("../../../../workloads/primes49.sed"))
        .input("5\n")
        .prints("41")
        .stderr_varies()
        .ignores("profile")
        .proven_otherwise()
        .excuses("cachegrind-amd64-linux", "valgrind's machine is static; its guest is profiled")
        .same_under_masu();
    let profile = left.read("profile");
    assert!(
        instructions(&profile, "malloc") > 1_000,
        "the profile shows no work in libmasu's malloc:\n{profile:.2000}"
    );
}

/// How many instructions the profile counts in the function `name` of masu's source files.
///
/// The format (valgrind manual, "Cachegrind file format"): `fl=FILE` and `fn=NAME` begin a part,
/// whose lines are `LINE COUNT…`, instructions first.
fn instructions(profile: &str, name: &str) -> u64 {
    let mut of_masu = false;
    let mut of_function = false;
    let mut sum = 0;
    for line in profile.lines() {
        if let Some(file) = line.strip_prefix("fl=") {
            of_masu = file.contains("crates/masu");
        } else if let Some(function) = line.strip_prefix("fn=") {
            of_function = function == name;
        } else if of_masu && of_function {
            sum += line.split(' ').nth(1).and_then(|count| count.parse().ok()).unwrap_or(0);
        }
    }
    sum
}
