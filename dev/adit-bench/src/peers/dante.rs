//! Dante: a SOCKS server with a process for every few connections.

use std::net::SocketAddr;

use super::{Kind, Programs, Recipe, Role, Source};

pub(super) const KIND: Kind = Kind {
    name: "dante",
    programs: &["danted"],
    version,
    recipe,
    threads: None,
    relay_files: 2,
    most_held: Some((
        2000,
        "a process for every few connections, 300 KiB for each",
    )),
    slower: 1,
    source: Source::Installed,
};

fn version(programs: &Programs) -> String {
    let told = programs.ask(&["-v"]);
    // `Dante v1.4.2.  Copyright …`
    let line = told.lines().next().unwrap_or_default();
    line.split_once(".  ")
        .map_or(line, |(version, _)| version)
        .to_owned()
}

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let Role::Relay = role else {
        return None;
    };
    let config = format!(
        "errorlog: stderr\n\
         internal: {ip} port = {port}\n\
         external: {ip}\n\
         clientmethod: none\n\
         socksmethod: none\n\
         client pass {{ from: {ip}/8 to: 0.0.0.0/0 }}\n\
         socks pass {{ from: {ip}/8 to: 0.0.0.0/0 }}\n",
        ip = at.ip(),
        port = at.port(),
    );
    Some(Recipe::new("danted", ["-f"]).with_config(config))
}
