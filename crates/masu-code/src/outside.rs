//! Symbols of the process and of the resolver, which are asked for while the arena's lock is not held.
//!
//! Relies on [`crate::process`]. The dynamic linker has a lock of its own, which it holds while it runs the
//! initializers of a library: they may call the arena, and so may the resolver. So a batch that needs a name that was
//! not asked for yet notes the name and fails; the names are asked for without the lock, and the batch is linked once
//! more.

use std::collections::HashMap;

use crate::exit;
use crate::options::Resolver;
use crate::process::{self, ThreadLocal};

/// A name that a batch needs.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wanted {
    name: Box<[u8]>,
    is_variable: bool,
}

/// The answer for a name. `None` and the resolver's answers are remembered only for the batch that asked: a library may
/// bring the name later, and the resolver may lead to code that is freed. So is a variable of which no two threads could
/// be compared (`false`), because the system refused a thread.
pub(crate) enum Answer {
    Address(Box<[u8]>, Option<usize>),
    Resolved(Box<[u8]>, usize),
    Variable(Box<[u8]>, Option<(ThreadLocal, bool)>),
}

/// The known symbols of the process.
#[derive(Default)]
pub(crate) struct Outside {
    addresses: HashMap<Box<[u8]>, Option<usize>>,
    variables: HashMap<Box<[u8]>, Option<ThreadLocal>>,
    wanted: Vec<Wanted>,
}

/// Asks for names.
pub(crate) fn ask(wanted: Vec<Wanted>, resolver: Option<&Resolver>) -> Vec<Answer> {
    let answer = |Wanted { name, is_variable }: Wanted| {
        if is_variable {
            let found = process::thread_local(&name);
            return Answer::Variable(name, found);
        }
        let found = exit::instead_of(&name).or_else(|| process::symbol(&name));
        let found = found.or_else(|| process::static_symbol(&name));
        let resolved = || resolver.and_then(|resolver| resolver(&name));
        match found.is_none().then(resolved).flatten() {
            Some(address) => Answer::Resolved(name, address),
            None => Answer::Address(name, found),
        }
    };
    wanted.into_iter().map(answer).collect()
}

impl Outside {
    /// A symbol's address; the inner `None` if the process has no such symbol, the outer `None` if that is not known
    /// yet.
    pub(crate) fn address(&mut self, name: &[u8]) -> Option<Option<usize>> {
        let known = self.addresses.get(name).copied();
        self.note(known.is_some(), name, false);
        known
    }

    /// A thread-local variable, likewise.
    pub(crate) fn variable(&mut self, name: &[u8]) -> Option<Option<ThreadLocal>> {
        let known = self.variables.get(name).copied();
        self.note(known.is_some(), name, true);
        known
    }

    fn note(&mut self, is_known: bool, name: &[u8], is_variable: bool) {
        if !is_known {
            self.wanted.push(Wanted { name: name.into(), is_variable });
        }
    }

    /// Whether a batch needs names that were not asked for yet.
    pub(crate) fn is_wanting(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Remembers the answers of a batch that is to be linked.
    pub(crate) fn learn(&mut self, answers: &[Answer]) {
        for answer in answers {
            match answer {
                Answer::Address(name, found) => drop(self.addresses.insert(name.clone(), *found)),
                Answer::Resolved(name, address) => {
                    self.addresses.insert(name.clone(), Some(*address));
                }
                Answer::Variable(name, found) => {
                    self.variables.insert(name.clone(), found.map(|(variable, _)| variable));
                }
            }
        }
    }

    /// Forgets the names that the process lacks; returns the names that the batch still needs.
    pub(crate) fn settle(&mut self, answers: &[Answer]) -> Vec<Wanted> {
        for answer in answers {
            match answer {
                Answer::Address(name, None) | Answer::Resolved(name, _) => {
                    self.addresses.remove(name);
                }
                Answer::Variable(name, None | Some((_, false))) => {
                    self.variables.remove(name);
                }
                _ => {}
            }
        }
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_asked_for_again_where_no_threads_were_compared() {
        let mut outside = Outside::default();
        let variable = ThreadLocal::on_demand(1, 8);
        for (is_compared, known) in [(false, None), (true, Some(Some(variable)))] {
            let answers = [Answer::Variable((*b"v").into(), Some((variable, is_compared)))];
            outside.learn(&answers);
            assert_eq!(outside.variable(b"v"), Some(Some(variable)));
            outside.settle(&answers);
            assert_eq!(outside.variable(b"v"), known);
        }
    }
}
