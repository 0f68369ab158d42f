//! Changes to the process: another user, the background, one network interface.

use adit_cli::{Failure, FailureCode};
use adit_net::outbound;

use crate::args::classic::ProcessOptions;

#[cfg(unix)]
pub(super) use unix::{User, settle, start};

#[cfg(not(unix))]
pub(super) use elsewhere::{User, settle, start};

/// Sets the interface and looks up the user before anything starts. Returns the user to switch to.
pub(super) fn prepare_process(typed: &ProcessOptions) -> Result<Option<User>, Failure> {
    if let Some(name) = &typed.interface {
        outbound::set_interface(name)
            .map_err(|why| Failure::new(FailureCode::Usage, format!("-i {name}: {why}")))?;
    }
    typed.user.as_deref().map(User::named).transpose()
}

#[cfg(unix)]
mod unix {
    use adit_cli::CommandResult;

    use std::ffi::CString;
    use std::fs;
    use std::io::{IsTerminal, stderr};

    use adit_cli::background;
    use anyhow::Context;
    use nix::errno::Errno;
    use nix::unistd;

    use super::{Failure, FailureCode, ProcessOptions};
    use crate::args::program_name::insert_command_by_name;

    /// A user account of this machine.
    pub(in super::super) struct User {
        name: CString,
        id: unistd::Uid,
        group: unistd::Gid,
    }

    impl User {
        pub(super) fn named(name: &str) -> Result<Self, Failure> {
            let unknown = || Failure::new(FailureCode::Usage, format!("-a {name}: no such user"));
            let found = unistd::User::from_name(name).context("looking up the user")?;
            let found = found.ok_or_else(unknown)?;
            Ok(Self {
                name: CString::new(name).map_err(|_| unknown())?,
                id: found.uid,
                group: found.gid,
            })
        }

        /// Switches to the user. The groups are set first, because afterwards the privilege is gone.
        fn switch_to(&self) -> CommandResult {
            if unistd::geteuid() == self.id {
                return Ok(());
            }
            let done = self
                .set_groups()
                .and_then(|()| unistd::setgid(self.group))
                .and_then(|()| unistd::setuid(self.id));
            done.map_err(|why| {
                let what = format!("-a {}: {why}", self.name.to_string_lossy());
                Failure::new(FailureCode::Failure, what).with_hint(match why {
                    Errno::ENOTSUP => "start adit as the user: this system cannot change groups",
                    _ => "only root can switch to another user",
                })
            })
        }

        #[cfg(not(target_vendor = "apple"))]
        fn set_groups(&self) -> nix::Result<()> {
            unistd::initgroups(&self.name, self.group)
        }

        /// Returns an error: Apple's systems have no safe wrapper of the call, and the process must not
        /// keep root's groups.
        #[cfg(target_vendor = "apple")]
        fn set_groups(&self) -> nix::Result<()> {
            Err(Errno::ENOTSUP)
        }
    }

    /// Starts the background process, and returns once its ports are open.
    pub(in super::super) fn start() -> CommandResult {
        let words = insert_command_by_name(std::env::args_os());
        background::spawn_background(words.into_iter().skip(1), FailureCode::Failure as u8)
    }

    /// Writes the process ID, switches to the user and goes into the background, once the ports are
    /// open.
    pub(in super::super) fn settle(typed: &ProcessOptions, user: Option<User>) -> CommandResult {
        if let Some(path) = &typed.pid_file {
            let number = format!("{}\n", std::process::id());
            fs::write(path, number).with_context(|| format!("-f {}", path.display()))?;
        }
        if let Some(user) = user {
            user.switch_to()?;
        }
        if typed.pid_file.is_some() {
            // A log to a file or a pipe continues.
            background::detach(!stderr().is_terminal())?;
        }
        Ok(())
    }
}

#[cfg(not(unix))]
mod elsewhere {
    use adit_cli::CommandResult;

    use super::{Failure, FailureCode, ProcessOptions};

    /// A user account, which this system cannot switch to.
    pub(in super::super) struct User;

    impl User {
        pub(super) fn named(_: &str) -> Result<Self, Failure> {
            Err(unix_only("-a", "run adit as a service of that account"))
        }
    }

    pub(in super::super) fn start() -> CommandResult {
        Err(unix_only("-f", "run adit as a service"))
    }

    pub(in super::super) fn settle(_: &ProcessOptions, _: Option<User>) -> CommandResult {
        Ok(())
    }

    fn unix_only(option: &str, hint: &'static str) -> Failure {
        let what = format!("{option} is available on Unix only");
        Failure::new(FailureCode::Usage, what).with_hint(hint)
    }
}
