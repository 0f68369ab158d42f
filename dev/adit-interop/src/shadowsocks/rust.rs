//! shadowsocks-rust: both editions, identity headers as client and as server.

use std::net::SocketAddr;

use anyhow::{Result, bail};

use super::{Client, Method, Running, Serves, list, start, start_with_file};
use crate::Folder;

pub(super) fn server(method: Method, serves: Serves<'_>, addr: SocketAddr) -> Result<Running> {
    let Method { name, key } = method;
    let users = match serves {
        Serves::OneKey => {
            let addr_text = addr.to_string();
            let args = ["-s", &addr_text, "-m", name, "-k", key, "-U"];
            return start("ssserver", &args, addr);
        }
        Serves::Users(users) => users,
        Serves::Relay(_) => bail!("shadowsocks-rust cannot be a relay"),
    };
    let one = |(name, key): &(&str, &str)| format!(r#"{{"name":"{name}","password":"{key}"}}"#);
    let config = format!(
        r#"{{"servers":[{{"server":"{}","server_port":{},"method":"{name}","password":"{key}","mode":"tcp_and_udp","users":[{}]}}]}}"#,
        addr.ip(),
        addr.port(),
        list(users, one)
    );
    start_with_file("ssserver", &["-c"], Folder::new("ssserver")?, &config, addr)
}

pub(super) fn forwarder(client: &Client<'_>, entry: SocketAddr, to: SocketAddr) -> Result<Running> {
    let (at, server, to) = (entry.to_string(), client.server.to_string(), to.to_string());
    let ends = ["--protocol", "tunnel", "-f", &to, "-b", &at, "-s", &server];
    let password = client.password();
    let rest = ["-m", client.method.name, "-k", &password, "-U"];
    start("sslocal", &[&ends[..], &rest].concat(), entry)
}
