//! Shadowsocks listeners: a server with one key, with users, or a relay.

use std::sync::Arc;
use std::time::Duration;

use adit_config::{Restart as RestartPlan, SsRole, SsServer};
use adit_net::ambient::{self, SystemChance};
use adit_shadowsocks::relay::RelayTable;
use adit_shadowsocks::{Edition, Key, Restart, SaltPool, Users, UsersError};
use adit_wire::{Entropy, Target};

use super::{Bench, Packets};
use crate::acceptor::{Keyed, RelayAcceptor, Rejects};
use crate::serve::Worker;
use crate::udp::{KeyedPackets, PacketCodec, RelayPackets, Ttl};
use crate::{Roster, StartError};

/// A 2022 session must be remembered at least this long.
const MIN_SESSION: Duration = Duration::from_secs(60);

/// What serves the clients of a keyed listener.
pub(super) struct Served {
    pub(super) worker: Option<Worker>,
    pub(super) packets: Option<Packets>,
    /// None for a relay, which does not know its clients.
    pub(super) roster: Option<Arc<Roster>>,
}

pub(super) fn prepare(server: &SsServer, bench: &Bench<'_>) -> Result<Served, StartError> {
    let rejects = Arc::new(Rejects::new(server.reject.clone()));
    let deadline = bench.listen.limits.handshake;
    let ttl = ttl(server, bench.ttl);
    if let SsRole::Relay { identity, next } = &server.role {
        let key = |secret: &adit_config::Secret| Key::parse(server.method, secret.expose());
        let keys = next.iter().map(|hop| key(&hop.secret));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let table = RelayTable::new(&key(identity)?, keys)?;
        let next: Arc<[Target]> = next.iter().map(|hop| hop.server.clone()).collect();
        let acceptor = RelayAcceptor {
            table: table.clone(),
            next: next.clone(),
            rejects,
            deadline,
        };
        let codec: Box<dyn PacketCodec> = Box::new(RelayPackets { table, next });
        return Ok(Served {
            worker: server.tcp.then(|| bench.worker(Box::new(acceptor))),
            packets: server.udp.then_some((codec, ttl)),
            roster: None,
        });
    }
    let file = match &server.role {
        SsRole::Users { file, .. } => file.clone(),
        _ => None,
    };
    let roster = Arc::new(Roster::new(users(server)?, file));
    let acceptor = Keyed {
        roster: roster.clone(),
        salts: Arc::new(salts(server)),
        rejects,
        deadline,
    };
    let codec: Box<dyn PacketCodec> = Box::new(KeyedPackets::new(roster.clone()));
    Ok(Served {
        worker: server.tcp.then(|| Worker {
            over_tcp: server.udp,
            ..bench.worker(Box::new(acceptor))
        }),
        packets: server.udp.then_some((codec, ttl)),
        roster: Some(roster),
    })
}

fn users(server: &SsServer) -> Result<Arc<Users>, UsersError> {
    let method = server.method;
    let key = |secret: &adit_config::Secret| Key::parse(method, secret.expose());
    match &server.role {
        SsRole::Single(secret) | SsRole::Relay { identity: secret, .. } => {
            Ok(Users::single(key(secret)?))
        }
        SsRole::Users {
            identity, users, ..
        } => {
            let each = users.iter().map(|user| (user.name.as_str(), user.secret.expose()));
            match identity {
                Some(identity) => Users::identified(&key(identity)?, each),
                None => Users::trial(method, each),
            }
        }
    }
}

fn salts(server: &SsServer) -> SaltPool {
    let mut seed = [0; 16];
    SystemChance.fill(&mut seed);
    let restart = match server.restart {
        RestartPlan::Strict => Restart::Strict,
        RestartPlan::Lenient => Restart::Lenient,
    };
    SaltPool::new(seed, ambient::unix(), restart)
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
