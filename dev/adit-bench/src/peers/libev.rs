//! shadowsocks-libev: the methods of SIP004, a program for each role.

use std::net::SocketAddr;

use super::{Kind, Recipe, Role};

pub(super) const KIND: Kind = Kind {
    name: "shadowsocks-libev",
    programs: &["ss-server", "ss-tunnel", "ss-local"],
    version: |programs| programs.line(&["-h"]),
    recipe,
    ..Kind::USUAL
};

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let (ip, port) = (at.ip(), at.port());
    let ends =
        |server: &SocketAddr| format!("-s {} -p {} -b {ip} -l {port}", server.ip(), server.port());
    let (program, line, method) = match role {
        Role::Server(method) => ("ss-server", format!("-s {ip} -p {port}"), method),
        Role::Forwarder { method, server, to } => {
            ("ss-tunnel", format!("{} -L {to}", ends(server)), method)
        }
        Role::Client { method, server } => ("ss-local", ends(server), method),
        _ => return None,
    };
    // It does not support the 2022 edition.
    let known = !method.name.starts_with("2022-");
    let words = ["-m", method.name, "-k", method.key, "-u"];
    known.then(|| Recipe::new(program, &line).and(words))
}
