//! Tests of the spent error; series that stop early are in `summary/simulation/tests.rs`.

use super::*;

#[test]
fn all_looks_together_spend_the_whole_and_no_more() {
    for budget in 1..500 {
        let mut looks = Looks::new(4);
        let taken: Vec<Look> = (1..budget).filter_map(|rounds| looks.due(rounds)).collect();
        let spent: f64 = taken.iter().map(|look| look.level.error()).sum();
        let all = spent + looks.last().level.error();
        assert!((all - Level::TABLE.error()).abs() < 1e-12, "{budget} rounds: {all}");
        assert_eq!(looks.last().number, taken.len() + 1);
    }
}

#[test]
fn a_first_look_can_give_a_verdict_and_looks_become_rare() {
    for others in 1..20 {
        let mut looks = Looks::new(others);
        let due: Vec<(usize, Look)> =
            (1..1000).filter_map(|rounds| Some((rounds, looks.due(rounds)?))).collect();
        let (rounds, first) = due[0];
        assert_eq!(pairs_needed(others, first.level), rounds);
        for (index, (rounds, look)) in due.iter().enumerate() {
            assert_eq!(look.number, index + 1);
            assert!(pairs_needed(others, look.level) <= *rounds, "{look:?} at {rounds}");
        }
        assert!(due.len() <= 13, "{}", due.len());
    }
}

#[test]
fn a_look_that_was_not_asked_for_in_time_is_taken_at_once() {
    let mut looks = Looks::new(1);
    assert_eq!(looks.due(5), None);
    assert_eq!(looks.due(50).map(|look| look.number), Some(1));
    assert_eq!(looks.due(51), None);
    assert_eq!(looks.due(75).map(|look| look.number), Some(2));
    let mut looks = Looks::new(1);
    let due: Vec<usize> = (1..=30).filter(|rounds| looks.due(*rounds).is_some()).collect();
    assert_eq!(due, [9, 14, 21]);
}
