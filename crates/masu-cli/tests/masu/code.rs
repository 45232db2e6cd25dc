//! `masu code`: objects of gcc loaded by the command and called, and the messages about those that cannot be.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::{failure, masu, unread};

const PROGRAM: &str = "#include <stdio.h>\n\
    extern int helper(int);\n\
    int main(int count, char **words) {\n\
      for (int i = 0; i < count; i++) printf(\"%s;\", words[i]);\n\
      return helper(count); }";

fn run(folder: &Path, program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).current_dir(folder).status();
    assert!(status.expect("the machine has it").success(), "{program} {arguments:?}");
}

/// A folder with these sources compiled, each to an object of the same name.
fn compiled(sources: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in sources {
        let source = format!("{name}.c");
        fs::write(folder.path().join(&source), text).unwrap();
        run(folder.path(), "gcc", &["-O1", "-fPIC", "-c", &source]);
    }
    folder
}

/// The output of `masu`, run in a folder; it must succeed.
fn said(folder: &Path, arguments: &[&str]) -> String {
    let output = masu(arguments).current_dir(folder).output().unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), wrong.as_ref()), (Some(0), ""), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn objects_are_loaded_called_and_reported_in_this_order() {
    let folder = compiled(&[("main", PROGRAM), ("helper", "int helper(int x) { return x * 7; }")]);
    let said = said(
        folder.path(),
        &["code", "load", "main.o", "helper.o", "--call", "main", "--", "a", "--b"],
    );
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("2 objects loaded in "), "{said}");
    assert!(lines[1].starts_with("  text ") && lines[1].contains(" bytes at 0x"), "{said}");
    assert_eq!(lines[6], "main;a;--b;main returned 21", "{said}");
}

#[test]
fn a_folder_and_a_static_library_are_their_objects() {
    let folder = compiled(&[("main", PROGRAM), ("helper", "int helper(int x) { return -x; }")]);
    let of_folder = said(folder.path(), &["code", "load", ".", "--call", "main"]);
    assert!(of_folder.ends_with("main;main returned -1\n"), "{of_folder}");
    run(folder.path(), "ar", &["rc", "both.a", "main.o", "helper.o"]);
    let of_library = said(folder.path(), &["code", "load", "both.a", "--call", "helper"]);
    assert!(of_library.starts_with("2 objects") && of_library.contains("helper returned -1"));
    let both = folder.path().join("both.a");
    let mut cat = Command::new("cat").arg(both).stdout(Stdio::piped()).spawn().unwrap();
    let mut load = masu(&["code", "load", "/dev/stdin", "--call", "helper"]);
    let output = load.stdin(cat.stdout.take().unwrap()).output().unwrap();
    assert!(cat.wait().unwrap().success());
    assert!(String::from_utf8(output.stdout).unwrap().contains("helper returned -1"));
}

#[test]
fn beside_objects_a_static_library_gives_what_is_needed() {
    let unused = "int nobody(void); int unused(void) { return nobody(); }";
    let helper = "#include <stdio.h>\nint helper(int x) { return x * 7 + (stderr == 0); }";
    let folder = compiled(&[("main", PROGRAM), ("unused", unused)]);
    fs::write(folder.path().join("helper.c"), helper).unwrap();
    // Without flags, code reaches `stderr` only near it.
    run(folder.path(), "gcc", &["-O1", "-fPIE", "-c", "helper.c"]);
    for kind in ["rcs", "rcsT"] {
        run(folder.path(), "ar", &[kind, "some.a", "unused.o", "helper.o"]);
        let said = said(folder.path(), &["code", "load", "some.a", "main.o", "--call", "main"]);
        assert!(said.starts_with("2 objects") && said.contains("main returned 7"), "{said}");
        fs::remove_file(folder.path().join("some.a")).unwrap();
    }
    run(folder.path(), "ar", &["rcS", "bare.a", "helper.o"]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (message, code) = failure(&["code", "load", &path("main.o"), &path("bare.a")]);
    assert!(code == 2 && message.contains("ranlib"), "{message}");
}

#[test]
fn code_for_fixed_addresses_is_loaded_low() {
    let folder = tempfile::tempdir().unwrap();
    let text = "int x = 5; int *where = &x; int f(void) { return *where + (int)(long)&x % 2; }";
    fs::write(folder.path().join("low.c"), text).unwrap();
    run(folder.path(), "gcc", &["-O2", "-fno-pic", "-c", "low.c"]);
    let object = folder.path().join("low.o").display().to_string();
    let (message, code) = failure(&["code", "load", &object]);
    assert!(code == 2 && message.contains("low.o: .text+0x"), "{message}");
    let said = said(folder.path(), &["code", "load", "low.o", "--low", "--call", "f"]);
    assert!(said.contains("f returned 5"), "{said}");
}

#[test]
fn what_cannot_be_loaded_or_called_is_named() {
    let folder = compiled(&[
        ("user", "int nobody(void); int f(void) { return nobody() + 1; }"),
        ("one", "int value = 1;"),
        ("two", "int value = 2; int g(void) { return 3; }"),
    ]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let says = |arguments: &[&str], parts: &[&str]| {
        let (message, code) = failure(&[&["code", "load"], arguments].concat());
        assert_eq!(code, 2, "{message}");
        for part in parts {
            assert!(message.contains(part), "{message} does not say {part}");
        }
    };
    says(&[&path("user.o")], &["user.o: .text+0x", "`nobody`", "undefined"]);
    says(&[&path("one.o"), &path("two.o")], &["two.o", "`value`", "one.o"]);
    says(&[&path("one.c")], &["one.c", "ELF"]);
    let (message, code) = {
        let output = unread(&mut masu(&["code", "load", &path("two.o"), "--call", "nobody"]));
        (String::from_utf8(output.stderr).unwrap(), output.status.code())
    };
    assert!(
        code == Some(2) && message.contains("no object defines a function `nobody`"),
        "{message}"
    );
}

#[test]
fn a_process_is_looked_at() {
    let process = std::process::id().to_string();
    let page = said(Path::new("."), &["code", "map", "-p", &process]);
    assert!(page.contains("executable mappings"), "{page}");
}
