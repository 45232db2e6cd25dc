//! The cases, as the program itself lists them, and the sizes tried with each.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use xtask::commands;

/// A kind of blocks, and the sizes that represent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) title: &'static str,
    pub(super) sizes: &'static [usize],
}

pub(super) const SIZES: [Sizes; 4] = [
    Sizes { title: "Small blocks: 24 and 100 bytes", sizes: &[24, 100] },
    Sizes { title: "Middle blocks: 5,000 and 40,000 bytes", sizes: &[5_000, 40_000] },
    Sizes { title: "Large blocks: 300,000 bytes and 4 MiB", sizes: &[300_000, 4 << 20] },
    STRANGERS,
];

/// The size of cases that have nothing to do with a block's size.
const STRANGERS: Sizes = Sizes { title: "Pointers that are no block's", sizes: &[100] };

impl Sizes {
    fn has(self, case: &Case) -> bool {
        let is_of_them = (case.size_min == 0) == (self == STRANGERS);
        is_of_them && self.sizes.iter().any(|size| *size >= case.size_min)
    }

    pub(super) fn cases(self, cases: &[Case]) -> impl Iterator<Item = &Case> {
        cases.iter().filter(move |case| self.has(case))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) name: String,
    /// The smallest block that the case makes sense for; 0: it has nothing to do with blocks.
    pub(super) size_min: usize,
    pub(super) about: String,
}

impl Case {
    pub(super) fn sizes(&self) -> Vec<usize> {
        let kinds = SIZES.into_iter().filter(|kind| kind.has(self));
        kinds.flat_map(|kind| kind.sizes).copied().filter(|size| *size >= self.size_min).collect()
    }
}

pub(super) fn of(program: &Path) -> Result<Vec<Case>> {
    read(&commands::output(Command::new(program).arg("--list").env_remove("LD_PRELOAD"))?)
}

pub(super) fn read(list: &str) -> Result<Vec<Case>> {
    let read = |line: &str| {
        let mut fields = line.split('\t').map(str::to_owned);
        let (name, size_min, about) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Case { name, size_min: size_min.parse().ok()?, about })
    };
    let cases: Option<Vec<Case>> = list.lines().map(read).collect();
    match cases {
        Some(cases) if !cases.is_empty() => Ok(cases),
        _ => bail!("the program of misuses lists no cases: {list}"),
    }
}
