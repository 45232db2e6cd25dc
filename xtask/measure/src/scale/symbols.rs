//! The function of an instruction of a run, by `addr2line` and the mappings that the plugin wrote down.

use std::process::Command;

use super::report::{Mapping, Report};

/// The function, and the library that has it.
pub(super) fn function(report: &Report, instruction: u64) -> String {
    let Some((path, address)) = image(&report.maps, instruction) else {
        return "code in memory".to_owned();
    };
    let mut command = Command::new("addr2line");
    command.args(["-f", "-C", "-e", path, &format!("{address:#x}")]);
    let printed = command.output().map(|output| output.stdout).unwrap_or_default();
    let printed = String::from_utf8_lossy(&printed);
    let name = match printed.lines().next() {
        None | Some("??") => "a function without a name",
        Some(name) => short(name),
    };
    format!("{name} of {}", path.rsplit('/').next().unwrap_or(path))
}

/// The file that is mapped at the address, and the address as the file has it.
pub(super) fn image(maps: &[Mapping], address: u64) -> Option<(&str, u64)> {
    let own = maps.iter().find(|one| (one.start..one.end).contains(&address))?;
    let same = maps.iter().filter(|one| one.path == own.path && one.offset == 0);
    let base = same.map(|one| one.start).filter(|start| *start <= address).max()?;
    own.path.starts_with('/').then_some((own.path.as_str(), address - base))
}

/// A name without the hash that Rust appends and without a list of parameters.
fn short(name: &str) -> &str {
    let name = name.split_once("::h").filter(|(_, hash)| hash.len() == 16).map_or(name, |(n, _)| n);
    name.split('(').next().filter(|name| !name.is_empty()).unwrap_or(name).trim()
}
