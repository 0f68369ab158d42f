//! Xray-core: both editions, identity headers in all roles.

use std::net::SocketAddr;

use anyhow::Result;

use super::{Client, Method, Running, Serves, list, start_with_file};
use crate::Folder;

/// Without this rule, Xray refuses private targets.
const DIRECT: &str = r#"{"protocol":"freedom","settings":{"finalRules":[{"action":"allow"}]}}"#;

pub(super) fn server(method: Method, serves: Serves<'_>, addr: SocketAddr) -> Result<Running> {
    let Method { name, key } = method;
    let clients = match serves {
        Serves::OneKey => String::new(),
        Serves::Users(users) => {
            let one =
                |(name, key): &(&str, &str)| format!(r#"{{"email":"{name}","password":"{key}"}}"#);
            format!(r#","clients":[{}]"#, list(users, one))
        }
        Serves::Relay(next) => {
            let one = |(to, key): &(SocketAddr, &str)| {
                let (ip, port) = (to.ip(), to.port());
                format!(r#"{{"email":"{port}","address":"{ip}","port":{port},"password":"{key}"}}"#)
            };
            format!(r#","clients":[{}]"#, list(next, one))
        }
    };
    let settings =
        format!(r#"{{"method":"{name}","password":"{key}","network":"tcp,udp"{clients}}}"#);
    run(addr, "shadowsocks", &settings, DIRECT)
}

pub(super) fn forwarder(client: &Client<'_>, entry: SocketAddr, to: SocketAddr) -> Result<Running> {
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
    run(entry, "dokodemo-door", &settings, &outbound)
}

fn run(addr: SocketAddr, protocol: &str, settings: &str, outbound: &str) -> Result<Running> {
    let (ip, port) = (addr.ip(), addr.port());
    let config = format!(
        r#"{{"log":{{"loglevel":"warning"}},"inbounds":[{{"listen":"{ip}","port":{port},"protocol":"{protocol}","settings":{settings}}}],"outbounds":[{outbound}]}}"#
    );
    start_with_file("xray", &["run", "-c"], Folder::new("xray")?, &config, addr)
}
