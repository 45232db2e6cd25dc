//! Lists in which each item stands once, in the order of first appearance.

/// Each of these items once.
pub fn once<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    gathered(all.into_iter().map(|one| (one, ()))).into_iter().map(|(one, _)| one).collect()
}

/// Each of these keys once, with all its values.
pub fn gathered<K: PartialEq, V>(all: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in all {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stands_where_it_first_did() {
        assert_eq!(once([3, 1, 3, 2, 1]), [3, 1, 2]);
        assert_eq!(gathered([("b", 1), ("a", 2), ("b", 3)]), [("b", vec![1, 3]), ("a", vec![2])]);
    }
}
