//! Nobody's relay: `splice(2)` from socket to socket, two threads for each connection, between
//! adit's client and server. What a relay costs here cannot be less by much.

use std::net::SocketAddr;

use super::{Kind, Programs, Recipe, Role, Source, adit};

pub(super) const KIND: Kind = Kind {
    name: "bare splice",
    programs: &["adit-bench", "adit"],
    version: |_: &Programs| "two blocking threads a connection".to_owned(),
    recipe,
    threads: None,
    relay_files: 6,
    most_held: None,
    slower: 1,
    source: Source::Installed,
};

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    match role {
        Role::Passage { to, .. } => {
            let ends = format!("{at},{to}");
            Some(Recipe::new("adit-bench", ["--splice", &ends]))
        }
        // Nobody takes a header off on the way.
        Role::Behind { method, relay, to } => {
            let forwarder = Role::Forwarder {
                method: *method,
                server: *relay,
                to: *to,
            };
            adit::recipe(&forwarder, at)
        }
        Role::Server(_) => adit::recipe(role, at),
        _ => None,
    }
}
