//! Shadowsocks listeners: servers with one key or with users, and relays.

use std::sync::Arc;
use std::time::Duration;

use adit_config::{Listen, ListenKind, Restart as RestartPlan, SsRole, SsServer};
use adit_shadowsocks::relay::RelayTable;
use adit_shadowsocks::{Edition, Key, Restart, Users};
use adit_wire::Target;

use super::replays::{Name, Seen};
use super::users_file::UsersFile;
use super::{Bench, KeyedClients, Served, for_each_core};
use crate::acceptor::{Keyed, Rejects, RelayAcceptor};
use crate::serve::Worker;
use crate::udp::{KeyedPackets, PacketCodec, RelayPackets, Ttl};
use crate::{Roster, StartError};

/// Minimum time that a session of the 2022 edition must be remembered.
const MIN_SESSION: Duration = Duration::from_secs(60);

pub(super) fn served(server: &SsServer, bench: &Bench<'_>) -> Result<Served, StartError> {
    let rejects = Arc::new(Rejects::new(server.reject.clone()));
    let deadline = bench.listen.limits.handshake;
    let ttl = ttl(server, bench.common.ttl);
    if let SsRole::Relay { identity, next } = &server.role {
        let key = |secret: &adit_config::Secret| Key::parse(server.method, secret.expose());
        let keys = next.iter().map(|hop| key(&hop.secret));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let table = RelayTable::new(&key(identity)?, keys)?;
        let next: Arc<[Target]> = next.iter().map(|hop| hop.server.clone()).collect();
        let acceptor = RelayAcceptor {
            table: table.clone(),
            next: next.clone(),
            salts: seen(server, bench).salts,
            rejects,
            deadline,
        };
        let codec = || -> Box<dyn PacketCodec> {
            Box::new(RelayPackets {
                table: table.clone(),
                next: next.clone(),
            })
        };
        return Ok(Served {
            worker: server.tcp.then(|| bench.worker(Box::new(acceptor))),
            packets: server.udp.then(|| (for_each_core(codec), ttl)),
            keyed: None,
        });
    }
    let users_file = UsersFile::of(server);
    let file = users_file.as_ref().map(|file| file.path.clone());
    let roster = Arc::new(Roster::new(users(server)?, file));
    let seen = seen(server, bench);
    let acceptor = Keyed {
        roster: roster.clone(),
        salts: seen.salts,
        rejects,
        deadline,
    };
    // One codec for all sockets: a replay must be noticed whichever socket it arrives on.
    let packets = KeyedPackets::new(roster.clone(), seen.packets, seen.sessions);
    let codec: Box<dyn PacketCodec> = Box::new(packets);
    Ok(Served {
        worker: server.tcp.then(|| Worker {
            // Needs no UDP socket here, so `udp=false` does not apply.
            over_tcp: true,
            ..bench.worker(Box::new(acceptor))
        }),
        packets: server.udp.then(|| (vec![codec], ttl)),
        keyed: Some(KeyedClients {
            roster,
            users: users_file,
            salts: seen.file,
        }),
    })
}

fn users(server: &SsServer) -> Result<Arc<Users>, StartError> {
    let method = server.method;
    let key = |secret: &adit_config::Secret| Key::parse(method, secret.expose());
    match &server.role {
        SsRole::Single(secret)
        | SsRole::Relay {
            identity: secret, ..
        } => Ok(Users::single(key(secret)?)),
        SsRole::Users {
            identity, users, ..
        } => {
            let each = users
                .iter()
                .map(|user| (user.name.as_str(), user.secret.expose()));
            Ok(match identity {
                Some(identity) => Users::identified(&key(identity)?, each)?,
                None => Users::trial(method, each)?,
            })
        }
    }
}

/// Returns true if a listener refuses requests that may date from before a restart.
pub(crate) fn is_strict(listen: &Listen) -> bool {
    match &listen.kind {
        ListenKind::Shadowsocks(server) => {
            let dated = server.method.edition() == Edition::Aead2022;
            dated && server.restart == RestartPlan::Strict
        }
        _ => false,
    }
}

/// Returns the replay state of a server's keys, which all listeners of the process with these keys share.
fn seen(server: &SsServer, bench: &Bench<'_>) -> Seen {
    let restart = match server.restart {
        RestartPlan::Strict => Restart::Strict,
        RestartPlan::Lenient => Restart::Lenient,
    };
    let key = match &server.role {
        SsRole::Single(secret) => Some(secret),
        SsRole::Relay { identity, .. } => Some(identity),
        // Users that are found by trial have no key in common.
        SsRole::Users { identity, .. } => identity.as_ref(),
    };
    let name = Name {
        method: server.method,
        key: key.map(|secret| secret.expose()),
        restart,
        relay: matches!(server.role, SsRole::Relay { .. }),
        state: server.state.as_deref(),
    };
    bench.replays.of(&name, bench.started)
}

fn ttl(server: &SsServer, ttl: Ttl) -> Ttl {
    match server.method.edition() {
        Edition::Aead2022 => Ttl {
            idle: ttl.idle.max(MIN_SESSION),
            dns: MIN_SESSION,
        },
        _ => ttl,
    }
}
