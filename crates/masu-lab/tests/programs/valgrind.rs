//! The profile of cachegrind: that it has libmasu's malloc is the proof that the program under valgrind was served by it.

use crate::program::Program;

/// Runs the program as the other tests do, and looks for `malloc` in its profile.
pub(crate) fn test(program: &Program) -> Result<(), String> {
    let profile = program.same_under_masu()?.read("profile");
    if instructions(&profile, "malloc") > 1_000 {
        return Ok(());
    }
    Err(format!("the profile shows no work in libmasu's malloc:\n{profile:.2000}"))
}

/// The instructions that the profile counts in the function `name` of masu's source files.
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
