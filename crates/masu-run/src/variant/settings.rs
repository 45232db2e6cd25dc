//! The settings of each malloc that masu knows, as one table: a name, its meaning, and its translation into the
//! environment of a program.
//!
//! Several mallocs share a name only where it asks the same of each. A malloc's similar setting has that malloc's own
//! name, and [`Setting::near`] leads there from the shared one.

use std::path::Path;

use super::options::{self, Description};
use super::value::{ANY_SIZE, Unit, Value};

/// A setting and its translation for each malloc that has it.
#[derive(Debug)]
pub struct Setting {
    /// The name in a variant: `top_pad`.
    pub name: &'static str,
    /// A second name that means the same.
    pub alias: Option<&'static str>,
    /// The unit of its value.
    pub unit: Unit,
    /// The setting's effect, in one line.
    pub meaning: &'static str,
    /// For a setting with a malloc's own name: the shared one it resembles.
    pub near: Option<&'static str>,
    /// The mallocs that have it; if two cells are of the same malloc, the first that fits its release counts.
    pub cells: &'static [Cell],
}

/// A setting of one malloc.
#[derive(Debug)]
pub struct Cell {
    /// The malloc, as the catalogue names it without its main version: `mimalloc`.
    pub malloc: &'static str,
    pub release: Release,
    /// Narrower bounds than the setting's own; those of an option of masu's are in its table.
    pub(super) unit: Option<Unit>,
    /// The translation: all entries together.
    pub entries: &'static [Entry],
    /// Notes about it under this malloc; may be empty.
    pub(crate) caveat: &'static str,
}

/// Releases of a malloc.
#[derive(Debug, Clone, Copy)]
pub enum Release {
    /// All in use today.
    Any,
    /// glibc from 2.26 on, which began to have tunables; older releases ignore them silently.
    Tunables,
    /// The releases from this one on, by the version in the catalogue; a malloc of unknown version is trusted.
    Since(u32, u32),
    /// The releases that have this option, and so contain its name in the library; and these releases in words.
    Naming(&'static str, &'static str),
}

/// One assignment in the environment of the program.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The variable, or the list in a variable.
    pub place: Place,
    pub name: &'static str,
    pub(super) written: Written,
}

/// The place in which a malloc looks for a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// `NAME=VALUE` in `GLIBC_TUNABLES`.
    Tunable,
    /// `NAME:VALUE` in `MALLOC_CONF`.
    Conf,
    /// A variable of its own.
    Variable,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Written {
    /// The number itself, never as -1, on and off as 1 and 0.
    Plain,
    /// These words for on and off.
    Words(&'static str, &'static str),
    /// This text, whatever the value is.
    Always(&'static str),
    /// The first text for never, otherwise the second.
    IfNever(&'static str, &'static str),
}

const fn tunable(name: &'static str) -> Entry {
    Entry { place: Place::Tunable, name, written: Written::Plain }
}

const fn conf(name: &'static str) -> Entry {
    Entry { place: Place::Conf, name, written: Written::Plain }
}

pub(super) const fn variable(name: &'static str) -> Entry {
    Entry { place: Place::Variable, name, written: Written::Plain }
}

const fn written(entry: Entry, written: Written) -> Entry {
    Entry { written, ..entry }
}

const fn cell(malloc: &'static str, entries: &'static [Entry]) -> Cell {
    Cell { malloc, release: Release::Any, unit: None, entries, caveat: "" }
}

const fn noted(cell: Cell, caveat: &'static str) -> Cell {
    Cell { caveat, ..cell }
}

const fn only(release: Release, cell: Cell) -> Cell {
    Cell { release, ..cell }
}

/// A cell with bounds beyond which the malloc would pass over the value.
const fn within(unit: Unit, cell: Cell) -> Cell {
    Cell { unit: Some(unit), ..cell }
}

const fn shared(
    name: &'static str,
    unit: Unit,
    meaning: &'static str,
    cells: &'static [Cell],
) -> Setting {
    Setting { name, alias: None, unit, meaning, near: None, cells }
}

const fn own(
    near: &'static str,
    name: &'static str,
    unit: Unit,
    meaning: &'static str,
    cells: &'static [Cell],
) -> Setting {
    Setting { name, alias: None, unit, meaning, near: Some(near), cells }
}

/// Every setting this version knows: the shared ones, then those that only one malloc has.
pub static SETTINGS: [Setting; 15] = [
    shared(
        "top_pad",
        ANY_SIZE,
        "bytes asked for beyond need whenever the heap grows",
        &[only(Release::Tunables, cell("glibc", &[tunable("glibc.malloc.top_pad")]))],
    ),
    shared(
        "trim_threshold",
        ANY_SIZE,
        "free bytes that are kept before memory goes back to the kernel",
        &[
            noted(
                only(Release::Tunables, cell("glibc", &[tunable("glibc.malloc.trim_threshold")])),
                "only the end of the heap counts and goes back",
            ),
            cell("masu", &[variable("MASU_RETAIN")]),
        ],
    ),
    shared(
        "mmap_threshold",
        ANY_SIZE,
        "size from which a block gets its own mapping",
        &[only(Release::Tunables, cell("glibc", &[tunable("glibc.malloc.mmap_threshold")]))],
    ),
    shared(
        "mmap_max",
        Unit::Count(0, i32::MAX as u64),
        "how many blocks may have their own mapping at once",
        &[only(Release::Tunables, cell("glibc", &[tunable("glibc.malloc.mmap_max")]))],
    ),
    Setting {
        alias: Some("arena_max"),
        ..shared(
            "arenas",
            Unit::Count(1, 4094),
            "into how many parts threads spread, each with a lock of its own",
            &[
                only(Release::Tunables, cell("glibc", &[tunable("glibc.malloc.arena_max")])),
                cell("jemalloc", &[conf("narenas")]),
                cell("masu", &[variable("MASU_SHARDS")]),
            ],
        )
    },
    shared(
        "purge_delay",
        Unit::Milliseconds,
        "how long free memory is kept before it goes back to the kernel; -1: for ever",
        &[
            noted(
                cell(
                    "jemalloc",
                    &[
                        conf("dirty_decay_ms"),
                        written(conf("muzzy_decay_ms"), Written::Always("0")),
                    ],
                ),
                "goes back bit by bit over that time",
            ),
            only(
                Release::Naming("purge_delay", "from 2.1 on"),
                cell(
                    "mimalloc",
                    &[
                        variable("MIMALLOC_PURGE_DELAY"),
                        written(variable("MIMALLOC_ARENA_PURGE_MULT"), Written::Always("1")),
                    ],
                ),
            ),
            only(
                Release::Naming("decommit_delay", "2.0"),
                cell(
                    "mimalloc",
                    &[
                        variable("MIMALLOC_DECOMMIT_DELAY"),
                        variable("MIMALLOC_SEGMENT_DECOMMIT_DELAY"),
                        written(variable("MIMALLOC_ALLOW_DECOMMIT"), Written::IfNever("0", "1")),
                    ],
                ),
            ),
            noted(
                cell("masu", &[variable("MASU_PURGE_DELAY_MS")]),
                "looked at when memory is taken or freed",
            ),
        ],
    ),
    shared(
        "huge_pages",
        Unit::Switch,
        "whether the kernel is asked for huge pages",
        &[
            noted(
                only(Release::Since(2, 35), cell("glibc", &[tunable("glibc.malloc.hugetlb")])),
                "asked for only where the kernel's own mode is madvise",
            ),
            noted(
                cell("jemalloc", &[written(conf("thp"), Written::Words("always", "never"))]),
                "changes only what differs from the kernel's own mode",
            ),
            noted(
                only(
                    Release::Naming("allow_thp", "recent, as 2.3 and 3.3"),
                    cell("mimalloc", &[variable("MIMALLOC_ALLOW_THP")]),
                ),
                "0 holds for its children too",
            ),
            noted(
                only(
                    Release::Naming("allow_large_os_pages", "from 2.1 on"),
                    cell("mimalloc", &[variable("MIMALLOC_ALLOW_LARGE_OS_PAGES")]),
                ),
                "reserved huge pages first, where there are some",
            ),
            noted(
                only(
                    Release::Naming("large_os_pages", "2.0"),
                    cell("mimalloc", &[variable("MIMALLOC_LARGE_OS_PAGES")]),
                ),
                "reserved huge pages first, where there are some",
            ),
            noted(
                cell("masu", &[variable("MASU_HUGE_PAGES")]),
                "for heaps of eight huge pages and more; 0 refuses them",
            ),
        ],
    ),
    shared(
        "cache_size",
        ANY_SIZE,
        "bytes of free blocks that each thread may keep for itself",
        &[cell("masu", &[variable("MASU_CACHE_SIZE")])],
    ),
    own(
        "cache_size",
        "tcache_count",
        Unit::Count(0, 65535),
        "how many free blocks of each size a thread keeps for itself",
        &[only(Release::Tunables, cell("glibc", &[tunable("glibc.malloc.tcache_count")]))],
    ),
    own(
        "cache_size",
        "tcache_max",
        ANY_SIZE,
        "the largest block that a thread keeps for itself",
        &[
            within(
                Unit::Size(0, 1032),
                only(Release::Tunables, cell("glibc", &[tunable("glibc.malloc.tcache_max")])),
            ),
            within(
                Unit::Size(0, 8 << 20),
                only(Release::Since(5, 3), cell("jemalloc", &[conf("tcache_max")])),
            ),
        ],
    ),
    own(
        "cache_size",
        "tcache",
        Unit::Switch,
        "whether threads keep free blocks for themselves",
        &[cell("jemalloc", &[written(conf("tcache"), Written::Words("true", "false"))])],
    ),
    own(
        "purge_delay",
        "background_thread",
        Unit::Switch,
        "whether a thread of its own gives memory back when its time has come",
        &[cell("jemalloc", &[written(conf("background_thread"), Written::Words("true", "false"))])],
    ),
    own(
        "cache_size",
        "max_total_thread_cache_bytes",
        Unit::Size(512 << 10, 1 << 30),
        "bytes that all threads together keep for themselves",
        &[cell("tcmalloc", &[variable("TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES")])],
    ),
    own(
        "purge_delay",
        "release_rate",
        Unit::Rate,
        "how eagerly free memory goes back to the kernel; 0: never",
        &[cell("tcmalloc", &[variable("TCMALLOC_RELEASE_RATE")])],
    ),
    own(
        "purge_delay",
        "aggressive_decommit",
        Unit::Switch,
        "whether free memory goes back to the kernel at once",
        &[cell("tcmalloc", &[variable("TCMALLOC_AGGRESSIVE_DECOMMIT")])],
    ),
];

impl Setting {
    /// The setting called `name`, by either of its names.
    pub fn named(name: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|one| one.name == name || one.alias == Some(name))
    }

    /// True if `malloc`, in whatever release, has it.
    pub fn is_of(&self, malloc: &str) -> bool {
        self.cells.iter().any(|cell| cell.malloc == malloc)
    }
}

impl Cell {
    /// The unit of a value of `setting`, with the bounds that this malloc has.
    pub(super) fn unit(&self, setting: &Setting) -> Unit {
        let is_set =
            |option: &&Description| self.entries.iter().any(|it| it.name == option.variable);
        let option = options::ALL.iter().find(is_set).map(Unit::of);
        option.or(self.unit).unwrap_or(setting.unit)
    }

    /// The translation, as one would write it in a shell, `…` for the value:
    /// `MALLOC_CONF=dirty_decay_ms:…,muzzy_decay_ms:0`.
    pub fn shown(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for entry in self.entries {
            let Entry { place, name, .. } = entry;
            let value = entry.placeholder();
            match place {
                Place::Tunable => lines.push(format!("GLIBC_TUNABLES={name}={value}")),
                Place::Variable => lines.push(format!("{name}={value}")),
                Place::Conf => match lines.last_mut() {
                    Some(list) => list.push_str(&format!(",{name}:{value}")),
                    None => lines.push(format!("MALLOC_CONF={name}:{value}")),
                },
            }
        }
        lines
    }

    /// The releases that have it and the notes about it there; empty where there are none. The remark leaves out that
    /// tunables are younger than glibc: all of glibc's cells would say so.
    pub fn remark(&self) -> String {
        let release = match self.release {
            Release::Tunables => String::new(),
            release => release.words(),
        };
        let parts = [release.as_str(), self.caveat];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

impl Entry {
    fn placeholder(&self) -> String {
        match self.written {
            Written::Plain => "…".to_owned(),
            Written::Words(on, off) => format!("{on}|{off}"),
            Written::Always(text) => text.to_owned(),
            Written::IfNever(never, other) => format!("{never}|{other}"),
        }
    }

    /// The text for `value` at its place.
    pub(super) fn value(&self, value: &Value) -> String {
        match (self.written, value) {
            (Written::Words(on, _), Value::Switch(true)) => on.to_owned(),
            (Written::Words(_, off), Value::Switch(false)) => off.to_owned(),
            (Written::IfNever(never, _), Value::Never) => never.to_owned(),
            (Written::Always(text) | Written::IfNever(_, text), _) => text.to_owned(),
            (_, Value::Number(number)) => number.to_string(),
            (_, Value::Never) => "-1".to_owned(),
            (_, Value::Switch(is_on)) => u8::from(*is_on).to_string(),
            (_, Value::Rate(rate)) => rate.clone(),
        }
    }
}

impl Release {
    /// The releases in words; empty for all.
    pub fn words(self) -> String {
        match self {
            Release::Any => String::new(),
            Release::Tunables => "from 2.26 on".to_owned(),
            Release::Since(main, minor) => format!("from {main}.{minor} on"),
            Release::Naming(_, words) => words.to_owned(),
        }
    }

    /// True if the malloc of `version` whose library lies at `library` is one of these releases. A malloc of unknown
    /// age is taken to be new.
    pub(super) fn includes(self, version: Option<&str>, library: &Path) -> bool {
        let is_since = |first| version.and_then(numbers).is_none_or(|known| known >= first);
        match self {
            Release::Any => true,
            Release::Tunables => is_since((2, 26)),
            Release::Since(main, minor) => is_since((main, minor)),
            Release::Naming(option, _) => names(library, option).unwrap_or(true),
        }
    }
}

fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(|character: char| !character.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next().unwrap_or("0").parse().unwrap_or(0)))
}

/// True if the text `option` ends somewhere in the file at `library`; none if the file cannot be read. The start of the
/// text is not checked: linkers let a text share its end with a longer one.
fn names(library: &Path, option: &str) -> Option<bool> {
    let bytes = std::fs::read(library).ok()?;
    let text = [option.as_bytes(), b"\0"].concat();
    Some(bytes.windows(text.len()).any(|window| window == text))
}
