//! Instruction counts instead of time: hot loops under valgrind against committed counts.
//!
//! A count hardly varies from run to run, however busy the machine is, so a difference of a few
//! percent shows. Each hot loop entry is run twice with different numbers of turns, and the
//! difference counts: the code before and after the loop cancels out. Valgrind does not support
//! AVX-512, so the ciphers are limited to AVX2 and the counts are of that path. Its tool `dhat`
//! also counts allocations, including those of C libraries, which an allocator in Rust does not
//! see.

mod committed_counts;
mod hot_loops;
mod memory_stream;
mod tunnel_loops;

use std::env;
use std::fs;
use std::process::Command;
use std::time::Duration;

use adit_crypto::{CpuLevel, limit_cpu};
use adit_interop::{TempFolder, external_tools};
use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use committed_counts::{CommittedCounts, LoopCost};
use hot_loops::HotLoop;

/// The variable that limits adit's own ciphers to a class of instructions.
const CPU_VARIABLE: &str = "ADIT_CPU";
/// The highest class that valgrind supports.
const MAX_CPU_LEVEL: CpuLevel = CpuLevel::Avx2;
/// Maximum duration of one run under valgrind.
const PATIENCE: Duration = Duration::from_secs(120);

fn all_loops() -> impl Iterator<Item = &'static HotLoop> {
    hot_loops::LOOPS.iter().chain(&tunnel_loops::LOOPS)
}

/// Counts every loop. Writes the counts if `bless`, otherwise compares them.
pub(crate) fn count_instructions(bless: bool) -> Result<()> {
    ensure!(
        !cfg!(debug_assertions),
        "counts of an unoptimised build mean nothing; use `cargo xtask bench --instructions`"
    );
    let (mut platform, mut measured) = (String::new(), Vec::new());
    for one in all_loops() {
        let (level, cost) = measure_cost(one).with_context(|| one.name.to_owned())?;
        platform = format!("{}-{level}", env::consts::ARCH);
        println!("{cost}  {}", one.name);
        measured.push((one.name, cost));
    }
    let mut counts = CommittedCounts::load()?;
    if bless {
        counts.replace_platform(&platform, &measured);
        counts.save()?;
        println!("{} counts written for {platform}", measured.len());
        return Ok(());
    }
    println!("{}", counts.compare(&platform, &measured)?);
    Ok(())
}

/// Runs one loop, as the process whose instructions are counted. Prints the class in effect.
pub(crate) fn run_hot_loop(name: &str, times: u32) -> Result<()> {
    if let Some(level) = env::var(CPU_VARIABLE)
        .ok()
        .as_deref()
        .and_then(CpuLevel::from_name)
    {
        limit_cpu(level);
    }
    println!("level {}", adit_crypto::cpu_level().name());
    let one = all_loops().find(|one| one.name == name);
    (one.with_context(|| format!("unknown loop `{name}`"))?.work)(times)
}

/// Returns the class in effect and the cost of one turn.
fn measure_cost(one: &HotLoop) -> Result<(String, LoopCost)> {
    let (few, many) = one.turns;
    // The two runs do not affect each other: instructions are counted, not time.
    let (few_run, many_run) = std::thread::scope(|scope| {
        let few_run = scope.spawn(|| measure_process(one.name, few));
        (few_run.join(), measure_process(one.name, many))
    });
    let (level, few_total) = few_run.map_err(|_| anyhow!("a run's thread panicked"))??;
    let (_, many_total) = many_run?;
    let per_turn = |many_total: u64, few_total: u64| {
        let spent = many_total.checked_sub(few_total)?;
        spent.checked_div(u64::from(many - few))
    };
    let cost = per_turn(many_total.instructions, few_total.instructions)
        .zip(per_turn(many_total.allocations, few_total.allocations));
    let (instructions, allocations) =
        cost.with_context(|| format!("{many} turns took less than {few}"))?;
    let cost = LoopCost {
        instructions,
        allocations,
    };
    Ok((level, cost))
}

/// Returns the class in effect and the cost of a whole process that runs this number of turns.
fn measure_process(name: &str, times: u32) -> Result<(String, LoopCost)> {
    let folder = TempFolder::new("dhat")?;
    let file = folder.path().join("out");
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=dhat", "--num-callers=2"])
        .arg(format!("--dhat-out-file={}", file.display()))
        .arg(env::current_exe()?)
        .args(["hot", name, &times.to_string()])
        .env(CPU_VARIABLE, MAX_CPU_LEVEL.name());
    let told = external_tools::run_to_end(command, PATIENCE)?.expect_success()?;
    let level = told.lines().find_map(|line| line.strip_prefix("level "));
    let level = level.context("the process printed no level")?.to_owned();
    let cost = parse_profile(&fs::read_to_string(&file)?).with_context(|| told.clone())?;
    Ok((level, cost))
}

/// Parses a profile of dhat: `te` is the time of the end, in instructions; each of `pps` is a place
/// that allocates, with the number of its blocks in `tbk`.
fn parse_profile(profile: &str) -> Result<LoopCost> {
    let profile: Value = serde_json::from_str(profile)?;
    ensure!(
        profile["tu"] == "instrs",
        "the profile's time is not in instructions"
    );
    let blocks = profile["pps"]
        .as_array()
        .context("the profile has no places")?;
    let blocks = blocks.iter().map(|place| place["tbk"].as_u64());
    Ok(LoopCost {
        instructions: profile["te"].as_u64().context("the profile has no end")?,
        allocations: blocks
            .sum::<Option<u64>>()
            .context("a place of the profile has no blocks")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_has_an_end_and_blocks() {
        let profile = r#"{"dhatFileVersion":2,"tu":"instrs","te":1234567,"tg":5,
            "pps":[{"tb":8,"tbk":2,"fs":[1]},{"tb":1,"tbk":40,"fs":[2]}]}"#;
        let cost = LoopCost {
            instructions: 1_234_567,
            allocations: 42,
        };
        assert_eq!(parse_profile(profile).unwrap(), cost);
        for bad in ["", "{}", &profile.replace("instrs", "ms")] {
            assert!(parse_profile(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_loop_runs() {
        for one in all_loops() {
            let (few, many) = one.turns;
            assert!(few < many, "{}", one.name);
            (one.work)(1).unwrap();
        }
        assert!(run_hot_loop("no such loop", 1).is_err());
    }
}
