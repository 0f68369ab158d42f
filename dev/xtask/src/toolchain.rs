//! Rust toolchains of fixed versions, in a `RUSTUP_HOME` of their own below `target`.
//!
//! They are downloaded once. The developer's own toolchains, settings and rustup stay unchanged.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::command::{CommandRun, find_program, root};
use crate::package_graph::host_triple;

/// The version whose rustdoc writes the format that [`crate::public_api`] reads.
pub(crate) const API_VERSION: &str = "1.95.0";
/// Targets without a standard library: a processor without atomic 64-bit integers, and one with
/// the same instruction set as a server's.
pub(crate) const BARE_TARGETS: [&str; 2] = ["thumbv7em-none-eabi", "x86_64-unknown-none"];

/// An installed toolchain.
#[derive(Debug)]
pub(crate) struct Toolchain {
    /// Its version; `None` for the toolchain that runs this program.
    version: Option<String>,
}

impl Toolchain {
    /// Returns the toolchain that runs this program if it has `version`, or else a private one.
    ///
    /// # Errors
    ///
    /// rustup is missing, or cannot download the toolchain.
    pub(crate) fn active_or_private(version: &str) -> Result<Self> {
        let told = CommandRun::new("rustc", ["-V"]).run_captured("rustc-short-version")?;
        match told.split_whitespace().nth(1) == Some(version) {
            true => Ok(Self { version: None }),
            false => Self::private(version, &[]),
        }
    }

    /// Returns a private toolchain with these additional targets, installing what is missing.
    ///
    /// # Errors
    ///
    /// rustup is missing, or cannot download the toolchain.
    pub(crate) fn private(version: &str, targets: &[&str]) -> Result<Self> {
        let folder = rustup_home()
            .join("toolchains")
            .join(format!("{version}-{}", host_triple()?));
        let missing = missing_targets(&folder, targets);
        if !folder.join("bin/rustc").is_file() || !missing.is_empty() {
            install(version, &missing)?;
        }
        let missing = missing_targets(&folder, targets);
        ensure!(
            missing.is_empty() && folder.join("bin/rustc").is_file(),
            "rustup installed no complete toolchain in {}",
            folder.display()
        );
        let version = Some(version.to_owned());
        Ok(Self { version })
    }

    /// Creates a cargo command of this toolchain.
    pub(crate) fn cargo(&self, args: &[&str]) -> CommandRun {
        match &self.version {
            None => CommandRun::cargo(args),
            Some(version) => CommandRun::new("rustup", ["run", version, "cargo"])
                .args(args)
                .env("RUSTUP_HOME", rustup_home()),
        }
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            None => write!(f, "this Rust"),
            Some(version) => write!(f, "Rust {version}"),
        }
    }
}

/// Returns the folder of the private toolchains.
fn rustup_home() -> PathBuf {
    root().join("target/rustup")
}

/// Returns the targets whose standard or core library the toolchain lacks.
fn missing_targets<'a>(toolchain: &Path, targets: &[&'a str]) -> Vec<&'a str> {
    let libraries = toolchain.join("lib/rustlib");
    let missing = |target: &&&str| !libraries.join(target).join("lib").is_dir();
    targets.iter().filter(missing).copied().collect()
}

fn install(version: &str, targets: &[&str]) -> Result<()> {
    ensure!(
        find_program("rustup").is_some(),
        "cannot find `rustup`, which installs Rust {version} below target"
    );
    fs::create_dir_all(rustup_home())?;
    // rustup is shared with the developer's own toolchains: it must not update itself here.
    let mut args = vec!["toolchain", "install", version, "--profile", "minimal"];
    args.push("--no-self-update");
    for target in targets {
        args.extend(["--target", target]);
    }
    CommandRun::new("rustup", args)
        .env("RUSTUP_HOME", rustup_home())
        .with_limit(10)
        .run_captured(&format!("rustup-{version}"))
        .with_context(|| format!("cannot install Rust {version}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_without_its_library_is_missing() {
        let folder = std::env::temp_dir().join(format!("adit-toolchain-{}", std::process::id()));
        fs::create_dir_all(folder.join("lib/rustlib/there/lib")).unwrap();
        let missing = missing_targets(&folder, &["there", "absent"]);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(missing, ["absent"]);
    }

    #[test]
    fn a_private_toolchain_runs_below_target() {
        let version = Some("1.2.3".to_owned());
        let run = Toolchain { version }.cargo(&["check"]).to_string();
        assert_eq!(run, "`rustup run 1.2.3 cargo check`");
    }
}
