//! The error among all the words of a program before it ended, instead of the last line of a trace.
//!
//! Relies on the layout of traces in each language: the details of a frame are indented, or begin as the language's
//! frames do, and the error stands above them (Java), below (Python), or between other lines of a log.

/// Words that mark the line of an error.
const WORDS: [&str; 12] = [
    "error", "exception", "fatal", "panicked", "abort", "cannot", "can't", "failed", "unable",
    "refused", "denied", "not found",
];

/// The words that Java writes before the error that led to the one above.
const CAUSE: &str = "Caused by:";

/// Lines that are repeated where none looks like an error.
const LAST_LINES: usize = 3;

const LETTERS: usize = 400;

/// The line of the error, and its cause; otherwise the last lines. None if nothing was written.
pub fn last_error(said: &str) -> Option<String> {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let named = |line: &&&str| {
        let lower = line.to_lowercase();
        !is_frame(line) && WORDS.iter().any(|word| lower.contains(word))
    };
    let cause = lines.iter().rfind(|line| line.starts_with(CAUSE));
    let text = match lines.iter().find(named) {
        Some(first) if cause.is_some_and(|cause| cause != first) => {
            format!("{} / {}", first.trim(), cause.map_or("", |cause| cause.trim()))
        }
        Some(first) => first.trim().to_owned(),
        None => {
            let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
            last.iter().map(|line| line.trim()).collect::<Vec<&str>>().join(" / ")
        }
    };
    (!text.is_empty()).then(|| text.chars().take(LETTERS).collect())
}

fn is_frame(line: &str) -> bool {
    let is_indented = line.starts_with([' ', '\t']);
    is_indented || ["from ", "#", "at ", "... ", "Traceback "].iter().any(|it| line.starts_with(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_found_in_the_traces_of_languages() {
        let java = "INFO starting\nException in thread \"main\" java.lang.RuntimeException: no index\n\
                    \tat A.open(A.java:7)\n\tat A.main(A.java:1)\nCaused by: java.io.IOException: no such folder\n\
                    \tat B.failed(B.java:3)\n\t... 1 more\n";
        assert_eq!(
            last_error(java).unwrap(),
            "Exception in thread \"main\" java.lang.RuntimeException: no index / Caused by: java.io.IOException: no such folder"
        );
        let python = "Traceback (most recent call last):\n  File \"a.py\", line 1, in open_failed\n    raise\n\
                      OSError: [Errno 98] Address already in use\n";
        assert_eq!(last_error(python).unwrap(), "OSError: [Errno 98] Address already in use");
        let ruby = "a.rb:3:in `b': no port (ArgumentError)\n\tfrom a.rb:1:in `<main>'\n";
        assert_eq!(last_error(ruby).unwrap(), "a.rb:3:in `b': no port (ArgumentError)");
        let rust = "thread 'main' panicked at src/main.rs:2:5:\nno port\nnote: run with `RUST_BACKTRACE=1`\n";
        assert!(last_error(rust).unwrap().starts_with("thread 'main' panicked at"));
    }

    #[test]
    fn where_nothing_looks_like_an_error_the_last_lines_are_repeated() {
        assert_eq!(last_error("a\nb\n\nc\nd\n").unwrap(), "b / c / d");
        assert_eq!(last_error(" \n"), None);
    }
}
