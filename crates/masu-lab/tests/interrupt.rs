//! Ctrl-C, as a user sends it: to the process that compares, while a program runs. Alone in its
//! file because the signal is for the whole process.

use masu_lab::results::Rounds;
use masu_lab::{
    Catalogue, CompareOptions, Error, Event, Input, Places, Plan, Stop, Workload, compare,
};

#[test]
fn an_interrupt_ends_the_program_and_keeps_what_was_measured() {
    let catalogue = Catalogue::find(&Places::default());
    // The program interrupts its parent, which is this process, in its fourth run, the first of
    // which is the warm-up, and would then sleep for as long as the test may take.
    let script = "printf x >> $0; [ $(wc -c < $0) -lt 4 ] || { kill -INT $PPID; sleep 1000; }";
    let count = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    let arguments = ["sh", "-c", script, count.to_str().unwrap()];
    let workload = Workload::new(arguments, Input::Empty).unwrap();
    let variants = [catalogue.resolve(&"system".parse().unwrap(), &workload.program).unwrap()];
    let stop = Stop::on_signals().unwrap();
    let plan = Plan::single(&workload, &variants, Rounds::Fixed(10));
    let mut ran = 0;
    let mut observe = |event: Event<'_>| ran += usize::from(matches!(event, Event::Ran { .. }));
    let result = compare(&plan, &CompareOptions::default(), &stop, &mut observe);
    let comparison = match result {
        Ok(comparison) => comparison,
        Err(Error::Stopped) => panic!("what was measured is lost"),
        Err(error) => panic!("{error}"),
    };
    assert!(comparison.stopped && stop.requested());
    // The third timed run is that which was interrupted.
    assert_eq!((ran, comparison.tables[0].runs.len()), (2, 2));
}
