//! Real programs under the mallocs of this machine, through the public interface: the same output,
//! and the proof that each malloc served it.

use std::io::{Seek, Write};

use masu_lab::results::Rounds;
use masu_lab::{
    Catalogue, CompareOptions, Ending, Input, Libc, Limits, Places, Plan, Program, Stop, Variant,
    Workload, compare, execute, verify,
};

/// Debian's malloc libraries and the packages they come in.
const PACKAGED: [(&str, &str); 3] = [
    ("jemalloc", "libjemalloc2"),
    ("tcmalloc", "libtcmalloc-minimal4"),
    ("mimalloc", "libmimalloc2.0"),
];

fn catalogue() -> Catalogue {
    let catalogue = Catalogue::find(&Places::default());
    for (name, package) in PACKAGED {
        assert!(
            catalogue.get(name, Libc::Glibc).is_some(),
            "this test needs {name}: apt-get install {package}"
        );
    }
    catalogue
}

fn variants(catalogue: &Catalogue, program: &Program) -> Vec<Variant> {
    let names = ["system", "glibc:top_pad=64M,trim_threshold=64M"].into_iter();
    names
        .chain(PACKAGED.map(|(name, _)| name))
        .map(|name| catalogue.resolve(&name.parse().unwrap(), program).unwrap())
        .collect()
}

fn input(content: &[u8]) -> Input {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file.rewind().unwrap();
    Input::keep(file).unwrap()
}

#[test]
fn sed_says_the_same_under_every_malloc_and_each_one_serves_it() {
    let catalogue = catalogue();
    let input: String = (0..2000).map(|number| format!("line {number}\n")).collect();
    let input = self::input(input.as_bytes());
    let workload = Workload::new(["sed", "-e", "H;$!d;x;s/line/LINE/g"], input).unwrap();
    let variants = variants(&catalogue, &workload.program);
    let options = CompareOptions { seed: Some(1), ..CompareOptions::default() };
    let plan = Plan::single(&workload, &variants, Rounds::Fixed(2));
    let comparison = compare(&plan, &options, &Stop::never(), &mut |_| {}).unwrap();
    assert!(comparison.tables[0].summary.repeatable, "{:?}", comparison.tables[0].summary.warnings);
    assert!(
        comparison.tables[0].runs.iter().all(|run| run.stdout.bytes == 18_891),
        "{comparison:?}"
    );
    for (variant, evidence) in variants.iter().zip(&comparison.tables[0].evidence) {
        let expected: &[&str] = if variant.library.is_some() { &["sed"] } else { &[] };
        assert_eq!(evidence.served, expected, "{}", variant.label);
    }
}

#[test]
fn settings_reach_the_c_library() {
    // `grep` reads the size of its own heap; with a top pad of 64 MB that is more than 60.
    let script = "line=$(grep -F '[heap]' /proc/self/maps); range=${line%% *}; \
                  [ $((0x${range#*-} - 0x${range%-*})) -gt 60000000 ]";
    let workload = Workload::new(["sh", "-c", script], Input::Empty).unwrap();
    let endings = ["glibc", "glibc:top_pad=64M"].map(|name| {
        let variant = catalogue().resolve(&name.parse().unwrap(), &workload.program).unwrap();
        execute::execute(&workload, &variant, &Limits::default(), &Stop::never()).unwrap().ending
    });
    assert_eq!(endings, [Ending::Exited(1), Ending::Exited(0)]);
}

/// A program without a loader that does nothing but return 0: an ELF header, one segment, and the system call `exit`.
fn static_program() -> Vec<u8> {
    let (machine, code): (u8, &[u8]) = if cfg!(target_arch = "x86_64") {
        (0x3e, &[0x31, 0xff, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05])
    } else {
        (0xb7, &[0xa8, 0x0b, 0x80, 0xd2, 0x00, 0x00, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4])
    };
    let (address, headers) = (0x40_0000_u64, 120_u64);
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([2, 0, machine, 0, 1, 0, 0, 0]);
    for word in [address + headers, 64, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0]);
    bytes.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    let length = headers + code.len() as u64;
    for word in [0, address, address, length, length, 0x1_0000] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(code);
    bytes
}

/// An executable file.
struct Executable(tempfile::TempPath);

impl Executable {
    /// `cat` writes the file: had this process it open for writing, a program that another test
    /// starts in that time would hold it open too for a moment, and a busy file cannot be started.
    fn new(bytes: &[u8]) -> Executable {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let script = "cat > $0 && chmod 755 $0";
        let copy =
            Workload::new(["sh", "-c", script, path.to_str().unwrap()], input(bytes)).unwrap();
        let system = catalogue().resolve(&"system".parse().unwrap(), &copy.program).unwrap();
        let run = execute::execute(&copy, &system, &Limits::default(), &Stop::never()).unwrap();
        assert_eq!(run.ending, Ending::Exited(0));
        Executable(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

#[test]
fn a_static_program_behind_a_wrapper_is_named() {
    let program = Executable::new(&static_program());
    let name = program.0.file_name().unwrap().to_str().unwrap();
    let script = format!("{}; ls /", program.path());
    let workload = Workload::new(["sh", "-c", &script], Input::Empty).unwrap();
    let variant = catalogue().resolve(&"jemalloc".parse().unwrap(), &workload.program).unwrap();
    let (_, evidence) =
        verify::verify(&workload, &variant, &Limits::default(), &Stop::never()).unwrap();
    assert!(evidence.served.contains(&"ls".to_owned()), "{evidence:?}");
    assert_eq!(evidence.not_served, [format!("{name}: it is linked statically")]);
}
