//! sing-box: one process, one inbound, one outbound.

use std::net::SocketAddr;
use std::path::Path;

use adit_interop::shadowsocks::MethodKey;
use serde_json::{Value, json};

use super::{PeerKind, PeerRole, ProgramPaths, StartRecipe, relay_key};
use crate::locations;

pub(super) const KIND: PeerKind = PeerKind {
    name: "sing-box",
    programs: &["sing-box"],
    version: sing_box_version,
    recipe: start_recipe,
    threads: Some("GOMAXPROCS"),
    relay_files: 6,
    ..PeerKind::DEFAULT
};

/// A build by `go install` does not report its version; the module's version is in the binary.
fn sing_box_version(programs: &ProgramPaths) -> String {
    let line = programs.first_line(&["version"]);
    if !line.is_empty() && !line.contains("unknown") {
        return line.replace("sing-box version", "sing-box");
    }
    let Some(path) = programs.path("sing-box") else {
        return String::new();
    };
    module_version(path).map_or_else(String::new, |version| format!("sing-box {version}"))
}

fn module_version(path: &Path) -> Option<String> {
    let told = locations::output_of("go", &["version", "-m", path.to_str()?]);
    let line = told
        .lines()
        .find_map(|line| line.trim().strip_prefix("mod\t"))?;
    line.split('\t')
        .nth(1)
        .map(|version| version.trim_start_matches('v').to_owned())
}

fn start_recipe(role: &PeerRole, at: SocketAddr) -> Option<StartRecipe> {
    let mut inbound = json!({"listen": at.ip(), "listen_port": at.port()});
    let outbound = match role {
        PeerRole::Passage { method, to } => {
            inbound["type"] = json!("shadowsocks");
            inbound["method"] = json!(method.name);
            inbound["password"] = json!(relay_key(*method)?);
            inbound["destinations"] = json!([{
                "name": "server",
                "server": to.ip(),
                "server_port": to.port(),
                "password": method.key,
            }]);
            json!({"type": "direct"})
        }
        PeerRole::Behind { method, relay, to } => {
            inbound["type"] = json!("direct");
            inbound["override_address"] = json!(to.ip());
            inbound["override_port"] = json!(to.port());
            let mut outbound = shadowsocks_json(*method, *relay);
            outbound["password"] = json!(format!("{}:{}", relay_key(*method)?, method.key));
            outbound
        }
        PeerRole::Relay => {
            inbound["type"] = json!("socks");
            json!({"type": "direct"})
        }
        PeerRole::Server(method) => {
            inbound["type"] = json!("shadowsocks");
            inbound["method"] = json!(supported_method(*method)?.name);
            inbound["password"] = json!(method.key);
            json!({"type": "direct"})
        }
        PeerRole::Forwarder { method, server, to } => {
            inbound["type"] = json!("direct");
            inbound["override_address"] = json!(to.ip());
            inbound["override_port"] = json!(to.port());
            shadowsocks_json(supported_method(*method)?, *server)
        }
        PeerRole::Client { method, server } => {
            inbound["type"] = json!("socks");
            shadowsocks_json(supported_method(*method)?, *server)
        }
        _ => return None,
    };
    let config = json!({"log": {"level": "error"}, "inbounds": [inbound], "outbounds": [outbound]});
    Some(StartRecipe::new("sing-box", "run -c").with_config(config))
}

/// Returns `None` for a method it does not support.
fn supported_method(method: MethodKey) -> Option<MethodKey> {
    (method.name != "2022-blake3-chacha8-poly1305").then_some(method)
}

fn shadowsocks_json(method: MethodKey, server: SocketAddr) -> Value {
    json!({
        "type": "shadowsocks",
        "server": server.ip(),
        "server_port": server.port(),
        "method": method.name,
        "password": method.key,
    })
}
