//! Xray-core: one process, one inbound, one outbound.

use std::net::SocketAddr;

use adit_interop::shadowsocks::MethodKey;
use serde_json::{Value, json};

use super::{PeerKind, PeerRole, ProgramPaths, StartRecipe};

pub(super) const KIND: PeerKind = PeerKind {
    name: "Xray",
    programs: &["xray"],
    version: xray_version,
    recipe: start_recipe,
    threads: Some("GOMAXPROCS"),
    relay_files: 6,
    ..PeerKind::DEFAULT
};

/// Its first line is `Xray 26.3.27 (Xray, Penetrates Everything.) …`.
fn xray_version(programs: &ProgramPaths) -> String {
    let told = programs.output_of(&["version"]);
    let words: Vec<&str> = told.split_whitespace().take(2).collect();
    words.join(" ")
}

fn start_recipe(role: &PeerRole, at: SocketAddr) -> Option<StartRecipe> {
    let (protocol, settings, outbound) = match role {
        PeerRole::Relay => (
            "socks",
            json!({"auth": "noauth", "udp": false}),
            direct_outbound(),
        ),
        PeerRole::Server(method) => {
            let settings = json!({
                "method": supported_method(*method)?.name,
                "password": method.key,
                "network": "tcp,udp",
            });
            ("shadowsocks", settings, direct_outbound())
        }
        PeerRole::Forwarder { method, server, to } => {
            let settings = json!({"address": to.ip(), "port": to.port(), "network": "tcp,udp"});
            (
                "dokodemo-door",
                settings,
                shadowsocks_json(supported_method(*method)?, *server),
            )
        }
        PeerRole::Client { method, server } => (
            "socks",
            json!({"auth": "noauth", "udp": false}),
            shadowsocks_json(supported_method(*method)?, *server),
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
    Some(StartRecipe::new("xray", "run -format json -c").with_config(config))
}

/// Returns an outbound with the rule without which Xray refuses loopback.
fn direct_outbound() -> Value {
    json!({"protocol": "freedom", "settings": {"finalRules": [{"action": "allow"}]}})
}

/// Returns `None` for a method it does not support.
fn supported_method(method: MethodKey) -> Option<MethodKey> {
    let unknown = ["aes-192-gcm", "2022-blake3-chacha8-poly1305"];
    (!unknown.contains(&method.name)).then_some(method)
}

fn shadowsocks_json(method: MethodKey, server: SocketAddr) -> Value {
    let server = json!({
        "address": server.ip(),
        "port": server.port(),
        "method": method.name,
        "password": method.key,
    });
    json!({"protocol": "shadowsocks", "settings": {"servers": [server]}})
}
