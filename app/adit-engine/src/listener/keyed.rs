//! Shadowsocks listeners: a server with one key, with users, or a relay.

use std::sync::Arc;
use std::time::Duration;

use adit_config::{Restart as RestartPlan, SsRole, SsServer};
use adit_net::ambient::{self, SystemChance};
use adit_shadowsocks::relay::RelayTable;
use adit_shadowsocks::{Edition, Key, Restart, SaltPool, Users};
use adit_wire::{Entropy, Target};

use super::salts_file::SaltsFile;
use super::users_file::UsersFile;
use super::{Bench, Served, for_each_core};
use crate::acceptor::{Keyed, Rejects, RelayAcceptor};
use crate::serve::Worker;
use crate::udp::{KeyedPackets, PacketCodec, RelayPackets, Ttl};
use crate::{Roster, StartError};

/// A 2022 session must be remembered at least this long.
const MIN_SESSION: Duration = Duration::from_secs(60);

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
            salts: salts(server),
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
            ..Served::default()
        });
    }
    let users_file = UsersFile::of(server);
    let file = users_file.as_ref().map(|file| file.path.clone());
    let roster = Arc::new(Roster::new(users(server)?, file));
    let (salts, salts_file) = match &server.state {
        Some(path) => {
            let file = Arc::new(SaltsFile::open(path.clone(), salts(server)));
            (file.salts(), Some(file))
        }
        None => (Arc::new(salts(server)), None),
    };
    let acceptor = Keyed {
        roster: roster.clone(),
        salts,
        rejects,
        deadline,
    };
    // One socket: what was seen once must be known wherever it comes from again.
    let codec: Box<dyn PacketCodec> = Box::new(KeyedPackets::new(roster.clone()));
    Ok(Served {
        worker: server.tcp.then(|| Worker {
            // It needs no UDP socket here, so `udp=false` does not concern it.
            over_tcp: true,
            ..bench.worker(Box::new(acceptor))
        }),
        packets: server.udp.then(|| (vec![codec], ttl)),
        roster: Some(roster),
        users: users_file,
        salts: salts_file,
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
