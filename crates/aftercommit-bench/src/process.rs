//! What the kernel says about this process.

use std::fs;
use std::time::Duration;

use crate::error::{Error, Result};

/// Resident memory in MiB.
pub(crate) fn resident() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).and_then(|kib| kib.parse::<f64>().ok());
    kib.map(|kib| kib / 1024.0).ok_or_else(|| Error::new("/proc/self/status does not say VmRSS"))
}

/// Processor time so far, of all threads, in user and kernel.
pub(crate) fn cpu() -> Result<Duration> {
    // Linux shows it in hundredths of a second whatever its own clock is.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name in brackets may hold anything; fields are counted behind it.
    let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().skip(11).take(2));
    let ticks = fields.and_then(|fields| fields.map(|field| field.parse::<u32>().ok()).sum::<Option<u32>>());
    ticks.map(|ticks| TICK * ticks).ok_or_else(|| Error::new("/proc/self/stat is not understood"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_understood() {
        assert!(resident().unwrap() > 0.1);
        let before = cpu().unwrap();
        while cpu().unwrap() == before {
            std::hint::spin_loop();
        }
    }
}
