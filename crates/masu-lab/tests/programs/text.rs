//! Inputs: text, numbers and folders that are the same at every run, made from a counter.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use masu_run::random::Random;

/// `count` lines of one to nine words each: long and short ones, many of them more than once.
pub(crate) fn lines(count: usize) -> String {
    const WORDS: [&str; 12] = [
        "block", "page", "arena", "cache", "shard", "heap", "flush", "refill", "purge", "commit",
        "reserve", "a",
    ];
    let mut text = String::new();
    let mut numbers = Random::new(0);
    for _ in 0..count {
        let choice = numbers.bits() as usize;
        for word in 0..choice % 9 {
            text.push_str(WORDS[(choice >> (5 * word)) % WORDS.len()]);
            text.push(' ');
        }
        text.push_str(&format!("{}\n", choice % 1000));
    }
    text
}

/// Makes the folder `tree` in `folder`: `folders` folders of twenty files each, their times fixed.
pub(crate) fn tree(folder: &Path, folders: usize) {
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    let root = folder.join("tree");
    fs::create_dir(&root).expect("make a folder");
    for (name, text) in (0..folders).map(|i| (format!("folder {i}"), lines(40 + i))) {
        let inner = root.join(name);
        fs::create_dir(&inner).expect("make a folder");
        for (i, line) in text.lines().take(20).enumerate() {
            let path = inner.join(format!("file-{i}.txt"));
            fs::write(&path, format!("{line}\n{text}")).expect("write a file");
            set_time(&path, then + Duration::from_secs(i as u64));
        }
        set_time(&inner, then);
    }
    set_time(&root, then);
}

fn set_time(path: &Path, time: SystemTime) {
    File::open(path).and_then(|file| file.set_modified(time)).expect("set a time");
}
