//! The console of a guest: the program's output, and between it what the guest's first process says.
//!
//! It relies on `boot/init.rs`, which says things behind a byte that no text has; on the way through the guest's
//! terminal each end of a line has become two bytes.

use std::io::{BufRead, Write};

use anyhow::{Context, Result, bail};

// COUPLING: `boot/init.rs` says things behind this byte.
const MARK: u8 = 0x1e;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Status(i32),
    Signal(i32),
}

/// The messages of the guest's first process.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// Bytes of an OS page.
    pub(super) page: u64,
    pub(super) kernel: String,
    pub(super) end: Option<End>,
}

/// Passes the program's output on as it comes, and its errors when they come, until the guest is off.
pub(super) fn follow(
    mut console: impl BufRead,
    mut output: impl Write,
    mut errors: impl Write,
) -> Result<Said> {
    let mut said = Said::default();
    let mut line = Vec::new();
    let mut in_errors = false;
    while console.read_until(b'\n', &mut line)? > 0 {
        if line.ends_with(b"\r\n") {
            line.truncate(line.len() - 2);
            line.push(b'\n');
        }
        let (text, word) = match line.iter().position(|byte| *byte == MARK) {
            Some(place) => (&line[..place], Some(&line[place + 1..])),
            None => (&line[..], None),
        };
        // What comes behind the end is the kernel's, which says that it powers off.
        if said.end.is_none() {
            let to: &mut dyn Write = if in_errors { &mut errors } else { &mut output };
            to.write_all(text)?;
            to.flush()?;
        }
        if let Some(word) = word {
            in_errors |= note(&mut said, &String::from_utf8_lossy(word))?;
        }
        line.clear();
    }
    Ok(said)
}

/// Notes what was said; whether standard error begins here.
fn note(said: &mut Said, word: &str) -> Result<bool> {
    let word = word.trim_end();
    let (about, value) = word.split_once(' ').unwrap_or((word, ""));
    let number = || value.parse::<i32>().with_context(|| format!("the guest said `{word}`"));
    match about {
        "page" => said.page = number()?.unsigned_abs().into(),
        "kernel" => said.kernel = value.to_owned(),
        "errors" => return Ok(true),
        "status" => said.end = Some(End::Status(number()?)),
        "signal" => said.end = Some(End::Signal(number()?)),
        _ => bail!("the guest said `{word}`"),
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_errors_are_told_apart() {
        let console = "\x1epage 65536\r\n\x1ekernel 6.1\r\none\r\ntw\x1eerrors\r\nbad\r\n\x1estatus 3\r\n[ 1.0] off\r\n";
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        let said = follow(console.as_bytes(), &mut output, &mut errors).unwrap();
        assert_eq!((&output[..], &errors[..]), (&b"one\ntw"[..], &b"bad\n"[..]));
        let end = Some(End::Status(3));
        assert_eq!(said, Said { page: 65536, kernel: "6.1".to_owned(), end });
    }

    #[test]
    fn a_guest_that_broke_off_has_no_end() {
        let said = follow(&b"\x1epage 4096\nKernel panic"[..], Vec::new(), Vec::new()).unwrap();
        assert_eq!((said.page, said.end), (4096, None));
    }

    #[test]
    fn an_error_of_the_first_process_is_one_here() {
        let error = follow(&b"\x1eerror no such file"[..], Vec::new(), Vec::new()).unwrap_err();
        assert!(error.to_string().contains("no such file"), "{error}");
    }
}
