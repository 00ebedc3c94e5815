//! The machine that the figures are measured on, and the memory of processes.

use std::process::{Child, ExitStatus};
use std::time::Duration;

use serde_json::{Value, json};

use crate::threads;

/// Returns a field of `/proc/<process>/status` in bytes, such as `VmRSS`; 0 where the system does not say.
pub fn memory(process: &str, field: &str) -> u64 {
    bytes(&format!("/proc/{process}/status"), field).unwrap_or(0)
}

/// Returns the memory of the machine in bytes; 0 where the system does not say.
pub fn total_memory() -> u64 {
    bytes("/proc/meminfo", "MemTotal").unwrap_or(0)
}

fn bytes(file: &str, field: &str) -> Option<u64> {
    let kib = line(file, field)?.strip_suffix(" kB")?.parse::<u64>();
    Some(kib.ok()? << 10)
}

/// Returns what a file of the system says after `key` and a colon.
pub fn line(file: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| name.trim_end() == key)?;
    Some(value.trim().to_owned())
}

/// Waits until a process ends; returns how, and its peak memory in bytes. What it takes in its last two milliseconds may
/// be missing.
pub fn wait(child: &mut Child) -> (ExitStatus, u64) {
    let process = child.id().to_string();
    let mut peak = 0;
    loop {
        peak = memory(&process, "VmHWM").max(peak);
        if let Some(status) = child.try_wait().expect("the program") {
            return (status, peak);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns processor, cores, memory, and the instruction set that the join uses; null where the system does not say.
pub fn describe() -> Value {
    json!({
        "processor": line("/proc/cpuinfo", "model name"),
        "cores": threads::cores(),
        "memory": line("/proc/meminfo", "MemTotal"),
        "kernel": hamming::Kernel::detect().name(),
        "system": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
    })
}
