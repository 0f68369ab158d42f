//! HAProxy, which forwards connections and reports their original addresses.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::Result;

use crate::ports::{Transport, free_port, loopback_addr, wait_port};
use crate::{ChildProcess, TEST_TIMEOUT, TempFolder};

/// A TCP proxy on 127.0.0.1 whose connections begin with a PROXY header, version 2. It ends when it
/// is dropped.
#[derive(Debug)]
pub struct HaproxyServer {
    port: u16,
    _process: ChildProcess,
    _folder: TempFolder,
}

impl HaproxyServer {
    /// Starts a proxy in front of the server at `to`.
    pub fn start(to: SocketAddr) -> Result<Self> {
        let (port, folder) = (free_port(), TempFolder::new("haproxy")?);
        let config = format!(
            "defaults\n mode tcp\n timeout connect 10s\n timeout client 60s\n timeout server 60s\n\
             listen all\n bind 127.0.0.1:{port}\n server one {to} send-proxy-v2\n"
        );
        let config = folder.write_file("haproxy.cfg", config)?;
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(config);
        let process = ChildProcess::spawn(command)?;
        wait_port(Transport::Tcp, port, TEST_TIMEOUT)?;
        Ok(Self {
            port,
            _process: process,
            _folder: folder,
        })
    }

    /// Returns the address it listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        loopback_addr(self.port)
    }
}
