//! The methods to unload when a JIT's cache is full: first the methods that the program's own collector found dead,
//! then methods that are called rarely and are not running.
//!
//! Relies on the JIT's own counts. It unloads nothing itself, and the same input gives the same
//! answer.

/// A method as the JIT knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method<K> {
    /// The JIT's name for the method.
    pub key: K,
    /// Whether nothing in the program can call the method any more.
    pub collected: bool,
    /// Whether a frame of the method is on some stack, as far as the JIT knows.
    pub running: bool,
    /// Calls since the JIT's last query, or since it was compiled.
    pub calls: u64,
    /// The size of the method's code, in the unit of the limit: bytes, or 1 to count methods.
    pub size: u64,
}

/// The methods to unload, in this order, so that at most `keep` stays.
///
/// All collected methods come first, whatever that frees. Then come the least called methods that are not running, only
/// as many as needed; among methods called equally often, the largest come first. Other methods that run are never
/// named, so more than `keep` may stay.
///
/// ```
/// use masu_code::{Method, evict};
///
/// let method = |key, collected, running, calls| Method { key, collected, running, calls, size: 1 };
/// let methods =
///     [method('a', false, false, 9), method('b', false, true, 1), method('c', true, false, 50),
///      method('d', false, false, 2)];
/// assert_eq!(evict(&methods, 4), [&'c']);
/// assert_eq!(evict(&methods, 2), [&'c', &'d']);
/// assert_eq!(evict(&methods, 0), [&'c', &'d', &'a']);
/// ```
pub fn evict<K>(methods: &[Method<K>], keep: u64) -> Vec<&K> {
    let mut held: u64 = methods.iter().fold(0, |sum, method| sum.saturating_add(method.size));
    let mut candidates: Vec<&Method<K>> =
        methods.iter().filter(|method| method.collected || !method.running).collect();
    // A collected method that still runs is unloaded too: the arena frees it when it has ended.
    candidates.sort_by_key(|method| {
        let rank = if method.collected { (0, 0) } else { (1, method.calls) };
        (rank, std::cmp::Reverse(method.size))
    });
    let mut chosen = Vec::new();
    for method in candidates {
        if !method.collected && held <= keep {
            break;
        }
        held = held.saturating_sub(method.size);
        chosen.push(&method.key);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_collected_goes_what_runs_stays_and_no_more_goes_than_must() {
        let method = |key: usize| Method {
            key,
            collected: key.is_multiple_of(7),
            running: key.is_multiple_of(5),
            calls: (key as u64 * 37) % 101,
            size: 100 + key as u64,
        };
        let methods: Vec<_> = (0..100).map(method).collect();
        let size = |keys: &[&usize]| keys.iter().map(|&&key| methods[key].size).sum::<u64>();
        let all: u64 = methods.iter().map(|method| method.size).sum();
        for keep in [0, 1000, 5000, 6000, u64::MAX] {
            let gone = evict(&methods, keep);
            assert!(methods.iter().filter(|m| m.collected).all(|m| gone.contains(&&m.key)));
            assert!(gone.iter().all(|&&key| methods[key].collected || !methods[key].running));
            // A method that was unloaded was called at most as often as a method that could have been unloaded and stayed.
            let (last, before) = gone.split_last().unwrap();
            let could = |m: &&Method<usize>| !m.running && !gone.contains(&&m.key);
            let Some(fewest) = methods.iter().filter(could).map(|m| m.calls).min() else {
                continue;
            };
            assert!(methods[**last].collected || methods[**last].calls <= fewest);
            assert!(all - size(&gone) <= keep);
            assert!(methods[**last].collected || all - size(before) > keep);
        }
    }
}
