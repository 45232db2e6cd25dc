//! Tests of variants: what is understood, what is refused, and that the user's own environment
//! survives.

use super::*;

fn settle_text(text: &str, allocator: &str) -> Result<Settled, String> {
    settle(&text.parse().unwrap(), allocator).map_err(|error| error.to_string())
}

fn variant() -> Variant {
    Variant {
        label: "v".to_owned(),
        allocator: "v".to_owned(),
        version: None,
        library: Some("/lib/libv.so".into()),
        tunables: vec![("glibc.malloc.top_pad".to_owned(), "4096".to_owned())],
        variables: Vec::new(),
        ..Variant::default()
    }
}

#[test]
fn sizes_take_suffixes_and_nothing_else() {
    assert_eq!(parse_size("0"), Some(0));
    assert_eq!(parse_size("1k"), Some(1024));
    assert_eq!(parse_size("2G"), Some(2 << 30));
    for wrong in
        ["", "M", "-1", "+1", "1.5M", "1MB", "99999999999999999999", "18446744073709551615K"]
    {
        assert_eq!(parse_size(wrong), None, "{wrong}");
    }
}

#[test]
fn glibc_settings_become_tunables_in_bytes() {
    let settled = settle_text("glibc:top_pad=64M,arena_max=1", "glibc").unwrap();
    let expected = [("glibc.malloc.top_pad", "67108864"), ("glibc.malloc.arena_max", "1")];
    assert_eq!(settled.tunables, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
}

#[test]
fn an_unknown_setting_lists_the_known_ones() {
    let message = settle_text("glibc:toppad=1", "glibc").unwrap_err();
    assert!(message.contains("toppad") && message.contains("trim_threshold"), "{message}");
}

#[test]
fn settings_of_other_allocators_are_refused_with_a_way_out() {
    let message = settle_text("jemalloc:narenas=1", "jemalloc").unwrap_err();
    assert!(message.contains("narenas") && message.contains("env.NAME"), "{message}");
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
