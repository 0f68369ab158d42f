//! Checks with the oldest Rust that `rust-version` promises: of all libraries and the program, and
//! of the cores that need no standard library on targets that have none.

use std::fs;

use anyhow::{Context, Result};

use crate::command::{CommandRun, root, target_dir};
use crate::package_graph::PackageGraph;
use crate::toolchain::{BARE_TARGETS, Toolchain};
use crate::windows;

/// The libraries without a standard library, if their default features are off.
const BARE_LIBRARIES: &[&str] = &[
    "adit-fec",
    "adit-kcp-proto",
    "adit-smux-proto",
    "adit-socks",
    "adit-umac",
    "adit-wire",
];

/// Checks the libraries with all features, and the program.
pub(crate) fn check_msrv() -> Result<String> {
    let graph = PackageGraph::load()?;
    let toolchain = install()?;
    cargo(&toolchain, "check")
        .args(["--all-features", "--package", "adit"])
        .args(graph.libraries().flat_map(|name| ["--package", name]))
        .run_captured("msrv")?;
    let libraries = graph.libraries().count();
    Ok(format!(
        "Rust {}, {libraries} libraries and adit",
        version()?
    ))
}

/// Checks the cores on each target without a standard library.
pub(crate) fn check_no_std() -> Result<String> {
    let toolchain = install()?;
    for target in BARE_TARGETS {
        cargo(&toolchain, "check")
            .args(["--lib", "--no-default-features", "--target", target])
            .args(BARE_LIBRARIES.iter().flat_map(|name| ["--package", name]))
            .run_captured(&format!("no-std-{target}"))?;
    }
    let (libraries, targets) = (BARE_LIBRARIES.len(), BARE_TARGETS.join(", "));
    Ok(format!("{libraries} libraries on {targets}"))
}

/// Installs the toolchain of these checks with its targets, if it is missing.
pub(crate) fn install() -> Result<Toolchain> {
    let mut targets = BARE_TARGETS.to_vec();
    targets.push(windows::TARGET);
    Toolchain::private(&version()?, &targets)
}

/// Creates a command of cargo with its own build folder: another version of Rust shares nothing with
/// the developer's.
pub(crate) fn cargo(toolchain: &Toolchain, command: &str) -> CommandRun {
    toolchain
        .cargo(&[command, "--locked"])
        // Build scripts and macros run once: optimizing them, and the C code of aws-lc, would take
        // most of the time.
        .args(["--config", "profile.dev.package.'*'.opt-level=0"])
        .env("CARGO_TARGET_DIR", target_dir().join("msrv"))
        .with_limit(20)
}

/// Returns the version of the workspace's `rust-version`, with its patch number.
fn version() -> Result<String> {
    let text = fs::read_to_string(root().join("Cargo.toml")).context("Cargo.toml")?;
    parse_version(&text)
}

fn parse_version(manifest: &str) -> Result<String> {
    let table: toml::Table = toml::from_str(manifest)?;
    let version = table
        .get("workspace")
        .and_then(|workspace| workspace.get("package")?.get("rust-version")?.as_str())
        .context("Cargo.toml: `workspace.package.rust-version` is missing")?;
    Ok(match version.matches('.').count() {
        1 => format!("{version}.0"),
        _ => version.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_has_three_numbers() {
        let of = |version: &str| {
            parse_version(&format!(
                "[workspace.package]\nrust-version = \"{version}\""
            ))
        };
        assert_eq!(of("1.89").unwrap(), "1.89.0");
        assert_eq!(of("1.89.1").unwrap(), "1.89.1");
        assert!(parse_version("[workspace]").is_err());
    }
}
