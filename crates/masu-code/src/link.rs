//! Loading a batch: sections placed, symbols resolved, relocations applied, all of it or nothing.
//!
//! Relies on every module below. [`layout`] places sections, [`names`] resolves symbols, [`apply`] writes
//! contents, GOT entries and stubs. Whether an address needs a stub or a GOT entry is decided
//! against the whole range, so that it does not depend on the place in the range.

mod apply;
mod choice;
mod layout;
mod names;

pub(crate) use layout::needs_of_block;

use std::collections::HashMap;
use std::ops::Range as Bytes;

use crate::error::{Error, Site};
use crate::memory::Region;
use crate::object::{Object, Rela};
use crate::process::ThreadLocal;
use crate::relocation::{CPUS, HOST};
use crate::slots::{Shared, Slot};
use crate::source::Source;
use crate::state::{State, Taken};
use crate::unwind::Frame;

use object::LittleEndian;

pub(crate) struct Input<'a> {
    pub(crate) name: &'a str,
    pub(crate) object: Object<'a>,
    pub(crate) is_private: bool,
    pub(crate) is_inert: bool,
}

impl<'a> Input<'a> {
    pub(crate) fn read(source: &'a Source) -> Result<Input<'a>, Error> {
        let Source { name, data, is_private, is_inert } = source;
        let object = Object::read(name, data)?;
        if object.machine != HOST.machine {
            let known = CPUS.iter().find(|cpu| cpu.machine == object.machine);
            let other = known.map_or("another CPU", |cpu| cpu.name);
            let what = format!("it is code for {other}, and this machine is {}", HOST.name);
            return Err(Error::Unsupported { object: name.clone(), what });
        }
        let old = object.sections.iter().find(|section| {
            let is_old = section.name.starts_with(b".ctors") || section.name.starts_with(b".dtors");
            is_old && section.region.is_some() && section.size > 0
        });
        if let Some(old) = old.filter(|_| !is_inert) {
            let section = String::from_utf8_lossy(old.name);
            let what = format!(
                "section {section}: initializers and destructors of this old form are not run: \
                 compile for .init_array (clang: without -fno-use-init-array)"
            );
            return Err(Error::Unsupported { object: name.clone(), what });
        }
        Ok(Input { name, object, is_private: *is_private, is_inert: *is_inert })
    }
}

/// The meaning of a symbol of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// An address, and the symbol's size.
    Address(usize, u64),
    /// A weak symbol without a definition: address 0.
    Missing,
    Thread(ThreadLocal),
    /// In a section that was dropped.
    Discarded,
}

/// The places and needs of one object of the batch.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) taken: Taken,
    /// Address of each section; 0 for those that are not loaded.
    pub(crate) sections: Vec<usize>,
    /// Sections of COMDAT groups that another object has; empty where there are no groups.
    dropped: Vec<bool>,
    /// The target of each symbol that a relocation names.
    targets: Vec<Option<Target>>,
    /// Objects of this batch that this object is linked to, by place.
    pub(crate) uses_here: Vec<usize>,
    /// The places of common symbols, by the symbol's number.
    pub(crate) commons: Vec<(usize, Bytes<usize>)>,
    /// The initial thread-local variables of each thread, and their alignment.
    image: (Bytes<usize>, usize),
    /// Functions that are chosen at load time (IFUNC).
    pub(crate) choices: Vec<choice::Choice>,
    /// The addresses of unwind tables with frames, and their frames.
    pub(crate) tables: Vec<usize>,
    pub(crate) frames: Vec<Frame>,
}

impl Plan {
    /// The room of a common symbol, if it is here.
    pub(crate) fn common(&self, symbol: usize) -> Option<&Bytes<usize>> {
        // Both lists are in the order of the symbols, of which there may be millions.
        let place = self.commons.binary_search_by_key(&symbol, |(symbol, _)| *symbol).ok()?;
        Some(&self.commons[place].1)
    }

    /// The stub of a function that is chosen at load time.
    pub(crate) fn chosen(&self, symbol: usize) -> Option<usize> {
        let place = self.choices.binary_search_by_key(&symbol, |choice| choice.symbol).ok()?;
        Some(self.choices[place].stub)
    }

    /// Whether another object has the section.
    fn drops(&self, section: usize) -> bool {
        self.dropped.get(section).is_some_and(|&dropped| dropped)
    }
}

/// A batch while it is linked; dropping it before [`Batch::finish`] gives everything back.
pub(crate) struct Batch<'s, 'a> {
    pub(crate) state: &'s mut State,
    pub(crate) inputs: &'s [Input<'a>],
    pub(crate) plans: Vec<Plan>,
    /// Text that is left for stubs, where text is written in batches.
    pub(crate) stubs: Bytes<usize>,
    /// New GOT entries and stubs.
    pub(crate) new: Vec<(Shared, usize)>,
    /// The piece of text of the whole batch, where text is written in batches.
    pub(crate) piece: Bytes<usize>,
    /// The stubs of entries that the batch uses, by address: the entry, and whether the stub's address is taken.
    entries: HashMap<usize, (usize, bool)>,
    /// The batch's definitions for others.
    defined: names::Defined<'a>,
    weaker: names::Weaker<'a>,
    /// Whether the text replaces earlier code.
    pub(crate) reuses_text: bool,
}

impl<'s, 'a> Batch<'s, 'a> {
    /// Loads, up to and including the last relocation.
    pub(crate) fn link(
        state: &'s mut State,
        inputs: &'s [Input<'a>],
    ) -> Result<Batch<'s, 'a>, Error> {
        let plans = inputs.iter().map(|_| Plan::default()).collect();
        let (stubs, piece) = (0..0, 0..0);
        let (new, entries, reuses_text) = (Vec::new(), HashMap::new(), false);
        let (defined, weaker) = (HashMap::new(), Vec::new());
        let mut batch = Batch {
            state,
            inputs,
            plans,
            stubs,
            new,
            piece,
            entries,
            defined,
            weaker,
            reuses_text,
        };
        batch.choose_groups();
        batch.place()?;
        batch.make_choices()?;
        batch.resolve()?;
        batch.write()?;
        batch.choose()?;
        Ok(batch)
    }

    /// The plans; the caller owns everything they took.
    pub(crate) fn finish(mut self) -> Vec<Plan> {
        self.give_stubs_back();
        // Others may have a stub's address: it stays as long as its entry, which is a user for good.
        for &(entry, _) in self.entries.values().filter(|(_, is_taken)| *is_taken) {
            self.state.slots.again(Shared::Stub(Slot::Entry(entry)));
        }
        std::mem::take(&mut self.plans)
    }

    /// Gives back the room that is left for stubs.
    fn give_stubs_back(&mut self) {
        let rest = std::mem::replace(&mut self.stubs, 0..0);
        self.state.free(Region::Text, &rest);
    }
}

impl Drop for Batch<'_, '_> {
    fn drop(&mut self) {
        self.give_stubs_back();
        for plan in std::mem::take(&mut self.plans) {
            self.state.give_back(&plan.taken);
        }
    }
}

/// The place of a relocation, for an error.
pub(crate) fn site(input: &Input<'_>, section: usize, relocation: &Rela) -> Box<Site> {
    let number = relocation.r_type(LittleEndian, false).0;
    let known = HOST.rule(number).map(|rule| rule.name.to_owned());
    let index = relocation.r_sym(LittleEndian, false) as usize;
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let symbol = input.object.symbols.get(index).map(|symbol| match symbol.home {
        crate::object::Home::Section(home) if symbol.name.is_empty() => {
            text(input.object.sections[home].name)
        }
        _ => text(symbol.name),
    });
    Box::new(Site {
        object: input.name.to_owned(),
        section: text(input.object.sections[section].name),
        offset: relocation.r_offset.get(LittleEndian),
        relocation: known.unwrap_or_else(|| format!("relocation type {number}")),
        symbol: symbol.unwrap_or_else(|| format!("symbol number {index}")),
    })
}
