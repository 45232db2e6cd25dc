//! Loading: read, link, tell the tools, publish, initialise.
//!
//! Relies on [`crate::link`]. The one hard idea: everything up to publishing is undone where it
//! fails, so an error leaves the arena as it was.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Arena, Handle, refuse_fork};
use crate::debugger;
use crate::error::Error;
use crate::kernel;
use crate::link::{Batch, Input, Plan};
use crate::memory::Region;
use crate::object::{Aligned, Calls, Home, Kind, Object};
use crate::perf::Named;
use crate::process;
use crate::source::Source;
use crate::state::{Loaded, Stage, State};
use crate::unwind;

/// Bytes written at once from which on the alias's page table entries are given back.
const MANY: usize = 16 * 4096;

impl Arena {
    /// Loads one object.
    ///
    /// # Safety
    ///
    /// - Its initialisers and destructors, if it has any, are sound to run.
    ///
    /// # Errors
    ///
    /// What is wrong with the object, with its place; [`Error::Full`], [`Error::Forked`]. The arena
    /// is then as it was.
    pub unsafe fn load(&self, source: &Source) -> Result<Handle, Error> {
        // SAFETY: The caller's condition.
        let handles = unsafe { self.load_all(std::slice::from_ref(source))? };
        handles.first().copied().ok_or(Error::NoObject)
    }

    /// Loads a batch: objects that refer to each other, or many at once, which is faster. All are
    /// loaded, or none.
    ///
    /// # Safety
    ///
    /// - As of [`Arena::load`].
    ///
    /// # Errors
    ///
    /// As of [`Arena::load`].
    pub unsafe fn load_all(&self, sources: &[Source]) -> Result<Vec<Handle>, Error> {
        self.collect();
        let inputs = sources
            .iter()
            .map(|source| Input::read(&source.name, &source.data, source.is_private))
            .collect::<Result<Vec<_>, Error>>()?;
        let mut state = self.shared.lock();
        refuse_fork(&state)?;
        let first = self.link(&mut state, sources, &inputs)?;
        let numbers = first..first + sources.len() as u64;
        let mut calls: Vec<(u32, usize)> = Vec::new();
        for (number, input) in numbers.clone().zip(&inputs) {
            let loaded = &state.objects[&number];
            calls.extend(
                loaded
                    .init
                    .iter()
                    .copied()
                    .zip(priorities(&input.object))
                    .map(|(address, priority)| (priority, address)),
            );
        }
        drop(state);
        calls.sort_by_key(|(priority, _)| *priority);
        for (_, address) in calls {
            // SAFETY: `.init_array` holds functions, which the caller vouches for.
            unsafe { process::call(address) };
        }
        Ok(numbers.map(Handle).collect())
    }

    /// Links a batch and enters it in the books; returns the first object's number.
    pub(super) fn link(
        &self,
        state: &mut State,
        sources: &[Source],
        inputs: &[Input<'_>],
    ) -> Result<u64, Error> {
        state.note_clean();
        let first = state.next;
        let batch = Batch::link(state, inputs)?;
        let definitions = batch.definitions(first);
        let reuses = batch.reuses_text;
        let plans = batch.finish();
        state.next += inputs.len() as u64;
        let written = extent(&plans);
        for bytes in &written {
            kernel::make_executable(state.range.written(bytes.start), bytes.start, bytes.len());
        }
        if reuses || cfg!(target_arch = "aarch64") {
            kernel::synchronize_cores();
        }
        let mut loaded: Vec<Loaded> = Vec::with_capacity(plans.len());
        for ((plan, input), source) in plans.into_iter().zip(inputs).zip(sources) {
            loaded.push(self.enter(state, plan, input, source));
        }
        let here: Vec<Vec<usize>> =
            loaded.iter_mut().map(|loaded| std::mem::take(&mut loaded.plan.uses_here)).collect();
        for (index, mut entered) in loaded.into_iter().enumerate() {
            entered.plan.uses.extend(here[index].iter().map(|&used| first + used as u64));
            entered.plan.uses.sort_unstable();
            entered.plan.uses.dedup();
            let number = first + index as u64;
            for group in &entered.plan.groups {
                state.groups.insert(group.clone(), number);
            }
            state.objects.insert(number, entered);
        }
        for number in first..state.next {
            for used in state.objects[&number].plan.uses.clone() {
                if let Some(used) = state.objects.get_mut(&used) {
                    used.users += 1;
                }
            }
        }
        state.published.extend(definitions);
        if written.iter().map(|bytes| bytes.len()).sum::<usize>() > MANY {
            written.iter().for_each(|bytes| state.range.forget_alias(bytes));
        }
        Ok(first)
    }

    /// An object's entry in the books, after the tools were told.
    fn enter(&self, state: &mut State, plan: Plan, input: &Input<'_>, source: &Source) -> Loaded {
        let symbols = symbols(&input.object, &plan);
        let (mut init, mut fini) = (Vec::new(), Vec::new());
        let mut frames = Vec::new();
        for (number, section) in input.object.sections.iter().enumerate() {
            let address = plan.sections[number];
            if address == 0 || section.size == 0 {
                continue;
            }
            match section.calls.filter(|_| !source.is_inert) {
                Some(Calls::Init(_)) => init.extend(functions(address, section.size)),
                Some(Calls::Fini(_)) => fini.extend(functions(address, section.size)),
                None => {}
            }
            if !section.is_frames || !self.shared.tools.unwinder {
                continue;
            }
            // SAFETY: The table was checked when it was copied, and zeros follow it.
            if unsafe { unwind::register(address) } {
                frames.push(address);
            }
        }
        let tools = &self.shared.tools;
        let kept = (self.shared.keep || tools.debugger).then(|| {
            let mut copy = source.data.clone();
            debugger::locate(&mut copy, &plan.sections);
            Arc::new(copy)
        });
        let known = kept.as_ref().filter(|_| tools.debugger);
        let known = known.map(|symfile| debugger::register(Arc::clone(symfile)));
        tell_perf(state, &input.object, &plan);
        Loaded {
            name: input.name.to_owned(),
            plan: Plan { targets: Vec::new(), ..plan },
            symbols,
            users: 0,
            entries: 0,
            pin: Arc::new(()),
            stage: Stage::Live,
            frames,
            known,
            kept: kept.filter(|_| self.shared.keep),
            init,
            fini,
            is_private: input.is_private,
            escaped: false,
        }
    }
}

/// Priorities of the functions of an object's `.init_array`s, in the order of its sections.
fn priorities<'a>(object: &'a Object<'_>) -> impl Iterator<Item = u32> + 'a {
    object.sections.iter().flat_map(|section| {
        let (priority, count) = match section.calls {
            Some(Calls::Init(priority)) => (priority, section.size / 8),
            _ => (0, 0),
        };
        std::iter::repeat_n(priority, count)
    })
}

/// The functions of an array; 0 and -1 mark nothing, as the dynamic linker has it.
fn functions(address: usize, size: usize) -> impl Iterator<Item = usize> {
    (0..size / 8).map(move |index| {
        // SAFETY: The array was just written, with its relocations, and stays while the object does.
        unsafe { ((address + index * 8) as *const usize).read_unaligned() }
    })
}

/// The object's own symbols that a handle can ask for.
fn symbols(object: &Object<'_>, plan: &Plan) -> HashMap<Box<[u8]>, (usize, u64)> {
    let mut symbols = HashMap::new();
    for (number, symbol) in object.symbols.iter().enumerate() {
        let base = match symbol.home {
            Home::Section(home) if plan.sections[home] != 0 => plan.sections[home],
            Home::Common => match plan.commons.iter().find(|(common, _)| *common == number) {
                Some((_, at)) => at.wrapping_sub(symbol.value as usize),
                None => continue,
            },
            _ => continue,
        };
        if symbol.name.is_empty() || symbol.is_local && symbol.kind != Kind::Function {
            continue;
        }
        let found = (base.wrapping_add(symbol.value as usize), symbol.size);
        // A global symbol comes before a local one of the same name.
        if symbol.is_local {
            symbols.entry(symbol.name.into()).or_insert(found);
        } else {
            symbols.insert(symbol.name.into(), found);
        }
    }
    symbols
}

/// What was written as text or read-only data: one extent of each.
fn extent(plans: &[Plan]) -> Vec<std::ops::Range<usize>> {
    let extent = |region| {
        let bytes = plans.iter().map(|plan| plan.bytes(region)).filter(|bytes| !bytes.is_empty());
        let start = bytes.clone().map(|bytes| bytes.start).min()?;
        Some(start..bytes.map(|bytes| bytes.end).max()?)
    };
    [Region::Text, Region::Sealed].into_iter().filter_map(extent).collect()
}

fn tell_perf(state: &mut State, object: &Object<'_>, plan: &Plan) {
    if !state.perf.is_on() {
        return;
    }
    let mut named = Vec::new();
    for symbol in object.symbols.iter().filter(|symbol| symbol.kind == Kind::Function) {
        let Home::Section(home) = symbol.home else { continue };
        let section = &object.sections[home];
        let (start, offset) = (plan.sections[home], symbol.value as usize);
        if start == 0 || section.region != Some(Region::Text) {
            continue;
        }
        let size = usize::try_from(symbol.size).unwrap_or(0).min(section.size - offset);
        // SAFETY: The section was just written there, and nothing writes it while the lock is held.
        let code = unsafe { std::slice::from_raw_parts((start + offset) as *const u8, size) };
        named.push(Named { address: start + offset, size, name: symbol.name, code });
    }
    // A full disk must not keep code from running.
    let _ = state.perf.tell(&named);
}

/// The bytes of a kept object, for another load.
pub(super) fn source_of(loaded: &Loaded, kept: &Aligned) -> Source {
    Source {
        name: loaded.name.clone(),
        data: kept.clone(),
        is_private: loaded.is_private,
        is_inert: false,
    }
}
