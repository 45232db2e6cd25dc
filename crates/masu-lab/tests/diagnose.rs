//! Diagnoses of real programs. The asserted values were counted, or do not depend on the speed of this machine.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use masu_lab::diagnose::facts::Clock;
use masu_lab::diagnose::{
    Diagnosis, Facts, Finding, Id, Kind, Options, RemedyKind, judge, was_stopped,
};
use masu_lab::prices::Service;
use masu_lab::{Catalogue, Input, Libc, Places, Stop, Workload, diagnose};
use tempfile::{NamedTempFile, TempPath};

fn of(words: &[&str], input: Input, stop: &Stop) -> Diagnosis {
    let workload = Workload::new(words.iter().map(OsString::from), input).unwrap();
    let catalogue = Catalogue::find(&Places::default());
    let variant = catalogue.resolve(&"system".parse().unwrap(), &workload.program).unwrap();
    diagnose(&workload, &variant, &catalogue, &Options::default(), stop, &mut |_| {}).unwrap()
}

fn causes(findings: &[Finding]) -> Vec<Id> {
    let causes = findings.iter().filter(|finding| finding.id.kind() == Kind::Cause);
    causes.map(|finding| finding.id).collect()
}

/// A file with this text in it, removed at the end.
fn file(text: &str) -> TempPath {
    let path = NamedTempFile::new().unwrap().into_temp_path();
    fs::write(&path, text).unwrap();
    path
}

fn input(text: &str) -> Input {
    Input::keep(fs::File::open(file(text)).unwrap()).unwrap()
}

#[test]
fn seds_storm_is_named_first_with_the_settings_that_cure_it() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/primes49.sed");
    let words = ["sed", "-rf", script.to_str().unwrap()];
    let diagnosis = of(&words, input("50\n"), &Stop::never());
    let workload = Workload::new(["sed"], Input::Empty).unwrap();
    if workload.program.libc != Libc::Glibc || diagnosis.facts.calls.is_none() {
        eprintln!("skipped: this sed does not run on glibc, or nothing may be traced here");
        return;
    }
    let calls = diagnosis.facts.calls.as_ref().unwrap();
    if calls.sampled.is_some() {
        // With samples the numbers are estimates; where all calls are counted, none of them is lost.
        eprintln!(
            "skipped: the tracer waits so long for a CPU here that only samples of calls were counted"
        );
        return;
    }
    assert!(calls.moves.break_pairs() > 1_000, "{:?}", calls.moves);
    let findings = judge(&on_a_quiet_machine(diagnosis.facts.clone()));
    let first: &Finding = &findings[0];
    assert_eq!(first.id, Id::HeapCallStorm, "{diagnosis:#?}");
    assert_eq!(causes(&findings), [Id::HeapCallStorm]);
    let setting = first.remedies.iter().find(|it| it.kind == RemedyKind::Setting).unwrap();
    assert_eq!(setting.variant.as_deref(), Some("glibc:top_pad=64M,trim_threshold=64M"));
    // The prices decide whether the storm is a cause here and now.
    let here = diagnosis.findings.iter().find(|finding| finding.id == Id::HeapCallStorm);
    for setting in here.iter().flat_map(|it| &it.remedies) {
        if setting.kind == RemedyKind::Setting {
            let paste = setting.paste.as_ref().unwrap();
            assert!(paste.contains("glibc.malloc.top_pad=67108864"), "{paste}");
            assert!(paste.contains("glibc.malloc.trim_threshold=67108864"), "{paste}");
        }
    }
}

/// The counted facts, with the clock and the prices of one quiet day: this machine's present ones are not
/// under test.
fn on_a_quiet_machine(mut facts: Facts) -> Facts {
    facts.clock = Clock { wall_s: 2.5, user_s: 2.06, sys_s: 0.45, own_sys_s: 0.45, ..facts.clock };
    facts.clock.counting_s = 0.0;
    facts.clock.queued_s = 0.0;
    for price in &mut facts.prices.known {
        price.median_ns = match price.service {
            Service::SystemCall => 100.0,
            Service::PageFault => 600.0,
            Service::PageReturn => 400.0,
            Service::BreakPair => 1_000.0,
            _ => price.median_ns,
        };
    }
    facts
}

#[test]
fn ordinary_programs_have_no_cause_of_memory() {
    let text = "a line of some text\n".repeat(200_000);
    for words in [&["true"][..], &["gzip", "-c"], &["sha256sum"]] {
        let diagnosis = of(words, input(&text), &Stop::never());
        assert_eq!(causes(&diagnosis.findings), [], "{words:?}: {diagnosis:#?}");
        assert_eq!(diagnosis.facts.ending.as_deref(), Some("returned 0"));
    }
}

#[test]
fn a_shell_that_only_starts_what_works_is_reported_with_its_name() {
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let worker = file("BEGIN { for (i = 0; i < 20000000; i++) x += i }");
    let works = format!("awk -f {} & wait", worker.display());
    let wrapped = of(&["sh", "-c", &works], Input::Empty, &Stop::never());
    let wrapper = wrapped.findings.iter().find(|finding| finding.id == Id::Wrapper);
    let wrapper = wrapper.unwrap_or_else(|| panic!("{wrapped:#?}"));
    assert!(wrapper.title.contains("sh, which only starts /"), "{wrapper:?}");
    let own = of(&["sh", "-c", script], Input::Empty, &Stop::never());
    assert!(own.findings.iter().all(|finding| finding.id != Id::Wrapper), "{own:#?}");
}

#[test]
fn a_thread_that_sleeps_where_samples_of_calls_begin_is_counted_when_it_works() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("pauses").into_os_string().into_string().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/pauses.c");
    let words = ["gcc", "-O1", "-pthread", "-o", &program, source.to_str().unwrap()];
    assert_eq!(of(&words, Input::Empty, &Stop::never()).facts.failure, None);
    let seen = of(&[&program, "2000", "2000"], Input::Empty, &Stop::never());
    let Some(calls) = &seen.facts.calls else {
        eprintln!("skipped: nothing may be traced here");
        return;
    };
    assert!(calls.sampled.is_some(), "{calls:#?}");
    // The accuracy of an estimate is tested on simulated threads. Where the kernel counts writes at all times, the
    // number is exact.
    if fs::exists("/proc/thread-self/io").unwrap() {
        let writes = calls.counts["write"];
        assert!((3_800_000..4_200_000).contains(&writes), "{calls:#?}");
    }
}

#[test]
fn a_run_that_is_stopped_is_judged_by_what_was_seen() {
    let begun = file("");
    let path = begun.to_path_buf();
    let script = format!("echo yes > {}; exec sleep 1000", path.display());
    let stop = Stop::never();
    let other = stop.clone();
    let stopper = std::thread::spawn(move || {
        while fs::read_to_string(&path).is_ok_and(|text| text.is_empty()) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        other.request();
    });
    let seen = of(&["sh", "-c", &script], Input::Empty, &stop);
    stopper.join().unwrap();
    assert!(was_stopped(&seen), "{seen:#?}");
    assert_eq!(causes(&seen.findings), []);
}

#[test]
fn json_has_a_version_names_with_hyphens_and_nothing_of_the_environment() {
    let diagnosis = of(&["true"], Input::Empty, &Stop::never());
    let json = serde_json::to_value(&diagnosis).unwrap();
    assert_eq!((&json["schema"], &json["version"]), (&"masu-diagnosis".into(), &1.into()));
    assert_eq!(json["command"][0], "true");
    let names: Vec<&String> = json.as_object().unwrap().keys().collect();
    let expected = [
        "changed", "command", "facts", "findings", "not_seen", "proof", "schema", "trial",
        "variant", "version",
    ];
    assert_eq!(names, expected);
    for finding in json["findings"].as_array().unwrap() {
        assert!(Id::ALL.iter().any(|id| finding["id"] == id.name()), "{finding}");
    }
    let path = std::env::var("PATH").unwrap();
    assert!(path.is_empty() || !json.to_string().contains(&path));
}
