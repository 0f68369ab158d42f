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

    /// Returns `cargo check` for a target of Android. Zig has no C headers of it: those of musl are enough where
    /// nothing is linked.
    pub(crate) fn cargo_check_android(&self, triple: &str) -> CommandRun {
        let (processor, _) = triple.split_once('-').unwrap_or((triple, ""));
        let zig = format!("{} -m ziglang", self.programs.join("python").display());
        let name = triple.replace('-', "_");
        CommandRun::cargo(["check"])
            .env(
                &format!("CC_{name}"),
                format!("{zig} cc -target {processor}-linux-musl -D_GNU_SOURCE"),
            )
            .env(&format!("AR_{name}"), format!("{zig} ar"))
            // The default flags name the target.
            .env("CRATE_CC_NO_DEFAULTS", "1")
    }

    /// Returns a command that builds with the cross compiler, and links with it unless the flags name another linker.
    pub(crate) fn cargo_build(&self) -> Result<CommandRun> {
        Ok(CommandRun::cargo(["zigbuild"]).env("PATH", self.path()?))
    }
}

/// The standard library of a target for the Rust that runs this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StandardLibrary {
    /// The compiled one of the toolchain.
    Compiled,
    /// Its source, which is compiled together with what is checked: rustup has no compiled one.
    Source,
}

impl StandardLibrary {
    /// Installs the standard library of `target`, or its source if rustup has none.
    ///
    /// # Errors
    ///
    /// rustup is missing, or has neither.
    pub(crate) fn install(target: &str) -> Result<Self> {
        if has_standard_library(target)? {
            return Ok(Self::Compiled);
        }
        ensure!(
            find_program("rustup").is_some(),
            "this Rust has no standard library for {target}, and there is no `rustup` to add it"
        );
        let add = CommandRun::new("rustup", ["target", "add", target]);
        let added = add.run_captured(&format!("rustup-target-{target}"));
        if added.is_ok() && has_standard_library(target)? {
            return Ok(Self::Compiled);
        }
        CommandRun::new("rustup", ["component", "add", "rust-src"])
            .run_captured("rustup-source")
            .with_context(|| {
                format!("rustup has no standard library for {target}, and no source of it")
            })?;
        Ok(Self::Source)
    }

    /// Makes a command of cargo use this library.
    pub(crate) fn apply(self, cargo: CommandRun) -> CommandRun {
        match self {
            Self::Compiled => cargo,
            // Cargo and the compiler are those of a release, which build it as the project of Rust does. With this
            // variable, build scripts run again: not in the folder of other builds.
            Self::Source => cargo
                .args(["-Z", "build-std=std,panic_unwind"])
                .env("RUSTC_BOOTSTRAP", "1")
                .env("CARGO_TARGET_DIR", target_dir().join("source-build")),
        }
    }
}

/// Returns true if the active toolchain has a compiled standard library for `target`.
fn has_standard_library(target: &str) -> Result<bool> {
    let query = ["--print", "target-libdir", "--target", target];
    let folder = CommandRun::new("rustc", query).run_captured("target-libdir")?;
    Ok(PathBuf::from(folder.trim()).is_dir())
}
