//! xquo as a filter: the same bytes as xquo 0.2.3 for all options, and its errors.

mod process;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use process::{outcome, xquo};

/// The records of report 1: `test'N<BS>''N`.
fn records(count: usize) -> Vec<u8> {
    (0..count).flat_map(|n| format!("test'{n}\x08''{n}\0").into_bytes()).collect()
}

/// FNV-1a of 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Every byte of valid UTF-8 below 128, in records of all lengths, and some above.
fn varied() -> Vec<u8> {
    let mut input = Vec::new();
    for length in 0..300 {
        input.extend((0..length).map(|at| (at * 7 + length) as u8 % 127 + 1));
        input.extend("é\u{1f600}\0".as_bytes());
    }
    input
}

/// Hashes of the output of the published xquo 0.2.3.
const PUBLISHED: &[(&[&str], u64, u64)] = &[
    (&[], 0x62c7_01fb_ca40_8b9f, 0x1e09_bd79_6bb2_061a),
    (&["-n"], 0x3799_fb50_250f_248f, 0x4b7b_17e5_a4a2_21e6),
    (&["-o", "null"], 0x47f5_5c49_7220_83af, 0x5f18_48ef_f2d3_82ce),
    (&["-n", "-o", "null"], 0x14b1_a84e_cfe0_fc1f, 0xe0ed_69b7_0641_ee3a),
];

#[test]
fn the_output_is_that_of_the_published_xquo() {
    for (options, of_records, of_varied) in PUBLISHED {
        for workers in ["-w0", "-w1", "-w2", "-w6"] {
            let quoted = |input: &[u8]| {
                let output = outcome(xquo(&[*options, &[workers]].concat()), input);
                assert!(output.status.success());
                output.stdout
            };
            let said = (hash(&quoted(&records(200_000))), hash(&quoted(&varied())));
            assert_eq!(said, (*of_records, *of_varied), "{options:?} {workers}");
        }
    }
}

/// All ten million records of report 1, whose output fills 428 MB.
#[test]
fn ten_million_records_are_quoted_as_the_published_xquo_does() {
    if std::env::var_os("MASU_SOAK").is_none() {
        println!("skipped: MASU_SOAK=1 runs it");
        return;
    }
    let input = records(10_000_000);
    for workers in ["-w1", "-w2"] {
        let output = outcome(xquo(&[workers]), &input);
        assert!(output.status.success());
        let said = (output.stdout.len(), hash(&output.stdout));
        assert_eq!(said, (427_777_780, 0x25ee_c93b_e234_063f), "{workers}");
    }
}

#[test]
fn the_input_delimiter_is_a_choice() {
    let quoted = |delimiter: &str, input: &[u8]| outcome(xquo(&["-i", delimiter]), input).stdout;
    assert_eq!(quoted("lf", b"a b\n\nc"), b"'a b'\n''\n'c'\n");
    assert_eq!(quoted("tab", b"a\tb"), b"'a'\n'b'\n");
    assert_eq!(quoted(":", b"a:b\n"), b"'a'\n'b'$'\\n'''\n");
    let mut any = xquo(&["-i"]);
    any.arg(OsStr::from_bytes(b"\xff"));
    assert_eq!(outcome(any, b"a\xffb").stdout, b"'a'\n'b'\n");
    let output = outcome(xquo(&["-i", "ab"]), b"");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("null, lf, tab, or one byte"), "{said}");
}

#[test]
fn a_closed_output_is_no_error() {
    let mut command = xquo(&[]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    drop(child.stdout.take());
    let input = records(400_000);
    let _ = stdin.write_all(&input);
    // Standard input stays open: the end must not wait for it.
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn an_output_that_is_full_and_an_input_that_cannot_be_read_are_reported() {
    let full = |arguments: &[&str]| {
        let mut full = xquo(arguments);
        full.stdout(File::create("/dev/full").unwrap());
        outcome(full, b"a\0")
    };
    let mut folder = xquo(&[]);
    folder.stdin(File::open("/").unwrap());
    let no_space = "writing to standard output: No space left on device (os error 28)";
    for (output, why) in [
        (full(&[]), no_space),
        (full(&["--version"]), no_space),
        (full(&["--help"]), no_space),
        (folder.output().unwrap(), "reading standard input: Is a directory (os error 21)"),
    ] {
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("xquo: {why}\n"));
    }
}

#[test]
fn a_terminal_is_refused_without_t() {
    let on_terminal = |arguments: &str| {
        let program = env!("CARGO_BIN_EXE_xquo");
        let mut command = Command::new("script");
        command.args(["-qec", &format!("{program} {arguments}"), "/dev/null"]);
        command.stdout(Stdio::piped());
        // A line, and the terminal's sign for the end of input.
        outcome(command, b"a\n\x04")
    };
    let refused = on_terminal("");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stdout).contains("standard input is a terminal"));
    let read = on_terminal("-t -i lf");
    assert_eq!(read.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&read.stdout).contains("'a'"));
}

/// The end of input may come together with the last line, as in a paste, and a terminal says it once.
#[test]
fn one_sign_for_the_end_of_input_is_enough_on_a_terminal() {
    let program = env!("CARGO_BIN_EXE_xquo");
    let mut command = Command::new("timeout");
    command.args(["60", "script", "-qec", &format!("{program} -t -i lf"), "/dev/null"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"a\n\x04").unwrap();
    // It stays open: its end would be another sign.
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(stdin);
}

#[test]
fn a_record_is_quoted_before_the_next_one_comes() {
    let mut child = xquo(&[]).stdin(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    for word in ["one", "two"] {
        stdin.write_all(format!("{word}\0").as_bytes()).unwrap();
        let mut line = vec![0; word.len() + 3];
        stdout.read_exact(&mut line).unwrap();
        assert_eq!(line, format!("'{word}'\n").as_bytes());
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

/// One thread quotes slow input, several quote fast input.
#[test]
fn a_record_that_begins_slowly_may_go_on_fast() {
    let mut child = xquo(&["-w2"]).stdin(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    stdin.write_all(b"slow").unwrap();
    let mut begun = [0; 5];
    stdout.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"'slow");
    let rest = std::thread::spawn(move || {
        let mut rest = Vec::new();
        stdout.read_to_end(&mut rest).unwrap();
        rest
    });
    let fast = vec![b'x'; 3 << 20];
    stdin.write_all(&fast).unwrap();
    stdin.write_all(b"\0end").unwrap();
    drop(stdin);
    assert!(rest.join().unwrap() == [&fast[..], b"'\n'end'\n"].concat());
    assert!(child.wait().unwrap().success());
}

#[test]
fn memory_stays_bounded_whatever_the_record_length() {
    let mut child = xquo(&["-w2"]).stdin(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let piece = vec![b'\''; 1 << 20];
    let pieces = 64;
    let quoted = pieces * piece.len() * 5;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..pieces {
                stdin.write_all(&piece).unwrap();
            }
        });
        let mut buffer = vec![0; 1 << 20];
        let mut seen = 0;
        while seen < quoted {
            seen += stdout.read(&mut buffer).unwrap();
        }
    });
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let peak: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    drop(stdin);
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"'\n");
    assert!(peak < 16 << 10, "{peak} KiB");
    assert!(child.wait().unwrap().success());
}

/// An engine that pipes the lines of each partition through a program, on any machine, and puts the outputs together:
/// `split` cuts between lines and starts the program for each part. COUPLING: the example of docs/xquo.md.
#[test]
fn partitions_quoted_apart_are_the_whole_quoted_at_once() {
    let folder = std::env::temp_dir().join(format!("xquo-partitions-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let names: Vec<u8> = (0..5000).flat_map(|n| format!("it's {n}\r\n").into_bytes()).collect();
    fs::write(folder.join("names"), &names).unwrap();
    let script =
        "split -n l/4 --filter='xquo -i lf > $FILE.quoted' names part. && cat part.*.quoted";
    let mut shell = Command::new("sh");
    let built = std::path::Path::new(env!("CARGO_BIN_EXE_xquo")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    shell.args(["-c", script]).current_dir(&folder).stdout(Stdio::piped());
    shell.env("PATH", format!("{}:{path}", built.display()));
    let apart = outcome(shell, b"");
    fs::remove_dir_all(&folder).unwrap();
    assert!(apart.status.success());
    assert!(apart.stdout == outcome(xquo(&["-i", "lf"]), &names).stdout);
}

#[test]
fn the_manual_page_and_the_completions_are_complete() {
    let page = outcome(xquo(&["--man"]), b"").stdout;
    let mut groff = Command::new("groff");
    groff.args(["-man", "-ww", "-Tutf8"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let set = outcome(groff, &page);
    assert_eq!(String::from_utf8_lossy(&set.stderr), "");
    assert!(String::from_utf8_lossy(&set.stdout).contains("Read also from a terminal"));
    let script = outcome(xquo(&["--completions", "bash"]), b"").stdout;
    let mut bash = Command::new("bash");
    bash.args(["-n"]).stderr(Stdio::piped());
    assert_eq!(outcome(bash, &script).stderr, b"");
    assert!(String::from_utf8_lossy(&script).contains("--out-delimiter"));
}
