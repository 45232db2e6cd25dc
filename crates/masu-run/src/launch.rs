//! `masu run`: this process becomes the program, under one variant.
//!
//! The launch is an `exec`, so exit code, signals and streams are the program's own.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;
use std::{mem, thread};

use crate::process::VARIABLE;
use crate::variant::family;
use crate::{Error, Stop, Variant, Workload, kernel};

/// The time between two looks at a program that runs beside.
const WAIT: Duration = Duration::from_millis(5);

/// Replaces this process by the program of `workload` under `variant`. The program inherits standard input, output and
/// error as they are; `workload.input` is not used. Returns only when the program could not be started.
pub fn launch(workload: &Workload, variant: &Variant) -> Result<Infallible, Error> {
    let mut command = command(workload, variant, None);
    // A user who runs a program under masu can look at it with `masu top`. Measured programs get no page; they are not
    // started here.
    if family(&variant.allocator) == "masu" && std::env::var_os(VARIABLE).is_none() {
        command.env(VARIABLE, "1");
    }
    let source = command.exec();
    Err(refused(workload, source))
}

/// Starts the program of `workload` under `variant` with `variables` in its environment besides, and waits for its end.
/// Standard streams are as for [`launch`]. A signal other than SIGINT that `stop` catches is sent on. Returns the number
/// of its process, and its ending.
pub fn launch_beside(
    workload: &Workload,
    variant: &Variant,
    variables: &[(&str, &OsStr)],
    stop: &Stop,
) -> Result<(u32, ExitStatus), Error> {
    let mut command = command(workload, variant, None);
    command.envs(variables.iter().copied());
    let mut child = command.spawn().map_err(|source| refused(workload, source))?;
    let process = child.id();
    let mut is_sent = false;
    loop {
        if let Some(status) = child.try_wait().map_err(|source| refused(workload, source))? {
            return Ok((process, status));
        }
        if stop.requested() && !mem::replace(&mut is_sent, true) {
            let signal = kernel::signal_for_child();
            signal.inspect(|signal| kernel::send(process.cast_signed(), *signal));
        }
        thread::sleep(WAIT);
    }
}

/// The command of one run, with the variant's environment; standard streams are inherited. It starts
/// in `folder`, or in the workload's own where there is none.
pub fn command(workload: &Workload, variant: &Variant, folder: Option<&Path>) -> Command {
    let folder = folder.or(workload.folder.as_deref());
    let path = &workload.program.path;
    // The path is made absolute only if the program starts elsewhere, because a script sees the path it was started by.
    let absolute = folder.and_then(|_| std::path::absolute(path).ok());
    let mut command = Command::new(absolute.as_ref().unwrap_or(path));
    // A program that looks at its own name (busybox, compilers) sees what the user typed.
    command.arg0(&workload.arguments[0]);
    command.args(&workload.arguments[1..]);
    command.envs(variant.changes_here());
    if let Some(folder) = folder {
        command.current_dir(folder).env("PWD", folder);
    }
    command
}

/// The error when the kernel refuses to start the program.
pub fn refused(workload: &Workload, source: io::Error) -> Error {
    let command = workload.program.path.display().to_string();
    if source.raw_os_error() == Some(kernel::NOT_TRACED) {
        return Error::NotTraced { command };
    }
    let hint = match source.kind() {
        ErrorKind::PermissionDenied => {
            "; the file, a folder on its way or its file system (mounted noexec) forbids it"
        }
        ErrorKind::ArgumentListTooLong => {
            "; pass fewer arguments, or make the environment smaller: both have to fit"
        }
        ErrorKind::ExecutableFileBusy => "; something is still writing it: wait until it is done",
        ErrorKind::OutOfMemory => "; there is no memory left to start it",
        _ => "",
    };
    Error::Program { command, reason: format!("cannot be started: {source}{hint}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Input;

    #[test]
    fn the_program_gets_its_own_name_its_arguments_and_the_variant() {
        let workload = Workload::new(["sed", "-n", "p"], Input::Empty).unwrap();
        let variant = Variant {
            label: "v".to_owned(),
            allocator: "v".to_owned(),
            library: Some("/lib/libv.so".into()),
            tunables: vec![("glibc.malloc.top_pad".to_owned(), "4096".to_owned())],
            variables: vec![("V".to_owned(), "1".to_owned())],
            ..Variant::default()
        };
        let command = command(&workload, &variant, None);
        assert_eq!(command.get_program(), workload.program.path);
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["-n", "p"]);
        let value = |name: &str| {
            let found = command.get_envs().find(|(key, _)| *key == OsStr::new(name));
            found.and_then(|(_, value)| value).unwrap().to_str().unwrap().to_owned()
        };
        assert!(value("LD_PRELOAD").starts_with("/lib/libv.so"));
        assert!(value("GLIBC_TUNABLES").ends_with("glibc.malloc.top_pad=4096"));
        assert_eq!(value("V"), "1");
    }

    #[test]
    fn where_tracing_is_forbidden_the_program_is_not_blamed() {
        let workload = Workload::new(["true"], Input::Empty).unwrap();
        let source = io::Error::from_raw_os_error(kernel::NOT_TRACED);
        let message = refused(&workload, source).to_string();
        assert!(message.contains("ptrace") && message.contains("SYS_PTRACE"), "{message}");
        assert!(!message.contains("noexec"), "{message}");
    }

    #[test]
    fn a_program_that_cannot_be_started_is_named() {
        let mut workload = Workload::new(["true"], Input::Empty).unwrap();
        workload.program.path = "/no/such/program".into();
        let variant = Variant {
            label: "system".to_owned(),
            allocator: "system".to_owned(),
            ..Variant::default()
        };
        let Err(error) = launch(&workload, &variant);
        assert!(error.to_string().contains("/no/such/program"), "{error}");
        let error = refused(&workload, io::Error::from(ErrorKind::PermissionDenied)).to_string();
        assert!(error.contains("noexec"), "{error}");
    }
}
