//! shadowsocks-libev: SIP004, one key.

use std::net::SocketAddr;

use anyhow::{Result, bail};

use super::{Client, Method, Running, Serves, start};

pub(super) fn server(method: Method, serves: Serves<'_>, addr: SocketAddr) -> Result<Running> {
    if !matches!(serves, Serves::OneKey) {
        bail!("shadowsocks-libev supports only one key");
    }
    let (ip, port) = (addr.ip().to_string(), addr.port().to_string());
    let ends = ["-s", &ip, "-p", &port];
    start(
        "ss-server",
        &[&ends[..], &["-k", method.key, "-m", method.name, "-u"]].concat(),
        addr,
    )
}

pub(super) fn forwarder(client: &Client<'_>, entry: SocketAddr, to: SocketAddr) -> Result<Running> {
    let (to, password) = (to.to_string(), client.password());
    let rest = ["-L", &to, "-k", &password, "-m", client.method.name, "-u"];
    at("ss-tunnel", client.server, entry, &rest)
}

pub(super) fn socks(method: Method, server: SocketAddr, entry: SocketAddr) -> Result<Running> {
    let rest = ["-k", method.key, "-m", method.name, "-u"];
    at("ss-local", server, entry, &rest)
}

fn at(program: &str, server: SocketAddr, entry: SocketAddr, rest: &[&str]) -> Result<Running> {
    let (ip, port) = (entry.ip().to_string(), entry.port().to_string());
    let (server_ip, server_port) = (server.ip().to_string(), server.port().to_string());
    let ends = ["-s", &server_ip, "-p", &server_port, "-b", &ip, "-l", &port];
    start(program, &[&ends[..], rest].concat(), entry)
}
