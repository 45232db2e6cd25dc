//! `packaging/action`: two commits of a program compared, as the GitHub action does it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A program that reads and writes blocks of `mebibytes`.
fn copying(mebibytes: u32) -> String {
    format!("dd if=/dev/zero of=/dev/null bs={mebibytes}M count=4 2>/dev/null\n")
}

/// Makes a commit of a program.
fn commit(repository: &Path, job: &str) {
    fs::write(repository.join("job.sh"), job).unwrap();
    for words in [&["add", "."][..], &["commit", "--quiet", "--message", "A job"]] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=test", "-c", "user.email=test@localhost"]).args(words);
        assert!(git.current_dir(repository).status().unwrap().success(), "{words:?}");
    }
}

/// The exit code, the page and the messages of a comparison of `HEAD~1` with `head`.
fn compare(repository: &Path, head: &str, build: &str) -> (i32, String, String) {
    // Memory decides, which no other load changes.
    compare_by("peak_rss", repository, head, build)
}

fn compare_by(measure: &str, repository: &Path, head: &str, build: &str) -> (i32, String, String) {
    let words = ["HEAD~1", head, build, "sh '{tree}/built.sh'", "page.md"];
    run_script(repository, &words, &[("MEASURE", measure)])
}

fn run_script(
    repository: &Path,
    words: &[&str],
    variables: &[(&str, &str)],
) -> (i32, String, String) {
    let page = repository.join("page.md");
    let _ = fs::remove_file(&page);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/action");
    let mut command = Command::new(script.join("compare-commits.sh"));
    command.args(words).env("MASU", env!("CARGO_BIN_EXE_masu")).env("RUNS", "12");
    let output = command.envs(variables.iter().copied()).current_dir(repository).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap(), fs::read_to_string(page).unwrap_or_default(), said)
}

fn init(repository: &Path) {
    let git = Command::new("git").args(["init", "--quiet"]).current_dir(repository).status();
    assert!(git.unwrap().success());
}

#[test]
fn a_commit_of_more_instructions_fails_the_gate_that_counts_them() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path();
    init(repository);
    for rounds in [1000, 9000] {
        let job = format!("i=0; while [ $i -lt {rounds} ]; do i=$((i + 1)); done; /bin/true\n");
        commit(repository, &job);
    }
    let compare = |head| compare_by("instructions", repository, head, "cp job.sh built.sh");
    let (code, page, said) = compare("HEAD");
    assert_eq!(code, 1, "{said}");
    assert!(page.contains("more than the limit of 3 %"), "{page}");
    let (code, page, said) = compare("HEAD~1");
    assert_eq!(code, 0, "{said}");
    assert!(page.contains("| head |") && page.contains("within the limit"), "{page}");
}

#[test]
fn a_commit_that_needs_more_memory_fails_the_gate_and_the_page_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path();
    init(repository);
    commit(repository, &copying(1));
    commit(repository, &copying(32));
    let (code, page, said) = compare(repository, "HEAD", "cp job.sh built.sh");
    assert_eq!(code, 1, "{said}");
    assert!(page.contains("tree=./head") && page.contains("× the peak resident memory"), "{page}");
    let (code, page, said) = compare(repository, "HEAD~1", "cp job.sh built.sh");
    assert_eq!(code, 0, "a commit beside itself passes: {said}");
    assert!(page.contains("tree=./head"), "{page}");
    for (head, build, problem) in [
        ("HEAD", "exit 3", "the build of base failed: exit 3"),
        ("HEAD", "grep -q 1M job.sh", "the build of head failed: grep -q 1M job.sh"),
    ] {
        let (code, page, said) = compare(repository, head, build);
        assert_eq!((code, page.as_str()), (2, ""), "{said}");
        assert!(said.contains(problem), "{said}");
    }
    let worktrees = Command::new("git").args(["worktree", "list"]).current_dir(repository).output();
    let worktrees = String::from_utf8(worktrees.unwrap().stdout).unwrap();
    assert_eq!(worktrees.lines().count(), 1, "both trees are removed: {worktrees}");
}

#[test]
fn what_cannot_be_compared_is_refused_before_anything_is_built() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path();
    init(repository);
    commit(repository, "true\n");
    commit(repository, "false\n");
    let run = "sh {tree}/job.sh";
    let zeros = "0".repeat(40);
    let counting = ("MEASURE", "instructions");
    type Case<'a> = (&'a str, &'a str, &'a str, &'a [(&'a str, &'a str)], &'a str);
    let cases: &[Case] = &[
        ("", run, "page.md", &[], "there is no base commit"),
        (&zeros, run, "page.md", &[], "there is no base commit"),
        ("nowhere", run, "page.md", &[], "there is no commit nowhere here"),
        ("--force", run, "page.md", &[], "there is no commit --force here"),
        ("HEAD~1", "", "page.md", &[], "write {tree} where"),
        ("HEAD~1", "sh job.sh", "page.md", &[counting], "write {tree} where"),
        ("HEAD~1", "sh '{tree}/job.sh", "page.md", &[], "cannot split the program into words"),
        ("HEAD~1", run, "no/page.md", &[], "there is no folder for the page"),
        ("HEAD~1", run, "page.md", &[("FAIL_IF_SLOWER", "few"), counting], "per cent such as 3"),
        ("HEAD~1", run, "page.md", &[("MASU", "/no/masu")], "there is no program /no/masu"),
    ];
    for (base, run, page, variables, problem) in cases {
        let (code, _, said) = run_script(repository, &[base, "HEAD", "true", run, page], variables);
        assert_eq!(code, 2, "{problem}: {said}");
        assert!(said.contains(problem) && !said.contains("building"), "{problem}: {said}");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let words = ["HEAD~1", "HEAD", "true", run, "page.md"];
    let (code, _, said) = run_script(elsewhere.path(), &words, &[]);
    assert!(code == 2 && said.contains("is no git repository"), "{said}");
}

#[test]
fn a_page_without_a_verdict_says_why_and_instructions_are_offered_against_noise_alone() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path();
    init(repository);
    commit(repository, "true\n");
    commit(repository, "exit 7\n");
    let (code, page, said) = compare(repository, "HEAD", "cp job.sh built.sh");
    assert_eq!(code, 2, "{said}");
    assert!(page.contains("the gate cannot judge") && !page.contains("`instructions`"), "{page}");
    // A stand-in for `masu compare` on a machine that is too noisy.
    let script = "#!/bin/sh\n[ $1 = report ] && exec echo a page\n\
        echo 'Gate: the runs cannot tell whether' >&2\nwhile [ $1 != --json ]; do shift; done\necho {} >$2\n";
    let noisy = repository.join("noisy");
    fs::write(&noisy, script).unwrap();
    fs::set_permissions(&noisy, fs::Permissions::from_mode(0o755)).unwrap();
    let words = ["HEAD~1", "HEAD", "true", "sh {tree}/job.sh", "page.md"];
    let (code, page, said) = run_script(repository, &words, &[("MASU", "./noisy")]);
    assert_eq!(code, 0, "{said}");
    assert!(page.contains("cannot tell") && page.contains("`instructions`"), "{page}");
}
