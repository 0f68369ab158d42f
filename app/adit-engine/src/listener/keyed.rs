//! Shadowsocks listeners: servers with one key or with users, and relays.

use std::sync::Arc;
use std::time::Duration;

use adit_config::{
    FleetIdentity, ListenerConfig, ListenerKind, RestartPolicy as RestartPlan, SsRole, SsServer,
};
use adit_shadowsocks::relay::RelayTable;
use adit_shadowsocks::{Edition, Key, RestartPolicy, Users};
use adit_wire::Target;

use super::replay_state::{ReplayState, ReplayStateName};
use super::users_file::UsersFile;
use super::{KeyedState, ListenerBuilder, ListenerHandlers, codec_per_socket};
use crate::acceptor::{RejectHandler, RelayAcceptor, ShadowsocksAcceptor};
use crate::fleet::{FleetTable, KeyedFleetTable};
use crate::replay_claims::ClaimScope;
use crate::serve::ConnectionHandler;
use crate::udp::{AssociationTtl, PacketCodec, RelayPackets, SessionClaims, ShadowsocksPackets};
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
        let seen = shared_replay_state(server, shared_key(server), bench);
        let acceptor = RelayAcceptor {
            table: table.clone(),
            next: next.clone(),
            // The servers behind it ask the other nodes.
            claims: Some(seen.claims(bench.replays, None)),
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
    if let SsRole::Fleet { identity } = server.role {
        return build_fleet_handlers(server, identity, bench, rejects, ttl);
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
    let keyed = KeyedState {
        user_table,
        configured: users,
        file,
        users: users_file,
        salts: None,
    };
    let seen = shared_replay_state(server, shared_key(server), bench);
    Ok(server_handlers(
        server, keyed, seen, None, bench, rejects, ttl,
    ))
}

/// Builds the handlers of a server whose users are those of the fleet.
fn build_fleet_handlers(
    server: &SsServer,
    identity: FleetIdentity,
    bench: &ListenerBuilder<'_>,
    rejects: Arc<RejectHandler>,
    ttl: AssociationTtl,
) -> Result<ListenerHandlers, StartError> {
    let method = server.method;
    let key = match method.has_identities() {
        true => Some(bench.fleet.identity_key(identity, method.key_len())?),
        false => None,
    };
    let user_table = match bench.previous_table(|kind| has_same_keys(kind, server)) {
        Some(table) => table,
        None => {
            let parsed = key.as_ref().map(|key| Key::parse(method, key.expose()));
            let parsed = parsed.transpose()?;
            let users = Users::without_users(method, parsed.as_ref())?;
            let registry = bench.registry.clone();
            let table = Arc::new(UserTable::with_registry(users, None, registry));
            let filled = Arc::new(KeyedFleetTable::new(method, parsed, &table));
            let served: Arc<dyn FleetTable> = filled.clone();
            bench.fleet.serve(&served)?;
            table.keep_fleet(filled);
            table
        }
    };
    let keyed = KeyedState {
        configured: user_table.users(),
        user_table,
        file: None,
        users: None,
        salts: None,
    };
    let seen = shared_replay_state(server, key.as_ref(), bench);
    // The keys of a node's own are known to no other node.
    let scope = match (&key, identity) {
        (Some(_), FleetIdentity::Node) => None,
        (Some(key), FleetIdentity::Shared) => Some(key.expose()),
        (None, _) => Some(""),
    };
    let scope = scope.map(|key| ClaimScope::of_key(method.name(), key));
    Ok(server_handlers(
        server, keyed, seen, scope, bench, rejects, ttl,
    ))
}

/// Returns the handlers of a server for the users of `keyed`. `scope` is that of its claims at other nodes of a fleet,
/// where these have its keys.
fn server_handlers(
    server: &SsServer,
    keyed: KeyedState,
    seen: ReplayState,
    scope: Option<ClaimScope>,
    bench: &ListenerBuilder<'_>,
    rejects: Arc<RejectHandler>,
    ttl: AssociationTtl,
) -> ListenerHandlers {
    let user_table = keyed.user_table.clone();
    let acceptor = ShadowsocksAcceptor {
        user_table: user_table.clone(),
        claims: Some(seen.claims(bench.replays, scope.clone())),
        salts: seen.salts,
        rejects,
        deadline: bench.listen.limits.handshake,
    };
    // One codec for all sockets: a replay must be noticed whichever socket it arrives on.
    let packets = ShadowsocksPackets::new(user_table, seen.packets, seen.sessions);
    let claims = scope.map(|scope| SessionClaims::new(bench.replays.gate.clone(), scope));
    let codec: Box<dyn PacketCodec> = Box::new(packets.with_claims(claims));
    ListenerHandlers {
        worker: server.tcp.then(|| ConnectionHandler {
            // Needs no UDP socket here, so `udp=false` does not apply.
            over_tcp: true,
            ..bench.build_worker(Box::new(acceptor))
        }),
        packets: server.udp.then(|| (vec![codec], ttl)),
        keyed: Some(KeyedState {
            salts: seen.file,
            ..keyed
        }),
        proxy_users: None,
        ssr: None,
    }
}

fn parse_users(server: &SsServer) -> Result<Arc<Users>, StartError> {
    let method = server.method;
    let key = |secret: &adit_config::Secret| Key::parse(method, secret.expose());
    match &server.role {
        SsRole::Single(secret)
        | SsRole::Relay {
            identity: secret, ..
        } => Ok(Users::with_single_key(key(secret)?)),
        // Its users are not in the plan.
        SsRole::Fleet { .. } => Err(StartError::NoFleet),
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

/// Returns the key that all clients of a server have.
fn shared_key(server: &SsServer) -> Option<&adit_config::Secret> {
    match &server.role {
        SsRole::Single(secret) => Some(secret),
        SsRole::Relay { identity, .. } => Some(identity),
        // Users that are found by trial have no key in common.
        SsRole::Users { identity, .. } => identity.as_ref(),
        SsRole::Fleet { .. } => None,
    }
}

/// Returns the replay state of a server's keys, which all listeners of the process with these keys share.
fn shared_replay_state(
    server: &SsServer,
    key: Option<&adit_config::Secret>,
    bench: &ListenerBuilder<'_>,
) -> ReplayState {
    let restart = match server.restart {
        RestartPlan::Strict => RestartPolicy::Strict,
        RestartPlan::Lenient => RestartPolicy::Lenient,
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
