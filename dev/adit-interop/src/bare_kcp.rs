//! Other implementations of bare KCP, without encryption or error correction: the crate
//! `tokio_kcp`, and KCP's original core in C under Python's package `kcp`.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::kcp_go::ListeningPeer;
use crate::{TEST_TIMEOUT, external_tools};

const PROGRAM: &str = include_str!("../peers/kcpcore.py");

/// An implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BareKcp {
    /// tokio_kcp, as a stream of bytes.
    TokioStream,
    /// tokio_kcp, as messages.
    TokioMessages,
    /// KCP in C, whose Python package supports only messages.
    C,
}

impl BareKcp {
    /// All implementations.
    pub const ALL: [Self; 3] = [Self::TokioStream, Self::TokioMessages, Self::C];

    /// Returns true for a stream of bytes.
    #[must_use]
    pub const fn is_stream(self) -> bool {
        matches!(self, Self::TokioStream)
    }

    /// Starts a server that sends back what it receives.
    pub fn start_echo_server(self) -> Result<ListeningPeer> {
        ListeningPeer::start(self.command("echo", &[]), self.program_name())
    }

    /// Runs a client that sends this many bytes to `server` and expects them back unchanged.
    pub fn run_sender(self, server: SocketAddr, bytes: usize) -> Result<()> {
        let command = self.command("send", &[&server.to_string(), &bytes.to_string()]);
        let ended = external_tools::run_to_end(command, TEST_TIMEOUT)
            .context(external_tools::missing_program_message(self.program_name()))?;
        let output = ended.expect_success()?;
        ensure!(output.trim() == "same", "{output}");
        Ok(())
    }

    const fn program_name(self) -> &'static str {
        match self {
            Self::TokioStream | Self::TokioMessages => "tokiokcp",
            Self::C => "python/bin/python",
        }
    }

    fn command(self, role: &str, words: &[&str]) -> Command {
        let mut command = Command::new(external_tools::peer_path(self.program_name()));
        match self {
            Self::TokioStream => command.args([role, "stream"]),
            Self::TokioMessages => command.args([role, "message"]),
            Self::C => command.args(["-c", PROGRAM, role]),
        };
        command.args(words);
        command
    }
}
