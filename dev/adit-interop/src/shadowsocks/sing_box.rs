//! sing-box: every method, identity headers in all roles, UDP over TCP, plugins of its own.

use std::net::SocketAddr;

use anyhow::Result;

use super::{Client, Method, Running, Serves, list, start_with_file};
use crate::Folder;

pub(super) fn server(method: Method, serves: Serves<'_>, addr: SocketAddr) -> Result<Running> {
    let Method { name, key } = method;
    let (ip, port) = (addr.ip(), addr.port());
    let whom = match serves {
        Serves::OneKey => String::new(),
        Serves::Users(users) => {
            let one =
                |(name, key): &(&str, &str)| format!(r#"{{"name":"{name}","password":"{key}"}}"#);
            format!(r#","users":[{}]"#, list(users, one))
        }
        Serves::Relay(next) => {
            let one = |(to, key): &(SocketAddr, &str)| {
                let (ip, port) = (to.ip(), to.port());
                format!(
                    r#"{{"name":"{port}","server":"{ip}","server_port":{port},"password":"{key}"}}"#
                )
            };
            format!(r#","destinations":[{}]"#, list(next, one))
        }
    };
    let inbound = format!(
        r#"{{"type":"shadowsocks","listen":"{ip}","listen_port":{port},"method":"{name}","password":"{key}"{whom}}}"#
    );
    run(addr, &inbound, r#"{"type":"direct"}"#)
}

pub(super) fn forwarder(client: &Client<'_>, entry: SocketAddr, to: SocketAddr) -> Result<Running> {
    let inbound = format!(
        r#"{{"type":"direct","listen":"{}","listen_port":{},"override_address":"{}","override_port":{}}}"#,
        entry.ip(),
        entry.port(),
        to.ip(),
        to.port()
    );
    let over_tcp = client.over_tcp.map_or_else(String::new, |version| {
        format!(r#","udp_over_tcp":{{"enabled":true,"version":{version}}}"#)
    });
    let plugin = client.plugin.map_or_else(String::new, |(name, options)| {
        format!(r#","plugin":"{name}","plugin_opts":"{options}""#)
    });
    let outbound = format!(
        r#"{{"type":"shadowsocks","server":"{}","server_port":{},"method":"{}","password":"{}"{over_tcp}{plugin}}}"#,
        client.server.ip(),
        client.server.port(),
        client.method.name,
        client.password()
    );
    run(entry, &inbound, &outbound)
}

fn run(addr: SocketAddr, inbound: &str, outbound: &str) -> Result<Running> {
    let config =
        format!(r#"{{"log":{{"level":"warn"}},"inbounds":[{inbound}],"outbounds":[{outbound}]}}"#);
    start_with_file(
        "sing-box",
        &["run", "-c"],
        Folder::new("sing-box")?,
        &config,
        addr,
    )
}
