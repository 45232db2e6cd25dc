//! Programs that keep data: git and sqlite3.

use crate::program::Program;
use crate::soak;
use crate::text;

#[test]
fn git_clone_and_gc_give_the_same_repository() {
    // Loose objects, packs and the index hold times or depend on how threads meet; what they stand
    // for is printed: every object with its size, every commit, and git's own check of it all.
    Program::new("bash", "bash")
        .arguments(["repository.bash", if soak() { "2000" } else { "150" }])
        .file("repository.bash", include_str!("scripts/repository.bash"))
        .file("corpus", text::lines(3_000))
        .variable("GIT_CONFIG_NOSYSTEM", "1")
        .variable("GIT_AUTHOR_NAME", "A")
        .variable("GIT_AUTHOR_EMAIL", "a@example.org")
        .variable("GIT_COMMITTER_NAME", "C")
        .variable("GIT_COMMITTER_EMAIL", "c@example.org")
        .ignores("origin/.git")
        .ignores("clone/.git")
        .runs("git", "git")
        .prints("objects match")
        .same_under_masu();
}

/// Tables, indexes, window functions, JSON, and a vacuum at the end.
pub(crate) fn database() -> Program {
    let rows = if soak() { "1000000" } else { "60000" };
    Program::new("sqlite3", "sqlite3")
        .arguments(["-batch", "-bail", "books.db"])
        .input(include_str!("scripts/books.sql").replace("{ROWS}", rows))
        .produces("books.db")
        .prints("integrity: ok")
}

#[test]
fn sqlite3_builds_the_same_database() {
    database().same_under_masu();
}
