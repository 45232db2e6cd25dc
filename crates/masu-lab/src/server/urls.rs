//! Many URLs: read from a file, and named in few words.
//!
//! A search engine that receives the same query again answers from a cache, so the queries of its users fill a file.

use std::fs;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use crate::load::is_url;
use masu_run::Error;

/// A list of more URLs than these is described by its number.
const URLS_LISTED: usize = 3;

/// `load` with the URLs of a file in place of each `@FILE`; relative paths start at `base`. Empty lines and lines that
/// begin with `#` are skipped. A file without any URL is an error.
pub(super) fn urls_of(load: Vec<String>, base: &Path) -> Result<Vec<String>, Error> {
    let mut urls = Vec::new();
    for text in load {
        let Some(name) = text.strip_prefix('@') else {
            urls.push(text);
            continue;
        };
        let path = base.join(name);
        let wrong = |reason: String| Error::Load { load: text.clone(), reason };
        let file = fs::read_to_string(&path)
            .map_err(|error| wrong(format!("{} cannot be read: {error}", path.display())))?;
        let lines = file.lines().map(str::trim).enumerate();
        let before = urls.len();
        for (index, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            if !is_url(line) {
                let number = index + 1;
                return Err(wrong(format!(
                    "line {number} is no URL; write one http:// URL a line"
                )));
            }
            urls.push(line.to_owned());
        }
        if urls.len() == before {
            return Err(wrong("it holds no URL; write one a line".to_owned()));
        }
    }
    Ok(urls)
}

/// The URLs on one line, or where there are many the first one, the number of others and a hash of all.
pub(super) fn listing(urls: &[String]) -> String {
    match urls {
        [first, ..] if urls.len() > URLS_LISTED => {
            let hash = xxh3_128(urls.join("\n").as_bytes());
            format!("{first} and {} others (XXH3 {hash:032x})", urls.len() - 1)
        }
        few => few.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_come_from_a_file_and_many_are_shown_by_their_number() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let path = folder.join("urls");
        fs::write(&path, "# asked\nhttp://127.0.0.1:{port}/a\n\n http://127.0.0.1:{port}/b \n")
            .unwrap();
        let urls = urls_of(vec!["@urls".to_owned()], folder).unwrap();
        assert_eq!(urls, ["http://127.0.0.1:{port}/a", "http://127.0.0.1:{port}/b"]);
        assert_eq!(listing(&urls), urls.join(" "));
        let many: Vec<String> = (0..9).map(|n| format!("http://127.0.0.1/{n}")).collect();
        assert!(listing(&many).starts_with("http://127.0.0.1/0 and 8 others (XXH3 "));
        assert_ne!(listing(&many), listing(&many[..8]));
        fs::write(&path, "ab -n 10\n").unwrap();
        let reason = urls_of(vec!["@urls".to_owned()], folder).unwrap_err().to_string();
        assert!(reason.contains("@urls") && reason.contains("line 1"), "{reason}");
        fs::write(&path, "").unwrap();
        assert!(urls_of(vec!["@urls".to_owned()], folder).is_err());
        assert!(urls_of(vec!["@none".to_owned()], folder).is_err());
    }
}
