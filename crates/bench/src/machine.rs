//! Description of the machine that the figures were measured on.

use serde_json::{Value, json};

/// Returns the peak memory of this process in bytes; 0 where the system does not say.
pub fn peak_memory() -> u64 {
    memory("self", "VmHWM")
}

/// Returns a field of `/proc/<process>/status` in bytes, such as `VmRSS`; 0 where the system does not say.
pub fn memory(process: &str, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| {
        let number = line.strip_prefix(':')?.trim().strip_suffix(" kB")?;
        number.parse::<u64>().ok()
    });
    kib.unwrap_or(0) << 10
}

/// Returns the memory of the machine in bytes; 0 where the system does not say.
pub fn total_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|total| total.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// Returns processor, cores, memory, and the instruction set that the join uses; null where the system does not say.
pub fn describe() -> Value {
    let line = |file: &str, key: &str| {
        let text = std::fs::read_to_string(file).ok()?;
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    json!({
        "processor": line("/proc/cpuinfo", "model name"),
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "memory": line("/proc/meminfo", "MemTotal"),
        "kernel": hamming::Kernel::detect().name(),
        "system": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
    })
}
