//! Lower bounds for a relay and a tunnel: two blocking threads per connection that do nothing but
//! `splice(2)`, behind a SOCKS5 request or between adit's client and server; or that do nothing but
//! read, seal or open, and write, records and datagrams.

use std::net::SocketAddr;

use super::{Kind, Recipe, Role, adit};

pub(super) const SPLICE: Kind = Kind {
    name: "bare splice",
    programs: &["adit-bench", "adit"],
    version: |_| "two blocking threads per connection".to_owned(),
    recipe: splice,
    relay_files: 6,
    floor: true,
    ..Kind::USUAL
};

pub(super) const RECORDS: Kind = Kind {
    name: "bare records",
    programs: &["adit-bench"],
    version: |_| "two blocking threads per connection, or for all datagrams".to_owned(),
    recipe: records,
    ..SPLICE
};

fn splice(role: &Role, at: SocketAddr) -> Option<Recipe> {
    match role {
        Role::Relay => Some(Recipe::new("adit-bench", &format!("splice {at}"))),
        Role::Passage { to, .. } => Some(Recipe::new("adit-bench", &format!("splice {at} {to}"))),
        // No process on the way removes an identity header.
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

fn records(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let end = match role {
        Role::Forwarder { method, server, to } => {
            format!("{} {at} {server} {to}", method.name)
        }
        Role::Server(method) => format!("{} {at}", method.name),
        _ => return None,
    };
    Some(Recipe::new("adit-bench", &format!("records {end}")))
}
