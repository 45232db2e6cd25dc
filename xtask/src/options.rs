//! The values of options that several chores have, and the error for an unknown name.

use anyhow::{Result, bail};

/// A number of rounds, runs or jobs: from 1 to 1000.
pub fn times(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=1000).contains(number));
    number.ok_or_else(|| "give a number from 1 to 1000".to_owned())
}

pub fn seconds() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}

/// The name of a record: `first` for `benches/record/DATE-first.md`.
pub fn record_name(text: &str) -> Result<String, String> {
    let is_word = !text.is_empty() && !text.contains(['/', '.']);
    if is_word { Ok(text.to_owned()) } else { Err("give a word such as `first`".to_owned()) }
}

/// The requested items by name; all items if the request names none.
pub fn chosen<T>(mut all: Vec<T>, asked: &[String], name: fn(&T) -> &str) -> Result<Vec<T>> {
    let known: Vec<&str> = all.iter().map(name).collect();
    if let Some(name) = asked.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("nothing is named `{name}`; there are {}", known.join(", "));
    }
    all.retain(|one| asked.is_empty() || asked.iter().any(|asked| asked == name(one)));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_make_no_sense_are_refused() {
        assert_eq!((times("7"), record_name("first")), (Ok(7), Ok("first".to_owned())));
        assert!(["0", "1001", "many"].into_iter().all(|text| times(text).is_err()));
        assert!(["", "../etc", "a.md"].into_iter().all(|text| record_name(text).is_err()));
        let asked = ["a", "c"].map(str::to_owned);
        assert_eq!(chosen(vec!["a", "b"], &asked[..1], |name| name).unwrap(), ["a"]);
        let error = chosen(vec!["a", "b"], &asked, |name| name).unwrap_err().to_string();
        assert_eq!(error, "nothing is named `c`; there are a, b");
    }
}
