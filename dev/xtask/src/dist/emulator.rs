//! Emulators for programs of other processors and systems.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::target::{DistTarget, EmulatorName};
use crate::command::find_program;
use crate::install;
use crate::windows;

/// An installed emulator.
#[derive(Debug, Clone)]
pub(crate) enum Emulator {
    /// The program of qemu, one static file.
    Qemu(PathBuf),
    /// Wine, with the folder of its settings and drives.
    Wine(PathBuf),
}

impl Emulator {
    /// Installs the emulator of a target, if it needs one.
    pub(crate) fn install(target: DistTarget) -> Result<Option<Self>> {
        let Some(name) = target.emulator() else {
            return Ok(None);
        };
        match name {
            EmulatorName::Wine => windows::prepare_wine().map(Self::Wine),
            EmulatorName::Qemu(name) => {
                install::install_tools(&[(name, "qemu-user-static")])?;
                let found = find_program(name).map(Self::Qemu);
                found.with_context(|| {
                    format!(
                        "cannot find `{name}`, which runs programs of {}",
                        target.triple
                    )
                })
            }
        }
        .map(Some)
    }

    /// Returns the program that runs others.
    pub(crate) fn program(&self) -> &Path {
        match self {
            Self::Qemu(path) => path,
            Self::Wine(_) => Path::new(windows::WINE64),
        }
    }

    /// Returns a command that runs a program.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(self.program());
        command.arg(program);
        if let Self::Wine(folder) = self {
            command.envs(windows::wine_settings(folder));
        }
        command
    }
}
