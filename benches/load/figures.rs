//! Percentiles, and what `/proc` says of a process.

use anyhow::{Context, Result};
use std::fmt::{self, Display};
use std::time::Duration;

/// Times in milliseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times(Vec<f64>);

impl Times {
    pub(crate) fn add(&mut self, time: Duration) {
        self.add_ms(time.as_secs_f64() * 1000.0);
    }

    pub(crate) fn add_ms(&mut self, ms: f64) {
        self.0.push(ms);
    }

    pub(crate) fn join(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// The value below which this part (0 to 1) of all lies: a measured one, not interpolated.
    pub(crate) fn part(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index: not negative, far below 2^52"
        )]
        let index = ((sorted.len() as f64 * part).ceil() as usize).saturating_sub(1);
        sorted.get(index).copied().unwrap_or(f64::NAN)
    }
}

/// `p50 / p90 / p99 / max`.
impl Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p90, p99, max] = [0.5, 0.9, 0.99, 1.0].map(|part| self.part(part));
        write!(f, "{p50:>9.2} {p90:>9.2} {p99:>9.2} {max:>9.2}")
    }
}

/// A process by its id, seen from outside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process(pub(crate) u32);

impl Process {
    /// CPU time so far, user and system, of all its threads: fields 14 and 15 of `/proc/<pid>/stat`, in ticks of
    /// 1/100 s (USER_HZ, the same on every Linux).
    pub(crate) fn cpu(self) -> Result<Duration> {
        let stat = self.read("stat")?;
        // The name in brackets may hold spaces; the third field follows it.
        let (_, rest) = stat.rsplit_once(')').context("no name in stat")?;
        let field = |number: usize| -> Result<u64> {
            let text = rest.split_whitespace().nth(number - 3).context("a short stat")?;
            Ok(text.parse()?)
        };
        Ok(Duration::from_millis((field(14)? + field(15)?) * 10))
    }

    /// Resident memory in MB (10^6 bytes): now (`VmRSS`) and the most so far (`VmHWM`).
    pub(crate) fn memory(self) -> Result<(f64, f64)> {
        let status = self.read("status")?;
        let of = |name: &str| -> Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).context("a short status")?;
            let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
            Ok(kib * 1024.0 / 1e6)
        };
        Ok((of("VmRSS:")?, of("VmHWM:")?))
    }

    fn read(self, name: &str) -> Result<String> {
        let path = format!("/proc/{}/{name}", self.0);
        std::fs::read_to_string(&path).with_context(|| path)
    }
}
