//! adit itself: the roles are URLs on the command line.

use std::net::SocketAddr;

use adit_interop::shadowsocks::{Client, Method};

use super::ssh::client;
use super::{Kind, Recipe, Role, kcptun, relay_key};

pub(super) const KIND: Kind = Kind {
    name: "adit",
    programs: &["adit"],
    recipe,
    threads: Some("TOKIO_WORKER_THREADS"),
    ..Kind::USUAL
};

pub(super) fn recipe(role: &Role, at: SocketAddr) -> Option<Recipe> {
    if let Some((end, line)) = kcptun::line(role, at) {
        return Some(Recipe::new("adit", &format!("kcp {end} {line}")));
    }
    let line = match role {
        Role::SshServer(_) => {
            let keys = "--host-key host --authorized-keys authorized_keys";
            let line = format!("sshd --listen {at} {keys}");
            return Some(Recipe::new("adit", &line).with_keys());
        }
        Role::SshClient {
            suite,
            server,
            what,
        } => {
            return Some(client(
                Recipe::new("adit", "ssh"),
                at,
                *suite,
                *server,
                *what,
            ));
        }
        Role::Relay => format!("socks5://{at}"),
        Role::Server(method) => format!("{}?allow_private=127.0.0.0/8", method.url(at)),
        Role::Forwarder { method, server, to } => {
            format!("tcp+udp://{at}/{to} {}", method.url(*server))
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
            return Some(Recipe::new("adit", "run -c").with_config(config));
        }
        Role::Behind { method, relay, to } => {
            let keys = [relay_key(*method)?, method.key];
            let client = Client::new(*method, &keys, *relay);
            format!("tcp://{at}/{to} {}", client.url())
        }
        Role::SsrServer(setup) => format!("{}&allow_private=127.0.0.0/8", setup.url(at)),
        Role::SsrClient { setup, server } => format!("socks5://{at} {}", setup.url(*server)),
        Role::Client { method, server } => format!("socks5://{at} {}", method.url(*server)),
        _ => return None,
    };
    Some(Recipe::new("adit", &format!("run {line}")))
}
