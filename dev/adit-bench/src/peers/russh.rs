//! A program on the crate russh (`dev/adit-interop/peers/russhpeer`).

use std::net::SocketAddr;

use super::ssh::client;
use super::{Kind, Recipe, Role};

pub(super) const KIND: Kind = Kind {
    name: "russh",
    programs: &["russhpeer"],
    recipe,
    threads: Some("TOKIO_WORKER_THREADS"),
    relay_files: 4,
    ..Kind::USUAL
};

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let (Role::SshServer(suite) | Role::SshClient { suite, .. }) = *role else {
        return None;
    };
    // It has no UMAC, and a program cannot add one.
    if suite.mac.is_some_and(|mac| mac.starts_with("umac")) {
        return None;
    }
    if let Role::SshClient { server, what, .. } = *role {
        let recipe = Recipe::new("russhpeer", "client");
        return Some(client(recipe, at, suite, server, what));
    }
    let keys = "--host-key host --authorized-keys authorized_keys";
    let line = format!("server --listen {at} {keys} {}", suite.words());
    Some(Recipe::new("russhpeer", &line).with_keys())
}
