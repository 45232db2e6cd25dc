//! Tests that each rule speaks if its neighbor is there, and says how much of it there was.

use super::*;

/// The warnings about twenty runs of one second and one CPU second on an otherwise idle machine, altered by `change`.
fn warned(change: impl Fn(usize, &mut Run)) -> Vec<String> {
    let mut runs: Vec<Run> = (0..20)
        .map(|index| Run {
            variant: index % 2,
            round: Some(index / 2),
            wall_s: 1.0,
            user_s: 0.9,
            sys_s: 0.1,
            queued_s: Some(0.0),
            steal_s: Some(0.001),
            others_s: Some(0.02),
            load: Some(1.1),
            ..Run::default()
        })
        .collect();
    runs.iter_mut().enumerate().for_each(|(index, run)| change(index, run));
    let valid: Vec<&Run> = runs.iter().filter(|run| !run.replaced).collect();
    warnings(&["glibc".to_owned(), "masu".to_owned()], &runs, &valid)
}

#[test]
fn a_machine_left_alone_is_passed_over() {
    assert_eq!(warned(|_, _| {}), [""; 0]);
    let unknown = warned(|_, run| (run.steal_s, run.others_s, run.load) = (None, None, None));
    assert_eq!(unknown, [""; 0]);
}

#[test]
fn starved_runs_are_recognized_by_variant_repeated_and_kept() {
    let warnings = warned(|index, run| {
        run.starved = index < 5;
        run.replaced = index < 3;
    });
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let expected = "starved: 5 of 20 runs waited long for a CPU (3 of `glibc`, 2 of `masu`); \
                    3 made again, 2 counted";
    assert!(warnings[0].starts_with(expected), "{warnings:?}");
    assert_eq!(warned(|index, run| run.starved = index < 2), [""; 0]);
}

#[test]
fn what_the_hypervisor_took_is_reported_as_a_share() {
    let warnings = warned(|_, run| run.steal_s = Some(0.05));
    assert!(warnings[0].contains("1.00 s of CPU in that time, 5 %"), "{warnings:?}");
}

#[test]
fn other_processes_are_recognized_by_their_cpus_or_else_by_the_load() {
    let seen = warned(|_, run| (run.others_s, run.load) = (Some(1.5), Some(3.2)));
    assert!(seen[0].starts_with("busy: other processes used 1.5 CPUs"), "{seen:?}");
    assert!(seen[0].contains("(load 3.2)"), "{seen:?}");
    let loaded = warned(|_, run| (run.others_s, run.load) = (None, Some(3.2)));
    assert!(loaded[0].contains("load is 3.2 where the runs themselves make 1.0"), "{loaded:?}");
}
