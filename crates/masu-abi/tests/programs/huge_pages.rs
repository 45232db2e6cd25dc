//! A few programs again under each policy for transparent huge pages. Only root may change it;
//! without that right, stderr says that nothing was shown.

use crate::machine::HugePages;
use crate::{compilers, python, repositories, shell};

fn same_with(policy: &str) {
    let Some(_held) = HugePages::set(policy) else { return };
    for program in [
        shell::sorting(),
        python::threads("pymalloc"),
        compilers::compiling(),
        repositories::database(),
    ] {
        program.compare();
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
