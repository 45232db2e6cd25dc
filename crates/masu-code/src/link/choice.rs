//! Functions that choose their implementation at load (IFUNC): each function gets a stub, as a linker does it.
//!
//! Relies on stubs and GOT entries. The resolver is code of the object, so it runs when all of the batch is relocated
//! and executable, and before the stub's address is published.

use super::{Batch, Input, Plan};
use crate::error::Error;
use crate::kernel;
use crate::memory::Region;
use crate::object::{Home, Kind, Symbol};
use crate::process;
use crate::slots::{Shared, Slot};

/// A symbol whose address a function chooses (IFUNC).
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) symbol: usize,
    pub(crate) stub: usize,
    /// The choosing function.
    chooser: usize,
}

/// The address of the choosing function, if the object may run code.
fn chooser(input: &Input<'_>, plan: &Plan, symbol: &Symbol<'_>) -> Result<Option<usize>, Error> {
    let Home::Section(home) = symbol.home else { return Ok(None) };
    if plan.drops(home) || plan.sections[home] == 0 {
        return Ok(None);
    }
    let name = || String::from_utf8_lossy(symbol.name).into_owned();
    let section = &input.object.sections[home];
    if section.region != Some(Region::Text) || symbol.value >= section.size as u64 {
        let why = format!("what `{}` is chosen by (IFUNC) is not code", name());
        return Err(Error::malformed(input.name, why));
    }
    if input.is_inert {
        let what = format!("`{}` is chosen by code (IFUNC), and an inert source runs none", name());
        return Err(Error::Unsupported { object: input.name.to_owned(), what });
    }
    Ok(Some(plan.sections[home] + symbol.value as usize))
}

impl Batch<'_, '_> {
    pub(super) fn make_choices(&mut self) -> Result<(), Error> {
        let inputs = self.inputs;
        let mut plans = std::mem::take(&mut self.plans);
        let done = inputs.iter().zip(&mut plans).try_for_each(|(input, plan)| {
            let symbols = input.object.symbols.iter().enumerate();
            for (number, symbol) in symbols.filter(|(_, symbol)| symbol.kind == Kind::Indirect) {
                if let Some(chooser) = chooser(input, plan, symbol)? {
                    let stub = self.stub(Slot::Chosen(chooser), plan)?;
                    plan.choices.push(Choice { symbol: number, stub, chooser });
                }
            }
            Ok(())
        });
        self.plans = plans;
        done
    }

    /// Calls the choosing functions.
    pub(super) fn choose(&mut self) -> Result<(), Error> {
        let choices: Vec<usize> =
            self.plans.iter().flat_map(|plan| &plan.choices).map(|choice| choice.chooser).collect();
        if choices.is_empty() {
            return Ok(());
        }
        kernel::synchronize_cores();
        for chooser in choices {
            let Some(slot) = self.state.slots.address(Shared::Slot(Slot::Chosen(chooser))) else {
                continue;
            };
            // SAFETY: The function is code of the object, which the caller vouches for, and all of the object is in
            // place.
            let chosen = unsafe { process::choose(chooser) };
            let bytes = slot..slot + 8;
            // SAFETY: Read-only data may be written by its owner.
            unsafe { self.state.range.begin(&bytes)? };
            let written = self.state.range.written(slot) as *mut usize;
            // SAFETY: The slot was taken for this choice, and is writable here.
            unsafe { written.write(chosen) };
            self.state.range.end(&bytes, Region::Sealed)?;
        }
        Ok(())
    }
}
