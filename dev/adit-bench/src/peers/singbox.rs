//! sing-box: one process, one inbound, one outbound.

use std::net::SocketAddr;
use std::path::Path;

use adit_interop::shadowsocks::Method;
use serde_json::{Value, json};

use super::{Kind, Programs, Recipe, Role, relay_key};
use crate::places;

pub(super) const KIND: Kind = Kind {
    name: "sing-box",
    programs: &["sing-box"],
    version,
    recipe,
    threads: Some("GOMAXPROCS"),
    relay_files: 6,
    ..Kind::USUAL
};

/// A build by `go install` does not report its version; the module's version is in the binary.
fn version(programs: &Programs) -> String {
    let line = programs.line(&["version"]);
    if !line.is_empty() && !line.contains("unknown") {
        return line.replace("sing-box version", "sing-box");
    }
    let Some(path) = programs.path("sing-box") else {
        return String::new();
    };
    module_version(path).map_or_else(String::new, |version| format!("sing-box {version}"))
}

fn module_version(path: &Path) -> Option<String> {
    let told = places::output_of("go", &["version", "-m", path.to_str()?]);
    let line = told
        .lines()
        .find_map(|line| line.trim().strip_prefix("mod\t"))?;
    line.split('\t')
        .nth(1)
        .map(|version| version.trim_start_matches('v').to_owned())
}

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let mut inbound = json!({"listen": at.ip(), "listen_port": at.port()});
    let outbound = match role {
        Role::Passage { method, to } => {
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
        Role::Behind { method, relay, to } => {
            inbound["type"] = json!("direct");
            inbound["override_address"] = json!(to.ip());
            inbound["override_port"] = json!(to.port());
            let mut outbound = shadowsocks(*method, *relay);
            outbound["password"] = json!(format!("{}:{}", relay_key(*method)?, method.key));
            outbound
        }
        Role::Relay => {
            inbound["type"] = json!("socks");
            json!({"type": "direct"})
        }
        Role::Server(method) => {
            inbound["type"] = json!("shadowsocks");
            inbound["method"] = json!(known(*method)?.name);
            inbound["password"] = json!(method.key);
            json!({"type": "direct"})
        }
        Role::Forwarder { method, server, to } => {
            inbound["type"] = json!("direct");
            inbound["override_address"] = json!(to.ip());
            inbound["override_port"] = json!(to.port());
            shadowsocks(known(*method)?, *server)
        }
        Role::Client { method, server } => {
            inbound["type"] = json!("socks");
            shadowsocks(known(*method)?, *server)
        }
        _ => return None,
    };
    let config = json!({"log": {"level": "error"}, "inbounds": [inbound], "outbounds": [outbound]});
    Some(Recipe::new("sing-box", "run -c").with_config(config))
}

/// Returns `None` for a method it does not support.
fn known(method: Method) -> Option<Method> {
    (method.name != "2022-blake3-chacha8-poly1305").then_some(method)
}

fn shadowsocks(method: Method, server: SocketAddr) -> Value {
    json!({
        "type": "shadowsocks",
        "server": server.ip(),
        "server_port": server.port(),
        "method": method.name,
        "password": method.key,
    })
}
