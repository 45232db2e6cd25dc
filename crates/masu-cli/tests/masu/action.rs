//! `packaging/action`: two commits of a program compared, as the GitHub action does it.

use std::fs;
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

/// The exit code, the page and what was said of `HEAD~1` and `head`.
fn compare(repository: &Path, head: &str, build: &str) -> (i32, String, String) {
    // Memory decides, which no other load changes.
    compare_by("peak_rss", repository, head, build)
}

fn compare_by(measure: &str, repository: &Path, head: &str, build: &str) -> (i32, String, String) {
    let page = repository.join("page.md");
    let _ = fs::remove_file(&page);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/action");
    let mut command = Command::new(script.join("compare-commits.sh"));
    command.args(["HEAD~1", head, build, "sh '{tree}/built.sh'"]).arg(&page);
    command.env("MASU", env!("CARGO_BIN_EXE_masu")).env("MEASURE", measure).env("RUNS", "12");
    let output = command.current_dir(repository).output().unwrap();
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
        ("nowhere", "cp job.sh built.sh", "there is no commit nowhere here"),
        ("HEAD", "exit 3", "the build of base failed: exit 3"),
    ] {
        let (code, page, said) = compare(repository, head, build);
        assert_eq!((code, page.as_str()), (2, ""), "{said}");
        assert!(said.contains(problem), "{said}");
    }
    let worktrees = Command::new("git").args(["worktree", "list"]).current_dir(repository).output();
    let worktrees = String::from_utf8(worktrees.unwrap().stdout).unwrap();
    assert_eq!(worktrees.lines().count(), 1, "both trees are removed: {worktrees}");
}
