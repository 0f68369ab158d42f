//! Lower bounds for a relay and a tunnel: two blocking threads per connection that do nothing but
//! `splice(2)`, behind a SOCKS5 request or between adit's client and server; or that do nothing but
//! read, seal or open, and write, records and datagrams.

use std::net::SocketAddr;

use super::{PeerKind, PeerRole, StartRecipe, adit};

pub(super) const SPLICE: PeerKind = PeerKind {
    name: "bare splice",
    programs: &["adit-bench", "adit"],
    version: |_| "two blocking threads per connection".to_owned(),
    recipe: splice_recipe,
    relay_files: 6,
    is_floor: true,
    ..PeerKind::DEFAULT
};

pub(super) const RECORDS: PeerKind = PeerKind {
    name: "bare records",
    programs: &["adit-bench"],
    version: |_| "two blocking threads per connection, or for all datagrams".to_owned(),
    recipe: records_recipe,
    ..SPLICE
};

fn splice_recipe(role: &PeerRole, at: SocketAddr) -> Option<StartRecipe> {
    match role {
        PeerRole::Relay => Some(StartRecipe::new("adit-bench", &format!("splice {at}"))),
        PeerRole::Passage { to, .. } => {
            Some(StartRecipe::new("adit-bench", &format!("splice {at} {to}")))
        }
        // No one takes a header off on the way.
        PeerRole::Behind { method, relay, to } => {
            let forwarder = PeerRole::Forwarder {
                method: *method,
                server: *relay,
                to: *to,
            };
            adit::start_recipe(&forwarder, at)
        }
        PeerRole::Server(_) => adit::start_recipe(role, at),
        _ => None,
    }
}

fn records_recipe(role: &PeerRole, at: SocketAddr) -> Option<StartRecipe> {
    let end = match role {
        PeerRole::Forwarder { method, server, to } => {
            format!("{} {at} {server} {to}", method.name)
        }
        PeerRole::Server(method) => format!("{} {at}", method.name),
        _ => return None,
    };
    Some(StartRecipe::new("adit-bench", &format!("records {end}")))
}
