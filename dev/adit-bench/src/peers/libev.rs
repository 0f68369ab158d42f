//! shadowsocks-libev: the methods of SIP004, a program for each role.

use std::net::SocketAddr;

use adit_interop::shadowsocks::Method;

use super::{Kind, Programs, Recipe, Role, Source};

pub(super) const KIND: Kind = Kind {
    name: "shadowsocks-libev",
    programs: &["ss-server", "ss-tunnel", "ss-local"],
    version,
    recipe,
    threads: None,
    relay_files: 2,
    most_held: None,
    slower: 1,
    source: Source::Installed,
};

fn version(programs: &Programs) -> String {
    programs
        .ask(&["-h"])
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    match role {
        Role::Relay
        | Role::SsrServer(_)
        | Role::SsrClient { .. }
        | Role::KcptunServer { .. }
        | Role::KcptunClient { .. }
        | Role::Passage { .. }
        | Role::Behind { .. }
        | Role::RecordsEntry { .. }
        | Role::RecordsExit(_)
        | Role::SshServer(_)
        | Role::SshClient { .. } => None,
        Role::Server(method) => {
            let at = [
                "-s".to_owned(),
                at.ip().to_string(),
                "-p".to_owned(),
                at.port().to_string(),
            ];
            Some(Recipe::new(
                "ss-server",
                at.into_iter().chain(keyed(*method)?),
            ))
        }
        Role::Forwarder { method, server, to } => {
            let to = ["-L".to_owned(), to.to_string()];
            let words = ends(at, *server)
                .into_iter()
                .chain(keyed(*method)?)
                .chain(to);
            Some(Recipe::new("ss-tunnel", words))
        }
        Role::Client { method, server } => Some(Recipe::new(
            "ss-local",
            ends(at, *server).into_iter().chain(keyed(*method)?),
        )),
    }
}

fn ends(at: SocketAddr, server: SocketAddr) -> Vec<String> {
    let (server_ip, server_port) = (server.ip().to_string(), server.port().to_string());
    let (ip, port) = (at.ip().to_string(), at.port().to_string());
    ["-s", &server_ip, "-p", &server_port, "-b", &ip, "-l", &port]
        .map(str::to_owned)
        .to_vec()
}

/// None for the 2022 edition, which it does not have.
fn keyed(method: Method) -> Option<[String; 5]> {
    let known = !method.name.starts_with("2022-");
    known.then(|| ["-m", method.name, "-k", method.key, "-u"].map(str::to_owned))
}
