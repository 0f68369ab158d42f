//! shadowsocks-go: the AES methods of the 2022 edition, and SOCKS5.

use std::net::SocketAddr;

use adit_interop::shadowsocks::Method;
use serde_json::{Value, json};

use super::{Kind, Recipe, Role};

pub(super) const KIND: Kind = Kind {
    name: "shadowsocks-go",
    programs: &["shadowsocks-go"],
    // Its first line is `shadowsocks-go 1.14.0`; details of the build follow.
    version: |programs| programs.line(&["-version"]),
    recipe,
    threads: Some("GOMAXPROCS"),
    relay_files: 6,
    ..Kind::USUAL
};

/// The MTU of the path, from which it derives the sizes of its datagrams.
const MTU: u32 = 1500;

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
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
        Role::Relay => {
            server["protocol"] = json!("socks5");
            direct()
        }
        Role::Server(method) => {
            server["protocol"] = json!(known(*method)?.name);
            server["psk"] = json!(method.key);
            direct()
        }
        Role::Forwarder {
            method,
            server: far,
            to,
        } => {
            server["protocol"] = json!("direct");
            server["tunnelRemoteAddress"] = json!(to);
            shadowsocks(known(*method)?, *far)
        }
        Role::Client {
            method,
            server: far,
        } => {
            server["protocol"] = json!("socks5");
            shadowsocks(known(*method)?, *far)
        }
        _ => return None,
    };
    let config = json!({"servers": [server], "clients": [client]});
    let recipe = Recipe::new("shadowsocks-go", "-logLevel error -confPath");
    Some(recipe.with_config(config))
}

/// Returns `None` for a method it does not support.
fn known(method: Method) -> Option<Method> {
    let aes = method.name.starts_with("2022-") && method.name.ends_with("-gcm");
    aes.then_some(method)
}

fn shadowsocks(method: Method, server: SocketAddr) -> Value {
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
