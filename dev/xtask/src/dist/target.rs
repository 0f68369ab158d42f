//! The targets that adit is distributed for, and those that are only checked.

use std::env::consts::ARCH;

use anyhow::{Context, Result, bail};

/// A target with an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DistTarget {
    pub(crate) triple: &'static str,
    /// The processor in the names of `std::env::consts::ARCH`.
    pub(crate) arch: &'static str,
    system: System,
}

/// The system of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    Linux {
        /// The program of Debian that runs its binaries on other processors.
        qemu: &'static str,
    },
    Windows,
}

/// The name of an emulator that runs a target's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EmulatorName {
    /// This program of qemu, which runs programs for another processor.
    Qemu(&'static str),
    /// Wine, which runs programs for Windows.
    Wine,
}

const fn musl(triple: &'static str, arch: &'static str, qemu: &'static str) -> DistTarget {
    DistTarget {
        triple,
        arch,
        system: System::Linux { qemu },
    }
}

/// All targets with an archive.
pub(crate) const DIST_TARGETS: [DistTarget; 3] = [
    musl("x86_64-unknown-linux-musl", "x86_64", "qemu-x86_64-static"),
    musl(
        "aarch64-unknown-linux-musl",
        "aarch64",
        "qemu-aarch64-static",
    ),
    DistTarget {
        triple: "x86_64-pc-windows-gnu",
        arch: "x86_64",
        system: System::Windows,
    },
];

/// The targets that are only checked: none of their programs has been run.
pub(crate) const CHECKED_TARGETS: [&str; 5] = [
    "aarch64-apple-darwin",
    "aarch64-linux-android",
    "armv7-unknown-linux-musleabihf",
    "x86_64-apple-darwin",
    "x86_64-unknown-freebsd",
];

impl DistTarget {
    /// Returns the static target of this machine's processor.
    pub(crate) fn of_host() -> Result<Self> {
        let mut targets = DIST_TARGETS.into_iter();
        let host = targets.find(|target| target.arch == ARCH && !target.is_windows());
        host.with_context(|| {
            format!("no archive is built for {ARCH}, the processor of this machine: name a target")
        })
    }

    pub(crate) fn find(triple: &str) -> Result<Self> {
        if let Some(target) = DIST_TARGETS.iter().find(|target| target.triple == triple) {
            return Ok(*target);
        }
        let list: Vec<&str> = DIST_TARGETS.iter().map(|target| target.triple).collect();
        if CHECKED_TARGETS.contains(&triple) {
            bail!(
                "{triple} has no archive, it is only checked: `cargo xtask dist --check {triple}`"
            );
        }
        bail!(
            "unknown target `{triple}`; archives are built for {}",
            list.join(", ")
        )
    }

    /// Returns true if the programs of the target are for Windows.
    pub(crate) fn is_windows(self) -> bool {
        self.system == System::Windows
    }

    /// Returns true if the static programs of the target can be loaded at any address: Rust makes such programs with musl
    /// for this processor alone.
    pub(crate) fn is_position_independent(self) -> bool {
        self.triple == "x86_64-unknown-linux-musl"
    }

    /// Returns the emulator that runs the target's programs on this machine; `None` if it needs none.
    pub(crate) fn emulator(self) -> Option<EmulatorName> {
        match self.system {
            System::Linux { .. } if self.arch == ARCH && cfg!(target_os = "linux") => None,
            System::Linux { qemu } => Some(EmulatorName::Qemu(qemu)),
            System::Windows => Some(EmulatorName::Wine),
        }
    }

    /// Returns the file name of the program.
    pub(crate) const fn program_name(self) -> &'static str {
        match self.system {
            System::Linux { .. } => "adit",
            System::Windows => "adit.exe",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_target_is_an_error_with_the_list() {
        let why = DistTarget::find("z80-unknown-none")
            .unwrap_err()
            .to_string();
        assert!(why.contains("x86_64-unknown-linux-musl"), "{why}");
        let why = DistTarget::find("aarch64-apple-darwin").unwrap_err();
        assert!(why.to_string().contains("--check"), "{why}");
        let found = DistTarget::find("aarch64-unknown-linux-musl").unwrap();
        assert_eq!(found.arch, "aarch64");
    }

    #[test]
    fn no_target_is_in_both_lists() {
        for target in DIST_TARGETS {
            assert!(!CHECKED_TARGETS.contains(&target.triple));
        }
    }

    #[test]
    fn only_other_processors_and_systems_are_emulated() {
        for target in DIST_TARGETS {
            let is_own = target.arch == ARCH && target.triple.contains("-linux-");
            assert_eq!(target.emulator().is_none(), is_own, "{}", target.triple);
        }
        let windows = DistTarget::find("x86_64-pc-windows-gnu").unwrap();
        assert_eq!(windows.emulator(), Some(EmulatorName::Wine));
        assert_eq!(windows.program_name(), "adit.exe");
        assert!(!DistTarget::of_host().unwrap().is_windows());
    }
}
