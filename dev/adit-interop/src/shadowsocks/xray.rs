//! Xray-core: both editions, identity headers in all roles.

use std::net::SocketAddr;

use anyhow::Result;

use super::{ClientSetup, MethodKey, RunningPeer, ServedUsers, join_json_objects, start_with_file};
use crate::TempFolder;

/// Without this rule, Xray refuses private targets.
const DIRECT: &str = r#"{"protocol":"freedom","settings":{"finalRules":[{"action":"allow"}]}}"#;

pub(super) fn start_server(
    method: MethodKey,
    serves: ServedUsers<'_>,
    addr: SocketAddr,
) -> Result<RunningPeer> {
    let MethodKey { name, key } = method;
    let clients = match serves {
        ServedUsers::OneKey => String::new(),
        ServedUsers::Users(users) => {
            let one =
                |(name, key): &(&str, &str)| format!(r#"{{"email":"{name}","password":"{key}"}}"#);
            format!(r#","clients":[{}]"#, join_json_objects(users, one))
        }
        ServedUsers::Relay(next) => {
            let one = |(to, key): &(SocketAddr, &str)| {
                let (ip, port) = (to.ip(), to.port());
                format!(r#"{{"email":"{port}","address":"{ip}","port":{port},"password":"{key}"}}"#)
            };
            format!(r#","clients":[{}]"#, join_json_objects(next, one))
        }
    };
    let settings =
        format!(r#"{{"method":"{name}","password":"{key}","network":"tcp,udp"{clients}}}"#);
    start_with_config(addr, "shadowsocks", &settings, DIRECT)
}

pub(super) fn start_forwarder(
    client: &ClientSetup<'_>,
    entry: SocketAddr,
    to: SocketAddr,
) -> Result<RunningPeer> {
    let settings = format!(
        r#"{{"address":"{}","port":{},"network":"tcp,udp"}}"#,
        to.ip(),
        to.port()
    );
    let over_tcp = client.over_tcp.map_or_else(String::new, |version| {
        format!(r#","uot":true,"uotVersion":{version}"#)
    });
    let outbound = format!(
        r#"{{"protocol":"shadowsocks","settings":{{"servers":[{{"address":"{}","port":{},"method":"{}","password":"{}"{over_tcp}}}]}}}}"#,
        client.server.ip(),
        client.server.port(),
        client.method.name,
        client.password()
    );
    start_with_config(entry, "dokodemo-door", &settings, &outbound)
}

fn start_with_config(
    addr: SocketAddr,
    protocol: &str,
    settings: &str,
    outbound: &str,
) -> Result<RunningPeer> {
    let (ip, port) = (addr.ip(), addr.port());
    let config = format!(
        r#"{{"log":{{"loglevel":"warning"}},"inbounds":[{{"listen":"{ip}","port":{port},"protocol":"{protocol}","settings":{settings}}}],"outbounds":[{outbound}]}}"#
    );
    start_with_file(
        "xray",
        &["run", "-c"],
        TempFolder::new("xray")?,
        &config,
        addr,
    )
}
