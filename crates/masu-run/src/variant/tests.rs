//! Tests of variants: texts that are understood, texts that are refused, and the user's own environment, which
//! survives.

use std::path::Path;

use super::*;

/// The settings of a variant for a malloc, with its release if there is one; or the refusal.
fn settle_text(malloc: &str, text: &str, library: &Path) -> Result<String, String> {
    let (name, version) = malloc.split_once(' ').map_or((malloc, None), |(a, b)| (a, Some(b)));
    let target = Target { name, version, library };
    let settled = settle(&text.parse().unwrap(), target).map_err(|error| error.to_string())?;
    let all = settled.tunables.iter().chain(&settled.variables);
    Ok(all.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "))
}

/// A file that does not exist: the options of its malloc cannot be known, so it is taken to be new.
const NEW: &str = "/no/such/library.so";

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn variant() -> Variant {
    Variant {
        label: "v".to_owned(),
        allocator: "v".to_owned(),
        library: Some("/lib/libv.so".into()),
        tunables: vec![("glibc.malloc.top_pad".to_owned(), "4096".to_owned())],
        ..Variant::default()
    }
}

#[test]
fn settings_come_to_variables_or_are_refused_with_the_reason() {
    let mut cases = 0;
    let mut settled = Err(String::new());
    for line in include_str!("tests/settled.txt").lines().skip(2) {
        if let Some((malloc, text)) = line.split_once(" | ") {
            settled = settle_text(malloc, text, Path::new(NEW));
            cases += 1;
        } else if let Some(expected) = line.strip_prefix("  ") {
            let (word, words) = expected.split_once(' ').unwrap_or((expected, ""));
            let is_so = match (word, &settled) {
                ("refused", settled) => settled.as_ref().is_err_and(|said| said.contains(words)),
                ("not", settled) => settled.as_ref().is_err_and(|said| !said.contains(words)),
                (_, Ok(variables)) => variables == expected,
                (_, Err(_)) => false,
            };
            assert!(is_so, "{line}: {settled:?}");
        }
    }
    assert_eq!(cases, 38);
}

#[test]
fn a_library_may_have_a_name_that_is_no_setting() {
    let spec: Spec = "new=/opt/lib/libmasu.so:retain=64M".parse().unwrap();
    assert_eq!((spec.name.as_deref(), &*spec.allocator), (Some("new"), "/opt/lib/libmasu.so"));
    assert_eq!(spec.label(), "new:retain=64M");
    assert_eq!(spec.to_string(), "new=/opt/lib/libmasu.so:retain=64M");
    for path in ["./a=b/lib.so", "/a=b/lib.so", "masu:env.A=/b", "masu"] {
        let spec: Spec = path.parse().unwrap();
        assert_eq!((spec.name.as_deref(), spec.label()), (None, path.to_owned()));
    }
    let refused = "system=/lib/lib.so".parse::<Spec>().unwrap_err().to_string();
    assert!(refused.contains("take another name"), "{refused}");
}

#[test]
fn every_option_of_masus_is_a_setting() {
    for option in options::ALL {
        let value = Unit::of(option).example();
        let text = format!("masu:{}={value}", option.name);
        let settled = settle_text("masu-secure", &text, Path::new(NEW)).expect(&text);
        assert!(settled.starts_with(&format!("{}=", option.variable)), "{text}: {settled}");
        assert!(!settled.contains(' '), "{text}: {settled}");
        let foreign = format!("glibc:env.A=1,{}={value}", option.name);
        settle_text("snmalloc", &foreign, Path::new(NEW)).expect_err(&foreign);
    }
}

#[test]
fn mimallocs_variables_are_those_whose_names_stand_in_its_library() {
    let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    let old = "large_os_pages\0decommit_delay\0";
    let newer = "allow_large_os_pages\0purge_delay\0arena_purge_mult\0";
    for (options, text, expected) in [
        (
            old,
            "m:purge_delay=0",
            "MIMALLOC_DECOMMIT_DELAY=0 MIMALLOC_SEGMENT_DECOMMIT_DELAY=0 MIMALLOC_ALLOW_DECOMMIT=1",
        ),
        (
            old,
            "m:purge_delay=-1",
            "MIMALLOC_DECOMMIT_DELAY=-1 MIMALLOC_SEGMENT_DECOMMIT_DELAY=-1 MIMALLOC_ALLOW_DECOMMIT=0",
        ),
        (old, "m:huge_pages=1", "MIMALLOC_LARGE_OS_PAGES=1"),
        (newer, "m:huge_pages=1", "MIMALLOC_ALLOW_LARGE_OS_PAGES=1"),
        (newer, "m:purge_delay=-1", "MIMALLOC_PURGE_DELAY=-1 MIMALLOC_ARENA_PURGE_MULT=1"),
    ] {
        std::fs::write(&file, options).unwrap();
        assert_eq!(settle_text("mimalloc2 2.0.9", text, &file).as_deref(), Ok(expected));
    }
    std::fs::write(&file, "nothing").unwrap();
    let refusal = settle_text("mimalloc2 2.0.9", "m:purge_delay=1", &file).unwrap_err();
    assert!(refusal.contains("does not have `purge_delay`"), "{refusal}");
}

#[test]
fn malformed_variants_are_named() {
    for wrong in ["", ":top_pad=1", "glibc:top_pad", "glibc:=1", "glibc:", "glibc:a=1,a=2"] {
        let error = wrong.parse::<Spec>().unwrap_err().to_string();
        assert!(error.contains(&format!("`{wrong}`")), "{error}");
    }
}

#[test]
fn a_written_variant_reads_back_the_same() {
    for text in ["glibc", "/a/b.so:env.X=1", r"jemalloc:env.C=a\,b,env.D=c"] {
        let spec: Spec = text.parse().unwrap();
        assert_eq!(spec.to_string(), text);
    }
}

#[test]
fn what_the_user_has_set_already_is_kept_and_ours_comes_in_addition() {
    let options = pairs(&[("MALLOC_CONF", "narenas:2"), ("OTHER", "ours")]);
    let jemalloc = Variant { variables: options, ..Variant::default() };
    for (variant, users, expected) in [
        (
            variant(),
            ["/lib/users.so", "glibc.cpu.x=1", ""],
            pairs(&[
                ("LD_PRELOAD", "/lib/libv.so:/lib/users.so"),
                ("GLIBC_TUNABLES", "glibc.cpu.x=1:glibc.malloc.top_pad=4096"),
            ]),
        ),
        // An empty variable leaves no stray separator.
        (
            variant(),
            [""; 3],
            pairs(&[
                ("LD_PRELOAD", "/lib/libv.so"),
                ("GLIBC_TUNABLES", "glibc.malloc.top_pad=4096"),
            ]),
        ),
        (
            jemalloc,
            ["", "", "users:1"],
            pairs(&[("MALLOC_CONF", "users:1,narenas:2"), ("OTHER", "ours")]),
        ),
    ] {
        let names = ["LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_CONF"];
        let of = |name: &str| names.iter().position(|one| *one == name).map(|at| users[at].into());
        let changes = variant.changes(of).into_iter();
        let text = |(name, value): (OsString, OsString)| {
            (name.into_string().unwrap(), value.into_string().unwrap())
        };
        assert_eq!(changes.map(text).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_variant_says_what_its_settings_came_to() {
    let mut variant = variant();
    variant.variables = pairs(&[("A", "1")]);
    assert_eq!(variant.translation(), ["GLIBC_TUNABLES=glibc.malloc.top_pad=4096", "A=1"]);
    assert!(Variant::default().translation().is_empty());
}

#[test]
fn a_knob_of_glibcs_that_needs_its_fellows_says_so() {
    let notes = |names: &[&str]| {
        let tunables =
            names.iter().map(|name| (format!("glibc.malloc.{name}"), "1".to_owned())).collect();
        Variant { tunables, ..Variant::default() }.notes()
    };
    for alone in ["top_pad", "trim_threshold", "mmap_threshold"] {
        let notes = notes(&[alone]);
        assert!(notes.len() == 1 && notes[0].contains(&format!("`{alone}` alone")), "{notes:?}");
    }
    assert!(notes(&["top_pad", "trim_threshold"]).is_empty());
    assert!(notes(&["arena_max", "tcache_count"]).is_empty());
}
