//! sing-box: every method, identity headers in all roles, UDP over TCP, plugins of its own.

use std::net::SocketAddr;

use anyhow::Result;

use super::{ClientSetup, MethodKey, RunningPeer, ServedUsers, join_json_objects, start_with_file};
use crate::TempFolder;

pub(super) fn start_server(
    method: MethodKey,
    serves: ServedUsers<'_>,
    addr: SocketAddr,
) -> Result<RunningPeer> {
    let MethodKey { name, key } = method;
    let (ip, port) = (addr.ip(), addr.port());
    let whom = match serves {
        ServedUsers::OneKey => String::new(),
        ServedUsers::Users(users) => {
            let one =
                |(name, key): &(&str, &str)| format!(r#"{{"name":"{name}","password":"{key}"}}"#);
            format!(r#","users":[{}]"#, join_json_objects(users, one))
        }
        ServedUsers::Relay(next) => {
            let one = |(to, key): &(SocketAddr, &str)| {
                let (ip, port) = (to.ip(), to.port());
                format!(
                    r#"{{"name":"{port}","server":"{ip}","server_port":{port},"password":"{key}"}}"#
                )
            };
            format!(r#","destinations":[{}]"#, join_json_objects(next, one))
        }
    };
    let inbound = format!(
        r#"{{"type":"shadowsocks","listen":"{ip}","listen_port":{port},"method":"{name}","password":"{key}"{whom}}}"#
    );
    start_with_config(addr, &inbound, r#"{"type":"direct"}"#)
}

pub(super) fn start_forwarder(
    client: &ClientSetup<'_>,
    entry: SocketAddr,
    to: SocketAddr,
) -> Result<RunningPeer> {
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
    start_with_config(entry, &inbound, &outbound)
}

fn start_with_config(addr: SocketAddr, inbound: &str, outbound: &str) -> Result<RunningPeer> {
    let config =
        format!(r#"{{"log":{{"level":"warn"}},"inbounds":[{inbound}],"outbounds":[{outbound}]}}"#);
    start_with_file(
        "sing-box",
        &["run", "-c"],
        TempFolder::new("sing-box")?,
        &config,
        addr,
    )
}
