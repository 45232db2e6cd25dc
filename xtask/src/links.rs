//! The local links of a Markdown page, and where they lead.

use std::path::{Component, Path, PathBuf};

/// The local links of a page outside its code, each with the index of its line.
pub fn file_links(contents: &str) -> Vec<(usize, &str)> {
    let links = outside_code(contents);
    links.flat_map(|(index, line)| targets(line).map(move |target| (index, target))).collect()
}

/// The lines of a page outside its code, each with its index.
pub fn outside_code(contents: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    contents.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// The local targets of a line's links.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, opening)| {
        let target = line[at + opening.len()..].split([')', ' ']).next()?;
        let is_local =
            !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:");
        is_local.then_some(target)
    })
}

/// The target of a link from the file `from`, from the root; none if that is outside.
pub fn place(from: &Path, target: &str) -> Option<PathBuf> {
    if target.is_empty() {
        return Some(from.to_path_buf());
    }
    let mut path: PathBuf = from.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            // An absolute path is one of somebody's machine.
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}
