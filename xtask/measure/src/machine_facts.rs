//! The machine that is measured, in the words that every record has for it.

use masu_lab::Machine;

/// Facts of this machine; `unknown` for a fact that cannot be read.
pub(crate) struct MachineFacts {
    pub(crate) cpu: String,
    pub(crate) cpus: usize,
    pub(crate) architecture: String,
    pub(crate) memory: String,
    /// The system's name, its kernel's version and how it gives out huge pages.
    pub(crate) system: String,
    pub(crate) kernel: String,
}

impl MachineFacts {
    pub(crate) fn here() -> MachineFacts {
        let or_unknown = |fact: Option<String>| fact.unwrap_or_else(|| "unknown".to_owned());
        let machine = Machine::here();
        let kernel = or_unknown(machine.kernel);
        let gigabytes = |bytes: u64| format!("{} GB", bytes / 1_000_000_000);
        MachineFacts {
            cpu: or_unknown(machine.cpu),
            cpus: machine.cpus,
            architecture: machine.architecture,
            memory: or_unknown(machine.memory_bytes.map(gigabytes)),
            system: format!(
                "{}, Linux {kernel}, transparent huge pages `{}`",
                or_unknown(machine.system),
                or_unknown(machine.huge_pages)
            ),
            kernel,
        }
    }
}
