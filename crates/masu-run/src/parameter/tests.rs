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
fn declared_names_are_replaced_once_and_other_braces_stay() {
    for (text, pairs, expected) in [
        ("{bin}/x{n}{n}", &[("bin", "./new"), ("n", "2")][..], "./new/x22"),
        ("{bin}", &[("bin", "")], ""),
        ("{{n}}", &[("n", "2")], "{2}"),
        ("{a}{b}", &[("a", "{b}"), ("b", "{a}")], "{b}{a}"),
    ] {
        assert_eq!(replaced(text, pairs), expected);
    }
    for text in ["{print $1}", "{}", "{ n }", "{n", "n}", "{{nn}}", "${HOME}", "{bin}"] {
        assert_eq!(replaced(text, &[("n", "2")]), text);
    }
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
    for (text, said) in [
        ("bin", "write NAME=VALUE,VALUE"),
        ("=a,b", "a name is made of"),
        ("a b=1", "a name is made of"),
        ("bin=", "has no values"),
        ("bin=x,y,x", "`x` is given twice"),
    ] {
        assert!(refused(text).contains(said), "{text}");
    }
    for name in RESERVED {
        assert!(refused(&format!("{name}=1")).contains("take another name"), "{name}");
    }
}
