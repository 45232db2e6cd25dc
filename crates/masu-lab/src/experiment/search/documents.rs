//! Documents and queries for the search, made of words that are as unevenly common as those of a
//! language, the same ones on every machine.
//!
//! Relies on [`Random`] alone, and on whole numbers: a logarithm might differ in its last digit from one machine to
//! the next, and with it an index.

use std::fmt::Write as _;
use std::io::{self, Write};

use masu_run::random::Random;

/// The seeds of documents and of queries.
const DOCUMENTS: u64 = 2017;
const QUERIES: u64 = 6;

/// Words are numbered from 1 to below 2 to this power.
const OCTAVES: usize = 16;

/// The number of words of a title and of a body.
const TITLE: usize = 6;
const BODY: usize = 60;

const CATEGORIES: usize = 200;

/// The number of queries in ten that ask within a category, and that ask for its ten largest.
const FILTERED: usize = 3;
const FACETED: usize = 1;

/// Writes `count` documents, one a line: title, body, category, price, with tabs between them.
pub(super) fn write(count: usize, to: &mut dyn Write) -> io::Result<()> {
    let mut random = Random::new(DOCUMENTS);
    let mut line = String::new();
    for _ in 0..count {
        line.clear();
        words(&mut random, TITLE, &mut line);
        line.push('\t');
        words(&mut random, BODY, &mut line);
        let (category, price) = (random.below(CATEGORIES), random.below(100_000));
        // Writing to a text cannot fail.
        let _ = writeln!(line, "\tc{category}\t{price}");
        to.write_all(line.as_bytes())?;
    }
    Ok(())
}

/// `count` URLs, each a query for either of two words, at the port of `{port}`.
pub(super) fn urls(count: usize) -> Vec<String> {
    let mut random = Random::new(QUERIES);
    let url = |_| {
        let (first, second) = (word(&mut random), word(&mut random));
        let mut url = format!(
            "http://127.0.0.1:{{port}}/solr/masu/select?q=body:w{first:x}+body:w{second:x}&rows=10"
        );
        if random.below(10) < FILTERED {
            let _ = write!(url, "&fq=cat:c{}", random.below(CATEGORIES));
        }
        if random.below(10) < FACETED {
            url.push_str("&facet=true&facet.field=cat&facet.limit=10");
        }
        url
    };
    (0..count).map(url).collect()
}

fn words(random: &mut Random, count: usize, line: &mut String) {
    for index in 0..count {
        let space = if index == 0 { "" } else { " " };
        let _ = write!(line, "{space}w{:x}", word(random));
    }
}

/// A word's number. Each octave of numbers is as likely as the next, so that words with smaller numbers are more
/// common: Zipf's law in whole numbers.
fn word(random: &mut Random) -> usize {
    let octave = 1 << random.below(OCTAVES);
    octave + random.below(octave)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn documents(count: usize) -> String {
        let mut bytes = Vec::new();
        write(count, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn documents_are_the_same_every_time_and_more_begin_with_fewer() {
        let few = documents(50);
        assert_eq!(few, documents(50));
        assert!(documents(60).starts_with(&few));
        // A change here changes every figure kept so far.
        let hash = xxhash_rust::xxh3::xxh3_64(documents(1000).as_bytes());
        assert_eq!(hash, 7_482_152_684_334_984_691);
    }

    #[test]
    fn words_are_as_common_as_their_number_is_small() {
        let mut random = Random::new(1);
        let mut octaves: BTreeMap<u32, usize> = BTreeMap::new();
        for _ in 0..160_000 {
            *octaves.entry(word(&mut random).ilog2()).or_default() += 1;
        }
        assert_eq!(octaves.len(), OCTAVES);
        assert!(octaves.values().all(|count| (9_500..10_500).contains(count)), "{octaves:?}");
    }

    #[test]
    fn queries_are_many_and_some_are_filtered_and_faceted() {
        let urls = urls(1000);
        assert_eq!(urls, super::urls(1000));
        let distinct: std::collections::BTreeSet<&String> = urls.iter().collect();
        assert!(distinct.len() > 900, "{}", distinct.len());
        let with = |text: &str| urls.iter().filter(|url| url.contains(text)).count();
        assert!((250..350).contains(&with("&fq=cat:c")), "{}", with("&fq=cat:c"));
        assert!((60..140).contains(&with("&facet=true")), "{}", with("&facet=true"));
        assert_eq!(with("http://127.0.0.1:{port}/solr/masu/select?q=body:w"), 1000);
        assert!(
            urls.iter().all(|url| crate::load::Target::check(&url.replace("{port}", "1")).is_ok())
        );
    }
}
