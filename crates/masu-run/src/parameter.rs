//! Parameters: `-P NAME=A,B` puts each value in place of `{NAME}`, the program included.
//!
//! Only declared names and reserved ones are replaced, because many programs use braces (`awk '{print $1}'`,
//! `find -exec {} +`). Values are put in once, from left to right, and not looked at again.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::str::FromStr;

use crate::variant::split_at_commas;
use crate::{Error, Variant};

/// Names that masu itself gives a value: the variant's label, the folder of a run, and for servers
/// the port and the data folder.
const RESERVED: [&str; 4] = ["variant", "scratch", "port", "dir"];

/// The values of `{NAME}` in one row or one table, in the order the parameters were declared.
pub type Values = Vec<(String, String)>;

/// A name and the values that it stands for in turn.
///
/// ```
/// let parameter: masu_run::Parameter = "sep=a,b\\,c".parse()?;
/// assert_eq!(parameter.name, "sep");
/// assert_eq!(parameter.values, ["a", "b,c"]);
/// # Ok::<(), masu_run::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The word between the braces: letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// The values, none twice, at least one.
    pub values: Vec<String>,
}

impl Parameter {
    /// Pairs a name with its values. An error for a name that is empty, odd or reserved, for no values, for a value
    /// given twice, and for one that holds a zero byte.
    pub fn new(name: &str, values: Vec<String>) -> Result<Parameter, Error> {
        let wrong = |reason: String| Error::Parameter { parameter: name.to_owned(), reason };
        let is_odd =
            |letter: char| !letter.is_ascii_alphanumeric() && !['_', '-', '.'].contains(&letter);
        if name.is_empty() || name.contains(is_odd) {
            return Err(wrong(
                "a name is made of letters, digits, `_`, `-` and `.`; write NAME=VALUE,VALUE"
                    .to_owned(),
            ));
        }
        if RESERVED.contains(&name) {
            return Err(wrong(format!("masu itself says what {{{name}}} is; take another name")));
        }
        if values.is_empty() {
            return Err(wrong(format!("it has no values; write {name}=VALUE,VALUE")));
        }
        for (index, value) in values.iter().enumerate() {
            if values[..index].contains(value) {
                return Err(wrong(format!("the value `{value}` is given twice")));
            }
            if value.contains('\0') {
                return Err(wrong("a value cannot hold a zero byte".to_owned()));
            }
        }
        Ok(Parameter { name: name.to_owned(), values })
    }
}

impl FromStr for Parameter {
    type Err = Error;

    /// Understands `NAME=A,B`; a `\,` is a comma that belongs to the value. An empty value among
    /// others is one (`opt=,-v`); nothing at all behind the `=` is a mistake.
    fn from_str(text: &str) -> Result<Parameter, Error> {
        let Some((name, values)) = text.split_once('=') else {
            let reason = "write NAME=VALUE,VALUE".to_owned();
            return Err(Error::Parameter { parameter: text.to_owned(), reason });
        };
        let values = if values.is_empty() { Vec::new() } else { split_at_commas(values) };
        Parameter::new(name, values)
    }
}

/// Every combination of the values, the last parameter's changing fastest; one empty combination
/// where there are no parameters.
pub fn combinations(parameters: &[Parameter]) -> Vec<Values> {
    let mut all = vec![Values::new()];
    for Parameter { name, values } in parameters {
        let longer = |values_so_far: &Values| -> Vec<Values> {
            let with = |value: &String| {
                let mut longer = values_so_far.clone();
                longer.push((name.clone(), value.clone()));
                longer
            };
            values.iter().map(with).collect()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// `values` as a label shows them: ` bin=./new threads=2`, empty for none.
pub fn label(values: &[(String, String)]) -> String {
    values.iter().map(|(name, value)| format!(" {name}={value}")).collect()
}

/// `text` with every `{NAME}` of `values` replaced.
pub fn substitute(text: &OsStr, values: &[(String, String)]) -> OsString {
    let mut made = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let found = values.iter().find_map(|(name, value)| Some((value, after(rest, name)?)));
        match found {
            Some((value, after)) => {
                made.extend_from_slice(value.as_bytes());
                rest = after;
            }
            None => {
                made.push(*first);
                rest = behind;
            }
        }
    }
    OsString::from_vec(made)
}

pub fn mentions(text: &OsStr, name: &str) -> bool {
    (0..text.len()).any(|start| after(&text.as_bytes()[start..], name).is_some())
}

/// The text after `{name}`, if `text` begins with it.
fn after<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    text.strip_prefix(b"{")?.strip_prefix(name.as_bytes())?.strip_prefix(b"}")
}

impl Variant {
    /// The variant as written, without the values of its parameters.
    pub fn allocator_text(&self) -> String {
        let values = label(&self.parameters);
        self.label.strip_suffix(&values).unwrap_or(&self.label).to_owned()
    }
}

#[cfg(test)]
mod tests;
