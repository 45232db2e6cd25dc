//! The placement of a batch's sections.
//!
//! Relies on [`crate::space`]. The spacing of text is 16 bytes, and never a multiple of 128 from one
//! function to the next of the same size, because functions at such distances share few sets of the instruction cache.

use std::collections::HashMap;

use super::{Batch, Input, Plan};
use crate::error::Error;
use crate::memory::Region;
use crate::object::{Home, Kind, Section};
use crate::relocation::STUB;
use crate::state::Published;
use crate::storage::Storage;

/// The alignment of text, in bytes.
const PACK: usize = 16;

/// The spacing of longer text does not matter.
const LONG: usize = 4096;

/// The bytes that a section of text takes, with spacing.
fn spaced(size: usize) -> usize {
    let size = size.next_multiple_of(PACK);
    let trap = size > 0 && size < LONG && size.is_multiple_of(128);
    size + if trap { PACK } else { 0 }
}

/// The unit of an object's part of a region, so that no hole is too small to be used.
const GRAIN: usize = 8;

/// Size and alignment of a block without an object file.
pub(crate) fn needs_of_block(size: usize, align: usize, region: Region) -> (usize, usize) {
    match region {
        Region::Text => (spaced(size), align.max(PACK)),
        _ => (size.next_multiple_of(GRAIN), align.max(GRAIN)),
    }
}

/// Bytes that follow a table of frames: the zeros that end it.
pub(crate) const END_OF_FRAMES: usize = 4;

/// Size and alignment of a section in its region.
fn needs(section: &Section<'_>, region: Region) -> (usize, usize) {
    let (size, align) = if section.is_frames {
        (section.size + END_OF_FRAMES, section.align.max(8))
    } else {
        (section.size, section.align)
    };
    match region {
        Region::Text => (spaced(size), align.max(PACK)),
        _ => (size, align),
    }
}

/// Sections of one region, one behind the other: size and alignment of the whole. A reader of objects limits the size of
/// each and their number, so that no sum overflows.
#[derive(Debug, Default, Clone, Copy)]
struct Pile {
    size: usize,
    align: usize,
}

impl Pile {
    /// The place of the next piece.
    fn put(&mut self, size: usize, align: usize) -> usize {
        let at = self.size.next_multiple_of(align);
        self.size = at + size;
        self.align = self.align.max(align);
        at
    }
}

/// Puts the thread-local sections, or all others, on the piles of their regions.
fn pile_up(input: &Input<'_>, plan: &mut Plan, piles: &mut [Pile; 3], thread: bool) {
    let sections = input.object.sections.iter().enumerate();
    for (number, section) in sections.filter(|(_, section)| section.is_thread == thread) {
        let Some(region) = section.region.filter(|_| !plan.drops(number)) else { continue };
        let (size, align) = needs(section, region);
        plan.sections[number] = piles[region as usize].put(size, align);
    }
}

impl Batch<'_, '_> {
    /// Keeps each COMDAT group once: the group of an object loaded earlier, or the batch's first.
    pub(super) fn choose_groups(&mut self) {
        let mut here: HashMap<&[u8], usize> = HashMap::new();
        for (index, (input, plan)) in self.inputs.iter().zip(&mut self.plans).enumerate() {
            if !input.object.groups.is_empty() {
                plan.dropped = vec![false; input.object.sections.len()];
            }
            for group in &input.object.groups {
                let earlier = self.state.groups.contains_key(group.signature);
                // No other object may use the groups of a private object.
                let alone = input.is_private;
                if !alone && (earlier || here.contains_key(group.signature)) {
                    for &member in &group.members {
                        if let Some(dropped) = plan.dropped.get_mut(member) {
                            *dropped = true;
                        }
                    }
                } else if !alone {
                    here.insert(group.signature, index);
                    plan.taken.more_mut().groups.push(group.signature.into());
                }
            }
        }
    }

    pub(super) fn place(&mut self) -> Result<(), Error> {
        let mut all = Vec::with_capacity(self.inputs.len());
        let commons = commons(self.inputs, &self.state.published);
        for (index, (input, commons)) in self.inputs.iter().zip(commons).enumerate() {
            let plan = &mut self.plans[index];
            let mut piles = [Pile { size: 0, align: 1 }; 3];
            plan.sections = vec![0; input.object.sections.len()];
            pile_up(input, plan, &mut piles, false);
            let threads = input.object.sections.iter().filter(|section| section.is_thread);
            if let Some(align) = threads.map(|section| section.align).max() {
                // The image that each thread copies is one piece.
                let start = piles[Region::Sealed as usize].put(0, align);
                pile_up(input, plan, &mut piles, true);
                plan.image = (start..piles[Region::Sealed as usize].size, align);
            }
            for Common { symbol, size, align } in commons {
                let at = piles[Region::Data as usize].put(size, align);
                plan.commons.push((symbol, at..at + size));
            }
            let wants = input.object.symbols.iter().any(|symbol| symbol.name == b"__dso_handle");
            if wants {
                plan.taken.more_mut().handle = piles[Region::Data as usize].put(8, 8);
            }
            all.push(piles);
        }
        if !self.state.range.is_dual() {
            self.take_pages(&all)?;
        }
        for (index, piles) in all.iter().enumerate() {
            for region in Region::ALL {
                if self.plans[index].taken.bytes(region).is_empty() {
                    let (pile, to) = (piles[region as usize], &mut self.plans[index].taken);
                    let high = self.state.space(region).high();
                    let size = pile.size.next_multiple_of(GRAIN);
                    let taken = self.state.take(region, size, pile.align)?;
                    let start = self.state.range.bytes(region).start;
                    self.reuses_text |=
                        region == Region::Text && !taken.is_empty() && taken.start - start < high;
                    *to.bytes_mut(region) = taken;
                }
            }
            self.settle(index);
        }
        Ok(())
    }

    /// Where pages are written in place, text begins at an OS page of its own and takes one piece,
    /// with room for as many stubs as there can be.
    fn take_pages(&mut self, all: &[[Pile; 3]]) -> Result<(), Error> {
        let mut whole = Pile { size: 0, align: 1 };
        let texts = all.iter().map(|piles| piles[Region::Text as usize]);
        let places: Vec<_> = texts.map(|text| whole.put(text.size, text.align)).collect();
        // Symbols that may be too far away for a branch or an entry's, or whose function is chosen at load time.
        let far = |symbol: &&crate::object::Symbol<'_>| {
            matches!(symbol.home, Home::Undefined | Home::Absolute)
                || symbol.is_weak
                || symbol.kind == Kind::Indirect
        };
        let symbols = self.inputs.iter().flat_map(|input| &input.object.symbols);
        let count = symbols.filter(far).count();
        let stubs = whole.put(count * STUB, STUB);
        let page = self.state.range.page();
        let used = whole.size;
        let size = used.next_multiple_of(page);
        let high = self.state.space(Region::Text).high();
        let piece = self.state.take(Region::Text, size, page.max(whole.align))?;
        self.reuses_text =
            !piece.is_empty() && piece.start - self.state.range.bytes(Region::Text).start < high;
        for ((plan, at), piles) in self.plans.iter_mut().zip(places).zip(all) {
            let start = piece.start + at;
            plan.taken.text = start..start + piles[Region::Text as usize].size;
        }
        // The bytes between and behind the objects have no owner until whole OS pages are free again.
        let mut end = piece.start;
        for index in 0..self.plans.len() {
            let text = self.plans[index].taken.text.clone();
            self.state.free(Region::Text, &(end..text.start));
            end = text.end;
        }
        self.state.free(Region::Text, &(end..piece.start + stubs));
        self.stubs = piece.start + stubs..piece.start + used;
        self.state.free(Region::Text, &(piece.start + used..piece.end));
        self.piece = piece;
        Ok(())
    }

    /// Turns offsets in the object's parts into addresses.
    fn settle(&mut self, index: usize) {
        let (input, plan) = (&self.inputs[index], &mut self.plans[index]);
        for (number, section) in input.object.sections.iter().enumerate() {
            if let Some(region) = section.region.filter(|_| !plan.drops(number)) {
                let start = plan.taken.bytes(region).start;
                plan.sections[number] += start;
            }
        }
        let start = plan.taken.data.start;
        for (_, at) in &mut plan.commons {
            *at = at.start + start..at.end + start;
        }
        let wants = input.object.symbols.iter().any(|symbol| symbol.name == b"__dso_handle");
        if wants {
            plan.taken.more_mut().handle += start;
        }
        let (image, align) = (plan.image.0.clone(), plan.image.1);
        let start = plan.taken.sealed.start;
        plan.image.0 = image.start + start..image.end + start;
        if let Some(storage) = Storage::open(&plan.image.0, align) {
            plan.taken.more_mut().storage = Some(storage);
        }
    }
}

/// A common symbol that gets room: its number in the object, and the size and alignment of the largest common symbol of
/// its name.
struct Common {
    symbol: usize,
    size: usize,
    align: usize,
}

/// The common symbols that each object of a batch has to make room for. The first object with a common symbol of a name
/// makes room for the largest symbol of that name, unless a definition exists.
fn commons(inputs: &[Input<'_>], published: &Published) -> Vec<Vec<Common>> {
    let mut found: Vec<Vec<Common>> = inputs.iter().map(|_| Vec::new()).collect();
    // The place of the room for a name; `None` where a definition exists.
    let mut places: HashMap<&[u8], Option<(usize, usize)>> = HashMap::new();
    let symbols = || inputs.iter().flat_map(|input| &input.object.symbols);
    if !symbols().any(|symbol| symbol.home == Home::Common) {
        return found;
    }
    let public = inputs.iter().filter(|input| !input.is_private);
    for symbol in public.flat_map(|input| &input.object.symbols) {
        if matches!(symbol.home, Home::Section(_) | Home::Absolute) && !symbol.is_local {
            places.insert(symbol.name, None);
        }
    }
    for (index, input) in inputs.iter().enumerate() {
        for (number, symbol) in input.object.symbols.iter().enumerate() {
            if symbol.home != Home::Common {
                continue;
            }
            let (size, align) = (symbol.size as usize, symbol.value.max(1) as usize);
            if !input.is_private && !symbol.is_local {
                match places.get(symbol.name) {
                    None if published.contains_key(symbol.name) => continue,
                    None => {
                        let place = (index, found[index].len());
                        places.insert(symbol.name, Some(place));
                    }
                    Some(None) => continue,
                    Some(&Some((index, place))) => {
                        let common = &mut found[index][place];
                        common.size = common.size.max(size);
                        common.align = common.align.max(align);
                        continue;
                    }
                }
            }
            found[index].push(Common { symbol: number, size, align });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_one_size_are_never_a_power_of_two_apart() {
        for size in 1..LONG - PACK {
            let spaced = spaced(size);
            assert!(spaced >= size && spaced <= size + 2 * PACK && spaced.is_multiple_of(PACK));
            assert!(
                spaced < 128 || !spaced.is_power_of_two() && !spaced.is_multiple_of(128),
                "{size}"
            );
        }
    }
}
