//! HAProxy, which brings connections and says whose they are.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::Result;

use crate::port::{Transport, free_port, loopback, wait_port};
use crate::{Folder, PATIENCE, Process};

/// A proxy of TCP on 127.0.0.1 that begins its connections with a PROXY header, version 2. It ends
/// with the value.
#[derive(Debug)]
pub struct Haproxy {
    port: u16,
    _process: Process,
    _folder: Folder,
}

impl Haproxy {
    /// Starts one before the server at `to`.
    pub fn start(to: SocketAddr) -> Result<Self> {
        let (port, folder) = (free_port(), Folder::new("haproxy")?);
        let config = format!(
            "defaults\n mode tcp\n timeout connect 10s\n timeout client 60s\n timeout server 60s\n\
             listen all\n bind 127.0.0.1:{port}\n server one {to} send-proxy-v2\n"
        );
        let config = folder.write("haproxy.cfg", config)?;
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(config);
        let process = Process::spawn(command)?;
        wait_port(Transport::Tcp, port, PATIENCE)?;
        Ok(Self {
            port,
            _process: process,
            _folder: folder,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        loopback(self.port)
    }
}
