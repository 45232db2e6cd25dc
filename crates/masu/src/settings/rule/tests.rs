//! Parsing of values, and the sentences about accepted values.

extern crate std;

use std::format;
use std::string::String;

use super::*;
use crate::settings::UNSET;
use crate::settings::table::BYTES_MAX;

fn rule(name: &str) -> &'static Rule {
    all().iter().find(|rule| rule.name() == name.as_bytes()).expect("there is such an option")
}

#[test]
fn bytes_may_have_a_unit() {
    for (text, bytes) in [
        ("0", 0),
        ("007", 7),
        ("65536", 65_536),
        ("64K", 64 << 10),
        ("64k", 64 << 10),
        ("3M", 3 << 20),
        ("2G", 2 << 30),
        ("9223372036854775807", BYTES_MAX),
    ] {
        assert_eq!(rule("retain").parse(text.as_bytes()), Some(bytes), "{text:?}");
    }
}

#[test]
fn texts_that_are_no_number_in_range_are_refused() {
    for text in [
        "",
        "K",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1KB",
        "1.5M",
        "0x10",
        "1T",
        "M1",
        "é",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999",
        "8589934592G",
    ] {
        assert_eq!(rule("retain").parse(text.as_bytes()), None, "{text:?}");
    }
    for (name, text) in [
        ("shards", "0"),
        ("shards", "61"),
        ("shards", "1K"),
        ("huge_pages", "2"),
        ("huge_pages", "yes"),
        ("memory_limit", "1023K"),
        ("arena_size", "2G"),
        ("arena_size", "15M"),
    ] {
        assert_eq!(rule(name).parse(text.as_bytes()), None, "{name} {text:?}");
    }
}

#[test]
fn only_times_accept_never() {
    assert_eq!(rule("purge_delay_ms").parse(b"-1"), Some(u32::MAX as usize));
    for text in ["-2", "-", "-01", "4294967296", "1K"] {
        assert_eq!(rule("purge_delay_ms").parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn a_value_is_written_in_a_form_that_is_accepted() {
    for value in [0, 1, 1023, 1024, 1025, 64 << 10, 3 << 20, 5 << 30, 1 << 40, BYTES_MAX] {
        let mut line = Line::new();
        rule("retain").write_value(&mut line, value);
        assert_eq!(rule("retain").parse(line.as_bytes()), Some(value), "{line:?}");
    }
}

#[test]
fn every_accepted_value_differs_from_none() {
    for option in ALL {
        assert!(option.least <= option.most && option.most < UNSET, "{}", option.name);
    }
}

#[test]
fn variables_are_named_after_the_options() {
    for (option, rule) in ALL.iter().zip(all()) {
        assert_eq!(option.variable, format!("MASU_{}", option.name.to_uppercase()));
        assert!(
            rule.has_variable(option.variable.strip_prefix("MASU_").expect("begins so").as_bytes())
        );
        assert!(!rule.has_variable(option.name.as_bytes()), "variables are in capitals");
    }
}

#[test]
fn accepted_values_are_described_as_in_the_table() {
    for (option, rule) in ALL.iter().zip(all()) {
        let mut line = Line::new();
        rule.write_accepted(&mut line);
        assert_eq!(String::from_utf8_lossy(line.as_bytes()), option.accepted, "{}", option.name);
    }
}

#[test]
fn a_default_is_a_value_or_words() {
    let value = |name| rule(name).default();
    assert_eq!(value("huge_pages"), Some(1));
    assert_eq!(value("retain_min"), Some(4 << 20));
    assert_eq!(value("huge_pages_from"), None);
    assert_eq!(value("retain"), None);
    for (option, rule) in ALL.iter().zip(all()) {
        assert!(rule.default().is_none_or(|value| rule.accepts(value)), "{}", option.name);
    }
}
