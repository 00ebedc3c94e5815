//! The memory that the control groups of this process allow: those of systemd, Slurm or a container, nested in each other, in either
//! version of control groups.

use std::path::{Path, PathBuf};

/// Bytes of memory that the control groups of this process and all groups around them allow; `None` if they set no limit.
pub fn memory_limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    least(&groups, &mounts, |file| {
        std::fs::read_to_string(file).ok()?.trim().parse().ok()
    })
}

/// The least limit, by the contents of `/proc/self/cgroup` and `/proc/self/mountinfo`; `read` reads a number from a file.
fn least(groups: &str, mounts: &str, read: impl Fn(&Path) -> Option<u64>) -> Option<u64> {
    let mut limits = Vec::new();
    for mount in mounts.lines() {
        let Some((mount, system)) = mount.split_once(" - ") else {
            continue;
        };
        let mount: Vec<&str> = mount.split(' ').collect();
        let system: Vec<&str> = system.split(' ').collect();
        let (&[_, _, _, root, top, ..], &[kind, _, options]) = (&mount[..], &system[..]) else {
            continue;
        };
        let has_memory = options.split(',').any(|option| option == "memory");
        let names: &[&str] = match kind {
            "cgroup2" => &["memory.max", "memory.high"],
            "cgroup" if has_memory => &["memory.limit_in_bytes"],
            _ => continue,
        };
        let group = groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let is_its = match kind {
                "cgroup2" => controllers.is_empty(),
                _ => controllers.split(',').any(|name| name == "memory"),
            };
            is_its.then_some(path)
        });
        // In a container, the path may be that outside of it, and the mount shows only what is inside.
        let below = group.and_then(|group| Path::new(group).strip_prefix(root).ok());
        let below = below.unwrap_or(Path::new(""));
        let below: PathBuf = below
            .components()
            .filter(|part| part.as_os_str() != "..")
            .collect();
        for above in below.ancestors() {
            let directory = Path::new(top).join(above);
            limits.extend(names.iter().filter_map(|name| read(&directory.join(name))));
        }
    }
    limits.into_iter().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "30 24 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1: &str = "34 25 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
        35 25 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    const CONTAINER: &str =
        "35 25 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";

    /// The least of these limits, by file.
    fn found(groups: &str, mounts: &str, files: &[(&str, u64)]) -> Option<u64> {
        least(groups, mounts, |file| {
            let file = files.iter().find(|(name, _)| Path::new(name) == file);
            file.map(|(_, limit)| *limit)
        })
    }

    #[test]
    fn the_least_limit_of_all_groups_around_counts() {
        let slice = ("/sys/fs/cgroup/system.slice/memory.max", 400);
        let unit = ("/sys/fs/cgroup/system.slice/job.service/memory.max", 500);
        let high = ("/sys/fs/cgroup/system.slice/job.service/memory.high", 300);
        let groups = "0::/system.slice/job.service\n";
        assert_eq!(found(groups, V2, &[]), None);
        assert_eq!(found(groups, V2, &[unit]), Some(500));
        assert_eq!(found(groups, V2, &[slice, unit]), Some(400));
        assert_eq!(found(groups, V2, &[slice, unit, high]), Some(300));
        let groups = "5:cpu:/other\n4:memory:/slurm/uid_1/job_2\n0::/\n";
        let job = (
            "/sys/fs/cgroup/memory/slurm/uid_1/job_2/memory.limit_in_bytes",
            700,
        );
        let user = (
            "/sys/fs/cgroup/memory/slurm/uid_1/memory.limit_in_bytes",
            600,
        );
        assert_eq!(found(groups, V1, &[job]), Some(700));
        assert_eq!(found(groups, V1, &[job, user]), Some(600));
        // A container sees its own group as the top, whatever its path is called.
        let top = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", 200);
        for groups in ["4:memory:/docker/ab\n", "4:memory:/\n", "4:memory:/../x\n"] {
            assert_eq!(found(groups, CONTAINER, &[top]), Some(200), "{groups}");
        }
        assert_eq!(
            found("0::/../../x\n", V2, &[("/sys/fs/cgroup/x/memory.max", 9)]),
            Some(9)
        );
        assert_eq!(found("", "no mount\n", &[top]), None);
    }
}
