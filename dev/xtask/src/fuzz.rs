//! `fuzz`: coverage-guided fuzzing on a stable toolchain, without cargo-fuzz.
//!
//! rustc's own coverage pass feeds libFuzzer. The flags below are those that cargo-fuzz passes,
//! except for the address sanitizer, which needs nightly. `--target` keeps them off build scripts.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::command::{CommandRun, root, target_dir};
use crate::package_graph::host_triple;
use crate::source_files::file_stems;
use crate::steps::StepRunner;

const RUSTFLAGS: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    --cfg fuzzing -Cdebug-assertions -Ccodegen-units=1";

/// Minimum number of blocks that a run must reach beyond those that any input reaches: a target
/// built without feedback reports none at all.
const LEAST_COVERAGE: u64 = 20;

/// The arguments of `fuzz`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FuzzOptions {
    seconds: u32,
    target: Option<String>,
}

impl FuzzOptions {
    /// Selects every target, for `seconds` each.
    pub(crate) fn all_targets(seconds: u32) -> Self {
        Self {
            seconds,
            target: None,
        }
    }

    pub(crate) fn from_args(args: &[String]) -> Result<Self> {
        let mut wish = Self::all_targets(60);
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if arg == "--seconds" {
                let value = args.next().context("`--seconds` needs a number")?;
                wish.seconds = value.parse().context("`--seconds` needs a number")?;
            } else if arg.starts_with('-') || wish.target.is_some() {
                bail!("`fuzz` takes `--seconds N` and one target, not `{arg}`");
            } else {
                wish.target = Some(arg.clone());
            }
        }
        Ok(wish)
    }
}

/// Builds the targets, then runs each as a separate step.
pub(crate) fn run(steps: &mut StepRunner, wish: &FuzzOptions) {
    let mut binaries = PathBuf::new();
    let built = steps.run_step("fuzz build", || {
        binaries = build_targets()?;
        Ok(String::new())
    });
    if !built {
        return;
    }
    match select_targets(wish.target.as_deref()) {
        Ok(targets) => {
            let names: Vec<_> = targets.iter().map(|name| format!("fuzz {name}")).collect();
            steps.run_parallel(&names, |name| {
                let target = name.trim_start_matches("fuzz ");
                run_target(&binaries, target, wish.seconds)
            });
        }
        Err(why) => {
            steps.run_step("fuzz targets", || Err(why));
        }
    }
}

/// Builds the targets, which a later run does not do again.
pub(crate) fn build_all() -> Result<String> {
    build_targets().map(|_| String::new())
}

/// Builds the targets and returns their folder.
fn build_targets() -> Result<PathBuf> {
    let triple = host_triple()?;
    let folder = target_dir().join("fuzz");
    CommandRun::cargo([
        "build",
        "--release",
        "--bins",
        "--target",
        &triple,
        "--manifest-path",
    ])
    .args([root().join("fuzz/Cargo.toml")])
    .env("RUSTFLAGS", RUSTFLAGS)
    .env("CARGO_TARGET_DIR", &folder)
    .with_limit(20)
    .run_captured("fuzz-build")?;
    Ok(folder.join(triple).join("release"))
}

/// Returns the requested target, or all of them in the order of their file names.
fn select_targets(wish: Option<&str>) -> Result<Vec<String>> {
    let names = file_stems(&root().join("fuzz/targets"), "rs")?;
    match wish {
        None => Ok(names),
        Some(one) if names.iter().any(|name| name == one) => Ok(vec![one.to_owned()]),
        Some(other) => bail!(
            "unknown fuzz target `{other}`; the targets are {}",
            names.join(", ")
        ),
    }
}

fn run_target(binaries: &Path, target: &str, seconds: u32) -> Result<String> {
    let seeds = root().join("fuzz/corpus").join(target);
    ensure!(seeds.is_dir(), "no seed corpus in {}", seeds.display());
    // libFuzzer adds its findings to its first folder, which therefore is not the committed one.
    let grown = target_dir().join("fuzz/corpus").join(target);
    let artifacts = root().join("fuzz/artifacts").join(target);
    fs::create_dir_all(&grown)?;
    fs::create_dir_all(&artifacts)?;
    let told = CommandRun::new(binaries.join(target), Vec::<String>::new())
        .args([&grown, &seeds])
        .args([
            format!("-max_total_time={seconds}"),
            format!("-artifact_prefix={}/", artifacts.display()),
        ])
        .args([
            "-rss_limit_mb=512",
            "-timeout=10",
            "-print_final_stats=1",
            "-max_len=8192",
        ])
        .env("RUST_BACKTRACE", "0")
        .with_limit(2 + u64::from(seconds) / 30)
        .run_captured(&format!("fuzz-{target}"))?;
    let outcome = FuzzOutcome::parse(&told).context("libFuzzer reported no coverage")?;
    ensure!(
        outcome.covered >= LEAST_COVERAGE,
        "only {} blocks are covered: the target was built without coverage feedback",
        outcome.covered
    );
    Ok(outcome.to_string())
}

/// The figures that libFuzzer reports at the end.
#[derive(Debug, PartialEq, Eq)]
struct FuzzOutcome {
    first: u64,
    covered: u64,
    runs: u64,
}

impl FuzzOutcome {
    fn parse(output: &str) -> Option<Self> {
        let after = |line: &str, word: &str| -> Option<u64> {
            let (_, rest) = line.split_once(word)?;
            rest.split_whitespace().next()?.parse().ok()
        };
        let mut seen = output.lines().filter_map(|line| after(line, " cov: "));
        let first = seen.next()?;
        Some(Self {
            first,
            covered: seen.next_back().unwrap_or(first),
            runs: output
                .lines()
                .find_map(|line| after(line, "number_of_executed_units:"))?,
        })
    }
}

impl std::fmt::Display for FuzzOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} runs, coverage {} to {}",
            self.runs, self.first, self.covered
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_libfuzzer_is_read() {
        let output = "#2\tINITED cov: 31 ft: 33 corp: 1/1b\n#77\tNEW    cov: 58 ft: 70\n\
            #900\tDONE   cov: 61 ft: 80\nstat::number_of_executed_units: 900\n";
        let outcome = FuzzOutcome {
            first: 31,
            covered: 61,
            runs: 900,
        };
        assert_eq!(FuzzOutcome::parse(output), Some(outcome));
        assert_eq!(
            FuzzOutcome::parse("INFO: no interesting inputs were found"),
            None
        );
    }

    #[test]
    fn wishes_are_read() {
        let words = |args: &[&str]| {
            FuzzOptions::from_args(&args.iter().map(|&s| s.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(words(&[]).unwrap(), FuzzOptions::all_targets(60));
        let wish = FuzzOptions {
            seconds: 5,
            target: Some("socks_addr".to_owned()),
        };
        assert_eq!(words(&["--seconds", "5", "socks_addr"]).unwrap(), wish);
        assert!(words(&["--seconds"]).is_err() && words(&["a", "b"]).is_err());
    }

    #[test]
    fn an_unknown_target_is_told_the_known_ones() {
        let why = select_targets(Some("nothing")).unwrap_err().to_string();
        assert!(why.contains("socks_addr"), "{why}");
    }

    #[test]
    fn every_target_has_a_seed() {
        for target in select_targets(None).unwrap() {
            let seeds = fs::read_dir(root().join("fuzz/corpus").join(&target));
            assert!(
                seeds.is_ok_and(|mut files| files.next().is_some()),
                "{target}"
            );
        }
    }
}
