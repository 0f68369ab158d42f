//! A program on the crate russh (`dev/adit-interop/peers/russhpeer`).

use std::net::SocketAddr;

use super::ssh_common::client_recipe;
use super::{PeerKind, PeerRole, StartRecipe};

pub(super) const KIND: PeerKind = PeerKind {
    name: "russh",
    programs: &["russhpeer"],
    recipe: start_recipe,
    threads: Some("TOKIO_WORKER_THREADS"),
    relay_files: 4,
    ..PeerKind::DEFAULT
};

fn start_recipe(role: &PeerRole, at: SocketAddr) -> Option<StartRecipe> {
    let (PeerRole::SshServer(suite) | PeerRole::SshClient { suite, .. }) = *role else {
        return None;
    };
    // It has no UMAC, and a program cannot add one.
    if suite.mac.is_some_and(|mac| mac.starts_with("umac")) {
        return None;
    }
    if let PeerRole::SshClient { server, what, .. } = *role {
        let recipe = StartRecipe::new("russhpeer", "client");
        return Some(client_recipe(recipe, at, suite, server, what));
    }
    let keys = "--host-key host --authorized-keys authorized_keys";
    let line = format!("server --listen {at} {keys} {}", suite.arguments());
    Some(StartRecipe::new("russhpeer", &line).with_keys())
}
