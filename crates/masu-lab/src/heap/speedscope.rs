//! The profile in the format of speedscope.app.
//!
//! Source: <https://www.speedscope.app/file-format-schema.json>. A sampled profile: each stack once, as indices of frames,
//! with its number as weight. The format has no weights below zero, so a difference shows only the stacks that grew.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Frame, Profile, What};

pub(super) fn json(profile: &Profile, what: What, title: &str) -> String {
    let mut known: BTreeMap<&Frame, usize> = BTreeMap::new();
    let mut frames: Vec<Value> = Vec::new();
    let (mut samples, mut weights) = (Vec::new(), Vec::new());
    for (stack, sums) in &profile.stacks {
        let weight = sums.of(what);
        if weight <= 0 {
            continue;
        }
        let sample: Vec<usize> = stack
            .iter()
            .map(|frame| {
                *known.entry(frame).or_insert_with(|| {
                    frames.push(described(frame));
                    frames.len() - 1
                })
            })
            .collect();
        samples.push(sample);
        weights.push(weight);
    }
    let unit = match what {
        What::LiveBytes | What::AllocatedBytes => "bytes",
        What::LiveBlocks | What::AllocatedBlocks => "none",
    };
    let all = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("masu ", env!("CARGO_PKG_VERSION")),
        "name": title,
        "shared": { "frames": frames },
        "profiles": [{
            "type": "sampled",
            "name": title,
            "unit": unit,
            "startValue": 0,
            "endValue": weights.iter().fold(0_i64, |sum, weight| sum.saturating_add(*weight)),
            "samples": samples,
            "weights": weights,
        }],
    });
    format!("{all}\n")
}

fn described(frame: &Frame) -> Value {
    let mut described = json!({ "name": frame.function });
    if let Some(file) = &frame.file {
        described["file"] = json!(file);
    }
    if frame.line > 0 {
        described["line"] = json!(frame.line);
    }
    described
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::Sums;

    #[test]
    fn frames_are_there_once_and_weights_are_what_is_counted() {
        let frame = |name: &str, line| Frame {
            function: name.to_owned(),
            file: Some("a.c".to_owned()),
            line,
        };
        let sums = |live_bytes| Sums { live_bytes, ..Sums::default() };
        let mut profile = Profile::default();
        profile.stacks.insert(vec![frame("main", 1), frame("a", 2)], sums(30));
        profile.stacks.insert(vec![frame("main", 1), frame("b", 0)], sums(12));
        profile.stacks.insert(vec![frame("main", 1)], sums(-5));
        let all: Value = serde_json::from_str(&json(&profile, What::LiveBytes, "t")).unwrap();
        assert_eq!(all["shared"]["frames"].as_array().unwrap().len(), 3);
        let one = &all["profiles"][0];
        assert_eq!((&one["unit"], &one["endValue"]), (&"bytes".into(), &42.into()));
        let first = one["samples"][0][0].as_u64().unwrap();
        let name = |index: u64| &all["shared"]["frames"][usize::try_from(index).unwrap()]["name"];
        assert_eq!(name(first), "main");
        assert_eq!(
            one["samples"].as_array().unwrap().len(),
            one["weights"].as_array().unwrap().len()
        );
        let b = name(one["samples"][1][1].as_u64().unwrap());
        assert_eq!(b, "b");
        assert!(all["shared"]["frames"][2].get("line").is_none());
    }
}
