//! adit itself: the roles are URLs on the command line.

use std::net::SocketAddr;

use adit_interop::shadowsocks::{ClientSetup, MethodKey};

use super::ssh_common::client_recipe;
use super::{PeerKind, PeerRole, StartRecipe, kcptun, relay_key};

pub(super) const KIND: PeerKind = PeerKind {
    name: "adit",
    programs: &["adit"],
    recipe: start_recipe,
    threads: Some("TOKIO_WORKER_THREADS"),
    ..PeerKind::DEFAULT
};

/// An older build of adit, of `--before`.
pub(super) const BEFORE: PeerKind = PeerKind {
    name: "adit before",
    earlier_build_of: Some(KIND.name),
    ..KIND
};

pub(super) fn start_recipe(role: &PeerRole, at: SocketAddr) -> Option<StartRecipe> {
    if let Some((end, line)) = kcptun::end_and_options(role, at) {
        return Some(StartRecipe::new("adit", &format!("kcp {end} {line}")));
    }
    let line = match role {
        PeerRole::SshServer(_) => {
            let keys = "--host-key host --authorized-keys authorized_keys";
            let line = format!("sshd --listen {at} {keys}");
            return Some(StartRecipe::new("adit", &line).with_keys());
        }
        PeerRole::SshClient {
            suite,
            server,
            what,
        } => {
            return Some(client_recipe(
                StartRecipe::new("adit", "ssh"),
                at,
                *suite,
                *server,
                *what,
            ));
        }
        PeerRole::Relay => format!("socks5://{at}"),
        PeerRole::Server(method) => format!("{}?allow_private=127.0.0.0/8", method.url(at)),
        PeerRole::Forwarder { method, server, to } => {
            format!("tcp+udp://{at}/{to} {}", method.url(*server))
        }
        PeerRole::Passage { method, to } => {
            let own = MethodKey {
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
            return Some(StartRecipe::new("adit", "run -c").with_config(config));
        }
        PeerRole::Behind { method, relay, to } => {
            let keys = [relay_key(*method)?, method.key];
            let client = ClientSetup::new(*method, &keys, *relay);
            format!("tcp://{at}/{to} {}", client.url())
        }
        PeerRole::SsrServer(setup) => format!("{}&allow_private=127.0.0.0/8", setup.url(at)),
        PeerRole::SsrClient { setup, server } => format!("socks5://{at} {}", setup.url(*server)),
        PeerRole::Client { method, server } => format!("socks5://{at} {}", method.url(*server)),
        _ => return None,
    };
    Some(StartRecipe::new("adit", &format!("run {line}")))
}
