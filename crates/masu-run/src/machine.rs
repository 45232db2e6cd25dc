//! Facts about the machine that the results depend on.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::proc_files;
use crate::quantity::bytes;

mod group;

pub use group::{cpu_quota, memory_room, thread_room};

/// The machine of a comparison. Facts that the machine does not tell are none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The CPU's name as the kernel gives it.
    pub cpu: Option<String>,
    /// The architecture this was built for: `x86_64`, `aarch64`.
    pub architecture: String,
    /// CPUs this process may use.
    pub cpus: usize,
    pub memory_bytes: Option<u64>,
    pub kernel: Option<String>,
    /// The distribution's name.
    pub system: Option<String>,
    /// `/sys/kernel/mm/transparent_hugepage/enabled`: the chosen one of always, madvise, never.
    pub huge_pages: Option<String>,
    /// The frequency governor of the first CPU.
    pub governor: Option<String>,
    /// True for a virtual machine whose host takes back memory that was free for some seconds: the next touch is then
    /// many times slower than another. Memory is touched before each run there.
    #[serde(default)]
    pub host_takes_free_memory: bool,
}

impl Machine {
    pub fn here() -> Machine {
        Machine {
            cpu: field("/proc/cpuinfo", "model name", ':'),
            architecture: std::env::consts::ARCH.to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory("MemTotal"),
            kernel: line("/proc/sys/kernel/osrelease"),
            system: field("/etc/os-release", "PRETTY_NAME", '=')
                .map(|name| name.trim_matches('"').to_owned()),
            huge_pages: chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            host_takes_free_memory: host_takes_free_memory(),
        }
    }

    pub fn described(&self) -> Vec<(&'static str, String)> {
        let memory = self.memory_bytes.map(|size| bytes(size as f64));
        let host = "takes back free memory; before each run as much is touched as runs need";
        let facts = [
            ("CPU", self.cpu.clone()),
            ("architecture", Some(self.architecture.clone())),
            ("CPUs that could be used", Some(self.cpus.to_string())),
            ("main memory", memory),
            ("system", self.system.clone()),
            ("kernel", self.kernel.clone()),
            ("transparent huge pages", self.huge_pages.clone()),
            ("frequency governor", self.governor.clone()),
            ("host of this virtual machine", self.host_takes_free_memory.then(|| host.to_owned())),
        ];
        facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// True if there is a virtio balloon that reports free pages to the host.
pub fn host_takes_free_memory() -> bool {
    const BALLOON: &str = "0x0005";
    /// The bit of `VIRTIO_BALLOON_F_REPORTING`; the file has a character for each.
    const REPORTING: usize = 5;
    let Ok(devices) = fs::read_dir("/sys/bus/virtio/devices") else { return false };
    let has = |folder: &str, name: &str| line(&format!("{folder}/{name}"));
    devices.flatten().any(|device| {
        let folder = device.path().to_string_lossy().into_owned();
        has(&folder, "device").as_deref() == Some(BALLOON)
            && has(&folder, "features")
                .is_some_and(|bits| bits.as_bytes().get(REPORTING) == Some(&b'1'))
    })
}

/// Memory in bytes that can be used without swapping, never more than control groups leave.
pub fn memory_available() -> Option<u64> {
    let machine = memory("MemAvailable").or_else(|| memory("MemTotal"));
    machine.into_iter().chain(memory_room()).min()
}

/// A figure of `/proc/meminfo` in bytes.
pub fn memory(name: &str) -> Option<u64> {
    proc_files::size(&fs::read_to_string("/proc/meminfo").ok()?, name)
}

/// The first line of a file of the kernel's.
pub fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}

/// The chosen word of several in such a line, which stands in brackets.
pub fn chosen(path: &str) -> Option<String> {
    let choices = line(path)?;
    Some(choices.split_once('[')?.1.split_once(']')?.0.to_owned())
}

fn field(path: &str, name: &str, separator: char) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cpus_memory_and_a_kernel() {
        let machine = Machine::here();
        assert!(machine.cpus >= 1);
        assert!(machine.kernel.is_some());
        let available = memory_available().expect("the kernel tells its memory");
        assert!(available > 1 << 20 && available <= machine.memory_bytes.unwrap());
    }
}
