//! A program on the crate russh (`dev/adit-interop/peers/russhpeer`).

use std::net::SocketAddr;

use super::ssh::client;
use super::{Kind, Programs, Recipe, Role, Source};

pub(super) const KIND: Kind = Kind {
    name: "russh",
    programs: &["russhpeer"],
    version,
    recipe,
    threads: Some("TOKIO_WORKER_THREADS"),
    relay_files: 4,
    most_held: None,
    slower: 1,
    source: Source::Installed,
};

fn version(programs: &Programs) -> String {
    programs.ask(&["--version"])
}

fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    let (Role::SshServer(suite) | Role::SshClient { suite, .. }) = role else {
        return None;
    };
    // It has no UMAC, and nobody can add one from outside.
    if suite.mac.is_some_and(|mac| mac.starts_with("umac")) {
        return None;
    }
    let words = match role {
        Role::SshClient {
            suite,
            server,
            what,
        } => {
            let words = client(at, *suite, *server, *what);
            std::iter::once("client".to_owned()).chain(words).collect()
        }
        _ => {
            let at = at.to_string();
            let mut words = vec!["server", "--listen", &at, "--host-key", "host"];
            words.extend(["--authorized-keys", "authorized_keys", "-c", suite.cipher]);
            if let Some(mac) = suite.mac {
                words.extend(["-m", mac]);
            }
            words.into_iter().map(str::to_owned).collect::<Vec<_>>()
        }
    };
    Some(Recipe::new("russhpeer", words).with_keys())
}
