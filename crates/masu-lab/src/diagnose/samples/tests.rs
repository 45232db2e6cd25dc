//! Samples of this machine's processes, checked by their work.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use masu_run::execute::alone;
use masu_run::kernel;

#[test]
fn maps_tell_where_code_lies() {
    let mut files = vec!["/lib/known.so".to_owned()];
    let map = "\
00400000-00452000 r-xp 00002000 08:02 173521      /usr/bin/a program
00651000-00652000 rw-p 00051000 08:02 173521      /usr/bin/a program
7f0000010000-7f0000011000 r-xp 00000000 08:02 9   /lib/known.so
7f0000400000-7f0000600000 rwxp 00000000 00:00 0 
7ffff7fc0000-7ffff7fc2000 r-xp 00000000 00:00 0   [vdso]
";
    let mappings = code(map, "", &mut files);
    assert_eq!(files, ["/lib/known.so", "/usr/bin/a program"]);
    assert_eq!(holds(&mappings, 0x40_0010), Some((1, 0x2010)));
    assert_eq!(holds(&mappings, 0x7f00_0001_0000), Some((0, 0)));
    assert_eq!(holds(&mappings, 0x65_1000), None);
    assert_eq!(mappings.len(), 2);
    // In a container the same path is another file.
    code(map, "/proc/7/root", &mut files);
    assert_eq!(files[2..], ["/proc/7/root/usr/bin/a program", "/proc/7/root/lib/known.so"]);
    assert_eq!(root_of(Pid::try_from(std::process::id()).unwrap()), "");
}

#[test]
fn a_program_is_recognized_by_the_name_that_it_was_started_by() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let [file, link, other] = ["check", "server", "other"].map(|name| folder.join(name));
    fs::write(&file, "").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let place = |file: &Path| Place { file: file.to_owned(), share: 0.5, ..Place::default() };
    let sampled = Sampled { places: vec![place(&file), place(&other)], ..Sampled::default() };
    assert_eq!(sampled.clone().calling(&file, &other).places[0].file, file, "no link to it");
    let places = sampled.calling(&file, &link).places;
    assert_eq!((&places[0].file, &places[1].file), (&link, &other));
}

#[test]
fn a_collectors_library_is_called_a_collector() {
    let place = |file: &str| Place {
        file: PathBuf::from(file),
        share: 0.52,
        is_malloc: true,
        ..Place::default()
    };
    let listing = |place| Sampled { places: vec![place], ..Sampled::default() }.listing();
    assert_eq!(listing(place("/lib/libgc.so.1.5.1")), "the collector libgc.so.1.5.1 52 %");
    assert_eq!(listing(place("/lib/libc.so.6")), "the malloc of libc.so.6 52 %");
}

#[test]
fn a_caller_is_named_where_it_has_most() {
    let tally = |counts: &[(&str, u64)]| Tally {
        samples: 10,
        callers: counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
    };
    assert_eq!(tally(&[("a", 3), ("b", 6)]).caller().as_deref(), Some("b"));
    assert_eq!(tally(&[("a", 3), ("b", 4)]).caller(), None);
    assert_eq!(tally(&[]).caller(), None);
}

#[test]
fn a_program_that_computes_is_found_in_its_own_file() {
    let _alone = alone();
    let mut child = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .stdin(Stdio::null())
        .spawn()
        .expect("there is a shell");
    let pid = Pid::try_from(child.id()).expect("numbers are small");
    let began = Instant::now();
    let mut samples = Samples::default();
    while samples.samples < Sampled::ENOUGH {
        samples.look(&[pid]);
        if let State::Refused(error) = &samples.state {
            eprintln!("skipped: no perf events here: {error}");
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(600), "in vain: {samples:?}");
        thread::sleep(Duration::from_millis(10));
    }
    let shell = fs::read_link(format!("/proc/{pid}/exe")).expect("it runs");
    child.kill().expect("it is a child");
    child.wait().expect("it ends");
    let Ok(sampled) = samples.finish() else { return };
    let in_shell: f64 =
        sampled.places.iter().filter(|it| it.file == shell).map(|it| it.share).sum();
    assert!(in_shell > 0.3 && sampled.malloc_share < 0.5, "{sampled:?}");
    assert!(sampled.unknown <= sampled.samples / 10, "{sampled:?}");
}

#[test]
fn samples_of_a_process_that_is_gone_show_no_shares_unless_its_map_is_known() {
    let _alone = alone();
    for is_known in [true, false] {
        let mut child = Command::new("sh")
            .args(["-c", "echo; while :; do :; done"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        // Before that its libraries may not be in its map.
        let mut output = child.stdout.take().expect("it is piped");
        output.read_exact(&mut [0]).expect("it writes a line");
        let pid = Pid::try_from(child.id()).expect("numbers are small");
        let mut samples = Samples::default();
        samples.look(&[pid]);
        let began = Instant::now();
        while kernel::cpu_time(pid).is_none_or(|used| used < Duration::from_millis(300)) {
            assert!(began.elapsed() < Duration::from_secs(600), "it has no CPU");
            thread::sleep(Duration::from_millis(10));
        }
        child.kill().expect("it is a child");
        child.wait().expect("it ends");
        if !is_known {
            samples.maps.clear();
        }
        let Ok(sampled) = samples.finish() else {
            return eprintln!("skipped: no perf events here");
        };
        let Sampled { samples, gone, .. } = sampled;
        assert!(samples >= Sampled::ENOUGH, "{sampled:?}");
        // A sample at its end may lie in no file's code, of which nothing is to be known.
        let as_many_are = if is_known { gone == 0 } else { gone > samples / 2 };
        assert!(as_many_are && sampled.show_shares() == is_known, "{sampled:?}");
    }
}

#[test]
fn where_nothing_ran_there_is_nothing_to_tell() {
    assert_eq!(Samples::default().finish(), Ok(Sampled::default()));
    let mut samples = Samples::default();
    samples.look(&[Pid::MAX]);
    assert_eq!(samples.finish(), Ok(Sampled::default()));
}
