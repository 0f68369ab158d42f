//! shadowsocks-go: the AES methods of SIP022, identity headers as client and as server.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};

use super::{Client, Method, Running, Serves, list, start_with_file};
use crate::Folder;

pub(super) fn server(method: Method, serves: Serves<'_>, addr: SocketAddr) -> Result<Running> {
    let folder = Folder::new("shadowsocks-go")?;
    let users = match serves {
        Serves::OneKey => String::new(),
        Serves::Users(users) => {
            let one = |(name, key): &(&str, &str)| format!(r#""{name}":"{key}""#);
            let file = folder.write("users.json", format!("{{{}}}", list(users, one)))?;
            format!(r#","uPSKStorePath":"{}""#, file.display())
        }
        Serves::Relay(_) => bail!("shadowsocks-go cannot be a relay"),
    };
    let Method { name, key } = method;
    let config = format!(
        r#"{{"servers":[{{"name":"s","protocol":"{name}",{},"psk":"{key}"{users}}}],
            "clients":[{{"name":"direct","protocol":"direct","enableTCP":true,"enableUDP":true,"mtu":1500}}]}}"#,
        listeners(addr)
    );
    run(folder, &config, addr)
}

pub(super) fn forwarder(client: &Client<'_>, entry: SocketAddr, to: SocketAddr) -> Result<Running> {
    let (own, identities) = client.keys.split_last().context("the client has no keys")?;
    let identities = list(identities, |key| format!(r#""{key}""#));
    let config = format!(
        r#"{{"servers":[{{"name":"t","protocol":"direct",{},"tunnelRemoteAddress":"{to}"}}],
            "clients":[{{"name":"ss","protocol":"{}","endpoint":"{}","enableTCP":true,"enableUDP":true,"mtu":1500,"psk":"{own}","iPSKs":[{identities}]}}]}}"#,
        listeners(entry),
        client.method.name,
        client.server
    );
    run(Folder::new("shadowsocks-go")?, &config, entry)
}

fn listeners(addr: SocketAddr) -> String {
    format!(
        r#""tcpListeners":[{{"network":"tcp","address":"{addr}"}}],"udpListeners":[{{"network":"udp","address":"{addr}"}}],"mtu":1500"#
    )
}

fn run(folder: Folder, config: &str, addr: SocketAddr) -> Result<Running> {
    let args = ["-logLevel", "warn", "-confPath"];
    start_with_file("shadowsocks-go", &args, folder, config, addr)
}
