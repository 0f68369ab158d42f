//! shadowsocks-rust: `ssservice`, which contains all its programs.

use std::net::SocketAddr;

use super::{Kind, Recipe, Role};

pub(super) const KIND: Kind = Kind {
    name: "shadowsocks-rust",
    programs: &["ssservice"],
    recipe,
    threads: Some("TOKIO_WORKER_THREADS"),
    ..Kind::USUAL
};

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let (line, method) = match role {
        Role::Server(method) => (format!("server -s {at}"), method),
        Role::Forwarder { method, server, to } => {
            let line = format!("local -b {at} -s {server} --protocol tunnel -f {to}");
            (line, method)
        }
        Role::Client { method, server } => (format!("local -b {at} -s {server}"), method),
        _ => return None,
    };
    // It does not support AES-192-GCM.
    let known = method.name != "aes-192-gcm";
    let words = ["-m", method.name, "-k", method.key, "-U"];
    known.then(|| Recipe::new("ssservice", &line).and(words))
}
