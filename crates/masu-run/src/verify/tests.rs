//! Tests of the proof: on real programs under a real preloaded malloc, and on cases that must fail.

use std::path::PathBuf;

use super::*;
use crate::{Catalogue, Input, Libc, Limits, Places};

fn jemalloc(workload: &Workload) -> Variant {
    let catalogue = Catalogue::find(&Places::default());
    assert!(
        catalogue.get("jemalloc", Libc::Glibc).is_some(),
        "this test needs jemalloc: apt-get install libjemalloc2"
    );
    catalogue.resolve(&"jemalloc".parse().unwrap(), &workload.program).unwrap()
}

fn workload(arguments: &[&str]) -> Workload {
    Workload::new(arguments.iter().copied(), Input::Empty).unwrap()
}

fn proof(arguments: &[&str]) -> (Run, Evidence) {
    let workload = workload(arguments);
    let variant = jemalloc(&workload);
    verify(&workload, &variant, &Conditions::default(), &Stop::never()).unwrap()
}

fn failure(arguments: &[&str], library: PathBuf) -> String {
    let workload = workload(arguments);
    let variant = Variant { library: Some(library), ..jemalloc(&workload) };
    verify(&workload, &variant, &Conditions::default(), &Stop::never()).unwrap_err().to_string()
}

fn seen(change: impl FnOnce(&mut Seen)) -> Seen {
    let mut seen =
        Seen { program: PathBuf::from("/bin/p"), entered: true, mapped: true, ..Seen::default() };
    change(&mut seen);
    seen
}

#[test]
fn a_served_program_is_seen_to_be_served() {
    let (run, evidence) = proof(&["sed", "-n", "$="]);
    assert_eq!(run.ending, Ending::Exited(0));
    assert_eq!(evidence.served.len(), 1, "{evidence:?}");
    assert_eq!(evidence.served, ["sed"]);
    assert!(evidence.not_served.is_empty(), "{evidence:?}");
}

#[test]
fn the_output_of_a_traced_run_is_the_programs() {
    let (run, _) = proof(&["sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!(run.ending, Ending::Exited(3));
    assert_eq!((run.stdout.bytes, run.stderr.tail.as_str()), (4, "err\n"));
}

#[test]
fn every_program_of_a_tree_is_accounted_for() {
    let (_, evidence) = proof(&["sh", "-c", "ls / | sort; env -i ls /"]);
    let served = evidence.served.join(" ");
    for name in ["ls", "sort"] {
        assert!(served.contains(name), "{evidence:?}");
    }
    assert_eq!(evidence.not_served.len(), 1, "{evidence:?}");
    assert!(evidence.not_served[0].contains("LD_PRELOAD out of its environment"));
}

#[test]
fn a_library_that_is_loaded_but_serves_nothing_is_an_error() {
    let maths = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6"]
        .map(PathBuf::from)
        .into_iter()
        .find(|path| path.exists())
        .expect("this test preloads the mathematics library of the GNU C library");
    let message = failure(&["sed", "-n", "$="], maths);
    assert!(message.contains("sed: ") && message.contains("called instead"), "{message}");
}

#[test]
fn a_library_the_loader_ignores_is_an_error_with_the_loaders_words() {
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    std::fs::write(&path, "not a library").unwrap();
    let message = failure(&["sed", "-n", "$="], path.to_path_buf());
    assert!(message.contains("not loaded"), "{message}");
    assert!(message.contains("cannot be preloaded"), "{message}");
}

#[test]
fn a_setuid_program_behind_a_wrapper_is_named() {
    // Root makes one that belongs to someone else; for everyone else `su` is one.
    let copy = std::env::temp_dir().join(format!("masu-setuid-{}", std::process::id()));
    let make = "cp $(command -v ls) $0 && chown 12345 $0 && chmod 4755 $0 && $0 /; rm -f $0";
    let is_root = crate::kernel::effective_ids().0 == 0;
    let script = if is_root { make } else { "ls /; su --version" };
    let (run, evidence) = proof(&["sh", "-c", script, copy.to_str().unwrap()]);
    assert!(run.stdout.bytes > 0, "{run:?}");
    assert_eq!(evidence.not_served.len(), 1, "{evidence:?}");
    assert!(evidence.not_served[0].contains("it is setuid"), "{evidence:?}");
}

#[test]
fn threads_and_forks_do_not_lose_their_breakpoints() {
    let script = "for i in 1 2 3 4 5 6 7 8; do (x=$(echo $i | sed s/1/2/); echo $x) & done; wait";
    let (run, evidence) = proof(&["sh", "-c", script]);
    assert_eq!((run.ending, run.stdout.bytes), (Ending::Exited(0), 16));
    assert!(evidence.served.contains(&"sed (8 times)".to_owned()), "{evidence:?}");
}

#[test]
fn signals_reach_a_traced_program() {
    let (run, _) = proof(&["sh", "-c", "trap 'echo caught' USR1; kill -USR1 $$; kill -TERM $$"]);
    assert_eq!(run.ending, Ending::Signalled(15));
    assert_eq!(run.stdout.bytes, 7);
}

#[test]
fn a_traced_run_over_its_time_is_killed() {
    let workload = workload(&["sh", "-c", "sleep 1000 & sleep 1000"]);
    let variant = jemalloc(&workload);
    let limits = Limits { time: Some(std::time::Duration::from_millis(50)), memory_bytes: None };
    let (run, _) = verify(&workload, &variant, &limits.into(), &Stop::never()).unwrap();
    assert_eq!(run.ending, Ending::TimedOut);
}

#[test]
fn a_traced_runaway_is_killed_and_named() {
    let script = "y=$(head -c 1000000 /dev/zero | tr '\\0' x); while :; do x=$x$y; done";
    let workload = workload(&["sh", "-c", script]);
    let limits = Limits { time: None, memory_bytes: Some(64 << 20) };
    let (run, _) = verify(&workload, &jemalloc(&workload), &limits.into(), &Stop::never()).unwrap();
    let Ending::OutOfMemory { process, .. } = run.ending else { panic!("{:?}", run.ending) };
    assert!(process.starts_with("sh ("), "{process}");
}

#[test]
fn a_library_that_is_gone_is_named() {
    let workload = workload(&["true"]);
    let variant = Variant { library: Some("/no/such.so".into()), ..jemalloc(&workload) };
    let error = verify(&workload, &variant, &Conditions::default(), &Stop::never()).unwrap_err();
    assert!(error.to_string().contains("/no/such.so"), "{error}");
}

#[test]
fn the_loaders_log_proves_a_preload_where_tracing_is_forbidden() {
    let workload = workload(&["sh", "-c", "echo b a | tr ' ' '\\n' | sort; env -i sort /dev/null"]);
    let variant = jemalloc(&workload);
    let library = variant.library.clone().unwrap();
    let conditions = Conditions::default();
    let (run, evidence) =
        loader::run_logged(&workload, &variant, &library, &conditions, &Stop::never()).unwrap();
    assert_eq!((run.ending, run.stdout.bytes), (Ending::Exited(0), 4));
    assert!(evidence.served.contains(&"sort".to_owned()), "{evidence:?}");
    assert!(evidence.notes[0].contains("less"), "{evidence:?}");
}

#[test]
fn the_loaders_log_shows_a_preload_that_is_not_used() {
    let lines = |library: &str| {
        format!(
            "  7:\tbinding file /bin/p [0] to {library} [0]: normal symbol `malloc' [X]\n  \
             7:\tbinding file /bin/p [0] to /lib/libx.so [0]: normal symbol `mallocx'\n"
        )
    };
    let read = |library: &str| loader::read_log(&lines(library), "/lib/liba.so");
    assert_eq!(read("/lib/liba.so"), Some(("p".to_owned(), Ok(()))));
    let (name, found) = read("/lib/libc.so.6").unwrap();
    assert!(name == "p" && found.unwrap_err().contains("/lib/libc.so.6"));
    assert_eq!(loader::read_log("nothing", "/lib/liba.so"), None);
}

#[test]
fn each_way_to_miss_a_program_has_its_reason() {
    for (one, word) in [
        (seen(|one| one.obstacle = Some("it is linked statically".to_owned())), "statically"),
        (
            seen(|one| {
                one.obstacle = Some("it brings mimalloc along".to_owned());
                one.served = true;
            }),
            "mimalloc",
        ),
        (seen(|one| one.entered = false), "before its first instruction"),
        (seen(|one| one.mapped = false), "not loaded"),
        (seen(|one| one.elsewhere = Some("/lib/libc.so.6".into())), "libc.so.6 was called instead"),
    ] {
        let evidence = judge(&[one]);
        assert!(evidence.not_served[0].contains(word), "{evidence:?}");
        assert!(evidence.served.is_empty() && evidence.idle.is_empty());
    }
}

#[test]
fn a_program_that_was_ended_before_it_began_is_nobodys_failure() {
    let cut_short = |entered| {
        seen(|one| {
            one.entered = entered;
            one.mapped = false;
            one.cut_short = true;
        })
    };
    assert_eq!(judge(&[cut_short(false), seen(|one| one.served = true)]).not_served, [""; 0]);
    assert_eq!(judge(&[cut_short(true)]).not_served.len(), 1, "its loader was done");
    // It might have asked for memory.
    assert_eq!(judge(&[cut_short(false), seen(|_| {})]).notes, [""; 0]);
}

#[test]
fn a_program_that_allocates_nothing_is_no_failure_but_said() {
    let evidence = judge(&[seen(|_| {})]);
    assert_eq!(evidence.idle, ["p"]);
    assert!(evidence.notes[0].contains("never asked"));
}

#[test]
fn a_program_in_a_file_whose_name_is_no_text_is_seen_to_be_served() {
    let folder = tempfile::tempdir().unwrap();
    let script = "p=$(printf \"$0/\\377sed\"); cp \"$(command -v sed)\" \"$p\" && \"$p\" -n '$='";
    let (run, evidence) = proof(&["sh", "-c", script, folder.path().to_str().unwrap()]);
    assert_eq!(run.ending, Ending::Exited(0), "{run:?}");
    assert!(evidence.served.contains(&"\u{fffd}sed".to_owned()), "{evidence:?}");
}
