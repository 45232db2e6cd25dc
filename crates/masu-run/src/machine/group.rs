//! The resources that control groups leave to this process, in a container or a service: memory, CPU time, threads.
//!
//! Limits hold for a group with all it contains, so every group on the way up is asked, in either version of control
//! groups. Idle file pages count as room: the kernel takes them back before it refuses anything.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The names of the memory files.
struct Names {
    /// The controller that the first version lists in `/proc/self/cgroup`, which is also its folder below the mount;
    /// [`SECOND`] for the second version.
    controller: &'static str,
    limit: &'static str,
    used: &'static str,
    /// The line of `memory.stat` with the file pages that can go.
    idle: &'static str,
}

/// The second version lists one group for all controllers, and names none.
const SECOND: &str = "";

const MEMORY: [Names; 2] = [
    Names {
        controller: SECOND,
        limit: "memory.max",
        used: "memory.current",
        idle: "inactive_file",
    },
    Names {
        controller: "memory",
        limit: "memory.limit_in_bytes",
        used: "memory.usage_in_bytes",
        idle: "total_inactive_file",
    },
];

const MOUNT: &str = "/sys/fs/cgroup";

/// The bytes that this process and its children can still take before a group's limit stops them; none where no group
/// has a limit.
pub fn memory_room() -> Option<u64> {
    room_in(&groups()?, Path::new(MOUNT))
}

/// The CPU time that groups leave to this process and its neighbors in them, in CPUs; none where no group has a quota.
pub fn cpu_quota() -> Option<f64> {
    cpus_in(&groups()?, Path::new(MOUNT))
}

/// The number of threads that can still be started before a group's limit stops them; none where no group has a limit.
pub fn thread_room() -> Option<u64> {
    threads_in(&groups()?, Path::new(MOUNT))
}

fn groups() -> Option<String> {
    fs::read_to_string("/proc/self/cgroup").ok()
}

/// The same for the groups listed in `groups` (the content of `/proc/self/cgroup`), mounted at
/// `mount`.
fn room_in(groups: &str, mount: &Path) -> Option<u64> {
    let rooms = MEMORY.iter().flat_map(|names| {
        let folders = folders(groups, mount, names.controller);
        folders.into_iter().filter_map(|folder| room_of(&folder, names))
    });
    rooms.min()
}

fn cpus_in(groups: &str, mount: &Path) -> Option<f64> {
    let second = folders(groups, mount, SECOND).into_iter().filter_map(|folder| {
        let text = fs::read_to_string(folder.join("cpu.max")).ok()?;
        let (quota, period) = text.trim().split_once(' ')?;
        Some((quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?))
    });
    let first = folders(groups, mount, "cpu").into_iter().filter_map(|folder| {
        // The file holds -1 where there is no quota.
        let quota = number(&folder, "cpu.cfs_quota_us").filter(|quota: &f64| *quota > 0.0)?;
        Some((quota, number(&folder, "cpu.cfs_period_us")?))
    });
    let all = second.chain(first).filter(|(_, period)| *period > 0.0);
    all.map(|(quota, period)| quota / period).min_by(f64::total_cmp)
}

fn threads_in(groups: &str, mount: &Path) -> Option<u64> {
    let all = [SECOND, "pids"].into_iter().flat_map(|one| folders(groups, mount, one));
    let rooms = all.filter_map(|folder| {
        // The file holds `max`, which is no number, where there is no limit.
        let limit: u64 = number(&folder, "pids.max")?;
        Some(limit.saturating_sub(number(&folder, "pids.current").unwrap_or(0)))
    });
    rooms.min()
}

/// The folders of the groups of one controller that limit this process, its own first and then on the way up.
fn folders(groups: &str, mount: &Path, controller: &str) -> Vec<PathBuf> {
    let own = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (controllers, path) = (fields.nth(1)?, fields.next()?);
        controllers.split(',').any(|one| one == controller).then_some(path)
    });
    let Some(own) = own else { return Vec::new() };
    let top = mount.join(controller);
    // A group that this mount does not show has no files there, but those above it may.
    let group = top.join(own.trim_start_matches('/'));
    let on_the_way = group.ancestors().take_while(|folder| folder.starts_with(&top));
    on_the_way.map(Path::to_owned).collect()
}

/// The number in a file; none where the file is missing, or holds something else or a negative number for a type that
/// has none.
fn number<T: FromStr>(folder: &Path, name: &str) -> Option<T> {
    fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
}

fn room_of(folder: &Path, names: &Names) -> Option<u64> {
    let limit: u64 = number(folder, names.limit)?;
    let used: u64 = number(folder, names.used).unwrap_or(0);
    let statistics = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let idle = statistics.lines().find_map(|line| {
        line.strip_prefix(names.idle)?.strip_prefix(' ')?.trim().parse::<u64>().ok()
    });
    Some(limit.saturating_sub(used.saturating_sub(idle.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(files: &[(&str, &str)]) -> tempfile::TempDir {
        let mount = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = mount.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        mount
    }

    #[test]
    fn the_tightest_group_on_the_way_up_counts() {
        let mount = mount(&[
            ("a/b/memory.max", "max\n"),
            ("a/memory.max", "1000\n"),
            ("a/memory.current", "700\n"),
            ("a/memory.stat", "anon 1\ninactive_file 100\ninactive_files 9\n"),
            ("memory.max", "5000\n"),
        ]);
        assert_eq!(room_in("0::/a/b\n", mount.path()), Some(400));
        assert_eq!(room_in("0::/elsewhere\n", mount.path()), Some(5000));
        assert_eq!(room_in("3:cpu:/a\n", mount.path()), None);
    }

    #[test]
    fn the_first_version_is_understood_too() {
        let mount = mount(&[
            ("memory/x/memory.limit_in_bytes", "100\n"),
            ("memory/x/memory.usage_in_bytes", "120\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(room_in("4:cpu,memory:/x\n0::/\n", mount.path()), Some(0));
        assert_eq!(room_in("4:memory:/y\n", mount.path()), Some(9_223_372_036_854_771_712));
    }

    #[test]
    fn quotas_of_cpu_time_and_of_threads_are_read_in_both_versions() {
        let mount = mount(&[
            ("a/cpu.max", "150000 100000\n"),
            ("cpu.max", "max 100000\n"),
            ("a/pids.max", "100\n"),
            ("a/pids.current", "40\n"),
            ("pids.max", "max\n"),
            ("cpu/b/cpu.cfs_quota_us", "50000\n"),
            ("cpu/b/cpu.cfs_period_us", "100000\n"),
            ("cpu/cpu.cfs_quota_us", "-1\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
            ("pids/b/pids.max", "7\n"),
        ]);
        assert_eq!(cpus_in("0::/a\n", mount.path()), Some(1.5));
        assert_eq!(cpus_in("1:cpu,cpuacct:/b\n", mount.path()), Some(0.5));
        assert_eq!(cpus_in("1:cpu:/\n0::/\n", mount.path()), None);
        assert_eq!(threads_in("0::/a\n", mount.path()), Some(60));
        assert_eq!(threads_in("8:pids:/b\n0::/a\n", mount.path()), Some(7));
        assert_eq!(threads_in("0::/\n", mount.path()), None);
    }
}
