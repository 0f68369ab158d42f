//! Other implementations of bare KCP, without encryption or error correction: the crate
//! `tokio_kcp`, and KCP's original core in C under Python's package `kcp`.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::kcpgo::Running;
use crate::{PATIENCE, tool};

const PROGRAM: &str = include_str!("../peers/kcpcore.py");

/// An implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Core {
    /// tokio_kcp, as a stream of bytes.
    TokioStream,
    /// tokio_kcp, as messages.
    TokioMessages,
    /// KCP in C, whose Python package supports only messages.
    C,
}

impl Core {
    /// All implementations.
    pub const ALL: [Self; 3] = [Self::TokioStream, Self::TokioMessages, Self::C];

    /// Returns true for a stream of bytes.
    #[must_use]
    pub const fn streams(self) -> bool {
        matches!(self, Self::TokioStream)
    }

    /// Starts a server that sends back what it receives.
    pub fn echo(self) -> Result<Running> {
        Running::start(self.command("echo", &[]), self.name())
    }

    /// Runs a client that sends this many bytes to `server` and expects them back unchanged.
    pub fn send(self, server: SocketAddr, bytes: usize) -> Result<()> {
        let command = self.command("send", &[&server.to_string(), &bytes.to_string()]);
        let ended = tool::run(command, PATIENCE).context(tool::missing(self.name()))?;
        let told = ended.success()?;
        ensure!(told.trim() == "same", "{told}");
        Ok(())
    }

    const fn name(self) -> &'static str {
        match self {
            Self::TokioStream | Self::TokioMessages => "tokiokcp",
            Self::C => "python/bin/python",
        }
    }

    fn command(self, role: &str, words: &[&str]) -> Command {
        let mut command = Command::new(tool::peer(self.name()));
        match self {
            Self::TokioStream => command.args([role, "stream"]),
            Self::TokioMessages => command.args([role, "message"]),
            Self::C => command.args(["-c", PROGRAM, role]),
        };
        command.args(words);
        command
    }
}
