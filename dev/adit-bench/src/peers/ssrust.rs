//! shadowsocks-rust: `ssservice`, which contains all its programs.

use std::net::SocketAddr;

use super::{PeerKind, PeerRole, StartRecipe};

pub(super) const KIND: PeerKind = PeerKind {
    name: "shadowsocks-rust",
    programs: &["ssservice"],
    recipe: start_recipe,
    threads: Some("TOKIO_WORKER_THREADS"),
    ..PeerKind::DEFAULT
};

fn start_recipe(role: &PeerRole, at: SocketAddr) -> Option<StartRecipe> {
    let (line, method) = match role {
        PeerRole::Server(method) => (format!("server -s {at}"), method),
        PeerRole::Forwarder { method, server, to } => {
            let line = format!("local -b {at} -s {server} --protocol tunnel -f {to}");
            (line, method)
        }
        PeerRole::Client { method, server } => (format!("local -b {at} -s {server}"), method),
        _ => return None,
    };
    // It does not support AES-192-GCM.
    let known = method.name != "aes-192-gcm";
    let words = ["-m", method.name, "-k", method.key, "-U"];
    known.then(|| StartRecipe::new("ssservice", &line).with_args(words))
}
