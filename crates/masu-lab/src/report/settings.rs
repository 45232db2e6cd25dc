//! What the settings of a comparison's variants came to, said beside its figures: their reader
//! should be able to set the same without masu.
//!
//! Relies on the variants for both; they know their environment and the traps of their settings.

use crate::Variant;

/// For each variant that sets something its label and what that is, with what to know about it.
pub(super) fn lines(variants: &[Variant]) -> Vec<(&str, String)> {
    let line = |variant: &'_ Variant| {
        let set = variant.translation();
        let first = (!set.is_empty()).then(|| format!("sets {}", set.join(" ")))?;
        Some(std::iter::once(first).chain(variant.notes()).collect::<Vec<_>>().join("; "))
    };
    variants.iter().filter_map(|variant| Some((variant.label.as_str(), line(variant)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures;

    #[test]
    fn what_is_set_is_said_with_its_traps_and_only_of_variants_that_set_something() {
        let mut knob = fixtures::variant("glibc:top_pad=1M");
        knob.tunables.push(("glibc.malloc.top_pad".to_owned(), "1048576".to_owned()));
        let variants = [fixtures::variant("glibc"), knob];
        let lines = lines(&variants);
        let [(label, text)] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!(*label, "glibc:top_pad=1M");
        let (sets, trap) = text.split_once("; ").unwrap();
        assert_eq!(sets, "sets GLIBC_TUNABLES=glibc.malloc.top_pad=1048576");
        assert!(trap.contains("`top_pad` alone"), "{text}");
    }
}
