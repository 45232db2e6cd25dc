//! The memory that control groups leave to this process, in a container or a service.
//!
//! It relies on `/proc/self/cgroup` and on the kernel's files for either version of control groups.
//! Limits hold for a group with all it contains, so every group on the way up is asked. File pages
//! that nobody used lately count as room: the kernel takes them back before it refuses anything.

use std::fs;
use std::path::Path;

/// The names of what is asked, in one version of control groups.
struct Names {
    /// Where its groups are, below the mount.
    folder: &'static str,
    limit: &'static str,
    used: &'static str,
    /// The line of `memory.stat` with the file pages that can go.
    idle: &'static str,
}

const SECOND: Names =
    Names { folder: "", limit: "memory.max", used: "memory.current", idle: "inactive_file" };

const FIRST: Names = Names {
    folder: "memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    idle: "total_inactive_file",
};

/// Bytes this process and its children can still take before a group's limit stops them; none where
/// no group has a limit.
pub(super) fn room() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    room_in(&groups, Path::new("/sys/fs/cgroup"))
}

/// The same for the groups listed in `groups` (the content of `/proc/self/cgroup`), mounted at
/// `mount`.
fn room_in(groups: &str, mount: &Path) -> Option<u64> {
    let rooms = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let names = match (number, controllers) {
            ("0", "") => SECOND,
            (_, list) if list.split(',').any(|one| one == "memory") => FIRST,
            _ => return None,
        };
        let top = mount.join(names.folder);
        // A group that this mount does not show has no files there, but those above it may.
        let group = top.join(path.trim_start_matches('/'));
        let on_the_way = group.ancestors().take_while(|folder| folder.starts_with(&top));
        on_the_way.filter_map(|folder| room_of(folder, &names)).min()
    });
    rooms.min()
}

fn room_of(folder: &Path, names: &Names) -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
    };
    let limit = number(names.limit)?;
    let used = number(names.used).unwrap_or(0);
    let statistics = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let idle = statistics.lines().find_map(|line| {
        line.strip_prefix(names.idle)?.strip_prefix(' ')?.trim().parse::<u64>().ok()
    });
    Some(limit.saturating_sub(used.saturating_sub(idle.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A mount made for one test, removed at the end.
    struct Mount(PathBuf);

    impl Mount {
        fn new(name: &str, files: &[(&str, &str)]) -> Mount {
            let name = format!("masu-groups-{}-{name}", std::process::id());
            let mount = Mount(std::env::temp_dir().join(name));
            for (path, content) in files {
                let path = mount.0.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            mount
        }
    }

    impl Drop for Mount {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_tightest_group_on_the_way_up_counts() {
        let mount = Mount::new(
            "second",
            &[
                ("a/b/memory.max", "max\n"),
                ("a/memory.max", "1000\n"),
                ("a/memory.current", "700\n"),
                ("a/memory.stat", "anon 1\ninactive_file 100\ninactive_files 9\n"),
                ("memory.max", "5000\n"),
            ],
        );
        assert_eq!(room_in("0::/a/b\n", &mount.0), Some(400));
        assert_eq!(room_in("0::/elsewhere\n", &mount.0), Some(5000));
        assert_eq!(room_in("3:cpu:/a\n", &mount.0), None);
    }

    #[test]
    fn the_first_version_is_understood_too() {
        let mount = Mount::new(
            "first",
            &[
                ("memory/x/memory.limit_in_bytes", "100\n"),
                ("memory/x/memory.usage_in_bytes", "120\n"),
                ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ],
        );
        assert_eq!(room_in("4:cpu,memory:/x\n0::/\n", &mount.0), Some(0));
        assert_eq!(room_in("4:memory:/y\n", &mount.0), Some(9_223_372_036_854_771_712));
    }
}
