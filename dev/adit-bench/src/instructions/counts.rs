//! The committed counts: a table for each platform, a line for each loop.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::places::root;

const FILE: &str = "dev/adit-bench/instructions.toml";

const PREFACE: &str = "\
# Instructions of one turn of each hot loop, counted by valgrind, by platform.
# Written by `cargo xtask bench --instructions --bless`; `cargo xtask test` compares.
";

/// What a count may be over the committed one, in per cent: above the noise of other versions of
/// the compiler and the C library.
const TOLERANCE: u64 = 10;

/// Counts by platform and loop.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    platforms: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Counts {
    /// Reads the committed ones; none if there is no file.
    pub(super) fn load() -> Result<Self> {
        match fs::read_to_string(path()) {
            Ok(text) => Self::parse(&text).context(FILE),
            Err(_) => Ok(Self::default()),
        }
    }

    fn parse(text: &str) -> Result<Self> {
        let mut counts = Self::default();
        for (platform, table) in text.parse::<toml::Table>()? {
            let table = table.as_table().with_context(|| platform.clone())?;
            let one = |(name, count): (&String, &toml::Value)| {
                let count = count.as_integer().and_then(|n| u64::try_from(n).ok());
                Ok((name.clone(), count.with_context(|| name.clone())?))
            };
            let lines = table.iter().map(one).collect::<Result<_>>()?;
            counts.platforms.insert(platform, lines);
        }
        Ok(counts)
    }

    /// Replaces those of a platform.
    pub(super) fn set(&mut self, platform: &str, measured: &[(&str, u64)]) {
        let lines = measured
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count));
        self.platforms.insert(platform.to_owned(), lines.collect());
    }

    /// Writes the file.
    pub(super) fn save(&self) -> Result<()> {
        fs::write(path(), self.text()).context(FILE)
    }

    fn text(&self) -> String {
        let mut out = PREFACE.to_owned();
        for (platform, lines) in &self.platforms {
            let _ = write!(out, "\n[{platform}]\n");
            for (name, count) in lines {
                let _ = writeln!(out, "\"{name}\" = {count}");
            }
        }
        out
    }

    /// One line about all of them; an error names the loops that have become dearer, or are
    /// missing here or there.
    pub(super) fn compare(&self, platform: &str, measured: &[(&str, u64)]) -> Result<String> {
        let Some(lines) = self.platforms.get(platform) else {
            return Ok(format!(
                "nothing compared: {FILE} has no counts for {platform}"
            ));
        };
        let mut faults = Vec::new();
        let mut cheaper = Vec::new();
        let mut most = (f64::NEG_INFINITY, "");
        for &(name, count) in measured {
            let Some(committed) = lines.get(name) else {
                faults.push(format!("{name}: it is new"));
                continue;
            };
            let change = (count as f64 / (*committed).max(1) as f64 - 1.0) * 100.0;
            if change > most.0 {
                most = (change, name);
            }
            if count * 100 > committed * (100 + TOLERANCE) {
                faults.push(format!("{name}: {committed} → {count} ({change:+.1} %)"));
            } else if count * 100 < committed * (100 - TOLERANCE) {
                cheaper.push(format!("{name} ({change:+.1} %)"));
            }
        }
        for name in lines.keys() {
            if !measured.iter().any(|(known, _)| known == name) {
                faults.push(format!("{name}: it is gone"));
            }
        }
        ensure!(
            faults.is_empty(),
            "instructions differ from {FILE}, {TOLERANCE} % more are allowed:\n{}\n\
             if that is meant: `cargo xtask bench --instructions --bless`",
            faults.join("\n")
        );
        let (change, name) = most;
        let mut told = format!("{} loops, the most {change:+.1} % ({name})", measured.len());
        if !cheaper.is_empty() {
            let _ = write!(told, "; cheaper, so --bless is due: {}", cheaper.join(", "));
        }
        Ok(told)
    }
}

fn path() -> PathBuf {
    root().join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Counts {
        let mut counts = Counts::default();
        counts.set("x-y", &[("seal 1", 1000), ("open 1", 2000)]);
        counts
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(Counts::parse(&counts().text()).unwrap(), counts());
        assert!(Counts::parse("[a]\nb = 'c'\n").is_err());
        assert!(Counts::parse("[a]\nb = -1\n").is_err());
    }

    #[test]
    fn ten_per_cent_more_are_too_many() {
        let judge = |seal, open| counts().compare("x-y", &[("seal 1", seal), ("open 1", open)]);
        assert_eq!(
            judge(1000, 2100).unwrap(),
            "2 loops, the most +5.0 % (open 1)"
        );
        assert!(judge(1100, 2000).is_ok());
        let why = judge(1101, 2000).unwrap_err().to_string();
        assert!(why.contains("seal 1: 1000 → 1101 (+10.1 %)"), "{why}");
        assert!(judge(800, 2000).unwrap().contains("cheaper"));
    }

    #[test]
    fn a_loop_missing_on_either_side_is_a_fault() {
        let judge =
            |measured: &[(&str, u64)]| counts().compare("x-y", measured).unwrap_err().to_string();
        assert!(judge(&[("seal 1", 1000)]).contains("open 1: it is gone"));
        let more = [("seal 1", 1000), ("open 1", 2000), ("z", 1)];
        assert!(judge(&more).contains("z: it is new"));
    }

    #[test]
    fn another_platform_is_not_compared() {
        let told = counts().compare("arm", &[("seal 1", 9999)]).unwrap();
        assert!(told.starts_with("nothing compared"), "{told}");
    }

    #[test]
    fn the_committed_file_is_one_of_ours() {
        let text = fs::read_to_string(path()).unwrap();
        assert_eq!(Counts::parse(&text).unwrap().text(), text);
    }
}
