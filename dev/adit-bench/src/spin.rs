//! Processes that only count, one for each core: what a shared machine's other tenants are.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::thread;

use anyhow::Result;

/// Counts until the input ends.
pub(crate) fn run() -> Result<()> {
    thread::spawn(|| {
        let mut count = 0u64;
        loop {
            count = std::hint::black_box(count.wrapping_add(1));
        }
    });
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Such processes; dropping them ends them.
#[derive(Debug)]
pub(crate) struct Spinners(Vec<Child>);

impl Spinners {
    /// Starts one for each core.
    pub(crate) fn start() -> Result<Self> {
        let cores = thread::available_parallelism()?.get();
        let mut spinners = Self(Vec::new());
        for _ in 0..cores {
            let child = Command::new(std::env::current_exe()?)
                .arg("--spin")
                .stdin(Stdio::piped())
                .spawn()?;
            spinners.0.push(child);
        }
        Ok(spinners)
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.stdin.take());
            if child.wait().is_err() {
                let _ = child.kill();
            }
        }
    }
}
