//! Instructions instead of time: hot loops under valgrind against committed counts.
//!
//! A count hardly varies from run to run, however busy the machine is, so a few per cent show.
//! Each [`loops`] entry is run twice with different numbers of turns, and the difference counts:
//! what comes before and after the loop falls out. Valgrind knows no AVX-512, so that the ciphers
//! are held to AVX2 and the counts are of that path.

mod counts;
mod loops;
mod memory;

use std::env;
use std::process::Command;
use std::time::Duration;

use adit_crypto::{CpuLevel, limit_cpu};
use adit_interop::tool;
use anyhow::{Context, Result, bail, ensure};

use counts::Counts;
use loops::{LOOPS, Loop};

/// As for adit itself: which instructions our own ciphers may use.
const CPU: &str = "ADIT_CPU";
/// The widest that valgrind knows.
const LEVEL: CpuLevel = CpuLevel::Avx2;
/// How long one run under valgrind may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Counts every loop; writes the counts down if `bless`, else compares them.
pub(crate) fn run(bless: bool) -> Result<()> {
    ensure!(
        !cfg!(debug_assertions),
        "counts without optimisation mean nothing; use `cargo xtask bench --instructions`"
    );
    let (mut platform, mut measured) = (String::new(), Vec::new());
    for one in &LOOPS {
        let (level, count) = count(one).with_context(|| one.name.to_owned())?;
        platform = format!("{}-{level}", env::consts::ARCH);
        println!("{count:>12}  {}", one.name);
        measured.push((one.name, count));
    }
    let mut counts = Counts::load()?;
    if bless {
        counts.set(&platform, &measured);
        counts.save()?;
        println!("{} counts written for {platform}", measured.len());
        return Ok(());
    }
    println!("{}", counts.compare(&platform, &measured)?);
    Ok(())
}

/// Runs one loop, as the process whose instructions are counted; prints the level in effect.
pub(crate) fn hot(name: &str, times: u32) -> Result<()> {
    if let Some(level) = env::var(CPU).ok().as_deref().and_then(CpuLevel::from_name) {
        limit_cpu(level);
    }
    println!("level {}", adit_crypto::cpu_level().name());
    let one = LOOPS.iter().find(|one| one.name == name);
    (one.with_context(|| format!("no loop `{name}`"))?.work)(times)
}

/// The level in effect and the instructions of one turn.
fn count(one: &Loop) -> Result<(String, u64)> {
    let (few, many) = one.times;
    // The two do not disturb each other: instructions are counted, not time.
    let (few_run, many_run) = std::thread::scope(|scope| {
        let few_run = scope.spawn(|| total(one.name, few));
        (few_run.join(), total(one.name, many))
    });
    let (level, few_total) = few_run.map_err(|_| anyhow::anyhow!("a run panicked"))??;
    let (_, many_total) = many_run?;
    let Some(spent) = many_total.checked_sub(few_total) else {
        bail!("{many} turns took less than {few}");
    };
    Ok((level, spent / u64::from(many - few)))
}

/// The level in effect and all instructions of a process that runs a loop so many times.
fn total(name: &str, times: u32) -> Result<(String, u64)> {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=cachegrind", "--cache-sim=no"])
        .arg("--cachegrind-out-file=/dev/null")
        .arg(env::current_exe()?)
        .args(["--hot", name, "--times", &times.to_string()])
        .env(CPU, LEVEL.name());
    let told = tool::run(command, PATIENCE)?.success()?;
    let level = told.lines().find_map(|line| line.strip_prefix("level "));
    Ok((
        level.context("no level")?.to_owned(),
        parse_total(&told).with_context(|| told.clone())?,
    ))
}

/// The line reads `==42== I   refs:      1,234,567`; newer versions write `I refs:`.
fn parse_total(told: &str) -> Option<u64> {
    let line = told.lines().find(|line| line.contains("refs:"))?;
    let (before, number) = line.split_once("refs:")?;
    before.trim_end().ends_with('I').then_some(())?;
    number.trim().replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_from_both_forms() {
        let old = "==7== Cachegrind\n==7== \n==7== I   refs:      1,234,567\n";
        assert_eq!(parse_total(old), Some(1_234_567));
        assert_eq!(parse_total("==7== I refs: 89\n"), Some(89));
        assert_eq!(parse_total("==7== D   refs: 89\n"), None);
        assert_eq!(parse_total("nothing"), None);
    }

    #[test]
    fn every_loop_runs() {
        for one in &LOOPS {
            let (few, many) = one.times;
            assert!(few < many, "{}", one.name);
            (one.work)(1).unwrap();
        }
        assert!(hot("no such loop", 1).is_err());
    }
}
