//! microsocks: a SOCKS5 server with a thread per connection.

use std::net::SocketAddr;

use super::{Kind, Programs, Recipe, Role, Source};
use crate::places;

pub(super) const KIND: Kind = Kind {
    name: "microsocks",
    programs: &["microsocks"],
    version,
    recipe,
    threads: None,
    relay_files: 2,
    most_held: Some((10_000, "a thread for each connection")),
    slower: 1,
    source: Source::Installed,
};

/// It does not know its version; Debian does.
fn version(programs: &Programs) -> String {
    let packaged = programs
        .path("microsocks")
        .is_some_and(|path| path.starts_with("/usr/bin"));
    let version = if packaged {
        places::debian_version("microsocks")
    } else {
        String::new()
    };
    if version.is_empty() {
        version
    } else {
        format!("microsocks {version}")
    }
}

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let Role::Relay = role else {
        return None;
    };
    let (ip, port) = (at.ip().to_string(), at.port().to_string());
    Some(Recipe::new("microsocks", ["-i", &ip, "-p", &port]))
}
