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
use crate::outside::Outside;
use crate::perf::Perf;
use crate::quiescence::Readers;
use crate::slots::{Shared, Slot, Slots};
use crate::space::Space;
use crate::storage::Storage;
use crate::sync::{AtomicU64, Ordering, fence};
use crate::unwind::{Frames, Table};

/// The owner of a published symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The object of this number.
    Object(u64),
    /// An entry; the definition's address is the entry's slot.
    Entry,
}

/// A symbol that later objects are linked to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Definition {
    /// The symbol's address; for a thread-local variable, its place in the module.
    pub(crate) address: usize,
    /// The module of a thread-local variable.
    pub(crate) module: Option<u64>,
    pub(crate) size: u64,
    pub(crate) owner: Owner,
    pub(crate) is_weak: bool,
}

pub(crate) type Published = HashMap<Box<[u8]>, Definition>;

/// An object's name, and its own symbols with their addresses, in the order of their names; the address is 0 for a
/// symbol that has another address in each thread.
///
/// One piece of memory, because a JIT has thousands of objects with a symbol each: the number of symbols, for each its
/// address and the end of its name, then all names and last the object's.
#[derive(Debug, Default)]
pub(crate) struct Symbols(Box<[u8]>);

/// Bytes of the number, and of each symbol beside its name.
const COUNT: usize = 4;
const RECORD: usize = 12;

impl Symbols {
    /// Takes the object's name, and for each symbol its name, whether it is local, and its address. Among symbols of
    /// one name, global symbols come before local ones, and otherwise the first before the next.
    pub(crate) fn new(object: &str, mut symbols: Vec<(&[u8], bool, usize)>) -> Symbols {
        symbols.sort_by_key(|&(name, is_local, _)| (name, is_local));
        symbols.dedup_by_key(|(name, ..)| *name);
        let names: usize = symbols.iter().map(|(name, ..)| name.len()).sum();
        let mut end = COUNT + symbols.len() * RECORD;
        let mut bytes = Vec::with_capacity(end + names + object.len());
        // Where the names of an object take 4 GiB, the names behind are not found.
        let word = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_ne_bytes();
        bytes.extend(word(symbols.len()));
        for (name, _, address) in &symbols {
            end += name.len();
            bytes.extend(address.to_ne_bytes());
            bytes.extend(word(end));
        }
        symbols.iter().for_each(|(name, ..)| bytes.extend_from_slice(name));
        bytes.extend_from_slice(object.as_bytes());
        Symbols(bytes.into())
    }

    fn word(&self, at: usize) -> usize {
        let bytes = self.0.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, |bytes| u32::from_ne_bytes(bytes) as usize)
    }

    fn count(&self) -> usize {
        self.word(0)
    }

    /// The end of the name of symbol number `count`, counted from 1; for 0, the beginning of the names.
    fn end(&self, count: usize) -> usize {
        let at = COUNT + count * RECORD;
        if count == 0 { COUNT + self.count() * RECORD } else { self.word(at - 4) }
    }

    fn name_at(&self, place: usize) -> &[u8] {
        self.0.get(self.end(place)..self.end(place + 1)).unwrap_or_default()
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            match self.name_at(middle).cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let at = COUNT + middle * RECORD;
                    let address = usize::from_ne_bytes(self.0[at..at + 8].try_into().ok()?);
                    return Some(address).filter(|&address| address != 0);
                }
            }
        }
        None
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.count()).map(|place| self.name_at(place))
    }

    /// The object's name in errors and reports.
    pub(crate) fn object(&self) -> &str {
        let name = self.0.get(self.end(self.count())..).unwrap_or_default();
        std::str::from_utf8(name).unwrap_or_default()
    }
}

/// The parts of the arena that an object holds while it is loaded.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) text: Bytes<usize>,
    pub(crate) sealed: Bytes<usize>,
    pub(crate) data: Bytes<usize>,
    more: Option<Box<More>>,
}

/// The parts that most objects of a JIT do not have.
#[derive(Debug)]
pub(crate) struct More {
    pub(crate) groups: Vec<Box<[u8]>>,
    /// GOT entries and stubs, in order.
    shared: Vec<Shared>,
    /// Objects that this object is linked to, by number.
    pub(crate) uses: Vec<u64>,
    /// The object's key in the C library's lists: the address of `__dso_handle`, or of its text; 0 where the object is
    /// in no list.
    pub(crate) handle: usize,
    pub(crate) storage: Option<Storage>,
    /// Tables behind the first that the unwinder knows.
    pub(crate) tables: Vec<usize>,
    pub(crate) fini: Vec<usize>,
}

impl More {
    const NOTHING: More = More {
        groups: Vec::new(),
        shared: Vec::new(),
        uses: Vec::new(),
        handle: 0,
        storage: None,
        tables: Vec::new(),
        fini: Vec::new(),
    };
}

impl Taken {
    pub(crate) fn more(&self) -> &More {
        const NOTHING: &More = &More::NOTHING;
        self.more.as_deref().unwrap_or(NOTHING)
    }

    pub(crate) fn more_mut(&mut self) -> &mut More {
        self.more.get_or_insert_with(|| Box::new(More::NOTHING))
    }

    /// Whether the object already uses a GOT entry or stub.
    pub(crate) fn shares(&self, what: Shared) -> bool {
        self.more().shared.binary_search(&what).is_ok()
    }

    pub(crate) fn share(&mut self, what: Shared) {
        let shared = &mut self.more_mut().shared;
        if let Err(place) = shared.binary_search(&what) {
            shared.insert(place, what);
        }
    }

    /// Sorts the objects that this object uses, and gives back the room that its lists do not use: a program may have
    /// thousands of objects.
    pub(crate) fn settle(&mut self) {
        let Some(more) = &mut self.more else { return };
        more.uses.sort_unstable();
        more.uses.dedup();
        more.groups.shrink_to_fit();
        more.shared.shrink_to_fit();
        more.uses.shrink_to_fit();
        more.tables.shrink_to_fit();
        more.fini.shrink_to_fit();
    }

    pub(crate) fn bytes(&self, region: Region) -> &Bytes<usize> {
        match region {
            Region::Text => &self.text,
            Region::Sealed => &self.sealed,
            Region::Data => &self.data,
        }
    }

    pub(crate) fn bytes_mut(&mut self, region: Region) -> &mut Bytes<usize> {
        match region {
            Region::Text => &mut self.text,
            Region::Sealed => &mut self.sealed,
            Region::Data => &mut self.data,
        }
    }
}

#[derive(Default)]
pub(crate) struct Loaded {
    pub(crate) taken: Taken,
    pub(crate) symbols: Symbols,
    /// The number of other objects that are linked to this object.
    pub(crate) users: u32,
    /// The number of entries that lead to this object.
    pub(crate) entries: u32,
    /// Shared with each [`crate::Function`]; made for the first.
    pub(crate) pin: Option<Arc<()>>,
    /// The first table that the unwinder knows; 0 where it knows no table.
    pub(crate) table: usize,
    pub(crate) known: Option<Known>,
    /// The object itself, where it is kept.
    pub(crate) kept: Option<Arc<Vec<u8>>>,
    /// Whether the object was not unloaded.
    pub(crate) is_live: bool,
    pub(crate) has_initializers: bool,
    pub(crate) is_private: bool,
    /// Whether the object's initializers and destructors are not run.
    pub(crate) is_inert: bool,
    /// Whether an untracked address of the object was given out.
    pub(crate) escaped: bool,
}

impl Loaded {
    /// An object that no tool knows and nothing leads to.
    pub(crate) fn new(taken: Taken, symbols: Symbols) -> Loaded {
        Loaded { taken, symbols, is_live: true, ..Loaded::default() }
    }

    /// Whether a copy could take the object's place: the object has no state, and only entries lead to it.
    pub(crate) fn is_movable(&self) -> bool {
        self.is_live
            && self.kept.is_some()
            && self.taken.data.is_empty()
            && self.taken.more().storage.is_none()
            && !self.has_initializers
            && self.taken.more().fini.is_empty()
            && !self.escaped
            && self.users == 0
            && self.pins() == 0
    }

    /// Whether no entry and no handle leads to the object.
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
        let first = Some(self.table).filter(|&at| at != 0).into_iter();
        let all = first.chain(self.taken.more().tables.iter().copied());
        all.map(|at| Table { text: text.clone(), at })
    }
}

#[derive(Debug)]
pub(crate) struct EntryState {
    pub(crate) slot: usize,
    /// The object and the symbol that the entry leads to; `None` for an address of the program's.
    pub(crate) target: Option<(u64, Box<[u8]>)>,
}

pub(crate) struct State {
    /// The free bytes of each region.
    spaces: [Space; 3],
    /// The end of each region's used part when the batch began; everything beyond is zeros.
    clean: [usize; 3],
    pub(crate) slots: Slots,
    pub(crate) published: Published,
    /// Weak definitions that gave way to a published one, by the numbers of their objects.
    hidden: HashMap<Box<[u8]>, BTreeMap<u64, Definition>>,
    pub(crate) groups: HashMap<Box<[u8]>, u64>,
    pub(crate) objects: BTreeMap<u64, Box<Loaded>>,
    pub(crate) entries: HashMap<String, EntryState>,
    pub(crate) outside: Outside,
    pub(crate) perf: Perf,
    pub(crate) frames: Frames,
    pub(crate) waiting: usize,
    /// Unloaded objects that may still be referred to.
    unloading: BTreeSet<u64>,
    /// Objects without references since an epoch began, by epoch.
    retired: VecDeque<(usize, BTreeSet<u64>)>,
    /// Objects inspected in the search for free ones.
    #[cfg(test)]
    pub(crate) looked_at: usize,
    /// The last field, because others may take its addresses as soon as it is dropped: the unwinder must have forgotten
    /// them.
    pub(crate) range: Range,
}

/// The first of `count` numbers for new objects; no other object of the process has them.
pub(crate) fn numbers(count: usize) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // ORDERING: Relaxed: only the numbers must differ, and an arena takes them under its lock.
    NEXT.fetch_add(count as u64, Ordering::Relaxed)
}

impl State {
    pub(crate) fn new(range: Range, perf: Perf) -> State {
        let mut spaces = Region::ALL.map(|region| Space::new(range.bytes(region).len()));
        let slots = Slots::open(&range, &mut spaces[Region::Sealed as usize]);
        State {
            range,
            spaces,
            clean: [0; 3],
            slots,
            published: HashMap::new(),
            hidden: HashMap::new(),
            groups: HashMap::new(),
            objects: BTreeMap::new(),
            entries: HashMap::new(),
            outside: Outside::default(),
            perf,
            frames: Frames::open(),
            waiting: 0,
            unloading: BTreeSet::new(),
            retired: VecDeque::new(),
            #[cfg(test)]
            looked_at: 0,
        }
    }

    pub(crate) fn space(&self, region: Region) -> &Space {
        &self.spaces[region as usize]
    }

    /// Notes the fresh part of each region, before a batch takes any of it.
    pub(crate) fn note_clean(&mut self) {
        self.clean = self.spaces.each_ref().map(Space::high);
    }

    /// The offset below which a region may hold old contents.
    pub(crate) fn dirty(&self, region: Region) -> usize {
        self.clean[region as usize]
    }

    /// Takes room in a region; for a size of 0, the region's first address.
    pub(crate) fn take(
        &mut self,
        region: Region,
        size: usize,
        align: usize,
    ) -> Result<Bytes<usize>, Error> {
        let start = self.range.bytes(region).start;
        let at = self.spaces[region as usize].allocate(size, align);
        let at = at.ok_or_else(|| self.full(region, size))?;
        Ok(start + at..start + at + size)
    }

    /// Frees room, and purges OS pages that are now entirely free.
    pub(crate) fn free(&mut self, region: Region, bytes: &Bytes<usize>) {
        if bytes.is_empty() {
            return;
        }
        let (start, page) = (self.range.bytes(region).start, self.range.page());
        let hole = self.spaces[region as usize].free(bytes.start - start, bytes.len());
        let low = (bytes.start / page * page).max((start + hole.start).next_multiple_of(page));
        let high = bytes.end.next_multiple_of(page).min((start + hole.end) / page * page);
        if low < high {
            // SAFETY: Nothing uses free memory.
            unsafe { self.range.purge(&(low..high), region) };
        }
    }

    pub(crate) fn full(&self, region: Region, wanted: usize) -> Error {
        let space = self.space(region);
        let (free, largest) = (space.free_bytes(), space.largest());
        Error::Full { region: region.name(), wanted, free, largest }
    }

    /// Gives back everything that an object took.
    pub(crate) fn give_back(&mut self, taken: &Taken) {
        for region in Region::ALL {
            self.free(region, taken.bytes(region));
        }
        for &shared in &taken.more().shared {
            self.release(shared);
        }
    }

    pub(crate) fn release(&mut self, shared: Shared) {
        let [text, sealed, _] = &mut self.spaces;
        self.slots.release(shared, &self.range, text, sealed);
    }

    /// Room for a new GOT entry with one user.
    pub(crate) fn take_slot(&mut self, slot: Slot) -> Option<usize> {
        self.slots.take(slot, &self.range, &mut self.spaces[Region::Sealed as usize])
    }

    /// The name of the object that has a symbol.
    pub(crate) fn owner_name(&self, owner: Owner) -> String {
        match owner {
            Owner::Entry => "an entry".to_owned(),
            Owner::Object(number) => self
                .objects
                .get(&number)
                .map_or("an object".to_owned(), |o| o.symbols.object().to_owned()),
        }
    }

    /// Shows definitions to later loads. A weak one gives way to any other, and stays behind it.
    pub(crate) fn publish(&mut self, definitions: Vec<(Box<[u8]>, Definition)>) {
        for (name, new) in definitions {
            let Some(known) = self.published.get_mut(&name) else {
                self.published.insert(name, new);
                continue;
            };
            let behind = if new.is_weak { new } else { std::mem::replace(known, new) };
            if let Owner::Object(number) = behind.owner {
                self.hidden.entry(name).or_default().insert(number, behind);
            }
        }
    }

    /// Whether a symbol of the object gave way to another object's.
    pub(crate) fn gave_way(&self, number: u64) -> bool {
        let is_hidden = |name| self.hidden.get(name).is_some_and(|all| all.contains_key(&number));
        self.objects.get(&number).is_some_and(|loaded| loaded.symbols.names().any(is_hidden))
    }

    /// Hides an object's symbols and groups from later loads.
    pub(crate) fn unpublish(&mut self, number: u64) {
        let Some(loaded) = self.objects.get(&number) else { return };
        for name in loaded.symbols.names() {
            if let Some(all) = self.hidden.get_mut(name) {
                all.remove(&number);
            }
            if self.published.get(name).is_some_and(|known| known.owner == Owner::Object(number)) {
                self.published.remove(name);
            }
        }
        for group in &loaded.taken.more().groups {
            if self.groups.get(group) == Some(&number) {
                self.groups.remove(group);
            }
        }
    }

    /// Ends a live object that publishes nothing any more: it is freed when nothing leads to it. Definitions that gave
    /// way to the object's are published.
    pub(crate) fn end(&mut self, number: u64) {
        let Some(loaded) = self.objects.get_mut(&number) else { return };
        loaded.is_live = false;
        for name in loaded.symbols.names() {
            let Some(all) = self.hidden.get_mut(name) else { continue };
            if !self.published.contains_key(name)
                && let Some((_, first)) = all.pop_first()
            {
                self.published.insert(name.into(), first);
            }
            if all.is_empty() {
                self.hidden.remove(name);
            }
        }
        self.waiting += 1;
        self.unloading.insert(number);
    }

    /// Retires unloaded objects that nothing leads to any more; objects that only use each other are retired together.
    pub(crate) fn retire(&mut self, readers: &Readers) {
        let is_free = |number: &&u64| self.objects[number].is_free();
        let uses = |number: &u64| &self.objects[number].taken.more().uses;
        // For each object the number of users that are not among them. Retired objects may still run, and so may the
        // objects that they use.
        let free = self.unloading.iter().filter(is_free);
        let mut going: BTreeMap<u64, u32> =
            free.map(|number| (*number, self.objects[number].users)).collect();
        for number in self.unloading.iter().filter(is_free) {
            for used in uses(number) {
                if let Some(users) = going.get_mut(used) {
                    *users -= 1;
                }
            }
        }
        let has_users = going.iter().filter(|(_, users)| **users > 0);
        let mut staying: Vec<u64> = has_users.map(|(number, _)| *number).collect();
        #[cfg(test)]
        {
            self.looked_at += self.unloading.len();
        }
        while let Some(number) = staying.pop() {
            #[cfg(test)]
            {
                self.looked_at += 1;
            }
            if going.remove(&number).is_some() {
                staying.extend(uses(&number).iter().filter(|used| going.contains_key(used)));
            }
        }
        if !going.is_empty() {
            self.unloading.retain(|number| !going.contains_key(number));
            self.retired.push_back((readers.retire(), going.into_keys().collect()));
        }
    }

    /// Takes out the objects that no thread can be running any more, in the order of their numbers.
    #[expect(
        clippy::vec_box,
        reason = "boxed in the table already: moving the boxes copies no object"
    )]
    pub(crate) fn take_passed(&mut self, readers: &Readers) -> Vec<Box<Loaded>> {
        let mut passed = BTreeSet::new();
        // Readers that passed an epoch also passed all epochs before it.
        while let Some((epoch, _)) = self.retired.front()
            && readers.passed(*epoch)
            && let Some((_, mut numbers)) = self.retired.pop_front()
        {
            // A thread that still ran an object may have registered a destructor in it; then the objects that it uses
            // stay with it.
            let is_free = numbers.iter().all(|number| self.objects[number].is_free());
            let to = if is_free { &mut passed } else { &mut self.unloading };
            to.append(&mut numbers);
        }
        // ORDERING: Acquire pairs with the Release of each handle that was dropped: its thread's use of the object is over.
        fence(Ordering::Acquire);
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
            for used in &loaded.taken.more().uses {
                if let Some(used) = self.objects.get_mut(used) {
                    used.users -= 1;
                }
            }
            self.give_back(&loaded.taken);
        }
    }
}
