//! The tools of a cross build: a C compiler and linker for every target, standard libraries and
//! emulators.
//!
//! Zig compiles C for all targets and has the C libraries with it; the Python registry has it and
//! cargo-zigbuild as packages, so one command installs both, without root, below `target`.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::target::DistTarget;
use crate::command::{CommandRun, find_program, target_dir};
use crate::install;

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
    pub(crate) fn path(&self) -> Result<OsString> {
        let path = env::var_os("PATH").unwrap_or_default();
        let all = [self.programs.clone()]
            .into_iter()
            .chain(env::split_paths(&path));
        env::join_paths(all).context("PATH")
    }
}

/// The toolchain that has, or builds, the standard library of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StandardLibrary {
    /// The compiled one of the Rust that runs this program.
    Compiled,
    /// Built from source, which only nightly does.
    FromSource,
}

impl StandardLibrary {
    /// Installs the standard library of `target` for the active toolchain, or what builds it if
    /// rustup has none.
    pub(crate) fn install(target: &str) -> Result<Self> {
        if has_compiled_library(target)? {
            return Ok(Self::Compiled);
        }
        ensure!(
            find_program("rustup").is_some(),
            "this Rust has no standard library for {target}, and there is no `rustup` to add it"
        );
        let add = CommandRun::new("rustup", ["target", "add", target]);
        // It has none for some targets; the log says why.
        let added = add.run_captured(&format!("rustup-target-{target}"));
        if added.is_ok() && has_compiled_library(target)? {
            return Ok(Self::Compiled);
        }
        let source = CommandRun::new("rustup", ["run", "nightly", "rustc", "--print", "sysroot"]);
        let sysroot = source.run_captured("nightly-sysroot").unwrap_or_default();
        let library = PathBuf::from(sysroot.trim()).join("lib/rustlib/src/rust/library");
        if !library.is_dir() {
            CommandRun::new("rustup", ["toolchain", "install", "nightly"])
                .args([
                    "--profile",
                    "minimal",
                    "--component",
                    "rust-src",
                    "--no-self-update",
                ])
                .run_captured("rustup-nightly")
                .with_context(|| {
                    format!(
                        "rustup has no standard library for {target}, and no nightly to build it"
                    )
                })?;
        }
        Ok(Self::FromSource)
    }

    /// Returns a cargo command of the toolchain, for example `zigbuild`.
    pub(crate) fn cargo(self, command: &str) -> CommandRun {
        match self {
            Self::Compiled => CommandRun::cargo([command]),
            Self::FromSource => {
                let cargo = ["run", "nightly", "cargo", command, "-Z"];
                CommandRun::new("rustup", cargo).args(["build-std=std,panic_unwind"])
            }
        }
    }

    /// Returns a command of cargo-zigbuild that cargo itself has too, for example `check`, with the
    /// cross compiler for C code.
    pub(crate) fn cargo_zigbuild(self, tools: &CrossTools, command: &str) -> CommandRun {
        let zigbuild = tools.programs.join("cargo-zigbuild");
        match self {
            Self::Compiled => CommandRun::new(zigbuild, [command]),
            // The cargo that runs this program is of another toolchain.
            Self::FromSource => CommandRun::new("rustup", ["run", "nightly"])
                .args([zigbuild])
                .args([command, "-Z", "build-std=std,panic_unwind"])
                .env("CARGO", "cargo"),
        }
    }

    /// Returns a rustc command of the toolchain.
    pub(crate) fn rustc(self) -> CommandRun {
        match self {
            Self::Compiled => CommandRun::new("rustc", [""; 0]),
            Self::FromSource => CommandRun::new("rustup", ["run", "nightly", "rustc"]),
        }
    }
}

/// Returns true if the active toolchain has a compiled standard library for `target`.
fn has_compiled_library(target: &str) -> Result<bool> {
    let query = ["--print", "target-libdir", "--target", target];
    let folder = CommandRun::new("rustc", query).run_captured("target-libdir")?;
    Ok(PathBuf::from(folder.trim()).is_dir())
}

/// Installs the emulator of a target, if it needs one.
pub(crate) fn install_emulator(target: DistTarget) -> Result<Option<PathBuf>> {
    let Some(name) = target.emulator() else {
        return Ok(None);
    };
    install::install_tools(&[(name, "qemu-user-static")])?;
    match find_program(name) {
        Some(path) => Ok(Some(path)),
        None => bail!(
            "cannot find `{name}`, which runs programs of {}",
            target.triple
        ),
    }
}
