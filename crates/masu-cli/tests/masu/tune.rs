//! `masu tune` on programs so short that every stage ends by its number of rounds and not by the clock.

use serde_json::Value;

use crate::{failure, masu, printed};

/// The result of tuning a shell that runs `script`.
fn tuned(arguments: &[&str], script: &str) -> Value {
    let start = ["tune", "--budget", "10m", "--json", "-a", "system:top_pad=1M"];
    let all = [&start[..], arguments, &["--", "sh", "-c", script]].concat();
    let output = masu(&all).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("confirming by fresh runs"), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_json_has_a_version_and_what_fresh_runs_showed() {
    let tuning = tuned(&[], "echo hello");
    assert_eq!((&tuning["schema"], &tuning["version"]), (&"masu-tune".into(), &1.into()));
    assert_eq!(tuning["command"][0], "sh");
    assert_eq!((&tuning["goal"], &tuning["repeatable"]), (&"wall".into(), &true.into()));
    let proof = &tuning["confirmation"];
    assert_eq!(proof["reference"]["label"], "system");
    let remedy = &proof["remedies"][0];
    assert_eq!(remedy["label"], "system:top_pad=1M");
    assert!(remedy["wall"]["interval"].is_array(), "{remedy}");
    assert!(remedy["shown"]["verdict"].is_string(), "{remedy}");
    assert!(tuning["runs"].as_u64().unwrap() > 16, "{tuning}");
}

#[test]
fn a_program_whose_output_differs_is_named_as_not_repeatable() {
    assert_eq!(tuned(&[], "echo $$")["repeatable"], false);
    let scratch = tuned(&["--scratch"], "echo hello >> file; cat file");
    assert_eq!(scratch["repeatable"], true, "{scratch}");
}

#[test]
fn the_page_names_the_front_and_what_to_do() {
    let arguments =
        ["tune", "--budget", "10m", "--as", "env", "-a", "glibc:top_pad=1M", "--", "true"];
    let page = printed(&mut masu(&arguments));
    assert!(
        page.contains("Tuned for wall-clock time") && page.contains("* on the front"),
        "{page}"
    );
    // The last on a machine so busy that the runs show nothing.
    let advice = ["Leave it as it is", "The smallest change", "allow more time"];
    assert!(advice.iter().any(|it| page.contains(it)), "{page}");
    assert!(!page.contains("[Service]"), "{page}");
}

#[test]
fn what_cannot_be_tuned_is_refused_with_what_to_do() {
    let refused = |arguments: &[&str]| {
        let (message, code) = failure(&[&["tune"], arguments].concat());
        assert_eq!(code, 2, "{message}");
        message
    };
    let server = refused(&["--budget", "1s", "--", "sleep", "100"]);
    assert!(server.contains("did not end within 1.00 s"), "{server}");
    assert!(server.contains("masu compare --server"), "{server}");
    let short = refused(&["--budget", "5s", "--", "sleep", "0.5"]);
    assert!(short.contains("allow at least") && short.contains("--budget"), "{short}");
    let failing =
        refused(&["--budget", "20s", "--", "sh", "-c", "echo why >&2; sleep 0.6; exit 3"]);
    assert!(failing.contains("It returned 3 and says: why; make sure"), "{failing}");
}
