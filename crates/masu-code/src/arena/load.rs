//! Loading: read, link, tell the tools, publish, initialize.
//!
//! Relies on [`crate::link`]. A failure before publishing is undone completely, so an error leaves the arena
//! unchanged.

use std::ops::Range as Bytes;
use std::sync::Arc;

use super::{Arena, Handle, refuse_fork};
use crate::archive::{self, Archive};
use crate::debugger::{self, Symfile};
use crate::error::Error;
use crate::kernel;
use crate::link::{Batch, Input, Plan};
use crate::memory::Region;
use crate::object::{Calls, Home, Kind, NAMES, Object};
use crate::outside;
use crate::perf::Named;
use crate::process;
use crate::source::Source;
use crate::state::{Loaded, State, Symbols, numbers};

/// From this many bytes written at once, the alias's page table entries are given back.
pub(super) const MANY: usize = 16 * 4096;

/// A batch that is entered, except for the objects' names and bytes.
pub(super) struct Linked {
    /// The first object's number; the others follow.
    pub(super) first: u64,
    /// The addresses of each object's sections.
    sections: Vec<Vec<usize>>,
    /// Initializers with their priorities, in the order of the objects.
    calls: Vec<(u32, usize)>,
}

impl Arena {
    /// Loads one object: a [`Source`], or a reference to a source that is to be loaded again.
    ///
    /// # Safety
    ///
    /// - Its initializers, destructors and functions that choose others (IFUNC), if it has any, are sound to run. No
    ///   exception leaves them, and none that chooses uses the arena.
    ///
    /// # Errors
    ///
    /// The object's fault, with its place; [`Error::Full`], [`Error::Forked`]. The arena is then as it was.
    pub unsafe fn load(&self, source: impl Into<Source>) -> Result<Handle, Error> {
        // SAFETY: The caller's condition.
        let handles = unsafe { self.load_batch(vec![source.into()], &[])? };
        handles.first().copied().ok_or(Error::NoObject)
    }

    /// Loads a batch: objects that refer to each other, or many at once, which is faster. All are
    /// loaded, or none.
    ///
    /// # Safety
    ///
    /// - As for [`Arena::load`].
    ///
    /// # Errors
    ///
    /// As for [`Arena::load`].
    pub unsafe fn load_all(
        &self,
        sources: impl IntoIterator<Item: Into<Source>>,
    ) -> Result<Vec<Handle>, Error> {
        let sources = sources.into_iter().map(Into::into).collect();
        // SAFETY: The caller's condition.
        unsafe { self.load_batch(sources, &[]) }
    }

    /// Loads a batch with the members of static libraries that it needs, as a linker selects them: a member is taken if
    /// it defines a symbol that neither the batch nor a loaded object defines, and so on for its own undefined symbols.
    /// The process is searched after the libraries.
    ///
    /// The handles of the batch come first, those of the members follow.
    ///
    /// Threads that need the same member at the same time share it: the first thread loads it, and the objects of the
    /// others are linked to it. Its initializers run in the first thread and may still run when the other loads return.
    /// Objects of two batches that define one symbol are [`Error::Duplicate`], whichever thread is first.
    ///
    /// ```no_run
    /// # use masu_code::{Archive, Arena, Options, Source};
    /// # fn main() -> Result<(), masu_code::Error> {
    /// # let arena = Arena::open(Options::default())?;
    /// let zlib = Archive::file("/usr/lib/x86_64-linux-gnu/libz.a")?;
    /// // SAFETY: Neither has initializers.
    /// let objects = unsafe { arena.load_with([Source::file("page.o")?], &[zlib])? };
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    ///
    /// - As for [`Arena::load`], for the members, too.
    ///
    /// # Errors
    ///
    /// As for [`Arena::load`]; for a library, also that it is broken or has no index.
    pub unsafe fn load_with(
        &self,
        sources: impl IntoIterator<Item: Into<Source>>,
        archives: &[Archive],
    ) -> Result<Vec<Handle>, Error> {
        let sources = sources.into_iter().map(Into::into).collect();
        // SAFETY: The caller's condition.
        unsafe { self.load_batch(sources, archives) }
    }

    /// # Safety
    ///
    /// - As for [`Arena::load`].
    unsafe fn load_batch(
        &self,
        mut sources: Vec<Source>,
        archives: &[Archive],
    ) -> Result<Vec<Handle>, Error> {
        self.collect();
        let (given, mut answers) = (sources.len(), Vec::new());
        let (mut state, mut linked) = loop {
            let read = |source| Input::read(source);
            let (inputs, mut state);
            if archives.is_empty() {
                inputs = sources.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
                state = self.shared.lock();
            } else {
                // One lock for the search and the link: a member that another thread loads between them would be defined
                // twice.
                state = self.shared.lock();
                sources.truncate(given);
                archive::add_needed(&mut sources, archives, |name| {
                    state.published.contains_key(name)
                })?;
                inputs = sources.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
            }
            refuse_fork(&state)?;
            state.outside.learn(&answers);
            let linked = self.link(&mut state, &inputs);
            let wanted = state.outside.settle(&answers);
            if wanted.is_empty() {
                break (state, linked?);
            }
            drop(state);
            answers.append(&mut outside::ask(wanted, self.shared.resolver.as_ref()));
        };
        let count = sources.len() as u64;
        self.hand_over(&mut state, &linked, sources);
        drop(state);
        linked.calls.sort_by_key(|(priority, _)| *priority);
        for (_, address) in linked.calls {
            // SAFETY: `.init_array` holds functions, which the caller vouches for.
            unsafe { process::call(address) };
        }
        Ok((linked.first..linked.first + count).map(Handle).collect())
    }

    /// Links a batch and enters its objects.
    pub(super) fn link(&self, state: &mut State, inputs: &[Input<'_>]) -> Result<Linked, Error> {
        state.note_clean();
        let first = numbers(inputs.len());
        let batch = Batch::link(state, inputs)?;
        let definitions = batch.definitions(first);
        let reuses = batch.reuses_text;
        let plans = batch.finish();
        let written = extent(&plans);
        if reuses || cfg!(target_arch = "aarch64") {
            kernel::synchronize_cores();
        }
        let sections = Vec::with_capacity(plans.len());
        let mut linked = Linked { first, sections, calls: Vec::new() };
        let (mut used, mut tables, mut frames) = (Vec::new(), Vec::new(), Vec::new());
        for ((number, mut plan), input) in (first..).zip(plans).zip(inputs) {
            if self.shared.tools.unwinder {
                frames.append(&mut plan.frames);
            } else {
                plan.tables.clear();
            }
            let loaded = self.enter(state, plan, input, &mut linked);
            used.extend_from_slice(&loaded.taken.more().uses);
            tables.extend(loaded.tables());
            for group in &loaded.taken.more().groups {
                state.groups.insert(group.clone(), number);
            }
            state.objects.insert(number, Box::new(loaded));
        }
        for number in used {
            if let Some(used) = state.objects.get_mut(&number) {
                used.users += 1;
            }
        }
        // SAFETY: Each was checked when it was copied, and zeros follow it.
        unsafe { state.frames.add(&tables, frames) };
        state.publish(definitions);
        if written.iter().map(|bytes| bytes.len()).sum::<usize>() > MANY {
            written.iter().for_each(|bytes| state.range.forget_alias(bytes));
        }
        Ok(linked)
    }

    /// Makes an object's entry, after perf knows it.
    fn enter(
        &self,
        state: &mut State,
        plan: Plan,
        input: &Input<'_>,
        linked: &mut Linked,
    ) -> Loaded {
        let object = &input.object;
        let symbols = symbols(input, &plan);
        let Plan { mut taken, sections, uses_here, tables, .. } = plan;
        if !uses_here.is_empty() {
            let uses_here = uses_here.into_iter().map(|used| linked.first + used as u64);
            taken.more_mut().uses.extend(uses_here);
        }
        let (table, others) = tables.split_first().unwrap_or((&0, &[]));
        if !others.is_empty() {
            taken.more_mut().tables = others.to_vec();
        }
        let (calls_before, mut fini) = (linked.calls.len(), Vec::new());
        for (section, &address) in object.sections.iter().zip(&sections) {
            if address == 0 || section.size == 0 {
                continue;
            }
            match section.calls.filter(|_| !input.is_inert) {
                Some(Calls::Init(priority)) => {
                    let calls = functions(address, section.size).map(|call| (priority, call));
                    linked.calls.extend(calls);
                }
                Some(Calls::Fini(priority)) => {
                    fini.extend(functions(address, section.size).map(|call| (priority, call)));
                }
                None => {}
            }
        }
        if !fini.is_empty() {
            fini.sort_by_key(|(priority, _)| *priority);
            taken.more_mut().fini = fini.into_iter().map(|(_, call)| call).collect();
        }
        taken.settle();
        // Where objects are kept, the debugger shares them.
        let is_short = self.shared.tools.debugger && !self.shared.keep;
        // SAFETY: The sections were just written, and only `unload` ends them.
        let short = is_short.then(|| unsafe { debugger::short_file(object, &sections) }).flatten();
        let short = short.map(|file| debugger::register(Symfile::Short(file.into())));
        tell_perf(state, object, &sections);
        linked.sections.push(sections);
        Loaded {
            table: *table,
            known: short,
            has_initializers: linked.calls.len() > calls_before,
            is_private: input.is_private,
            is_inert: input.is_inert,
            ..Loaded::new(taken, symbols)
        }
    }

    /// Keeps the bytes of a batch's objects for the debugger and for compaction, where they are needed.
    pub(super) fn hand_over(&self, state: &mut State, linked: &Linked, sources: Vec<Source>) {
        let (keep, tools) = (self.shared.keep, &self.shared.tools);
        let objects = state.objects.range_mut(linked.first..).map(|(_, loaded)| loaded);
        for ((loaded, sections), source) in objects.zip(&linked.sections).zip(sources) {
            if !keep && (!tools.debugger || loaded.known.is_some()) {
                continue;
            }
            let mut bytes = source.data;
            // Copies the bytes only where the caller has them, too.
            debugger::locate(Arc::<Vec<u8>>::make_mut(&mut bytes), sections);
            let whole = || debugger::register(Symfile::Whole(Arc::clone(&bytes)));
            loaded.known = tools.debugger.then(whole);
            loaded.kept = keep.then_some(bytes);
        }
    }
}

/// The functions of an array; 0, such as that of a weak symbol without a definition, and -1 mark nothing.
fn functions(address: usize, size: usize) -> impl Iterator<Item = usize> {
    let all = (0..size / 8).map(move |index| {
        // SAFETY: The array was just written, with its relocations, and stays while the object does.
        unsafe { ((address + index * 8) as *const usize).read_unaligned() }
    });
    all.filter(|function| !matches!(function, 0 | &usize::MAX))
}

/// The object's own symbols that a handle can ask for.
fn symbols(input: &Input<'_>, plan: &Plan) -> Symbols {
    let object = &input.object;
    let mut symbols = Vec::new();
    for (number, symbol) in object.symbols.iter().enumerate() {
        let base = match symbol.home {
            // Each thread has its own thread-local variable: it is published, and has no address.
            Home::Section(home) if object.sections[home].is_thread && !symbol.is_local => {
                0_usize.wrapping_sub(symbol.value as usize)
            }
            Home::Section(home) if plan.sections[home] != 0 => plan.sections[home],
            Home::Absolute => 0,
            Home::Common => match plan.common(number) {
                Some(at) => at.start.wrapping_sub(symbol.value as usize),
                None => continue,
            },
            _ => continue,
        };
        let is_function = matches!(symbol.kind, Kind::Function | Kind::Indirect);
        if symbol.name.is_empty() || symbol.is_local && !is_function {
            continue;
        }
        let address = plan.chosen(number);
        let address = address.unwrap_or(base.wrapping_add(symbol.value as usize));
        symbols.push((symbol.name, symbol.is_local, address));
    }
    Symbols::new(input.name, symbols)
}

/// The written text and read-only data: one extent of each.
fn extent(plans: &[Plan]) -> Vec<Bytes<usize>> {
    let extent = |region| {
        let bytes = plans.iter().map(|plan| plan.taken.bytes(region));
        let bytes = bytes.filter(|bytes| !bytes.is_empty());
        let start = bytes.clone().map(|bytes| bytes.start).min()?;
        Some(start..bytes.map(|bytes| bytes.end).max()?)
    };
    [Region::Text, Region::Sealed].into_iter().filter_map(extent).collect()
}

fn tell_perf(state: &mut State, object: &Object<'_>, sections: &[usize]) {
    if !state.perf.is_on() {
        return;
    }
    let mut named = Vec::new();
    let all = object.sections.iter().zip(sections).filter(|(_, start)| **start != 0);
    let text = all.filter(|(section, _)| section.region == Some(Region::Text));
    // Functions may have some names, but those of a small object must not be copies of all its code.
    let mut left = text.map(|(section, _)| section.size).sum::<usize>().saturating_mul(NAMES);
    for symbol in object.symbols.iter().filter(|symbol| symbol.kind == Kind::Function) {
        let Home::Section(home) = symbol.home else { continue };
        let section = &object.sections[home];
        let (start, offset) = (sections[home], symbol.value as usize);
        if start == 0 || section.region != Some(Region::Text) {
            continue;
        }
        let size = usize::try_from(symbol.size).unwrap_or(0).min(section.size - offset);
        let Some(rest) = left.checked_sub(size) else { continue };
        left = rest;
        // SAFETY: The section was just written there, and nothing writes it while the lock is held.
        let code = unsafe { std::slice::from_raw_parts((start + offset) as *const u8, size) };
        named.push(Named { address: start + offset, size, name: symbol.name, code });
    }
    // A full disk must not keep code from running.
    let _ = state.perf.tell(&named);
}

/// The bytes of a kept object, for another load.
pub(super) fn source_of(loaded: &Loaded, kept: Arc<Vec<u8>>) -> Source {
    Source {
        name: loaded.symbols.object().to_owned(),
        data: kept,
        is_private: loaded.is_private,
        is_inert: loaded.is_inert,
    }
}
