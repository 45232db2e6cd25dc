//! Tests of variants: texts that are understood, texts that are refused, and the user's own environment, which
//! survives.

use std::path::Path;

use super::*;

fn settle_as(text: &str, name: &str, version: Option<&str>) -> Result<Settled, String> {
    // The file does not exist: the options of its malloc cannot be known, so it is taken to be new.
    let target = Target { name, version, library: Path::new("/no/such/library.so") };
    settle(&text.parse().unwrap(), target).map_err(|error| error.to_string())
}

fn settle_text(text: &str, allocator: &str) -> Result<Settled, String> {
    settle_as(text, allocator, None)
}

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
fn glibc_settings_become_tunables_in_bytes() {
    let settled = settle_text("glibc:top_pad=64M,arena_max=1", "glibc").unwrap();
    let expected = [("glibc.malloc.top_pad", "67108864"), ("glibc.malloc.arena_max", "1")];
    assert_eq!(settled.tunables, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
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
fn an_unknown_setting_lists_the_known_ones() {
    let message = settle_text("glibc:toppad=1", "glibc").unwrap_err();
    assert!(message.contains("toppad") && message.contains("trim_threshold"), "{message}");
}

#[test]
fn a_setting_of_another_malloc_says_whose_it_is_and_what_comes_nearest() {
    let message = settle_text("tcmalloc:purge_delay=0", "tcmalloc").unwrap_err();
    for said in ["tcmalloc has no", "jemalloc, mimalloc", "nearest: release_rate", "env.NAME"] {
        assert!(message.contains(said), "{said}: {message}");
    }
    assert!(!message.contains("conf.NAME"), "tcmalloc has no list of options: {message}");
    let message = settle_text("glibc:tcache=1", "glibc").unwrap_err();
    assert!(message.contains("nearest: tcache_count, tcache_max;"), "{message}");
    let message = settle_text("snmalloc:arenas=1", "snmalloc").unwrap_err();
    assert!(message.contains("no settings of snmalloc"), "{message}");
}

#[test]
fn jemallocs_options_share_one_variable() {
    let text = "jemalloc:arenas=2,purge_delay=500,huge_pages=0,conf.percpu_arena=percpu";
    let settled = settle_text(text, "jemalloc").unwrap();
    let list = "narenas:2,dirty_decay_ms:500,muzzy_decay_ms:0,thp:never,percpu_arena:percpu";
    assert_eq!(settled.variables, pairs(&[("MALLOC_CONF", list)]));
    assert!(settled.tunables.is_empty());
}

#[test]
fn every_option_of_masus_is_a_setting() {
    for option in options::ALL {
        let value = Unit::of(option).example();
        let settled = settle_text(&format!("masu:{}={value}", option.name), "masu-secure");
        let variables =
            settled.unwrap_or_else(|error| panic!("{}: {error}", option.name)).variables;
        assert!(variables.len() == 1 && variables[0].0 == option.variable, "{variables:?}");
        assert!(
            settle_text(&format!("glibc:env.A=1,{}={value}", option.name), "snmalloc").is_err()
        );
    }
    assert_eq!(settle_text("masu:retain=64M", "masu").unwrap().variables[0].1, "67108864");
    for (wrong, said) in [
        ("masu:retain=much", "K, M or G"),
        ("masu:guard_slots=0", "from 1 to 8000"),
        ("masu:trim_threshold=1M,retain=2M", "MASU_RETAIN, which is given already"),
        ("masu:retain=2M,trim_threshold=1M", "MASU_RETAIN, which is given already"),
        ("masu:retian=1", "each option of `masu list --options`"),
    ] {
        let message = settle_text(wrong, "masu").unwrap_err();
        assert!(message.contains(said), "{wrong}: {message}");
    }
}

#[test]
fn a_malloc_packaged_in_another_way_has_the_same_settings() {
    for (text, name, variable) in [
        ("x:release_rate=2.5", "tcmalloc-full", ("TCMALLOC_RELEASE_RATE", "2.5")),
        ("x:huge_pages=1", "mimalloc3", ("MIMALLOC_ALLOW_THP", "1")),
        ("x:huge_pages=1", "mimalloc2-2.5.2", ("MIMALLOC_ALLOW_THP", "1")),
        ("x:arenas=2", "jemalloc-5.3.0", ("MALLOC_CONF", "narenas:2")),
        ("x:huge_pages=0", "mimalloc", ("MIMALLOC_ALLOW_THP", "0")),
    ] {
        assert_eq!(settle_text(text, name).unwrap().variables, pairs(&[variable]));
    }
    assert!(settle_text("x:release_rate=1", "tcmalloc-google").is_err());
}

#[test]
fn a_release_that_lacks_a_setting_names_the_one_that_has_it() {
    let old = |text, version| settle_as(text, "glibc", Some(version));
    assert_eq!(old("glibc:huge_pages=1", "2.35").unwrap().tunables.len(), 1);
    let message = old("glibc:huge_pages=1", "2.34").unwrap_err();
    assert!(message.contains("glibc 2.34") && message.contains("from 2.35"), "{message}");
    assert!(old("glibc:top_pad=1", "2.17").is_err(), "tunables are passed over there");
}

#[test]
fn mimallocs_variables_are_those_whose_names_stand_in_its_library() {
    let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    let set = |options: &[u8], text: &str| {
        std::fs::write(&file, options).unwrap();
        let target = Target { name: "mimalloc2", version: Some("2.0.9"), library: &file };
        settle(&text.parse().unwrap(), target).map(|settled| settled.variables)
    };
    let delay = |value, allowed| {
        pairs(&[
            ("MIMALLOC_DECOMMIT_DELAY", value),
            ("MIMALLOC_SEGMENT_DECOMMIT_DELAY", value),
            ("MIMALLOC_ALLOW_DECOMMIT", allowed),
        ])
    };
    let old = b"large_os_pages\0decommit_delay\0";
    assert_eq!(set(old, "m:purge_delay=0").unwrap(), delay("0", "1"));
    assert_eq!(set(old, "m:purge_delay=-1").unwrap(), delay("-1", "0"));
    assert_eq!(set(old, "m:huge_pages=1").unwrap(), pairs(&[("MIMALLOC_LARGE_OS_PAGES", "1")]));
    let newer = b"allow_large_os_pages\0purge_delay\0arena_purge_mult\0";
    let large = pairs(&[("MIMALLOC_ALLOW_LARGE_OS_PAGES", "1")]);
    assert_eq!(set(newer, "m:huge_pages=1").unwrap(), large);
    let delay = pairs(&[("MIMALLOC_PURGE_DELAY", "-1"), ("MIMALLOC_ARENA_PURGE_MULT", "1")]);
    assert_eq!(set(newer, "m:purge_delay=-1").unwrap(), delay);
    let without = set(b"nothing", "m:purge_delay=1").unwrap_err().to_string();
    assert!(without.contains("does not have `purge_delay`"), "{without}");
}

#[test]
fn a_value_that_would_be_passed_over_is_refused() {
    for (text, malloc, wanted) in [
        ("glibc:arenas=0", "glibc", "from 1 to 4094"),
        ("masu:arenas=61", "masu", "from 1 to 60"),
        ("glibc:tcache_max=1033", "glibc", "from 0 to 1032"),
        ("glibc:huge_pages=yes", "glibc", "1 for on"),
        ("jemalloc:purge_delay=-2", "jemalloc", "-1 for never"),
        ("tcmalloc:max_total_thread_cache_bytes=4K", "tcmalloc", "from 512K to 1G"),
    ] {
        let message = settle_text(text, malloc).unwrap_err();
        assert!(message.contains(wanted), "{text}: {message}");
    }
}

#[test]
fn one_setting_under_two_names_is_given_twice() {
    let message = settle_text("glibc:arenas=1,arena_max=2", "glibc").unwrap_err();
    assert!(message.contains("`arena_max` is `arenas`"), "{message}");
}

#[test]
fn options_of_a_malloc_pass_through_to_its_list_only() {
    let settled = settle_text("glibc:conf.glibc.malloc.perturb=1", "glibc").unwrap();
    assert_eq!(settled.tunables, pairs(&[("glibc.malloc.perturb", "1")]));
    for (wrong, malloc) in [
        ("glibc:conf.a=1:glibc.rtld.x=2", "glibc"),
        (r"jemalloc:conf.narenas=1\,tcache:false", "jemalloc"),
        ("jemalloc:conf.=1", "jemalloc"),
        ("mimalloc:conf.purge_delay=1", "mimalloc"),
    ] {
        assert!(settle_text(wrong, malloc).is_err(), "{wrong}");
    }
}

#[test]
fn environment_variables_pass_through_with_escaped_commas() {
    let settled =
        settle_text(r"jemalloc:env.MALLOC_CONF=narenas:1\,tcache:false", "jemalloc").unwrap();
    assert_eq!(
        settled.variables,
        [("MALLOC_CONF".to_owned(), "narenas:1,tcache:false".to_owned())]
    );
    assert!(settle_text("jemalloc:env.LD_PRELOAD=x", "jemalloc").is_err());
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
fn the_users_preload_and_tunables_are_kept() {
    let changes = variant().changes(|name| match name {
        "LD_PRELOAD" => Some("/lib/users.so".into()),
        "GLIBC_TUNABLES" => Some("glibc.cpu.x=1".into()),
        _ => None,
    });
    assert_eq!(
        changes,
        [
            ("LD_PRELOAD".into(), OsString::from("/lib/libv.so:/lib/users.so")),
            ("GLIBC_TUNABLES".into(), OsString::from("glibc.cpu.x=1:glibc.malloc.top_pad=4096")),
        ]
    );
}

#[test]
fn an_empty_preload_leaves_no_stray_separator() {
    let changes = variant().changes(|_| Some(OsString::new()));
    assert_eq!(changes[0].1, "/lib/libv.so");
}

#[test]
fn the_users_jemalloc_options_are_kept_and_ours_come_last() {
    let variables = pairs(&[("MALLOC_CONF", "narenas:2"), ("OTHER", "ours")]);
    let variant = Variant { variables, ..Variant::default() };
    let changes = variant.changes(|_| Some("users:1".into()));
    assert_eq!(
        changes,
        [
            ("MALLOC_CONF".into(), OsString::from("users:1,narenas:2")),
            ("OTHER".into(), OsString::from("ours")),
        ]
    );
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
