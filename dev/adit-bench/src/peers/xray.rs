//! Xray-core: one process, one inbound, one outbound.

use std::net::SocketAddr;

use adit_interop::shadowsocks::Method;
use serde_json::{Value, json};

use super::{Kind, Programs, Recipe, Role};

pub(super) const KIND: Kind = Kind {
    name: "Xray",
    programs: &["xray"],
    version,
    recipe,
    threads: Some("GOMAXPROCS"),
    relay_files: 6,
    ..Kind::USUAL
};

/// Its first line is `Xray 26.3.27 (Xray, Penetrates Everything.) …`.
fn version(programs: &Programs) -> String {
    let told = programs.ask(&["version"]);
    let words: Vec<&str> = told.split_whitespace().take(2).collect();
    words.join(" ")
}

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let (protocol, settings, outbound) = match role {
        Role::Relay => ("socks", json!({"auth": "noauth", "udp": false}), direct()),
        Role::Server(method) => {
            let settings = json!({
                "method": known(*method)?.name,
                "password": method.key,
                "network": "tcp,udp",
            });
            ("shadowsocks", settings, direct())
        }
        Role::Forwarder { method, server, to } => {
            let settings = json!({"address": to.ip(), "port": to.port(), "network": "tcp,udp"});
            (
                "dokodemo-door",
                settings,
                shadowsocks(known(*method)?, *server),
            )
        }
        Role::Client { method, server } => (
            "socks",
            json!({"auth": "noauth", "udp": false}),
            shadowsocks(known(*method)?, *server),
        ),
        _ => return None,
    };
    let inbound = json!({
        "listen": at.ip(),
        "port": at.port(),
        "protocol": protocol,
        "settings": settings,
    });
    let config = json!({
        "log": {"loglevel": "error", "access": "none"},
        "inbounds": [inbound],
        "outbounds": [outbound],
    });
    Some(Recipe::new("xray", "run -format json -c").with_config(config))
}

/// Returns an outbound with the rule without which Xray refuses loopback.
fn direct() -> Value {
    json!({"protocol": "freedom", "settings": {"finalRules": [{"action": "allow"}]}})
}

/// Returns `None` for a method it does not support.
fn known(method: Method) -> Option<Method> {
    let unknown = ["aes-192-gcm", "2022-blake3-chacha8-poly1305"];
    (!unknown.contains(&method.name)).then_some(method)
}

fn shadowsocks(method: Method, server: SocketAddr) -> Value {
    let server = json!({
        "address": server.ip(),
        "port": server.port(),
        "method": method.name,
        "password": method.key,
    });
    json!({"protocol": "shadowsocks", "settings": {"servers": [server]}})
}
