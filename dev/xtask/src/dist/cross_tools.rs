//! The tools of a cross build: a C compiler and linker for every target, and standard libraries.
//!
//! Zig compiles C for all targets and has the C libraries with it; the Python registry has it and
//! cargo-zigbuild as packages, so one command installs both, without root, below `target`.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::command::{CommandRun, find_program, target_dir};

/// The packages of the Python registry, with their versions.
const PYTHON_TOOLS: [(&str, &str); 2] = [("ziglang", "0.17.1"), ("cargo-zigbuild", "0.24.1")];

/// An installed cross compiler.
#[derive(Debug)]
pub(crate) struct CrossTools {
    /// The folder of the virtual environment's programs.
    programs: PathBuf,
}

impl CrossTools {
    /// Installs what is missing.
    ///
    /// # Errors
    ///
    /// Python is missing, or its registry cannot be reached.
    pub(crate) fn install() -> Result<Self> {
        let folder = target_dir().join("cross");
        let tools = Self {
            programs: folder.join("bin"),
        };
        let names = PYTHON_TOOLS.map(|(name, version)| format!("{name}=={version}"));
        let mark = folder.join(format!("{}.stamp", names.join("-")));
        if mark.is_file() && tools.programs.join("cargo-zigbuild").is_file() {
            return Ok(tools);
        }
        ensure!(
            find_program("python3").is_some(),
            "cannot find `python3`, which installs the cross compiler (Debian package python3-venv)"
        );
        CommandRun::new("python3", ["-m", "venv"])
            .args([&folder])
            .run_captured("install-cross")
            .context("`python3 -m venv` failed; Debian has it in python3-venv")?;
        CommandRun::new(tools.programs.join("python"), ["-m", "pip", "install"])
            .args(["--quiet", "--only-binary", ":all:"])
            .args(&names)
            .with_limit(10)
            .run_captured("install-cross-tools")?;
        fs::write(&mark, "")?;
        Ok(tools)
    }

    /// Returns a PATH on which cargo finds cargo-zigbuild, and cargo-zigbuild the Python that has
    /// Zig.
    fn path(&self) -> Result<OsString> {
        let path = env::var_os("PATH").unwrap_or_default();
        let all = [self.programs.clone()]
            .into_iter()
            .chain(env::split_paths(&path));
        env::join_paths(all).context("PATH")
    }

    /// Returns a command of cargo-zigbuild that cargo itself has too, for example `check`, with the
    /// cross compiler for C code.
    pub(crate) fn cargo_zigbuild(&self, command: &str) -> Result<CommandRun> {
        let zigbuild = self.programs.join("cargo-zigbuild");
        Ok(CommandRun::new(zigbuild, [command]).env("PATH", self.path()?))
    }

    /// Returns a command that builds with the cross compiler, and links with it.
    pub(crate) fn cargo_build(&self) -> Result<CommandRun> {
        Ok(CommandRun::cargo(["zigbuild"]).env("PATH", self.path()?))
    }
}

/// Installs the standard library of `target` for the Rust that runs this program.
///
/// # Errors
///
/// rustup is missing, or has no standard library for the target.
pub(crate) fn install_standard_library(target: &str) -> Result<()> {
    if has_standard_library(target)? {
        return Ok(());
    }
    ensure!(
        find_program("rustup").is_some(),
        "this Rust has no standard library for {target}, and there is no `rustup` to add it"
    );
    CommandRun::new("rustup", ["target", "add", target])
        .run_captured(&format!("rustup-target-{target}"))?;
    ensure!(
        has_standard_library(target)?,
        "`rustup target add {target}` has added no standard library to the Rust that runs this program"
    );
    Ok(())
}

/// Returns true if the active toolchain has a standard library for `target`.
fn has_standard_library(target: &str) -> Result<bool> {
    let query = ["--print", "target-libdir", "--target", target];
    let folder = CommandRun::new("rustc", query).run_captured("target-libdir")?;
    Ok(PathBuf::from(folder.trim()).is_dir())
}
