//! Tests of the order of the folders, and of the reasons that make a folder unfit.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;

use super::{Surroundings, candidates, lets_programs_run, prepare, survives_preload};

fn bare() -> Surroundings {
    Surroundings {
        user: 7,
        cache_home: None,
        home: None,
        runtime_folder: None,
        temporary_folder: None,
    }
}

fn set(folder: &str) -> Option<OsString> {
    Some(folder.into())
}

#[test]
fn the_cache_comes_first_then_what_vanishes_with_the_session() {
    let surroundings = Surroundings {
        home: set("/home/a"),
        runtime_folder: set("/run/user/7"),
        temporary_folder: set("/scratch"),
        ..bare()
    };
    let expected = [
        "/home/a/.cache/masu", "/run/user/7/masu", "/scratch/masu-7", "/tmp/masu-7",
        "/var/tmp/masu-7", "/dev/shm/masu-7",
    ];
    assert_eq!(candidates(&surroundings), expected.map(PathBuf::from));
}

#[test]
fn the_cache_home_takes_the_place_of_the_home() {
    let surroundings = Surroundings { cache_home: set("/c"), home: set("/home/a"), ..bare() };
    assert_eq!(candidates(&surroundings)[0], Path::new("/c/masu"));
}

#[test]
fn relative_and_missing_folders_are_passed_over() {
    let surroundings = Surroundings { cache_home: set("c"), home: set(""), ..bare() };
    assert_eq!(candidates(&surroundings)[0], Path::new("/tmp/masu-7"));
}

#[test]
fn root_shares_the_cache_of_the_system_first() {
    let root = Surroundings { user: 0, home: set("/home/a"), ..bare() };
    let expected = ["/var/cache/masu", "/home/a/.cache/masu"].map(PathBuf::from);
    assert_eq!(candidates(&root)[..2], expected);
    let set_apart = Surroundings { cache_home: set("/c"), ..root };
    assert_eq!(candidates(&set_apart)[0], Path::new("/c/masu"));
}

#[test]
fn all_may_read_a_made_folder_and_its_owner_alone_those_above() {
    let root = tempfile::tempdir().unwrap();
    let folder = prepare(&root.path().join("deep/er/masu")).unwrap();
    for (made, mode) in [(&*folder, 0o755), (folder.parent().unwrap(), 0o700)] {
        assert_eq!(fs::metadata(made).unwrap().permissions().mode() & 0o777, mode);
    }
}

#[test]
fn a_link_in_place_of_the_folder_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = root.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, root.path().join("masu")).unwrap();
    let why = prepare(&root.path().join("masu")).unwrap_err();
    assert!(why.contains("not a folder"), "{why}");
}

#[test]
fn a_link_above_the_folder_leads_to_the_true_path() {
    let root = tempfile::tempdir().unwrap();
    let real = root.path().join("real");
    fs::create_dir(&real).unwrap();
    symlink(&real, root.path().join("link")).unwrap();
    let folder = prepare(&root.path().join("link/masu")).unwrap();
    assert_eq!(folder, fs::canonicalize(real).unwrap().join("masu"));
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("masu");
    fs::create_dir(&folder).unwrap();
    for mode in [0o770, 0o707] {
        fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        let why = prepare(&folder).unwrap_err();
        assert!(why.contains("others may write"), "{mode:o}: {why}");
    }
}

#[test]
fn a_folder_that_others_may_rename_is_refused_unless_sticky() {
    let root = tempfile::tempdir().unwrap();
    let shared = root.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o777)).unwrap();
    let why = prepare(&shared.join("masu")).unwrap_err();
    assert!(why.contains("others may rename"), "{why}");
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    prepare(&shared.join("masu")).unwrap();
}

#[test]
fn a_folder_of_another_user_is_refused() {
    // Only root can give a folder away; every user can find a folder that belongs to root.
    let root = tempfile::tempdir().unwrap();
    let given = root.path().join("masu");
    fs::create_dir(&given).unwrap();
    let foreign = match std::os::unix::fs::chown(&given, Some(4711), None) {
        Ok(()) => given.as_path(),
        Err(_) => Path::new("/usr"),
    };
    let why = prepare(foreign).unwrap_err();
    assert!(why.contains("belongs to user"), "{why}");
}

#[test]
fn a_noexec_mount_is_refused() {
    // Mounting takes rights that a test seldom has; tests/carried.rs tries it where it may.
    let flags = StatVfsMountFlags::NOSUID | StatVfsMountFlags::NOEXEC;
    assert!(lets_programs_run(flags).is_err());
    assert!(lets_programs_run(StatVfsMountFlags::NOSUID).is_ok());
}

#[test]
fn a_path_that_the_preload_variable_would_split_is_refused() {
    for odd in ["/a b", "/a:b", "/a\tb", "/a\nb", "/$ORIGIN"] {
        assert!(survives_preload(Path::new(odd)).is_err(), "{odd:?}");
    }
    for plain in ["/a", "/ä/ö", "/a-b_c.d+e"] {
        assert_eq!(survives_preload(Path::new(plain)), Ok(()));
    }
}
