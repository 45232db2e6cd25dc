//! A few programs again under each policy for transparent huge pages. Only root may change it;
//! without that right, stderr says that nothing was shown.

use std::fs;
use std::sync::{Mutex, PoisonError};

use crate::{compilers, python, repositories, shell};

/// Whether the kernel backs memory with huge pages unasked: one word of a list is in brackets.
const TRANSPARENT_HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// The policy before a test, put back at its end, also by a panic.
struct Before(String);

impl Drop for Before {
    fn drop(&mut self) {
        if let Err(error) = fs::write(TRANSPARENT_HUGE_PAGES, &self.0) {
            eprintln!("write {} to {TRANSPARENT_HUGE_PAGES} by hand: {error}", self.0);
        }
    }
}

fn same_with(policy: &str) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let list = fs::read_to_string(TRANSPARENT_HUGE_PAGES).unwrap_or_default();
    let chosen = list.split(['[', ']']).nth(1).unwrap_or_default().to_owned();
    if let Err(error) = fs::write(TRANSPARENT_HUGE_PAGES, policy) {
        eprintln!("not shown: {TRANSPARENT_HUGE_PAGES} cannot be set (root can): {error}");
        return;
    }
    let _before = Before(chosen);
    for program in [
        shell::sorting(),
        python::threads("pymalloc"),
        compilers::compiling(),
        repositories::database(),
    ] {
        program.same_under_masu();
    }
}

#[test]
fn programs_run_the_same_where_huge_pages_are_always_given() {
    same_with("always");
}

#[test]
fn programs_run_the_same_where_huge_pages_are_given_on_advice() {
    same_with("madvise");
}
