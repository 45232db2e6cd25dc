//! Real programs under the mallocs of this machine, through the public interface: the same output,
//! and the proof that each malloc served it.

use std::io::{Seek, Write};

use masu_lab::results::Rounds;
use masu_lab::{
    Catalogue, CompareOptions, Input, Places, Plan, Program, Stop, Variant, Workload, compare,
};

/// Debian's malloc libraries and the packages they come in.
const PACKAGED: [(&str, &str); 3] = [
    ("jemalloc", "libjemalloc2"),
    ("tcmalloc", "libtcmalloc-minimal4"),
    ("mimalloc", "libmimalloc2.0"),
];

fn variants(program: &Program) -> Vec<Variant> {
    let catalogue = Catalogue::find(&Places::default());
    let system = ["system", "glibc:top_pad=64M,trim_threshold=64M"].map(|name| (name, "libc6"));
    let variant = |(name, package): (&str, &str)| {
        let variant = catalogue.resolve(&name.parse().unwrap(), program);
        variant.unwrap_or_else(|error| panic!("{error}: apt-get install {package}"))
    };
    system.into_iter().chain(PACKAGED).map(variant).collect()
}

#[test]
fn sed_says_the_same_under_every_malloc_and_each_one_serves_it() {
    let mut file = tempfile::tempfile().unwrap();
    (0..2000).for_each(|number| writeln!(file, "line {number}").unwrap());
    file.rewind().unwrap();
    let words = ["sed", "-e", "H;$!d;x;s/line/LINE/g"];
    let workload = Workload::new(words, Input::keep(file).unwrap()).unwrap();
    let variants = variants(&workload.program);
    let options = CompareOptions { seed: Some(1), ..CompareOptions::default() };
    let plan = Plan::single(&workload, &variants, Rounds::Fixed(2));
    let comparison = compare(&plan, &options, &Stop::never(), &mut |_| {}).unwrap();
    assert!(comparison.tables[0].summary.repeatable, "{:?}", comparison.tables[0].summary.warnings);
    assert!(
        comparison.tables[0].runs.iter().all(|run| run.stdout.bytes == 18_891),
        "{comparison:?}"
    );
    for (variant, evidence) in variants.iter().zip(&comparison.tables[0].evidence) {
        let expected: &[&str] = if variant.library.is_some() { &["sed"] } else { &[] };
        assert_eq!(evidence.served, expected, "{}", variant.label);
    }
}
