//! A file is whole and ours, or it is written again; a folder that is unfit is passed over.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::thread;

use super::{extract, holds};

const CONTENT: &[u8] = b"\x7fELF and so on";

#[test]
fn the_file_holds_the_bytes_for_all_to_read() {
    let root = tempfile::tempdir().unwrap();
    let path = extract(CONTENT, "lib.so", &[root.path().join("masu")]).unwrap();
    assert_eq!(fs::read(&path).unwrap(), CONTENT);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn a_second_extraction_keeps_the_first_file() {
    let root = tempfile::tempdir().unwrap();
    let folders = [root.path().join("masu")];
    let inode = |path| fs::metadata(path).unwrap().ino();
    let first = inode(extract(CONTENT, "lib.so", &folders).unwrap());
    assert_eq!(first, inode(extract(CONTENT, "lib.so", &folders).unwrap()));
}

#[test]
fn a_damaged_file_is_written_again() {
    let root = tempfile::tempdir().unwrap();
    let folders = [root.path().join("masu")];
    let path = extract(CONTENT, "lib.so", &folders).unwrap();
    for damaged in [&b""[..], b"short", b"\x7fELF and so ON", b"\x7fELF and so on and on"] {
        fs::write(&path, damaged).unwrap();
        assert!(!holds(&path, CONTENT));
        assert_eq!(fs::read(extract(CONTENT, "lib.so", &folders).unwrap()).unwrap(), CONTENT);
    }
}

#[test]
fn a_file_that_others_may_write_to_or_cannot_read_is_replaced() {
    let root = tempfile::tempdir().unwrap();
    let folders = [root.path().join("masu")];
    let path = extract(CONTENT, "lib.so", &folders).unwrap();
    for mode in [0o666, 0o600] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let path = extract(CONTENT, "lib.so", &folders).unwrap();
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o644);
    }
}

#[test]
fn a_link_in_place_of_the_file_is_replaced_and_what_it_points_to_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("masu");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    let victim = root.path().join("victim");
    // The bytes are the same, so only the link itself can be the reason for the refusal.
    fs::write(&victim, CONTENT).unwrap();
    symlink(&victim, folder.join("lib.so")).unwrap();
    let path = extract(CONTENT, "lib.so", &[folder]).unwrap();
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
    assert_eq!(fs::read(&victim).unwrap(), CONTENT);
}

#[test]
fn an_unfit_folder_is_passed_over() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    let folders = [file.join("masu"), root.path().join("with space"), root.path().join("masu")];
    let path = extract(CONTENT, "lib.so", &folders).unwrap();
    assert!(path.ends_with("masu/lib.so"), "{}", path.display());
}

#[test]
fn with_no_fit_folder_each_refusal_is_reported() {
    let root = tempfile::tempdir().unwrap();
    let folders = [root.path().join("a:b"), root.path().join("c d")];
    let message = extract(CONTENT, "lib.so", &folders).unwrap_err().to_string();
    assert!(message.contains("a:b: ") && message.contains("c d: "), "{message}");
    assert!(message.contains("XDG_CACHE_HOME"), "{message}");
}

#[test]
fn extractions_at_the_same_time_all_see_a_whole_file() {
    let root = tempfile::tempdir().unwrap();
    let folders = [root.path().join("masu")];
    let content = vec![7; 1 << 20];
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let path = extract(&content, "lib.so", &folders).unwrap();
                assert!(fs::read(path).unwrap() == content);
            });
        }
    });
}
