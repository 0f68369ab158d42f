//! shadowsocks-go: the AES methods of SIP022, identity headers as client and as server.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};

use super::{ClientSetup, MethodKey, RunningPeer, ServedUsers, join_json_objects, start_with_file};
use crate::TempFolder;

pub(super) fn start_server(
    method: MethodKey,
    serves: ServedUsers<'_>,
    addr: SocketAddr,
) -> Result<RunningPeer> {
    let folder = TempFolder::new("shadowsocks-go")?;
    let users = match serves {
        ServedUsers::OneKey => String::new(),
        ServedUsers::Users(users) => {
            let one = |(name, key): &(&str, &str)| format!(r#""{name}":"{key}""#);
            let file = folder.write_file(
                "users.json",
                format!("{{{}}}", join_json_objects(users, one)),
            )?;
            format!(r#","uPSKStorePath":"{}""#, file.display())
        }
        ServedUsers::Relay(_) => bail!("shadowsocks-go cannot be a relay"),
    };
    let MethodKey { name, key } = method;
    let config = format!(
        r#"{{"servers":[{{"name":"s","protocol":"{name}",{},"psk":"{key}"{users}}}],
            "clients":[{{"name":"direct","protocol":"direct","enableTCP":true,"enableUDP":true,"mtu":1500}}]}}"#,
        listeners_json(addr)
    );
    start_with_config(folder, &config, addr)
}

pub(super) fn start_forwarder(
    client: &ClientSetup<'_>,
    entry: SocketAddr,
    to: SocketAddr,
) -> Result<RunningPeer> {
    let (own, identities) = client.keys.split_last().context("the client has no keys")?;
    let identities = join_json_objects(identities, |key| format!(r#""{key}""#));
    let config = format!(
        r#"{{"servers":[{{"name":"t","protocol":"direct",{},"tunnelRemoteAddress":"{to}"}}],
            "clients":[{{"name":"ss","protocol":"{}","endpoint":"{}","enableTCP":true,"enableUDP":true,"mtu":1500,"psk":"{own}","iPSKs":[{identities}]}}]}}"#,
        listeners_json(entry),
        client.method.name,
        client.server
    );
    start_with_config(TempFolder::new("shadowsocks-go")?, &config, entry)
}

fn listeners_json(addr: SocketAddr) -> String {
    format!(
        r#""tcpListeners":[{{"network":"tcp","address":"{addr}"}}],"udpListeners":[{{"network":"udp","address":"{addr}"}}],"mtu":1500"#
    )
}

fn start_with_config(folder: TempFolder, config: &str, addr: SocketAddr) -> Result<RunningPeer> {
    let args = ["-logLevel", "warn", "-confPath"];
    start_with_file("shadowsocks-go", &args, folder, config, addr)
}
