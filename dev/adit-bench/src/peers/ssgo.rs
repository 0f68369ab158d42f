//! shadowsocks-go: the AES methods of the 2022 edition, and SOCKS5.

use std::net::SocketAddr;

use adit_interop::shadowsocks::MethodKey;
use serde_json::{Value, json};

use super::{PeerKind, PeerRole, StartRecipe};

pub(super) const KIND: PeerKind = PeerKind {
    name: "shadowsocks-go",
    programs: &["shadowsocks-go"],
    // Its first line is `shadowsocks-go 1.14.0`; details of the build follow.
    version: |programs| programs.first_line(&["-version"]),
    recipe: start_recipe,
    threads: Some("GOMAXPROCS"),
    relay_files: 6,
    ..PeerKind::DEFAULT
};

/// The MTU of the path, from which it derives the sizes of its datagrams.
const MTU: u32 = 1500;

fn start_recipe(role: &PeerRole, at: SocketAddr) -> Option<StartRecipe> {
    let mut server = json!({
        "name": "in",
        "tcpListeners": [{"network": "tcp", "address": at}],
        "mtu": MTU,
    });
    if role.has_udp() {
        server["udpListeners"] = json!([{"network": "udp", "address": at}]);
    }
    let direct = || json!({"name": "out", "protocol": "direct", "enableTCP": true, "enableUDP": true, "mtu": MTU});
    let client = match role {
        PeerRole::Relay => {
            server["protocol"] = json!("socks5");
            direct()
        }
        PeerRole::Server(method) => {
            server["protocol"] = json!(supported_method(*method)?.name);
            server["psk"] = json!(method.key);
            direct()
        }
        PeerRole::Forwarder {
            method,
            server: far,
            to,
        } => {
            server["protocol"] = json!("direct");
            server["tunnelRemoteAddress"] = json!(to);
            shadowsocks_json(supported_method(*method)?, *far)
        }
        PeerRole::Client {
            method,
            server: far,
        } => {
            server["protocol"] = json!("socks5");
            shadowsocks_json(supported_method(*method)?, *far)
        }
        _ => return None,
    };
    let config = json!({"servers": [server], "clients": [client]});
    let recipe = StartRecipe::new("shadowsocks-go", "-logLevel error -confPath");
    Some(recipe.with_config(config))
}

/// Returns `None` for a method it does not support.
fn supported_method(method: MethodKey) -> Option<MethodKey> {
    let aes = method.name.starts_with("2022-") && method.name.ends_with("-gcm");
    aes.then_some(method)
}

fn shadowsocks_json(method: MethodKey, server: SocketAddr) -> Value {
    json!({
        "name": "out",
        "protocol": method.name,
        "endpoint": server,
        "enableTCP": true,
        "enableUDP": true,
        "mtu": MTU,
        "psk": method.key,
    })
}
