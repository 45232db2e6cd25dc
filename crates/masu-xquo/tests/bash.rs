//! bash evaluates the output of xquo to exactly the input bytes.

mod process;

use std::process::{Command, Stdio};

use process::{outcome, xquo};
use proptest::collection::vec;
use proptest::prelude::*;

/// The words of a script, each printed by bash and followed by NUL.
fn words_by_bash(script: &[u8], locale: &str) -> Vec<u8> {
    let mut bash = Command::new("bash");
    let echo = r#"words=$(cat); eval "words=( $words )"; [ ${#words[@]} = 0 ] || printf '%s\0' "${words[@]}""#;
    bash.args(["--norc", "-c", echo]).env("LC_ALL", locale);
    bash.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = outcome(bash, script);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    output.stdout
}

/// Bytes that a bash word can hold; the troublesome ones occur often.
fn byte() -> impl Strategy<Value = u8> {
    let troublesome = b"'\"\\$`!\n\r\x08\x01\x7f\t \xff".to_vec();
    prop_oneof![1_u8..=255, proptest::sample::select(troublesome)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]
    #[test]
    fn bash_reads_back_exactly_the_bytes(
        records in vec(vec(byte(), 0..200), 0..40),
        option in proptest::sample::select(vec!["--workers=1", "--workers=3", "--no-escape"]),
        locale in proptest::sample::select(vec!["C", "C.UTF-8"]),
        is_last_ended: bool,
    ) {
        let mut input: Vec<u8> =
            records.iter().flat_map(|record| record.iter().copied().chain([0])).collect();
        let expected = input.clone();
        // An empty record without its delimiter is no record.
        if !is_last_ended && records.last().is_some_and(|last| !last.is_empty()) {
            input.pop();
        }
        let quoted = outcome(xquo(&[option]), &input);
        prop_assert!(quoted.status.success());
        prop_assert_eq!(words_by_bash(&quoted.stdout, locale), expected);
    }
}

fn cases() -> u32 {
    if std::env::var_os("MASU_SOAK").is_some_and(|value| value == "1") { 3000 } else { 60 }
}
