//! Builds of `adit` that leave features out.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::command::CommandRun;

/// The crate whose features a build selects.
const PROGRAM: &str = "adit";
/// The crates that know what is left out, and parts of the names of their tests about it.
const KNOWING: [&str; 3] = ["adit-shadowsocks", "adit-config", "adit-commands"];
const TESTS: [&str; 2] = ["left_out", "features::"];

/// Checks the build without features, and with each of them alone, and tests what a build says about those that it
/// leaves out: here that of libraries, all in one build, and that of the program in
/// [`release_check`](crate::release_check).
pub(crate) fn check_features() -> Result<String> {
    let features = program_features()?;
    for feature in &features {
        // Not clippy: what depends on features are unused imports and functions, of which the compiler warns in half of
        // the time.
        let said = CommandRun::cargo(["check", "--package", PROGRAM, "--no-default-features"])
            .args(["--features", feature])
            .with_limit(10)
            .run_captured(&format!("feature-{feature}"))?;
        ensure!(
            !said.contains("warning: "),
            "with the feature {feature} alone:\n{said}"
        );
    }
    let packages = KNOWING.map(|package| ["--package", package]);
    let said = CommandRun::cargo(["test", "--no-default-features", "--lib"])
        .args(packages.as_flattened())
        .args(["--"])
        .args(TESTS)
        .with_limit(15)
        .run_captured("left-out")?;
    ensure!(
        said.matches("running ").count() == KNOWING.len() && !said.contains("running 0 tests"),
        "one of {} has no tests `{}`:\n{said}",
        KNOWING.join(", "),
        TESTS.join("`, `")
    );
    Ok(format!("{} features, each alone", features.len()))
}

/// Returns the features of the program, `minimal` among them.
fn program_features() -> Result<Vec<String>> {
    let text = CommandRun::cargo(["metadata", "--format-version=1", "--no-deps"])
        .env("CARGO_TERM_QUIET", "true")
        .run_captured("features")?;
    let json = text.lines().find(|line| line.starts_with('{'));
    parse_features(json.context("cargo metadata printed no object")?)
}

fn parse_features(json: &str) -> Result<Vec<String>> {
    let all: Value = serde_json::from_str(json)?;
    let mut packages = all["packages"].as_array().into_iter().flatten();
    let program = packages.find(|package| package["name"] == PROGRAM);
    let features = program.and_then(|program| program["features"].as_object());
    let names = features
        .with_context(|| format!("no package {PROGRAM}"))?
        .keys();
    Ok(names.filter(|name| *name != "default").cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_those_of_the_program() {
        let json = r#"{"packages": [
            {"name": "other", "features": {"x": []}},
            {"name": "adit", "features": {"default": ["ssh"], "minimal": [], "ssh": ["a/ssh"]}}
        ]}"#;
        assert_eq!(parse_features(json).unwrap(), ["minimal", "ssh"]);
        assert!(parse_features("{}").is_err());
    }
}
