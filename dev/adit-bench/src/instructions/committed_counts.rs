//! The committed counts: a table for each platform, a line for each loop.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::locations::workspace_root;

const FILE: &str = "dev/adit-bench/instructions.toml";

const FILE_HEADER: &str = "\
# Instructions and allocations of one turn of each hot loop, counted by valgrind, by platform.
# Written by `cargo xtask bench --instructions --bless`; `cargo xtask test` compares.
";

/// Allowed growth of instructions over the committed count, in percent: above the noise of other
/// versions of the compiler and the C library. Allocations have no tolerance.
const TOLERANCE: u64 = 10;

/// The cost of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LoopCost {
    pub(super) instructions: u64,
    /// Allocated blocks, by Rust code and by C libraries.
    pub(super) allocations: u64,
}

impl fmt::Display for LoopCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            instructions,
            allocations,
        } = self;
        write!(
            f,
            "{instructions:>10} instructions {allocations:>5} allocations"
        )
    }
}

/// Costs by platform and loop.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CommittedCounts {
    platforms: BTreeMap<String, BTreeMap<String, LoopCost>>,
}

impl CommittedCounts {
    /// Reads the committed counts; empty if there is no file.
    pub(super) fn load() -> Result<Self> {
        match fs::read_to_string(counts_path()) {
            Ok(text) => Self::parse(&text).context(FILE),
            Err(_) => Ok(Self::default()),
        }
    }

    /// Parses the lines that [`Self::to_toml`] writes.
    fn parse(text: &str) -> Result<Self> {
        let mut counts = Self::default();
        let mut platform = "";
        for line in text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            if let Some(name) = line
                .strip_prefix('[')
                .and_then(|line| line.strip_suffix(']'))
            {
                platform = name;
                continue;
            }
            let (name, cost) =
                parse_line(line).with_context(|| format!("malformed counts: {line}"))?;
            let lines = counts.platforms.entry(platform.to_owned()).or_default();
            lines.insert(name.to_owned(), cost);
        }
        Ok(counts)
    }

    /// Replaces the counts of a platform.
    pub(super) fn replace_platform(&mut self, platform: &str, measured: &[(&str, LoopCost)]) {
        let lines = measured
            .iter()
            .map(|(name, cost)| ((*name).to_owned(), *cost));
        self.platforms.insert(platform.to_owned(), lines.collect());
    }

    /// Writes the file.
    pub(super) fn save(&self) -> Result<()> {
        fs::write(counts_path(), self.to_toml()).context(FILE)
    }

    fn to_toml(&self) -> String {
        let mut out = FILE_HEADER.to_owned();
        for (platform, lines) in &self.platforms {
            let _ = write!(out, "\n[{platform}]\n");
            for (name, cost) in lines {
                let LoopCost {
                    instructions,
                    allocations,
                } = cost;
                let _ = writeln!(
                    out,
                    "\"{name}\" = {{ instructions = {instructions}, allocations = {allocations} }}"
                );
            }
        }
        out
    }

    /// Compares the measured costs. Returns a one-line summary; an error names the loops that cost
    /// more, are new, or have disappeared.
    pub(super) fn compare(&self, platform: &str, measured: &[(&str, LoopCost)]) -> Result<String> {
        let Some(lines) = self.platforms.get(platform) else {
            return Ok(format!(
                "nothing compared: {FILE} has no counts for {platform}"
            ));
        };
        let mut faults = Vec::new();
        let mut cheaper = Vec::new();
        let mut most = (f64::NEG_INFINITY, "");
        for &(name, cost) in measured {
            let Some(committed) = lines.get(name) else {
                faults.push(format!("{name}: new loop"));
                continue;
            };
            let (now, then) = (cost.instructions, committed.instructions);
            let change = (now as f64 / then.max(1) as f64 - 1.0) * 100.0;
            if change > most.0 {
                most = (change, name);
            }
            if now * 100 > then * (100 + TOLERANCE) {
                faults.push(format!(
                    "{name}: {then} → {now} instructions ({change:+.1} %)"
                ));
            } else if now * 100 < then * (100 - TOLERANCE) {
                cheaper.push(format!("{name} ({change:+.1} %)"));
            }
            let (now, then) = (cost.allocations, committed.allocations);
            if now > then {
                faults.push(format!("{name}: {then} → {now} allocations"));
            }
        }
        for name in lines.keys() {
            if !measured.iter().any(|(known, _)| known == name) {
                faults.push(format!("{name}: not measured"));
            }
        }
        ensure!(
            faults.is_empty(),
            "the costs exceed {FILE}, with {TOLERANCE} % more instructions allowed:\n{}\n\
             if that is meant: `cargo xtask bench --instructions --bless`",
            faults.join("\n")
        );
        let (change, name) = most;
        let mut told = format!("{} loops, the most {change:+.1} % ({name})", measured.len());
        if !cheaper.is_empty() {
            let _ = write!(
                told,
                "; cheaper, update the counts with --bless: {}",
                cheaper.join(", ")
            );
        }
        Ok(told)
    }
}

/// `"NAME" = { instructions = N, allocations = N }`
fn parse_line(line: &str) -> Option<(&str, LoopCost)> {
    let (name, counts) = line
        .strip_prefix('"')?
        .split_once("\" = { instructions = ")?;
    let (instructions, rest) = counts.split_once(", allocations = ")?;
    let cost = LoopCost {
        instructions: instructions.parse().ok()?,
        allocations: rest.strip_suffix(" }")?.parse().ok()?,
    };
    Some((name, cost))
}

fn counts_path() -> PathBuf {
    workspace_root().join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn cost(instructions: u64, allocations: u64) -> LoopCost {
        LoopCost {
            instructions,
            allocations,
        }
    }

    fn counts() -> CommittedCounts {
        let mut counts = CommittedCounts::default();
        counts.replace_platform(
            "x-y",
            &[("seal 1", cost(1000, 7)), ("open 1", cost(2000, 0))],
        );
        counts
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(
            CommittedCounts::parse(&counts().to_toml()).unwrap(),
            counts()
        );
        for bad in ["'c'", "-1", "1", "{ instructions = 1 }"] {
            assert!(
                CommittedCounts::parse(&format!("[a]\nb = {bad}\n")).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn ten_per_cent_more_are_too_many_and_one_allocation_is() {
        let judge = |seal, open| counts().compare("x-y", &[("seal 1", seal), ("open 1", open)]);
        assert_eq!(
            judge(cost(1000, 7), cost(2100, 0)).unwrap(),
            "2 loops, the most +5.0 % (open 1)"
        );
        assert!(judge(cost(1100, 6), cost(2000, 0)).is_ok());
        let why = judge(cost(1101, 7), cost(2000, 1)).unwrap_err().to_string();
        assert!(
            why.contains("seal 1: 1000 → 1101 instructions (+10.1 %)"),
            "{why}"
        );
        assert!(why.contains("open 1: 0 → 1 allocations"), "{why}");
        let told = judge(cost(800, 7), cost(2000, 0)).unwrap();
        assert!(told.contains("cheaper"), "{told}");
    }

    #[test]
    fn a_loop_missing_on_either_side_is_a_fault() {
        let judge = |measured: &[(&str, LoopCost)]| {
            counts().compare("x-y", measured).unwrap_err().to_string()
        };
        assert!(judge(&[("seal 1", cost(1000, 7))]).contains("open 1: not measured"));
        let more = [("seal 1", cost(1000, 7)), ("z", cost(1, 1))];
        assert!(judge(&more).contains("z: new loop"));
    }

    #[test]
    fn another_platform_is_not_compared() {
        let told = counts()
            .compare("arm", &[("seal 1", cost(9999, 9))])
            .unwrap();
        assert!(told.starts_with("nothing compared"), "{told}");
    }

    #[test]
    fn the_committed_file_is_one_of_ours() {
        let text = fs::read_to_string(counts_path()).unwrap();
        assert_eq!(CommittedCounts::parse(&text).unwrap().to_toml(), text);
    }
}
