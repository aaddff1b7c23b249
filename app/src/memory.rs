//! How much memory a device has free, where the system tells.
//!
//! A GPU's is not known: WebGPU does not say. Software adapters and the CPU compute in the memory of the machine.

use samara_chat::OpenDevice;

/// Memory that `open` can still take; `None` where nobody knows.
pub(crate) fn free_bytes(open: &OpenDevice) -> Option<u64> {
    let computes_in_main_memory = open.adapter.as_ref().is_none_or(|adapter| adapter.kind == "software");
    if computes_in_main_memory { free_in(&std::fs::read_to_string("/proc/meminfo").ok()?) } else { None }
}

/// What Linux says can be had without swapping, and what can be swapped.
fn free_in(meminfo: &str) -> Option<u64> {
    let kib = |name: &str| {
        let value = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    Some((kib("MemAvailable")? + kib("SwapFree").unwrap_or(0)) * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_is_understood_and_nonsense_is_no_number() {
        let linux = "MemTotal:       8000000 kB\nMemAvailable:       2048 kB\nSwapFree:              0 kB\n";
        assert_eq!(free_in(linux), Some(2 << 20));
        assert_eq!(free_in("MemAvailable: much\n"), None);
        assert_eq!(free_in(""), None);
    }
}
