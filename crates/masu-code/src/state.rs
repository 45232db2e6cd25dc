//! The arena's state: loaded objects, their references, free space.
//!
//! Relies on the range, its free space and the shared GOT. An object is freed when it was unloaded, no entry, handle or
//! other object refers to it, and every thread has been quiescent since. Objects that only use each other are freed
//! together.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range as Bytes;
use std::sync::Arc;

use crate::debugger::Known;
use crate::error::Error;
use crate::memory::{Range, Region};
use crate::options::Resolver;
use crate::perf::Perf;
use crate::process::ThreadLocal;
use crate::quiescence::Readers;
use crate::slots::{Shared, Slots};
use crate::space::Space;
use crate::storage::Storage;
use crate::unwind::{Frames, Table};

/// The owner of a published symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The object of this number.
    Object(u64),
    /// An entry, whose slot the definition's address is.
    Entry,
}

/// A symbol that later objects are linked to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Definition {
    /// Its address; for a thread-local variable, its place in the module.
    pub(crate) address: usize,
    /// The module of a thread-local variable.
    pub(crate) module: Option<u64>,
    pub(crate) size: u64,
    pub(crate) owner: Owner,
    pub(crate) is_weak: bool,
}

pub(crate) type Published = HashMap<Box<[u8]>, Definition>;

/// An object's own symbols with their addresses, in the order of their names; the address is 0 where each thread has
/// another. Most objects of a JIT have one symbol.
#[derive(Debug, Default)]
pub(crate) struct Symbols(Box<[(Box<[u8]>, usize)]>);

impl Symbols {
    /// Takes names, whether they are local, and addresses. A global symbol comes before a local one of its name, and the
    /// first before the next.
    pub(crate) fn new(mut symbols: Vec<(&[u8], bool, usize)>) -> Symbols {
        symbols.sort_by_key(|&(name, is_local, _)| (name, is_local));
        symbols.dedup_by_key(|(name, ..)| *name);
        Symbols(symbols.into_iter().map(|(name, _, address)| (name.into(), address)).collect())
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<usize> {
        let place = self.0.binary_search_by(|(own, _)| own.as_ref().cmp(name));
        place.ok().map(|place| self.0[place].1).filter(|&address| address != 0)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|(name, _)| name.as_ref())
    }
}

/// The parts of the arena that an object holds while it is loaded.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) groups: Vec<Box<[u8]>>,
    pub(crate) text: Bytes<usize>,
    pub(crate) sealed: Bytes<usize>,
    pub(crate) data: Bytes<usize>,
    /// GOT entries and stubs, in order.
    shared: Vec<Shared>,
    /// Objects that it is linked to, by number.
    pub(crate) uses: Vec<u64>,
    /// Its key in the C library's lists: the address of `__dso_handle`, or of its text; 0 where it is in none.
    pub(crate) handle: usize,
    pub(crate) storage: Option<Storage>,
}

impl Taken {
    /// Whether it already uses a GOT entry or stub.
    pub(crate) fn shares(&self, what: Shared) -> bool {
        self.shared.binary_search(&what).is_ok()
    }

    pub(crate) fn share(&mut self, what: Shared) {
        if let Err(place) = self.shared.binary_search(&what) {
            self.shared.insert(place, what);
        }
    }

    /// Gives back the room that its lists have left: a program may have thousands of objects.
    pub(crate) fn shrink(&mut self) {
        self.groups.shrink_to_fit();
        self.shared.shrink_to_fit();
        self.uses.shrink_to_fit();
    }

    pub(crate) fn bytes(&self, region: Region) -> &Bytes<usize> {
        match region {
            Region::Text => &self.text,
            Region::Sealed => &self.sealed,
            Region::Data => &self.data,
        }
    }
}

pub(crate) struct Loaded {
    pub(crate) name: String,
    pub(crate) taken: Taken,
    pub(crate) symbols: Symbols,
    /// How many other objects are linked to it.
    pub(crate) users: usize,
    /// How many entries lead to it.
    pub(crate) entries: usize,
    /// Shared with each [`crate::Function`]; made for the first.
    pub(crate) pin: Option<Arc<()>>,
    /// Whether it was not unloaded.
    pub(crate) is_live: bool,
    /// Tables that the unwinder knows, where the process has one.
    pub(crate) tables: Vec<usize>,
    pub(crate) known: Option<Known>,
    /// The object itself, where it is kept.
    pub(crate) kept: Option<Arc<Vec<u8>>>,
    pub(crate) has_initializers: bool,
    pub(crate) fini: Vec<usize>,
    pub(crate) is_private: bool,
    /// Whether an untracked address of it was given out.
    pub(crate) escaped: bool,
}

impl Loaded {
    /// Whether a copy could take its place: it has no state, and only entries lead to it.
    pub(crate) fn is_movable(&self) -> bool {
        self.is_live
            && self.kept.is_some()
            && self.taken.data.is_empty()
            && self.taken.storage.is_none()
            && !self.has_initializers
            && self.fini.is_empty()
            && !self.escaped
            && self.users == 0
            && self.pins() == 0
    }

    /// Whether no entry and no handle leads to it.
    fn is_free(&self) -> bool {
        self.entries == 0 && self.pins() == 0
    }

    fn pins(&self) -> usize {
        self.pin.as_ref().map_or(0, |pin| Arc::strong_count(pin) - 1)
    }

    /// A handle that keeps the object.
    pub(crate) fn pin(&mut self) -> Arc<()> {
        Arc::clone(self.pin.get_or_insert_default())
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = Table> {
        let text = &self.taken.text;
        self.tables.iter().map(|&at| Table { text: text.clone(), at })
    }
}

#[derive(Debug)]
pub(crate) struct EntryState {
    pub(crate) slot: usize,
    /// The object it leads to, and by which symbol; `None` for an address of the program's.
    pub(crate) target: Option<(u64, Box<[u8]>)>,
}

pub(crate) struct State {
    pub(crate) range: Range,
    text: Space,
    pub(crate) sealed: Space,
    data: Space,
    /// The end of each region's used part when the batch began; everything beyond is zeros.
    clean: [usize; 3],
    pub(crate) slots: Slots,
    pub(crate) published: Published,
    pub(crate) groups: HashMap<Box<[u8]>, u64>,
    pub(crate) objects: BTreeMap<u64, Box<Loaded>>,
    pub(crate) entries: HashMap<String, EntryState>,
    pub(crate) process: HashMap<Box<[u8]>, usize>,
    pub(crate) thread_locals: HashMap<Box<[u8]>, ThreadLocal>,
    pub(crate) resolver: Option<Resolver>,
    pub(crate) perf: Perf,
    pub(crate) next: u64,
    pub(crate) frames: Frames,
    /// Objects that were unloaded and not freed.
    pub(crate) waiting: usize,
    /// Unloaded objects that may still be referred to.
    unloading: BTreeSet<u64>,
    /// Objects without references since an epoch began, by epoch.
    retired: VecDeque<(usize, BTreeSet<u64>)>,
    /// Objects inspected in the search for free ones.
    #[cfg(test)]
    pub(crate) looked_at: usize,
}

impl State {
    pub(crate) fn new(range: Range, resolver: Option<Resolver>, perf: Perf) -> State {
        let space = |region| Space::new(range.bytes(region).len());
        let (text, mut sealed, data) =
            (space(Region::Text), space(Region::Sealed), space(Region::Data));
        let slots = Slots::open(&range, &mut sealed);
        State {
            range,
            text,
            sealed,
            data,
            clean: [0; 3],
            slots,
            published: HashMap::new(),
            groups: HashMap::new(),
            objects: BTreeMap::new(),
            entries: HashMap::new(),
            process: HashMap::new(),
            thread_locals: HashMap::new(),
            resolver,
            perf,
            next: 1,
            frames: Frames::default(),
            waiting: 0,
            unloading: BTreeSet::new(),
            retired: VecDeque::new(),
            #[cfg(test)]
            looked_at: 0,
        }
    }

    pub(crate) fn space(&self, region: Region) -> &Space {
        match region {
            Region::Text => &self.text,
            Region::Sealed => &self.sealed,
            Region::Data => &self.data,
        }
    }

    fn space_mut(&mut self, region: Region) -> &mut Space {
        match region {
            Region::Text => &mut self.text,
            Region::Sealed => &mut self.sealed,
            Region::Data => &mut self.data,
        }
    }

    /// Notes the fresh part of each region, before a batch takes any of it.
    pub(crate) fn note_clean(&mut self) {
        self.clean = [Region::Text, Region::Sealed, Region::Data].map(|r| self.space(r).high());
    }

    /// The offset below which a region may hold old contents.
    pub(crate) fn dirty(&self, region: Region) -> usize {
        self.clean[region as usize]
    }

    /// Takes room in a region; for nothing, the region's first address.
    pub(crate) fn take(
        &mut self,
        region: Region,
        size: usize,
        align: usize,
    ) -> Result<Bytes<usize>, Error> {
        let start = self.range.bytes(region).start;
        let at = self.space_mut(region).allocate(size, align);
        let at = at.ok_or_else(|| self.full(region, size))?;
        Ok(start + at..start + at + size)
    }

    /// Frees room, and purges OS pages that are now entirely free.
    pub(crate) fn free(&mut self, region: Region, bytes: &Bytes<usize>) {
        if bytes.is_empty() {
            return;
        }
        let (start, page) = (self.range.bytes(region).start, self.range.page());
        let hole = self.space_mut(region).free(bytes.start - start, bytes.len());
        let low = (bytes.start / page * page).max((start + hole.start).next_multiple_of(page));
        let high = bytes.end.next_multiple_of(page).min((start + hole.end) / page * page);
        if low < high {
            // SAFETY: Nobody uses what is free.
            unsafe { self.range.purge(&(low..high), region) };
        }
    }

    pub(crate) fn full(&self, region: Region, wanted: usize) -> Error {
        let space = self.space(region);
        let (free, largest) = (space.free_bytes(), space.largest());
        Error::Full { region: region.name(), wanted, free, largest }
    }

    /// Gives back all that an object took.
    pub(crate) fn give_back(&mut self, taken: &Taken) {
        for region in [Region::Text, Region::Sealed, Region::Data] {
            self.free(region, taken.bytes(region));
        }
        for &shared in &taken.shared {
            self.release(shared);
        }
    }

    pub(crate) fn release(&mut self, shared: Shared) {
        self.slots.release(shared, &self.range, &mut self.text, &mut self.sealed);
    }

    /// The name of the object that has a symbol.
    pub(crate) fn owner_name(&self, owner: Owner) -> String {
        match owner {
            Owner::Entry => "an entry".to_owned(),
            Owner::Object(number) => {
                self.objects.get(&number).map_or("an object".to_owned(), |o| o.name.clone())
            }
        }
    }

    /// Hides an object's symbols and groups from later loads.
    pub(crate) fn unpublish(&mut self, number: u64) {
        let Some(loaded) = self.objects.get(&number) else { return };
        for name in loaded.symbols.names() {
            if self.published.get(name).is_some_and(|known| known.owner == Owner::Object(number)) {
                self.published.remove(name);
            }
        }
        for group in &loaded.taken.groups {
            if self.groups.get(group) == Some(&number) {
                self.groups.remove(group);
            }
        }
    }

    /// Ends a live object: it is freed when nothing leads to it.
    pub(crate) fn end(&mut self, number: u64) {
        let Some(loaded) = self.objects.get_mut(&number) else { return };
        loaded.is_live = false;
        self.waiting += 1;
        self.unloading.insert(number);
    }

    /// Retires what was unloaded and nothing leads to any more; objects that only use each other
    /// go together.
    pub(crate) fn retire(&mut self, readers: &Readers) {
        let is_free = |number: &&u64| self.objects[number].is_free();
        let mut going: BTreeSet<u64> = self.unloading.iter().filter(is_free).copied().collect();
        #[cfg(test)]
        {
            self.looked_at += self.unloading.len();
        }
        // Retired objects may still run, and what they use with them.
        loop {
            let mut from_going: HashMap<u64, usize> = HashMap::new();
            for number in &going {
                for used in &self.objects[number].taken.uses {
                    *from_going.entry(*used).or_default() += 1;
                }
            }
            let before = going.len();
            going.retain(|number| {
                self.objects[number].users == from_going.get(number).copied().unwrap_or(0)
            });
            if going.len() == before {
                break;
            }
        }
        if !going.is_empty() {
            self.unloading.retain(|number| !going.contains(number));
            self.retired.push_back((readers.retire(), going));
        }
    }

    /// Takes out the objects that no thread can be running any more, in the order of their numbers.
    #[expect(
        clippy::vec_box,
        reason = "boxed in the table already: moving the boxes copies no object"
    )]
    pub(crate) fn take_passed(&mut self, readers: &Readers) -> Vec<Box<Loaded>> {
        let mut passed = BTreeSet::new();
        // What passed an epoch passed those before it.
        while let Some((epoch, _)) = self.retired.front()
            && readers.passed(*epoch)
            && let Some((_, mut numbers)) = self.retired.pop_front()
        {
            passed.append(&mut numbers);
        }
        passed.iter().filter_map(|number| self.objects.remove(number)).collect()
    }

    /// Frees objects that were taken out and whose destructors have run.
    #[expect(
        clippy::vec_box,
        reason = "boxed in the table already: moving the boxes copies no object"
    )]
    pub(crate) fn reclaim(&mut self, objects: Vec<Box<Loaded>>) {
        self.waiting -= objects.len();
        let tables: Vec<Table> = objects.iter().flat_map(|loaded| loaded.tables()).collect();
        self.frames.remove(&tables);
        for loaded in objects {
            drop(loaded.known);
            for used in &loaded.taken.uses {
                if let Some(used) = self.objects.get_mut(used) {
                    used.users -= 1;
                }
            }
            self.give_back(&loaded.taken);
        }
    }
}
