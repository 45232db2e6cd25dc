//! Every setting of every malloc is proved to take effect: a C program reports the actions of its malloc, under one
//! value and under the opposite, and a mistake planted in the translation makes the proof fail.
//!
//! It relies on `tests/c/settings.c` for the figures and on `proofs.rs` for the expectations. Cells of a malloc that is
//! not installed are skipped by name; `cargo xtask ci` installs them all.

mod probe;
mod proofs;
mod table;

use masu_run::Variant;
use masu_run::variant::settings::SETTINGS;
use probe::Probe;
use proofs::{PROOFS, Proof};

/// Proves all cells of `malloc`, in each of its releases that are installed, or says which it skips.
fn prove(malloc: &str) {
    let probe = Probe::new();
    let mut failures = Vec::new();
    let members = probe.members(malloc);
    for proof in PROOFS.iter().filter(|proof| proof.malloc == malloc) {
        if members.is_empty() {
            println!("{malloc}:{} skipped: {malloc} is not installed", proof.setting);
        }
        for member in &members {
            if proof.needs_advice() && !probe.gives_huge_pages_on_advice() {
                println!(
                    "{member}:{} skipped: huge pages do not follow advice here",
                    proof.setting
                );
                continue;
            }
            failures.extend(prove_one(&probe, proof, member));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Proves one cell; returns the fault if there is one.
fn prove_one(probe: &Probe, proof: &Proof, member: &str) -> Option<String> {
    let name = format!("{member}:{}", proof.setting);
    let (holds, seen) = try_out(probe, proof, member, None);
    println!("{name:<40} {seen}");
    if !holds {
        return Some(format!("{name} has no effect: {seen}"));
    }
    let (holds, seen) = try_out(probe, proof, member, Some(misspelt));
    holds.then(|| format!("{name} is proved by a misspelt variable too: {seen}"))
}

/// The result of the proof, with both variants changed by `mistake` if there is one; and the figures that were seen.
fn try_out(
    probe: &Probe,
    proof: &Proof,
    member: &str,
    mistake: Option<fn(Variant) -> Variant>,
) -> (bool, String) {
    let Proof { setting, scene, figure, values, .. } = proof;
    let [first, second] = values.map(|value| {
        let variant = probe.variant(&format!("{member}:{setting}={value}"));
        let variant = mistake.map_or(variant.clone(), |change| change(variant));
        let seen = probe.play(&variant, scene, &[]);
        // jemalloc complains about settings that it does not know.
        let is_quiet = mistake.is_some() || seen.complaints.is_empty();
        assert!(is_quiet, "{}: {}", variant.label, seen.complaints);
        seen.get(figure)
    });
    let seen = format!("{figure} is {first} with {}, {second} with {}", values[0], values[1]);
    (proof.holds(first, second), seen)
}

/// `variant` as a wrong row of the table would have made it: the values are right, the names are not.
fn misspelt(mut variant: Variant) -> Variant {
    for (name, _) in &mut variant.tunables {
        name.push('x');
    }
    for (name, value) in &mut variant.variables {
        if name == "MALLOC_CONF" {
            *value = value.replace(':', "x:");
        } else {
            name.push('X');
        }
    }
    variant
}

#[test]
fn glibcs_settings_take_effect() {
    prove("glibc");
}

#[test]
fn jemallocs_settings_take_effect() {
    prove("jemalloc");
}

#[test]
fn tcmallocs_settings_take_effect() {
    prove("tcmalloc");
}

#[test]
fn mimallocs_settings_take_effect() {
    prove("mimalloc");
}

#[test]
fn masus_settings_take_effect() {
    prove("masu");
}

#[test]
fn every_variable_of_mimallocs_is_one_that_it_reads() {
    let probe = Probe::new();
    let members = probe.members("mimalloc");
    if members.is_empty() {
        println!("skipped: the variables of mimalloc: it is not installed");
    }
    for member in members {
        for text in [format!("{member}:purge_delay=1234"), format!("{member}:huge_pages=1")] {
            let variant = probe.variant(&text);
            let said = probe.play(&variant, "one", &[("MIMALLOC_VERBOSE", "1")]).complaints;
            for (name, value) in &variant.variables {
                let option = name.strip_prefix("MIMALLOC_").unwrap().to_lowercase();
                let line = format!("option '{option}': {value}");
                assert!(said.contains(&line), "{text}: no `{line}` in {said}");
            }
        }
    }
}

#[test]
fn no_cell_of_the_table_is_without_a_proof() {
    for setting in &SETTINGS {
        for cell in setting.cells {
            let is_proved = PROOFS
                .iter()
                .any(|proof| proof.malloc == cell.malloc && proof.setting == setting.name);
            assert!(is_proved, "{}:{} has no proof", cell.malloc, setting.name);
        }
    }
}

#[test]
fn the_users_own_options_stay_and_the_variants_win() {
    let probe = Probe::new();
    // The names by which the C library knew its settings before it had tunables, and a list.
    let users = [
        ("GLIBC_TUNABLES", "glibc.malloc.arena_max=7:glibc.malloc.top_pad=67108864"),
        ("MALLOC_ARENA_MAX", "6"),
    ];
    let figures = probe.play(&probe.variant("glibc:arenas=2"), "threads", &users);
    assert_eq!(figures.get("arenas"), 2, "{figures:?}");
    assert!(figures.get("heap") > 60 << 20, "{figures:?}");
    if probe.library("jemalloc").is_none() {
        println!("skipped: the users' options of jemalloc: it is not installed");
        return;
    }
    let users = [("MALLOC_CONF", "narenas:7,tcache:false")];
    let figures = probe.play(&probe.variant("jemalloc:arenas=2"), "threads", &users);
    assert_eq!(figures.get("arenas"), 2, "{figures:?}");
    assert_eq!(figures.get("jemalloc.tcache_bytes"), 0, "{figures:?}");
}

#[test]
fn a_malloc_given_by_its_path_has_its_settings() {
    let probe = Probe::new();
    let Some(library) = probe.library("jemalloc") else {
        println!("skipped: a copy of jemalloc given by path: it is not installed");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("libjemalloc.so.2");
    std::fs::copy(library, &copy).unwrap();
    let variant = probe.variant(&format!("{}:arenas=3", copy.display()));
    let figures = probe.play(&variant, "threads", &[]);
    assert_eq!(figures.get("arenas"), 3, "{figures:?}");
}
