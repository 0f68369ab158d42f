//! shadowsocks-rust: `ssservice`, which is all its programs in one.

use std::net::SocketAddr;

use super::{Kind, Programs, Recipe, Role, Source};

pub(super) const KIND: Kind = Kind {
    name: "shadowsocks-rust",
    programs: &["ssservice"],
    version,
    recipe,
    threads: Some("TOKIO_WORKER_THREADS"),
    relay_files: 2,
    most_held: None,
    slower: 1,
    source: Source::Installed,
};

fn version(programs: &Programs) -> String {
    programs.ask(&["--version"])
}

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let (mut words, method) = match role {
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
        | Role::SshClient { .. } => return None,
        Role::Server(method) => (
            vec!["server".to_owned(), "-s".to_owned(), at.to_string()],
            method,
        ),
        Role::Forwarder { method, server, to } => {
            let mut words = local(at, *server);
            words.extend(["--protocol", "tunnel", "-f"].map(str::to_owned));
            words.push(to.to_string());
            (words, method)
        }
        Role::Client { method, server } => (local(at, *server), method),
    };
    // It has no AES-192-GCM.
    if method.name == "aes-192-gcm" {
        return None;
    }
    words.extend(["-m", method.name, "-k", method.key, "-U"].map(str::to_owned));
    Some(Recipe::new("ssservice", words))
}

fn local(at: SocketAddr, server: SocketAddr) -> Vec<String> {
    ["local", "-b", &at.to_string(), "-s", &server.to_string()]
        .map(str::to_owned)
        .to_vec()
}
