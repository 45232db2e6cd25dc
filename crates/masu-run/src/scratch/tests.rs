//! Tests of the folders that runs start in.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::time::{Duration, SystemTime};

use super::*;

/// A folder of its own for one test, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("masu-place-{}-{name}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        remove(&self.0).unwrap();
    }
}

fn folder(scratch: &Scratch) -> ScratchFolder {
    ScratchFolder::create(scratch).unwrap().unwrap()
}

fn names(path: &Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[test]
fn every_run_finds_an_empty_folder_at_the_same_path_and_nothing_stays() {
    assert!(ScratchFolder::create(&Scratch::None).unwrap().is_none());
    let scratch = folder(&Scratch::Empty);
    let path = scratch.path().to_owned();
    for _ in 0..2 {
        scratch.fresh(&Stop::never()).unwrap();
        assert!(path.is_absolute() && names(&path).is_empty());
        fs::write(path.join("left"), "x").unwrap();
    }
    scratch.remove().unwrap();
    assert!(!path.exists());
    scratch.remove().unwrap();
    let root = scratch.root.clone();
    drop(scratch);
    assert!(!root.exists());
}

#[test]
fn a_copy_has_contents_links_permissions_and_times() {
    let place = Place::new("copy");
    let source = place.0.join("source");
    fs::create_dir_all(source.join("inner/deep")).unwrap();
    fs::write(source.join("inner/deep/file"), "content").unwrap();
    let odd = OsStr::from_bytes(b"-odd \xff\n*");
    fs::write(source.join(odd), "odd").unwrap();
    symlink("inner/deep/file", source.join("link")).unwrap();
    symlink("/no/such/target", source.join("dangling")).unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let file = source.join("inner/deep/file");
    File::open(&file).unwrap().set_modified(long_ago).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).unwrap();
    File::open(source.join("inner")).unwrap().set_modified(long_ago).unwrap();
    fs::set_permissions(source.join("inner"), fs::Permissions::from_mode(0o555)).unwrap();

    let scratch = folder(&Scratch::CopyOf(source.clone()));
    for _ in 0..2 {
        scratch.fresh(&Stop::never()).unwrap();
        let copy = scratch.path();
        assert_eq!(names(copy), [odd, OsStr::new("dangling"), "inner".as_ref(), "link".as_ref()]);
        assert_eq!(fs::read_to_string(copy.join("link")).unwrap(), "content");
        assert_eq!(fs::read_link(copy.join("dangling")).unwrap(), Path::new("/no/such/target"));
        for path in ["inner", "inner/deep/file"] {
            let (one, other) = (source.join(path), copy.join(path));
            let (one, other) = (fs::metadata(one).unwrap(), fs::metadata(other).unwrap());
            assert_eq!(one.permissions(), other.permissions());
            assert_eq!(other.modified().unwrap(), long_ago);
        }
        fs::remove_file(copy.join("link")).unwrap();
    }
}

#[test]
fn what_a_run_leaves_is_removed_and_no_link_followed() {
    let place = Place::new("removal");
    fs::write(place.0.join("precious"), "x").unwrap();
    let scratch = folder(&Scratch::Empty);
    scratch.fresh(&Stop::never()).unwrap();
    let locked = scratch.path().join("locked");
    fs::create_dir_all(locked.join("inner")).unwrap();
    symlink(&place.0, locked.join("out")).unwrap();
    fs::write(locked.join("inner/file"), "x").unwrap();
    for path in [locked.join("inner/file"), locked.join("inner"), locked.clone()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
    }
    scratch.remove().unwrap();
    assert!(!scratch.path().exists());
    assert!(place.0.join("precious").exists());
}

#[test]
fn locked_folders_are_opened_up_and_links_left_alone() {
    // Root may remove anything, so the test checks the permissions themselves that make removal possible for others.
    let place = Place::new("locked");
    let (inside, outside) = (place.0.join("inside"), place.0.join("outside"));
    fs::create_dir_all(inside.join("deep")).unwrap();
    fs::create_dir(&outside).unwrap();
    symlink(&outside, inside.join("link")).unwrap();
    for path in [inside.join("deep"), inside.clone(), outside.clone()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o500)).unwrap();
    }
    open_up(&inside);
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(inside.clone()), 0o700);
    assert_eq!(mode(inside.join("deep")), 0o700);
    assert_eq!(mode(outside), 0o500);
}

#[test]
fn what_cannot_be_copied_is_named() {
    let place = Place::new("wrong");
    let file = place.0.join("file");
    fs::write(&file, "x").unwrap();
    for (path, word) in [
        (place.0.join("missing"), "check the path"),
        (file, "no folder"),
        (PathBuf::from("/"), "TMPDIR"),
    ] {
        let error = ScratchFolder::create(&Scratch::CopyOf(path.clone())).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains(path.to_str().unwrap()), "{error}");
    }
    let odd = PathBuf::from(OsStr::from_bytes(b"/tmp/\xff"));
    let error = named_in_text(odd).unwrap_err().to_string();
    assert!(error.contains("TMPDIR"), "{error}");
    let gone = place.0.join("gone");
    fs::create_dir(&gone).unwrap();
    let scratch = folder(&Scratch::CopyOf(gone.clone()));
    fs::remove_dir(&gone).unwrap();
    let error = scratch.fresh(&Stop::never()).unwrap_err().to_string();
    assert!(error.contains("gone") && error.contains("No such file"), "{error}");
    assert!(!scratch.path().exists());
}

#[test]
fn a_full_disk_is_reported_with_its_place_and_a_way_out() {
    let scratch = folder(&Scratch::CopyOf(std::env::current_dir().unwrap()));
    let full = "cp: error writing '/data/big': No space left on device".to_owned();
    let error = scratch.wrong(full).to_string();
    assert!(error.contains("/data/big") && error.contains("TMPDIR"), "{error}");
}

#[test]
fn a_stop_ends_the_copying_and_leaves_nothing() {
    let place = Place::new("stop");
    fs::write(place.0.join("file"), "x").unwrap();
    let scratch = folder(&Scratch::CopyOf(place.0.clone()));
    let stop = Stop::never();
    stop.request();
    assert!(matches!(scratch.fresh(&stop), Err(Error::Stopped)));
    assert!(!scratch.path().exists());
}

#[test]
fn a_copy_has_the_holes_of_its_original_and_all_that_lies_between_them() {
    let place = Place::new("holes");
    let source = place.0.join("source");
    fs::create_dir(&source).unwrap();
    let file = File::create(source.join("file")).unwrap();
    // The file is larger than any disk it may be copied to, as far as the file system allows.
    let far = 1 << 40;
    file.set_len(far + 100).unwrap();
    for (at, text) in [(0, "first"), (5 << 20, "middle"), (far, "last")] {
        std::os::unix::fs::FileExt::write_all_at(&file, text.as_bytes(), at).unwrap();
    }
    let scratch = folder(&Scratch::CopyOf(source));
    scratch.fresh(&Stop::never()).unwrap();
    let copy = File::open(scratch.path().join("file")).unwrap();
    let metadata = copy.metadata().unwrap();
    assert_eq!(metadata.len(), far + 100);
    assert!(metadata.blocks() * 512 < 1 << 20, "{metadata:?}");
    for (at, text) in [(0, "first\0"), (5 << 20, "middle\0"), (far - 1, "\0last\0")] {
        let mut found = vec![1; text.len()];
        std::os::unix::fs::FileExt::read_exact_at(&copy, &mut found, at).unwrap();
        assert_eq!(found, text.as_bytes());
    }
}

#[test]
fn a_place_of_a_mount_is_found_below_a_folder_whatever_its_name_and_only_there() {
    let mounts = b"36 35 98:0 / / rw,noatime - ext4 /dev/root rw\n\
        37 36 0:5 /d /tmp/run\\040one/d\\134e rw shared:1 - ext4 /dev/root rw\n\
        38 36 0:5 /d /tmp/run2 rw - tmpfs none rw\nodd\n";
    let below = |path: &str| mounted_below(mounts, Path::new(path));
    assert_eq!(below("/tmp/run one"), Some(PathBuf::from("/tmp/run one/d\\e")));
    assert_eq!(below("/tmp/run2"), Some(PathBuf::from("/tmp/run2")));
    assert_eq!(below("/tmp/run"), None);
    assert_eq!(below("/tmp/run2/x"), None);
}

/// Mounting needs root, or a namespace where the user is root; where neither is available, nothing can
/// be lost either.
#[test]
fn what_is_mounted_in_a_folder_is_not_removed_with_it() {
    let _alone = crate::execute::alone();
    let place = Place::new("mount");
    let (precious, run) = (place.0.join("precious"), place.0.join("run"));
    fs::create_dir_all(run.join("mounted")).unwrap();
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("data"), "data").unwrap();
    // The test program again, in a namespace of mounts of its own, as the test below.
    let script = "mount --make-rprivate / && mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"";
    let own = std::env::current_exe().unwrap();
    let mut unshare = std::process::Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    unshare.args([&precious, &run.join("mounted"), &own]);
    unshare.args(["--exact", "--ignored", "scratch::tests::removal_of_a_folder_with_a_mount"]);
    let outcome = unshare.env("MASU_TEST_FOLDER", &run).output();
    assert!(precious.join("data").exists());
    let Ok(outcome) = outcome else { return };
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    let may_not = ["unshare: unshare failed", "unshare: write failed", "mount: "];
    assert!(
        outcome.status.success() || may_not.iter().any(|start| said.starts_with(start)),
        "{outcome:?}"
    );
}

#[test]
#[ignore = "the test above starts it, where something is mounted"]
fn removal_of_a_folder_with_a_mount() {
    let folder = PathBuf::from(std::env::var_os("MASU_TEST_FOLDER").unwrap());
    let error = remove(&folder).unwrap_err().to_string();
    assert!(error.contains("unmount it") && error.contains("/mounted"), "{error}");
    assert!(folder.join("mounted/data").exists());
}
