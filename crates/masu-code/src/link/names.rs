//! Resolves the symbols that relocations of the batch name.
//!
//! Relies on the symbols of earlier objects, the process and the resolver, searched in this order after the batch. An
//! arena is one link: a symbol may have one strong definition, a weak definition yields to any other, and all objects
//! of the arena see hidden symbols.

use std::collections::HashMap;

use object::LittleEndian;

use super::{Batch, Input, Plan, Target, site};
use crate::error::Error;
use crate::memory::Region;
use crate::object::{Home, Kind, Rela, Symbol};
use crate::process::ThreadLocal;
use crate::relocation::{HOST, Quantity};
use crate::state::{Definition, Owner};

/// A definition of the batch: the object's and the symbol's number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Here {
    object: usize,
    symbol: usize,
    strength: Strength,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Weak,
    Common,
    Strong,
}

pub(super) type Defined<'a> = HashMap<&'a [u8], Here>;
/// Weak definitions that give way to those.
pub(super) type Weaker<'a> = Vec<(&'a [u8], Here)>;

/// The strength of a symbol's definition; `None` where it is not defined, or not for other objects.
fn strength(symbol: &Symbol<'_>, plan: &Plan, number: usize) -> Option<Strength> {
    if symbol.is_local || symbol.name.is_empty() {
        return None;
    }
    match symbol.home {
        Home::Undefined => None,
        Home::Common => plan.common(number).is_some().then_some(Strength::Common),
        // Another object has the section, or the section is not loaded.
        Home::Section(home) if plan.sections[home] == 0 => None,
        Home::Section(_) | Home::Absolute if symbol.is_weak => Some(Strength::Weak),
        Home::Section(_) | Home::Absolute => Some(Strength::Strong),
    }
}

impl<'a> Batch<'_, 'a> {
    /// Resolves every symbol that a relocation of a loaded section names. An error does not count while the state's
    /// [`crate::outside::Outside`] wants names.
    pub(super) fn resolve(&mut self) -> Result<(), Error> {
        let (defined, weaker) = self.define()?;
        let mut plans = std::mem::take(&mut self.plans);
        for (index, input) in self.inputs.iter().enumerate() {
            let count = input.object.symbols.len();
            plans[index].targets = vec![None; count];
        }
        let done =
            (0..plans.len()).try_for_each(|index| self.resolve_object(index, &mut plans, &defined));
        self.plans = plans;
        (self.defined, self.weaker) = (defined, weaker);
        if self.state.outside.is_wanting() { Err(Error::NoObject) } else { done }
    }

    fn resolve_object(
        &mut self,
        index: usize,
        plans: &mut [Plan],
        defined: &Defined<'a>,
    ) -> Result<(), Error> {
        let input = &self.inputs[index];
        for (number, section) in input.object.sections.iter().enumerate() {
            if section.region.is_none() || plans[index].drops(number) {
                continue;
            }
            for relocation in section.relocations {
                let at = || site(input, number, relocation);
                let kind = relocation.r_type(LittleEndian, false).0;
                let rule = HOST.rule(kind).ok_or_else(|| Error::Relocation(at()))?;
                if rule.quantity == Quantity::Nothing || rule.quantity == Quantity::Base {
                    continue;
                }
                let symbol = relocation.r_sym(LittleEndian, false) as usize;
                let Some(slot) = plans[index].targets.get(symbol) else {
                    let why = format!("{}: there is no such symbol", at());
                    return Err(Error::malformed(input.name, why));
                };
                if slot.is_none() {
                    let target =
                        self.target(index, symbol, plans, defined, (number, relocation))?;
                    plans[index].targets[symbol] = Some(target);
                }
            }
        }
        Ok(())
    }

    /// The batch's public definitions, each once, and the weak ones that give way to them.
    fn define(&self) -> Result<(Defined<'a>, Weaker<'a>), Error> {
        let mut defined = Defined::with_capacity(self.inputs.len());
        let mut weaker = Vec::new();
        for (object, input) in self.inputs.iter().enumerate() {
            if input.is_private {
                continue;
            }
            for (number, symbol) in input.object.symbols.iter().enumerate() {
                let Some(strength) = strength(symbol, &self.plans[object], number) else {
                    continue;
                };
                let here = Here { object, symbol: number, strength };
                let duplicate = |earlier: String| Error::Duplicate {
                    object: input.name.to_owned(),
                    symbol: String::from_utf8_lossy(symbol.name).into_owned(),
                    earlier,
                };
                if strength > Strength::Weak
                    && let Some(published) = self.state.published.get(symbol.name)
                    && !published.is_weak
                {
                    return Err(duplicate(self.state.owner_name(published.owner)));
                }
                match defined.get(symbol.name) {
                    Some(other)
                        if other.strength == Strength::Strong && strength == Strength::Strong =>
                    {
                        return Err(duplicate(self.inputs[other.object].name.to_owned()));
                    }
                    Some(other) if other.strength >= strength => weaker.push((symbol.name, here)),
                    _ => {
                        let before = defined.insert(symbol.name, here);
                        weaker.extend(before.map(|before| (symbol.name, before)));
                    }
                }
            }
        }
        Ok((defined, weaker))
    }

    fn target(
        &mut self,
        index: usize,
        number: usize,
        plans: &mut [Plan],
        defined: &Defined<'a>,
        place: (usize, &Rela),
    ) -> Result<Target, Error> {
        let input = &self.inputs[index];
        let at = || site(input, place.0, place.1);
        if number == 0 {
            return Ok(Target::Address(0, 0));
        }
        let symbol = &input.object.symbols[number];
        let own = match symbol.home {
            Home::Undefined => None,
            Home::Absolute => Some(Target::Address(symbol.value as usize, symbol.size)),
            Home::Common => {
                let common = plans[index].common(number);
                common.map(|at| Target::Address(at.start, symbol.size))
            }
            Home::Section(home) if plans[index].drops(home) => {
                if symbol.is_local {
                    return Ok(Target::Discarded);
                }
                None
            }
            Home::Section(home) if input.object.sections[home].region.is_none() => {
                let why = format!("{}: the symbol's section is not loaded", at());
                return Err(Error::malformed(input.name, why));
            }
            Home::Section(home) => Some(in_section(&plans[index], input, home, number)),
        };
        let gives_way = symbol.is_weak && !input.is_private && !symbol.is_hidden;
        match own {
            Some(target) if symbol.is_local || !gives_way => Ok(target),
            own => {
                let found = self.look_up(index, symbol, plans, defined, own.is_some())?;
                let target = found.or(own);
                let target = target.or(symbol.is_weak.then_some(Target::Missing));
                target.ok_or_else(|| Error::Undefined(at()))
            }
        }
    }

    /// A definition outside the batch; `own` if the object has a weak definition, so that only the arena is
    /// searched.
    fn look_up(
        &mut self,
        index: usize,
        symbol: &Symbol<'_>,
        plans: &mut [Plan],
        defined: &Defined<'a>,
        own: bool,
    ) -> Result<Option<Target>, Error> {
        let name = symbol.name;
        let published = self.state.published.get(name).copied();
        let here = defined.get(name).copied();
        let earlier_wins = published.is_some_and(|published| {
            !published.is_weak || here.is_none_or(|here| here.strength == Strength::Weak)
        });
        if let Some(here) = here.filter(|_| !earlier_wins) {
            if here.object != index {
                plans[index].uses_here.push(here.object);
            }
            return Ok(Some(self.address_here(here, plans)));
        }
        if let Some(Definition { address, size, owner, module, .. }) = published {
            return match owner {
                Owner::Object(number) => {
                    plans[index].taken.more_mut().uses.push(number);
                    Ok(Some(module.map_or(Target::Address(address, size), |module| {
                        Target::Thread(ThreadLocal::on_demand(module, address))
                    })))
                }
                // The address of an entry is its stub's, which is made where it is first needed.
                Owner::Entry => self.entry_stub(address, &mut plans[index]).map(Some),
            };
        }
        if own {
            return Ok(None);
        }
        if name == b"__dso_handle" {
            return Ok(Some(Target::Address(plans[index].taken.more().handle, 8)));
        }
        if name == b"_GLOBAL_OFFSET_TABLE_" {
            return Ok(Some(Target::Address(self.state.range.bytes(Region::Sealed).start, 0)));
        }
        // Names that are not known yet are noted, and asked for later; then the whole batch is linked again.
        let outside = &mut self.state.outside;
        let found = if symbol.kind == Kind::ThreadLocal {
            outside.variable(name).map(|found| found.map(Target::Thread))
        } else {
            let target = |address| Target::Address(address, symbol.size);
            outside.address(name).map(|found| found.map(target))
        };
        Ok(found.unwrap_or(Some(Target::Missing)))
    }

    fn address_here(&self, here: Here, plans: &[Plan]) -> Target {
        let (plan, input) = (&plans[here.object], &self.inputs[here.object]);
        let symbol = &input.object.symbols[here.symbol];
        match symbol.home {
            Home::Section(home) => in_section(plan, input, home, here.symbol),
            Home::Common => {
                let at = plan.common(here.symbol);
                Target::Address(at.map_or(0, |at| at.start), symbol.size)
            }
            Home::Absolute | Home::Undefined => Target::Address(symbol.value as usize, symbol.size),
        }
    }

    /// The batch's public symbols, each with its definitions, the strongest first.
    pub(crate) fn definitions(&self, first: u64) -> Vec<(Box<[u8]>, Definition)> {
        let publish = |(name, here): (&&[u8], &Here)| {
            let (address, size, module) = match self.address_here(*here, &self.plans) {
                Target::Address(address, size) => (address, size, None),
                Target::Thread(ThreadLocal { module, offset, .. }) => {
                    (offset as usize, 0, Some(module))
                }
                Target::Missing | Target::Discarded => return None,
            };
            let owner = Owner::Object(first + here.object as u64);
            let is_weak = here.strength == Strength::Weak;
            Some(((*name).into(), Definition { address, module, size, owner, is_weak }))
        };
        let weaker = self.weaker.iter().map(|(name, here)| (name, here));
        self.defined.iter().chain(weaker).filter_map(publish).collect()
    }
}

/// The target for a symbol of a loaded section.
fn in_section(plan: &Plan, input: &Input<'_>, home: usize, number: usize) -> Target {
    let symbol = &input.object.symbols[number];
    if let Some(stub) = plan.chosen(number) {
        return Target::Address(stub, symbol.size);
    }
    let address = plan.sections[home].wrapping_add(symbol.value as usize);
    match &plan.taken.more().storage {
        Some(storage) if input.object.sections[home].is_thread => {
            let offset = address.wrapping_sub(plan.image.0.start);
            Target::Thread(ThreadLocal::on_demand(storage.module(), offset))
        }
        _ => Target::Address(address, symbol.size),
    }
}
