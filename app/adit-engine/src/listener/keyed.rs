//! Shadowsocks listeners: servers with one key or with users, and relays.

use std::sync::Arc;
use std::time::Duration;

use adit_config::{ListenerConfig, ListenerKind, RestartPolicy as RestartPlan, SsRole, SsServer};
use adit_shadowsocks::relay::RelayTable;
use adit_shadowsocks::{Edition, Key, RestartPolicy, Users};
use adit_wire::Target;

use super::replay_state::{ReplayState, ReplayStateName};
use super::users_file::UsersFile;
use super::{KeyedState, ListenerBuilder, ListenerHandlers, codec_per_socket};
use crate::acceptor::{RejectHandler, RelayAcceptor, ShadowsocksAcceptor};
use crate::serve::ConnectionHandler;
use crate::udp::{AssociationTtl, PacketCodec, RelayPackets, ShadowsocksPackets};
use crate::{StartError, UserTable};

/// Minimum time that a session of the 2022 edition must be remembered.
const MIN_SESSION_TTL: Duration = Duration::from_secs(60);

pub(super) fn build_handlers(
    server: &SsServer,
    bench: &ListenerBuilder<'_>,
) -> Result<ListenerHandlers, StartError> {
    let rejects = RejectHandler::new(server.reject.clone());
    let rejects = Arc::new(rejects.with_router(bench.common.router.clone()));
    let deadline = bench.listen.limits.handshake;
    let ttl = session_ttl(server, bench.common.ttl);
    if let SsRole::Relay { identity, next } = &server.role {
        let key = |secret: &adit_config::Secret| Key::parse(server.method, secret.expose());
        let keys = next.iter().map(|hop| key(&hop.secret));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let table = RelayTable::new(&key(identity)?, keys)?;
        let next: Arc<[Target]> = next.iter().map(|hop| hop.server.clone()).collect();
        let seen = shared_replay_state(server, bench);
        let acceptor = RelayAcceptor {
            table: table.clone(),
            next: next.clone(),
            claims: Some(seen.claims(bench.replays)),
            salts: seen.salts,
            rejects,
            deadline,
        };
        let codec = || -> Box<dyn PacketCodec> {
            Box::new(RelayPackets {
                table: table.clone(),
                next: next.clone(),
            })
        };
        return Ok(ListenerHandlers {
            worker: server.tcp.then(|| bench.build_worker(Box::new(acceptor))),
            packets: server.udp.then(|| (codec_per_socket(codec), ttl)),
            keyed: None,
            proxy_users: None,
            ssr: None,
        });
    }
    let users_file = UsersFile::from_server(server);
    let file = users_file.as_ref().map(|file| file.path.clone());
    let users = parse_users(server)?;
    // With the same server key, users come and go; with another, none of them stays.
    let user_table = match bench.previous_table(|kind| has_same_keys(kind, server)) {
        Some(table) => table,
        None => {
            let registry = bench.registry.clone();
            Arc::new(UserTable::with_registry(
                users.clone(),
                file.clone(),
                registry,
            ))
        }
    };
    let seen = shared_replay_state(server, bench);
    let acceptor = ShadowsocksAcceptor {
        user_table: user_table.clone(),
        claims: Some(seen.claims(bench.replays)),
        salts: seen.salts,
        rejects,
        deadline,
    };
    // One codec for all sockets: a replay must be noticed whichever socket it arrives on.
    let packets = ShadowsocksPackets::new(user_table.clone(), seen.packets, seen.sessions);
    let codec: Box<dyn PacketCodec> = Box::new(packets);
    Ok(ListenerHandlers {
        worker: server.tcp.then(|| ConnectionHandler {
            // Needs no UDP socket here, so `udp=false` does not apply.
            over_tcp: true,
            ..bench.build_worker(Box::new(acceptor))
        }),
        packets: server.udp.then(|| (vec![codec], ttl)),
        keyed: Some(KeyedState {
            user_table,
            configured: users,
            file,
            users: users_file,
            salts: seen.file,
        }),
        proxy_users: None,
        ssr: None,
    })
}

fn parse_users(server: &SsServer) -> Result<Arc<Users>, StartError> {
    let method = server.method;
    let key = |secret: &adit_config::Secret| Key::parse(method, secret.expose());
    match &server.role {
        SsRole::Single(secret)
        | SsRole::Relay {
            identity: secret, ..
        } => Ok(Users::with_single_key(key(secret)?)),
        SsRole::Users {
            identity, users, ..
        } => {
            let each = users
                .iter()
                .map(|user| (user.name.as_str(), user.secret.expose()));
            Ok(match identity {
                Some(identity) => Users::with_identity_key(&key(identity)?, each)?,
                None => Users::with_trial_keys(method, each)?,
            })
        }
    }
}

/// Returns true if a listener that replaces one of `before` continues its associations: the same keys, except for
/// those of users, and the same replay state.
pub(super) fn has_same_keys(before: &ListenerKind, server: &SsServer) -> bool {
    let ListenerKind::Shadowsocks(before) = before else {
        return false;
    };
    let same_role = match (&before.role, &server.role) {
        (SsRole::Users { identity: a, .. }, SsRole::Users { identity: b, .. }) => a == b,
        (a, b) => a == b,
    };
    let state = |of: &SsServer| (of.method, of.restart, of.state.clone());
    same_role && state(before) == state(server)
}

/// Returns true if a listener refuses requests that may date from before a restart.
pub(crate) fn is_strict_listener(listen: &ListenerConfig) -> bool {
    match &listen.kind {
        ListenerKind::Shadowsocks(server) => {
            let dated = server.method.edition() == Edition::Aead2022;
            dated && server.restart == RestartPlan::Strict
        }
        _ => false,
    }
}

/// Returns the replay state of a server's keys, which all listeners of the process with these keys share.
fn shared_replay_state(server: &SsServer, bench: &ListenerBuilder<'_>) -> ReplayState {
    let restart = match server.restart {
        RestartPlan::Strict => RestartPolicy::Strict,
        RestartPlan::Lenient => RestartPolicy::Lenient,
    };
    let key = match &server.role {
        SsRole::Single(secret) => Some(secret),
        SsRole::Relay { identity, .. } => Some(identity),
        // Users that are found by trial have no key in common.
        SsRole::Users { identity, .. } => identity.as_ref(),
    };
    let name = ReplayStateName {
        method: server.method,
        key: key.map(|secret| secret.expose()),
        restart,
        relay: matches!(server.role, SsRole::Relay { .. }),
        state: server.state.as_deref(),
    };
    bench.replays.state_for(&name, bench.started)
}

fn session_ttl(server: &SsServer, ttl: AssociationTtl) -> AssociationTtl {
    match server.method.edition() {
        Edition::Aead2022 => AssociationTtl {
            idle: ttl.idle.max(MIN_SESSION_TTL),
            dns: MIN_SESSION_TTL,
        },
        _ => ttl,
    }
}
