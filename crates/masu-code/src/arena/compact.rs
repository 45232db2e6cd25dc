//! Compaction: loads objects again at lower addresses, redirects their entries and frees the old copies.
//!
//! Relies on kept objects ([`crate::Options::keep`]). An object may move if it has no state of its own (no writable
//! data, no initializers), only entries refer to it (other copies of its address cannot be found), and it is linked to
//! the same objects again.

use std::collections::HashMap;

use super::{Arena, Handle, entry, refuse_fork};
use crate::error::Error;
use crate::link::Input;
use crate::outside;
use crate::state::State;

/// The entries that lead to an object, each with its symbol there.
type Leading = Vec<(String, Box<[u8]>)>;

impl Arena {
    /// Moves objects from the end of the text into holes before them, the last first; returns their
    /// number. Handles stay valid.
    ///
    /// The old copies are freed when all readers have been quiescent. An object that cannot be loaded again stays where it
    /// is.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`].
    pub fn compact(&self) -> Result<usize, Error> {
        self.collect();
        let (mut moved, mut answers) = (0, Vec::new());
        loop {
            let mut state = self.shared.lock();
            refuse_fork(&state)?;
            state.outside.learn(&answers);
            let mut movable: Vec<(usize, u64)> = state
                .objects
                .iter()
                .filter(|(_, loaded)| loaded.is_movable() && !loaded.taken.text.is_empty())
                .map(|(number, loaded)| (loaded.taken.text.start, *number))
                .collect();
            movable.sort_unstable_by(|a, b| b.cmp(a));
            let mut leading: HashMap<u64, Leading> = HashMap::new();
            for (name, entry) in &state.entries {
                if let Some((object, symbol)) = entry.target.clone() {
                    leading.entry(object).or_default().push((name.clone(), symbol));
                }
            }
            for (_, number) in movable {
                let leading = leading.remove(&number).unwrap_or_default();
                moved += usize::from(self.move_down(&mut state, number, leading));
            }
            // Objects that need more names were not moved.
            let wanted = state.outside.settle(&answers);
            if wanted.is_empty() {
                break;
            }
            drop(state);
            answers.append(&mut outside::ask(wanted, self.shared.resolver.as_ref()));
        }
        self.collect();
        Ok(moved)
    }

    /// Moves one object with the entries that lead to it, if there is a lower place for it.
    fn move_down(&self, state: &mut State, number: u64, leading: Leading) -> bool {
        let Some(loaded) = state.objects.get(&number) else { return false };
        let Some(kept) = loaded.kept.clone() else { return false };
        if state.gave_way(number) {
            return false;
        }
        let before = loaded.taken.text.start;
        let source = super::load::source_of(loaded, kept);
        // The symbols that the object publishes would be defined twice.
        let published: Vec<_> = loaded
            .symbols
            .names()
            .filter_map(|name| Some((Box::from(name), *state.published.get(name)?)))
            .filter(|(_, known)| known.owner == crate::state::Owner::Object(number))
            .collect();
        let (groups, uses) = (loaded.taken.more().groups.clone(), loaded.taken.more().uses.clone());
        state.unpublish(number);
        let linked =
            Input::read(&source).and_then(|input| self.link(state, std::slice::from_ref(&input)));
        let copy = linked.map(|linked| {
            let first = linked.first;
            self.hand_over(state, &linked, vec![source]);
            first
        });
        // Symbols that the object uses may have other definitions by now.
        let is_the_same_lower = |copy: &u64| {
            let taken = &state.objects[copy].taken;
            taken.text.start < before && taken.more().uses == uses
        };
        let copy = match copy {
            Ok(copy) if is_the_same_lower(&copy) => copy,
            other => {
                if let Ok(copy) = other {
                    state.unpublish(copy);
                    if let Some(copy) = state.objects.remove(&copy) {
                        state.waiting += 1;
                        state.reclaim(vec![copy]);
                    }
                }
                state.published.extend(published);
                state.groups.extend(groups.into_iter().map(|group| (group, number)));
                return false;
            }
        };
        self.swap_numbers(state, number, copy);
        // From here on `number` is the new copy, and `copy` the old one.
        for (name, symbol) in leading {
            let found = state.objects[&number].symbols.get(&symbol);
            let Some(address) = found else { continue };
            entry::replace(state, &name, address, Some((number, symbol)));
        }
        state.end(copy);
        true
    }

    /// Gives the copy the object's number, and the object the copy's.
    fn swap_numbers(&self, state: &mut State, number: u64, copy: u64) {
        let (Some(mut old), Some(mut new)) =
            (state.objects.remove(&number), state.objects.remove(&copy))
        else {
            return;
        };
        for name in new.symbols.names() {
            if let Some(known) = state.published.get_mut(name)
                && known.owner == crate::state::Owner::Object(copy)
            {
                known.owner = crate::state::Owner::Object(number);
            }
        }
        for group in &new.taken.more().groups {
            state.groups.insert(group.clone(), number);
        }
        // Entries name the object by `number`, whose count moves with it.
        std::mem::swap(&mut old.entries, &mut new.entries);
        state.objects.insert(number, new);
        state.objects.insert(copy, old);
    }

    /// The object's text, for tests and reports: first address and length in bytes.
    ///
    /// # Errors
    ///
    /// [`Error::NoObject`].
    pub fn text_of(&self, object: Handle) -> Result<(usize, usize), Error> {
        let state = self.shared.lock();
        let loaded = state.objects.get(&object.0).ok_or(Error::NoObject)?;
        Ok((loaded.taken.text.start, loaded.taken.text.len()))
    }
}
