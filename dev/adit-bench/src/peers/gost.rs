//! gost: a SOCKS5 server here; no package registry offers it.

use std::net::SocketAddr;

use super::{Kind, Programs, Recipe, Role, Source};

pub(super) const KIND: Kind = Kind {
    name: "gost",
    programs: &["gost"],
    version,
    recipe,
    threads: Some("GOMAXPROCS"),
    relay_files: 6,
    most_held: None,
    slower: 1,
    source: Source::ByHand,
};

fn version(programs: &Programs) -> String {
    let told = programs.ask(&["-V"]);
    told.lines().next().unwrap_or_default().to_owned()
}

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let Role::Relay = role else {
        return None;
    };
    Some(Recipe::new(
        "gost",
        ["-L".to_owned(), format!("socks5://{at}")],
    ))
}
