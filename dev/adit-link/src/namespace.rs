//! Network namespaces without names: a namespace lives for as long as something of it is open.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::{panic, thread};

use anyhow::{Context, Result, anyhow, ensure};
use nix::sched::{CloneFlags, unshare};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace.
#[derive(Debug)]
pub struct NetworkNamespace(File);

impl NetworkNamespace {
    /// Creates a namespace that holds only a loopback interface, which is up.
    ///
    /// # Errors
    /// Fails without root privileges.
    pub fn create() -> Result<Self> {
        let own = || -> Result<Self> {
            unshare(CloneFlags::CLONE_NEWNET)
                .context("cannot create a network namespace without root privileges")?;
            Ok(Self(File::open("/proc/thread-self/ns/net")?))
        };
        let made = thread::scope(|scope| scope.spawn(own).join());
        let made =
            made.map_err(|_| anyhow!("the thread that creates the namespace panicked"))??;
        made.run_ip("link set lo up")?;
        Ok(made)
    }

    /// Opens a namespace that `ip netns` has named, by the path of its file.
    ///
    /// # Errors
    /// Fails if it does not exist.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).with_context(|| path.display().to_string())?;
        Ok(Self(file))
    }

    /// Runs `work` inside the namespace, on a thread of its own. Sockets opened there, and threads
    /// and processes started there, stay in the namespace.
    ///
    /// # Panics
    /// Panics if `work` does, and without root privileges.
    pub fn run_inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let inside = || {
            let kind = Some(LinkNameSpaceType::Network);
            if let Err(why) = move_into_link_name_space(self.0.as_fd(), kind) {
                panic!("cannot enter the namespace: {why}");
            }
            work()
        };
        let done = thread::scope(|scope| scope.spawn(inside).join());
        done.unwrap_or_else(|why| panic::resume_unwind(why))
    }

    /// Runs an `ip` command inside the namespace.
    ///
    /// # Errors
    /// Returns the command's output if it fails.
    pub fn run_ip(&self, words: &str) -> Result<()> {
        let mut command = Command::new("ip");
        command.args(words.split_whitespace());
        let ended = self.run_inside(|| command.output());
        let ended = ended.context("cannot start `ip` (Debian package iproute2)")?;
        let told = String::from_utf8_lossy(&ended.stderr);
        ensure!(
            ended.status.success(),
            "`ip {words}` failed: {}",
            told.trim()
        );
        Ok(())
    }
}
