//! shadowsocks-libev: SIP004, one key.

use std::net::SocketAddr;

use anyhow::{Result, bail};

use super::{ClientSetup, MethodKey, RunningPeer, ServedUsers, start_program};

pub(super) fn start_server(
    method: MethodKey,
    serves: ServedUsers<'_>,
    addr: SocketAddr,
) -> Result<RunningPeer> {
    if !matches!(serves, ServedUsers::OneKey) {
        bail!("shadowsocks-libev supports only one key");
    }
    let (ip, port) = (addr.ip().to_string(), addr.port().to_string());
    let ends = ["-s", &ip, "-p", &port];
    start_program(
        "ss-server",
        &[&ends[..], &["-k", method.key, "-m", method.name, "-u"]].concat(),
        addr,
    )
}

pub(super) fn start_forwarder(
    client: &ClientSetup<'_>,
    entry: SocketAddr,
    to: SocketAddr,
) -> Result<RunningPeer> {
    let (to, password) = (to.to_string(), client.password());
    let rest = ["-L", &to, "-k", &password, "-m", client.method.name, "-u"];
    start_at("ss-tunnel", client.server, entry, &rest)
}

pub(super) fn start_socks_client(
    method: MethodKey,
    server: SocketAddr,
    entry: SocketAddr,
) -> Result<RunningPeer> {
    let rest = ["-k", method.key, "-m", method.name, "-u"];
    start_at("ss-local", server, entry, &rest)
}

fn start_at(
    program: &str,
    server: SocketAddr,
    entry: SocketAddr,
    rest: &[&str],
) -> Result<RunningPeer> {
    let (ip, port) = (entry.ip().to_string(), entry.port().to_string());
    let (server_ip, server_port) = (server.ip().to_string(), server.port().to_string());
    let ends = ["-s", &server_ip, "-p", &server_port, "-b", &ip, "-l", &port];
    start_program(program, &[&ends[..], rest].concat(), entry)
}
