//! Tests of parameters: names that are replaced, text that stays, and values that are refused.

use super::*;

fn values(pairs: &[(&str, &str)]) -> Values {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn replaced(text: &str, pairs: &[(&str, &str)]) -> String {
    substitute(OsStr::new(text), &values(pairs)).into_string().unwrap()
}

fn refused(text: &str) -> String {
    text.parse::<Parameter>().unwrap_err().to_string()
}

#[test]
fn every_mention_of_a_declared_name_is_replaced() {
    let pairs = [("bin", "./new"), ("n", "2")];
    assert_eq!(replaced("{bin}/x{n}{n}", &pairs), "./new/x22");
    assert_eq!(replaced("{bin}", &[("bin", "")]), "");
}

#[test]
fn other_braces_stay() {
    let pairs = [("n", "2")];
    for text in ["{print $1}", "{}", "{ n }", "{n", "n}", "{{nn}}", "${HOME}", "{bin}"] {
        assert_eq!(replaced(text, &pairs), text);
    }
    assert_eq!(replaced("{{n}}", &pairs), "{2}");
}

#[test]
fn what_a_value_brings_along_is_not_replaced_again() {
    let pairs = [("a", "{b}"), ("b", "{a}")];
    assert_eq!(replaced("{a}{b}", &pairs), "{b}{a}");
}

#[test]
fn bytes_that_are_no_text_stay_what_they_are() {
    let text = OsStr::from_bytes(b"\xff{n}\xfe");
    assert_eq!(substitute(text, &values(&[("n", "2")])).as_bytes(), b"\xff2\xfe");
    assert!(mentions(text, "n") && !mentions(text, "m"));
}

#[test]
fn combinations_are_all_of_them_the_first_parameter_slowest() {
    let parameters: Vec<Parameter> =
        ["a=1,2", "b=x,y"].iter().map(|text| text.parse().unwrap()).collect();
    let labels: Vec<String> = combinations(&parameters).iter().map(|one| label(one)).collect();
    assert_eq!(labels, [" a=1 b=x", " a=1 b=y", " a=2 b=x", " a=2 b=y"]);
    assert_eq!(combinations(&[]), [Values::new()]);
}

#[test]
fn a_comma_in_a_value_is_escaped() {
    let parameter: Parameter = "list=1\\,2,3".parse().unwrap();
    assert_eq!(parameter.values, ["1,2", "3"]);
    let parameter: Parameter = "opt=,-v".parse().unwrap();
    assert_eq!(parameter.values, ["", "-v"]);
}

#[test]
fn what_is_no_parameter_is_refused_with_the_reason() {
    assert!(refused("bin").contains("write NAME=VALUE,VALUE"));
    assert!(refused("=a,b").contains("a name is made of"));
    assert!(refused("a b=1").contains("a name is made of"));
    assert!(refused("bin=").contains("has no values"));
    assert!(refused("bin=x,y,x").contains("`x` is given twice"));
    for name in RESERVED {
        assert!(refused(&format!("{name}=1")).contains("take another name"), "{name}");
    }
}
