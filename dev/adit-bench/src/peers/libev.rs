//! shadowsocks-libev: the methods of SIP004, a program for each role.

use std::net::SocketAddr;

use super::{PeerKind, PeerRole, StartRecipe};

pub(super) const KIND: PeerKind = PeerKind {
    name: "shadowsocks-libev",
    programs: &["ss-server", "ss-tunnel", "ss-local"],
    version: |programs| programs.first_line(&["-h"]),
    recipe: start_recipe,
    ..PeerKind::DEFAULT
};

fn start_recipe(role: &PeerRole, at: SocketAddr) -> Option<StartRecipe> {
    let (ip, port) = (at.ip(), at.port());
    let ends =
        |server: &SocketAddr| format!("-s {} -p {} -b {ip} -l {port}", server.ip(), server.port());
    let (program, line, method) = match role {
        PeerRole::Server(method) => ("ss-server", format!("-s {ip} -p {port}"), method),
        PeerRole::Forwarder { method, server, to } => {
            ("ss-tunnel", format!("{} -L {to}", ends(server)), method)
        }
        PeerRole::Client { method, server } => ("ss-local", ends(server), method),
        _ => return None,
    };
    // It does not support the 2022 edition.
    let known = !method.name.starts_with("2022-");
    let words = ["-m", method.name, "-k", method.key, "-u"];
    known.then(|| StartRecipe::new(program, &line).with_args(words))
}
