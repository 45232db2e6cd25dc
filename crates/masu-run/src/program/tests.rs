//! Tests of looking programs up: on real files of this machine, and on files made for the purpose.
use super::*;

fn refused(command: &str) -> String {
    Program::find(OsStr::new(command)).unwrap_err().to_string()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: &[u8], mode: u32) -> String {
        let path = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

#[test]
fn a_command_is_found_in_the_path() {
    let program = Program::find(OsStr::new("sed")).unwrap();
    assert!(program.path.ends_with("sed") && program.path.is_absolute());
    assert_eq!(program.refusal, None);
}

#[test]
fn what_cannot_be_started_says_why() {
    let folder = Folder::new();
    assert!(refused("").contains("is empty"));
    assert!(refused("no-such-command-at-all").contains("PATH"));
    assert!(refused("/no/such/file").contains("No such file"));
    assert!(refused("/usr").contains("folder"));
    let pipe = folder.0.path().join("pipe");
    // The run of another test takes any other child of this process for its own.
    let _alone = crate::execute::alone();
    assert!(
        std::process::Command::new("mkfifo").arg("-m755").arg(&pipe).status().unwrap().success()
    );
    assert!(refused(pipe.to_str().unwrap()).contains("a pipe"));
    assert_eq!(elf::Image::read(&pipe).unwrap_err(), elf::NO_ELF, "it waits for no writer");
    assert!(refused(&folder.file("plain", b"x", 0o644)).contains("chmod"));
    assert!(refused(&folder.file("text", b"not a program at all", 0o755)).contains("neither"));
}

#[test]
fn a_script_is_judged_by_its_interpreter() {
    let folder = Folder::new();
    let shell = Program::find(OsStr::new("sh")).unwrap();
    for first in ["#!/bin/sh -e\n", "#! /usr/bin/env sh\n", "#!/usr/bin/env -S A=b sh -e\n"] {
        let script = folder.file("script", first.as_bytes(), 0o755);
        let program = Program::find(OsStr::new(&script)).unwrap();
        assert_eq!(program.path, PathBuf::from(&script));
        assert_eq!(program.binary.file_name(), shell.path.file_name(), "{first}");
        assert_eq!(program.refusal, None);
    }
    let lost = folder.file("lost", b"#!/no/such/interpreter\n", 0o755);
    assert!(refused(&lost).contains("/no/such/interpreter"));
    let windows = folder.file("windows", b"#!/bin/sh\r\necho\r\n", 0o755);
    assert!(refused(&windows).contains("carriage return"));
}

#[test]
fn foreign_programs_are_refused() {
    let folder = Folder::new();
    let mut bytes = fs::read(Program::find(OsStr::new("true")).unwrap().path).unwrap();
    bytes[4] = 1;
    assert!(refused(&folder.file("small", &bytes, 0o755)).contains("32-bit"));
    bytes[4] = 2;
    bytes[18] = 0xf3;
    assert!(refused(&folder.file("riscv", &bytes, 0o755)).contains("another architecture"));
    bytes.truncate(80);
    bytes[18] = 0x3e;
    assert!(Program::find(OsStr::new(&folder.file("cut", &bytes, 0o755))).is_err());
}

#[test]
fn a_program_whose_loader_is_missing_names_it() {
    let folder = Folder::new();
    let mut bytes = fs::read(Program::find(OsStr::new("true")).unwrap().path).unwrap();
    let start = bytes.windows(6).position(|window| window == b"/lib64" || window == b"/lib/l");
    bytes[start.expect("`true` names its loader") + 1] = b'x';
    let message = refused(&folder.file("foreign", &bytes, 0o755));
    assert!(message.contains("its loader /xib"), "{message}");
}

#[test]
fn free_pascals_programs_are_not_taken_for_glibcs() {
    let folder = Folder::new();
    let mut bytes = fs::read(Program::find(OsStr::new("true")).unwrap().path).unwrap();
    let has_note = |bytes: &[u8]| {
        elf::Image::read(Path::new(&folder.file("pascal", bytes, 0o755))).unwrap().has_glibc_note
    };
    let noted = has_note(&bytes);
    let name = b"\0.dynamic\0";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at..][..name.len()].copy_from_slice(b"\0.fpcdata\0");
    let is_musl = Program::find(OsStr::new("true")).unwrap().libc == Libc::Musl;
    assert_eq!((noted, has_note(&bytes)), (!is_musl, false));
}

/// A dynamic program with these libraries and functions.
fn image(needed: &[&str], defined: &[&str], imported: &[&str]) -> elf::Image {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    elf::Image {
        libc: Libc::Glibc,
        loader: Some("/lib/ld.so".into()),
        needed: owned(needed),
        defined: defined.iter().map(|&name| (name.to_owned(), 1)).collect(),
        imported: owned(imported),
        ..elf::Image::default()
    }
}

#[test]
fn bundled_mallocs_and_sanitizers_are_named() {
    let plain = image(&["libc.so.6"], &[], &["malloc"]);
    assert_eq!(plain.refusal(), None);
    for (image, word) in [
        (image(&["libc.so.6"], &["mi_malloc"], &[]), "mimalloc"),
        (image(&["libc.so.6"], &["malloc"], &[]), "defines `malloc`"),
        (image(&["libc.so.6"], &["__asan_init"], &[]), "AddressSanitizer"),
        (image(&["libtsan.so.2"], &[], &[]), "ThreadSanitizer"),
        (elf::Image { loader: None, ..plain }, "statically"),
        (elf::Image { is_go: true, ..image(&[], &[], &[]) }, "GOGC"),
    ] {
        let refusal = image.refusal().unwrap();
        assert!(refusal.contains(word), "{refusal}");
    }
}

#[test]
fn a_malloc_that_is_linked_is_reported_and_no_reason_to_refuse() {
    let linked = image(&["libm.so.6", "libjemalloc.so.2", "libc.so.6"], &[], &["malloc"]);
    assert_eq!(linked.linked_malloc().as_deref(), Some("libjemalloc.so.2"));
    assert_eq!(linked.refusal(), None);
    assert_eq!(image(&["libm.so.6", "libc.so.6"], &[], &["malloc"]).linked_malloc(), None);
    assert_eq!(linked.jemalloc_call(), None);
    let caller = image(&["libc.so.6"], &[], &["malloc", "sdallocx"]);
    assert_eq!(caller.jemalloc_call(), Some("sdallocx"));
}

#[test]
fn a_library_that_is_a_malloc_shows_its_entries() {
    let libc = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6"]
        .map(Path::new)
        .into_iter()
        .find(|path| path.exists())
        .expect("this test reads the GNU C library");
    let image = elf::Image::read(libc).unwrap();
    assert!(image.defines("malloc") && image.defines("posix_memalign"));
}

#[test]
fn more_rights_than_ours_are_a_reason_to_refuse() {
    let folder = Folder::new();
    let bytes = fs::read(Program::find(OsStr::new("true")).unwrap().path).unwrap();
    let program = folder.file("program", &bytes, 0o4755);
    // Setuid to ourselves changes nothing; setuid to someone else does.
    assert_eq!(Program::find(OsStr::new(&program)).unwrap().refusal, None);
    let someone = if kernel::effective_ids().0 == 0 {
        std::os::unix::fs::chown(&program, Some(12345), None).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
        program
    } else {
        "/usr/bin/passwd".to_owned()
    };
    let found = Program::find(OsStr::new(&someone)).unwrap();
    assert!(found.refusal.as_ref().unwrap().contains("setuid"), "{found:?}");
    assert!(matches!(found.preloadable(), Err(Error::NoPreload { .. })));
    // The kernel gives a script the rights of its interpreter, and never those of its own file.
    for (interpreter, is_refused) in [(&*someone, true), ("/bin/sh", false)] {
        let script = folder.file("script", format!("#!{interpreter}\n").as_bytes(), 0o755);
        if kernel::effective_ids().0 == 0 {
            std::os::unix::fs::chown(&script, Some(12345), None).unwrap();
            fs::set_permissions(&script, fs::Permissions::from_mode(0o4755)).unwrap();
        }
        let found = Program::find(OsStr::new(&script)).unwrap();
        assert_eq!(found.refusal.is_some(), is_refused, "{found:?}");
    }
}
