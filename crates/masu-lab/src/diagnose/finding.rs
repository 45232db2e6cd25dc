//! The findings of a diagnosis, each with evidence and remedies.

use serde::Serialize;

use masu_run::named;

named! {
    /// The identity of a finding. Its name in JSON and in `docs/findings.md` is the same, with hyphens.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    #[non_exhaustive]
    pub enum Id {
        ProgramFailed = "program-failed",
        /// Memory goes back to the kernel and comes again, in many small calls.
        HeapCallStorm = "heap-call-storm",
        /// Threads wait for the malloc's lock.
        MallocLock = "malloc-lock",
        /// Threads are started for little work each.
        ThreadChurn = "thread-churn",
        /// Threads wait for one lock of the program's.
        OneLock = "one-lock",
        /// One thread frees what another allocates.
        RemoteFrees = "remote-frees",
        /// Memory that was given back is touched again, page for page.
        FaultStorm = "fault-storm",
        /// The malloc holds much more than the program.
        Retention = "retention",
        /// Huge pages hold memory that nobody uses.
        HugePageWaste = "huge-page-waste",
        /// Memory comes back from the disk.
        Swap = "swap",
        /// Allocation is itself the work.
        ManyAllocations = "many-allocations",
        /// The first touches of memory take much of the time.
        FirstTouch = "first-touch",
        /// Runs beside the program showed that another malloc, or a setting, is faster.
        GainShown = "gain-shown",
        /// Runs beside the program showed that its own code is faster with another malloc's placement of blocks.
        Locality = "locality",
        /// Memory grows all the time.
        Growth = "growth",
        /// Processes are started for little work each.
        ForkStorm = "fork-storm",
        /// Threads wait without sleeping.
        Spinning = "spinning",
        /// A system call writes only a few bytes.
        SmallWrites = "small-writes",
        /// The kernel works for the program most of the time.
        SystemCalls = "system-calls",
        /// One thread works while the others wait.
        SerialPhase = "serial-phase",
        /// One worker has more to do than the others.
        UnevenCores = "uneven-cores",
        /// The program was compiled without optimization.
        UnoptimizedBuild = "unoptimized-build",
        /// The measured command only starts the program that works.
        Wrapper = "wrapper",
        /// Code lies in many small mappings.
        ScatteredCode = "scattered-code",
        /// The program computes.
        CpuBound = "cpu-bound",
        /// The program waits for data or for time to pass.
        IoBound = "io-bound",
        /// The runs could not show whether memory is the problem.
        MemoryOpen = "memory-open",
        /// Memory is not the problem.
        MemoryIsFine = "memory-is-fine",
    }
}

impl Id {
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Id::ProgramFailed => Kind::Failure,
            Id::UnoptimizedBuild | Id::Wrapper => Kind::Remark,
            Id::CpuBound | Id::IoBound | Id::MemoryOpen | Id::MemoryIsFine => Kind::AllClear,
            _ => Kind::Cause,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The program failed, which comes before all else.
    Failure,
    /// The finding names why the program is slow or large.
    Cause,
    /// The finding says that something else should have been measured.
    Remark,
    /// The finding says where the time goes that no cause explains, and that memory is not to blame.
    AllClear,
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Confidence {
        /// The cause may be something else.
        Low = "low",
        /// The finding is likely.
        Medium = "medium",
        /// The evidence was counted and leaves little room for doubt.
        High = "high",
    }
}

impl Confidence {
    /// The weight of a share with this confidence, when findings are put in order.
    fn weight(self) -> f64 {
        match self {
            Confidence::Low => 0.4,
            Confidence::Medium => 0.8,
            Confidence::High => 1.0,
        }
    }
}

/// A way to act on a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remedy {
    pub kind: RemedyKind,
    /// The remedy's rung on the ladder: 1 allocate less, 2 set the malloc you have, 3 change the malloc, 4 the cause
    /// lies elsewhere.
    pub rung: u8,
    /// The action, in words.
    pub what: String,
    /// The variant that applies the remedy, as `masu run -a` takes it.
    pub variant: Option<String>,
    /// The cost of the remedy, in words.
    pub cost: String,
    /// The same remedy for users without masu: variables to set before the program.
    pub paste: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RemedyKind {
    /// A setting of the current malloc.
    Setting,
    /// Another malloc.
    Allocator,
    /// A change of the program, its build or its surroundings; never called proved.
    NeedsCode,
}

/// One result of a diagnosis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    pub id: Id,
    /// One sentence for the user of a slow program.
    pub title: String,
    pub confidence: Confidence,
    /// The share of the run's time that the finding explains; for findings about memory, of the held memory. None if it
    /// is not known.
    pub share: Option<f64>,
    /// The observations that the finding rests on.
    pub evidence: Vec<String>,
    /// The remedies, the lowest rung first.
    pub remedies: Vec<Remedy>,
}

impl Finding {
    pub(crate) fn new(id: Id, confidence: Confidence, title: impl Into<String>) -> Finding {
        let (title, share) = (title.into(), None);
        Finding { id, title, confidence, share, evidence: Vec::new(), remedies: Vec::new() }
    }

    pub(super) fn sharing(mut self, share: f64) -> Finding {
        self.share = Some(share.clamp(0.0, 1.0));
        self
    }

    pub(super) fn seeing(mut self, evidence: impl Into<String>) -> Finding {
        self.evidence.push(evidence.into());
        self
    }

    pub(crate) fn remedied(mut self, remedies: impl IntoIterator<Item = Remedy>) -> Finding {
        self.remedies.extend(remedies);
        self
    }

    /// The key that sorts findings: a failure first, then causes, the largest and surest of them in front.
    pub(super) fn order(&self) -> (Kind, std::cmp::Reverse<u64>, Id) {
        /// The weight of a cause without a known share: more than that of a cause that is barely one.
        const UNKNOWN: f64 = 0.1;
        let weight = match self.id {
            // While this question is open, a finding about the rest of the time answers nothing.
            Id::MemoryOpen => 1.0,
            _ => self.share.unwrap_or(UNKNOWN) * self.confidence.weight(),
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1")]
        let thousandths = (weight * 1e3) as u64;
        (self.id.kind(), std::cmp::Reverse(thousandths), self.id)
    }
}

impl Remedy {
    pub(crate) fn setting(what: &str, variant: String, cost: &str) -> Remedy {
        Remedy::new(RemedyKind::Setting, 2, what, Some(variant), cost)
    }

    /// A variable for a program that cannot be run under a variant.
    pub(super) fn variable(what: &str, paste: String, cost: &str) -> Remedy {
        Remedy { paste: Some(paste), ..Remedy::new(RemedyKind::Setting, 2, what, None, cost) }
    }

    pub(super) fn allocator(what: &str, variant: &str, cost: &str) -> Remedy {
        Remedy::new(RemedyKind::Allocator, 3, what, Some(variant.to_owned()), cost)
    }

    pub(super) fn code(rung: u8, what: &str, cost: &str) -> Remedy {
        Remedy::new(RemedyKind::NeedsCode, rung, what, None, cost)
    }

    /// Another malloc for a static program, which loads none.
    pub(super) fn linked() -> Remedy {
        let what = "link another malloc into it: it is static, so none can be preloaded (libmasu.a, \
                    docs/c-interface.md)";
        Remedy::code(3, what, "another malloc under the program")
    }

    fn new(kind: RemedyKind, rung: u8, what: &str, variant: Option<String>, cost: &str) -> Remedy {
        let (what, cost) = (what.to_owned(), cost.to_owned());
        Remedy { kind, rung, what, variant, cost, paste: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_json() {
        for id in Id::ALL {
            let json = serde_json::to_string(&id).unwrap();
            assert_eq!(json, format!("\"{}\"", id.name()));
        }
    }

    #[test]
    fn the_page_explains_every_finding_and_no_other() {
        let page = include_str!("../../../../docs/findings.md");
        let explained: Vec<&str> =
            page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
        assert_eq!(explained, Id::ALL.map(Id::name));
        let overview = include_str!("../../../../docs/diagnose.md");
        for id in Id::ALL {
            let link = format!("[{0}](findings.md#{0})", id.name());
            assert!(overview.contains(&link), "docs/diagnose.md does not lead to {link}");
        }
    }

    #[test]
    fn causes_come_first_and_of_them_the_largest_and_surest() {
        let finding = |id, confidence, share| Finding { share, ..Finding::new(id, confidence, "") };
        let mut findings = [
            finding(Id::MemoryIsFine, Confidence::High, None),
            finding(Id::Wrapper, Confidence::High, Some(0.9)),
            finding(Id::OneLock, Confidence::Low, Some(0.5)),
            finding(Id::FaultStorm, Confidence::High, Some(0.3)),
            finding(Id::Swap, Confidence::Medium, None),
        ];
        findings.sort_by_key(Finding::order);
        let order = findings.map(|finding| finding.id);
        let expected = [Id::FaultStorm, Id::OneLock, Id::Swap, Id::Wrapper, Id::MemoryIsFine];
        assert_eq!(order, expected);
    }
}
