//! shadowsocks-rust: both editions, identity headers as client and as server.

use std::net::SocketAddr;

use anyhow::{Result, bail};

use super::{
    ClientSetup, MethodKey, RunningPeer, ServedUsers, join_json_objects, start_program,
    start_with_file,
};
use crate::TempFolder;

pub(super) fn start_server(
    method: MethodKey,
    serves: ServedUsers<'_>,
    addr: SocketAddr,
) -> Result<RunningPeer> {
    let MethodKey { name, key } = method;
    let users = match serves {
        ServedUsers::OneKey => {
            let addr_text = addr.to_string();
            let args = ["-s", &addr_text, "-m", name, "-k", key, "-U"];
            return start_program("ssserver", &args, addr);
        }
        ServedUsers::Users(users) => users,
        ServedUsers::Relay(_) => bail!("shadowsocks-rust cannot be a relay"),
    };
    let one = |(name, key): &(&str, &str)| format!(r#"{{"name":"{name}","password":"{key}"}}"#);
    let config = format!(
        r#"{{"servers":[{{"server":"{}","server_port":{},"method":"{name}","password":"{key}","mode":"tcp_and_udp","users":[{}]}}]}}"#,
        addr.ip(),
        addr.port(),
        join_json_objects(users, one)
    );
    start_with_file(
        "ssserver",
        &["-c"],
        TempFolder::new("ssserver")?,
        &config,
        addr,
    )
}

pub(super) fn start_forwarder(
    client: &ClientSetup<'_>,
    entry: SocketAddr,
    to: SocketAddr,
) -> Result<RunningPeer> {
    let (at, server, to) = (entry.to_string(), client.server.to_string(), to.to_string());
    let ends = ["--protocol", "tunnel", "-f", &to, "-b", &at, "-s", &server];
    let password = client.password();
    let rest = ["-m", client.method.name, "-k", &password, "-U"];
    start_program("sslocal", &[&ends[..], &rest].concat(), entry)
}
