//! Package descriptions that consist of addresses and sums alone: Homebrew, Nix, Scoop and winget.

use std::fs;
use std::path::Path;

use anyhow::Result;

use super::source::PackageSource;
use super::template::{self, Values};

/// The target that Scoop and winget install, on every processor: Windows for ARM runs it too.
const WINDOWS: &str = "x86_64-pc-windows-gnu";

/// Targets whose archives Homebrew and Nix install, each with the name of its sum.
const UNIX: [(&str, &str); 4] = [
    ("SUM_LINUX_INTEL", "x86_64-unknown-linux-musl"),
    ("SUM_LINUX_ARM", "aarch64-unknown-linux-musl"),
    ("SUM_MACOS_INTEL", "x86_64-apple-darwin"),
    ("SUM_MACOS_ARM", "aarch64-apple-darwin"),
];

/// Writes a formula.
pub(super) fn build_homebrew(source: &PackageSource, output: &Path) -> Result<String> {
    write(output, "homebrew", "adit.rb", &unix_values(source)?)
}

/// Writes a flake.
pub(super) fn build_nix(source: &PackageSource, output: &Path) -> Result<String> {
    write(output, "nix", "flake.nix", &unix_values(source)?)
}

/// Writes a manifest.
pub(super) fn build_scoop(source: &PackageSource, output: &Path) -> Result<String> {
    let mut values = source.values();
    values.set("WINDOWS", WINDOWS);
    values.set("SUM_WINDOWS", source.archives.sum(WINDOWS)?);
    write(output, "scoop", "adit.json", &values)
}

/// Writes the three manifests of a version.
pub(super) fn build_winget(source: &PackageSource, output: &Path) -> Result<String> {
    let mut values = source.values();
    let sum = source.archives.sum(WINDOWS)?.to_uppercase();
    values.set("WINDOWS", WINDOWS);
    values.set("SUM_WINDOWS_UPPER", sum);
    values.set("DATE_ISO", source.release.format_time("+%Y-%m-%d")?);
    for (template, name) in [
        ("version.yaml", "adit.adit.yaml"),
        ("installer.yaml", "adit.adit.installer.yaml"),
        ("locale.en-US.yaml", "adit.adit.locale.en-US.yaml"),
    ] {
        let text = template::fill(&format!("winget/{template}"), &values)?;
        fs::write(output.join(name), text)?;
    }
    Ok("3 manifests".to_owned())
}

fn unix_values(source: &PackageSource) -> Result<Values> {
    let mut values = source.values();
    for (name, target) in UNIX {
        values.set(name, source.archives.sum(target)?);
    }
    Ok(values)
}

fn write(output: &Path, folder: &str, name: &str, values: &Values) -> Result<String> {
    let text = template::fill(&format!("{folder}/{name}"), values)?;
    fs::write(output.join(name), text)?;
    Ok(name.to_owned())
}
