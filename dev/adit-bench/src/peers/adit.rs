//! adit itself: every role is a word or two of URLs.

use std::net::SocketAddr;

use adit_interop::shadowsocks::{Client, Method};

use super::ssh::client;
use super::{Kind, Programs, Recipe, Role, Source, kcptun, relay_key};

pub(super) const KIND: Kind = Kind {
    name: "adit",
    programs: &["adit"],
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

pub(super) fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    if let Some((end, words)) = kcptun::words(role, at) {
        let head = ["kcp".to_owned(), end.to_owned()];
        return Some(Recipe::new("adit", head.into_iter().chain(words)));
    }
    let words = match role {
        Role::SshServer(_) => {
            let listen = at.to_string();
            let words = ["sshd", "--listen", &listen, "--host-key", "host"];
            let keys = ["--authorized-keys", "authorized_keys"];
            return Some(Recipe::new("adit", words.into_iter().chain(keys)).with_keys());
        }
        Role::SshClient {
            suite,
            server,
            what,
        } => {
            let words = client(at, *suite, *server, *what);
            let words = std::iter::once("ssh".to_owned()).chain(words);
            return Some(Recipe::new("adit", words).with_keys());
        }
        Role::Relay => vec![format!("socks5://{at}")],
        Role::Server(method) => vec![format!("{}?allow_private=127.0.0.0/8", method.url(at))],
        Role::Forwarder { method, server, to } => {
            vec![format!("tcp+udp://{at}/{to}"), method.url(*server)]
        }
        Role::Passage { method, to } => {
            let own = Method {
                key: relay_key(*method)?,
                ..*method
            };
            let config = format!(
                "[route.relay]\nlisten = \"{}\"\n\n[[route.relay.relay]]\nserver = \"{}\"\n\
                 port = {}\npsk = \"{}\"\n",
                own.url(at),
                to.ip(),
                to.port(),
                method.key
            );
            return Some(Recipe::new("adit", ["run", "-c"]).with_config(config));
        }
        Role::Behind { method, relay, to } => {
            let keys = [relay_key(*method)?, method.key];
            let client = Client::new(*method, &keys, *relay);
            vec![format!("tcp://{at}/{to}"), client.url()]
        }
        Role::SsrServer(setup) => vec![format!("{}&allow_private=127.0.0.0/8", setup.url(at))],
        Role::SsrClient { setup, server } => {
            vec![format!("socks5://{at}"), setup.url(*server)]
        }
        Role::KcptunServer { .. }
        | Role::KcptunClient { .. }
        | Role::RecordsEntry { .. }
        | Role::RecordsExit(_) => return None,
        Role::Client { method, server } => vec![format!("socks5://{at}"), method.url(*server)],
    };
    Some(Recipe::new(
        "adit",
        std::iter::once("run".to_owned()).chain(words),
    ))
}
