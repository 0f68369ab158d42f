//! ShadowsocksR listeners.

use std::sync::{Arc, Weak};

use adit_config::{ListenerKind, Secret, SsrServer};
use adit_net::system::{self, SystemClock, SystemRng, ThreadRng};
use adit_obfs::{ServerSettings, ServerState};
use adit_shadowsocksr::{ReplayStore, ServerParam, ServerStack};
use adit_wire::{Entropy, narrow_int};

use super::replay_state::{ReplayRegistry, StateId};
use super::{ListenerBuilder, ListenerHandlers, ReplayPartError};
use crate::acceptor::{RejectHandler, ShadowsocksRAcceptor, SsrAccounts};
use crate::fleet::{FleetDirectory, FleetTable, FleetUser};
use crate::replay_claims::ReplayFilter;
use crate::udp::{PacketCodec, SsrPackets};
use crate::{FilterClaims, StartError};

/// The state of a ShadowsocksR listener that a reload keeps.
#[derive(Clone)]
pub(crate) struct SsrState {
    replays: Arc<ReplayStore>,
    stack: Arc<ServerStack>,
    obfs: Arc<ServerState>,
    /// The names of the hellos of `obfs`, and of `replays`.
    ids: [StateId; 2],
    pub(super) accounts: Arc<SsrAccounts>,
    /// Changes the users of `stack`, if they are those of a fleet.
    _fleet: Option<Arc<dyn FleetTable>>,
}

impl SsrState {
    fn new(
        server: &SsrServer,
        before: Option<(&SsrServer, &Self)>,
        bench: &ListenerBuilder<'_>,
    ) -> Result<Self, StartError> {
        let (method, kind, obfs) = (server.method, server.protocol.kind, server.obfs);
        let password = server.password.expose().as_bytes();
        let mut param = ServerParam::parse(kind, server.protocol_param.expose())?;
        if server.fleet_users {
            param.require_user(kind)?;
        }
        let started = system::unix_now();
        let (replays, store_id) = match before {
            Some((_, state)) => (state.replays.clone(), state.ids[1]),
            None => {
                let (at, password) = (&bench.listen.addr, server.password.expose());
                let name = format!("{at} {method:?} {kind:?} {password:?}");
                let stores = &bench.replays.ssr;
                let id = bench.replays.id_of(name);
                let store = stores.take_or_create(id, || {
                    let mut seed = [0; 16];
                    SystemRng.fill(&mut seed);
                    ReplayStore::new(seed, started)
                });
                (store, id)
            }
        };
        let overhead = narrow_int(obfs.overhead());
        let (protocol, seen) = (server.protocol, replays.clone());
        let stack = ServerStack::new(method, password, protocol, &param, overhead, seen)?;
        let (obfs, hello_id) = match before {
            // Has seen hellos, which are replays from now on.
            Some((old, state)) if has_same_obfs(old, server) => (state.obfs.clone(), state.ids[0]),
            _ => {
                let key = method.key_from_password(password);
                let mut settings =
                    ServerSettings::new(obfs, &server.obfs_param, Arc::new(SystemClock));
                settings.unrecognized = server.strangers;
                settings.key = key.expose();
                settings.password = password;
                settings.started = started;
                let at = &bench.listen.addr;
                let (param, word) = (&server.obfs_param, server.password.expose());
                let unrecognized = server.strangers;
                let name = format!("{at} {method:?} {obfs:?} {param:?} {unrecognized:?} {word:?}");
                let id = bench.replays.id_of(name);
                let state = bench.replays.ssr.create_obfs(id, |hellos| match hellos {
                    None => Ok(ServerState::new(&settings, &mut ThreadRng)?),
                    Some(hellos) => {
                        settings.started = bench.started;
                        let state = ServerState::from_snapshot(&settings, hellos, &mut ThreadRng);
                        state.map_err(|why| StartError::from(ReplayPartError::from(why)))
                    }
                });
                (state?, id)
            }
        };
        let accounts = match before {
            Some((old, state)) if has_same_cipher(old, server) => {
                let kept = |uid| user_key(old, uid) == user_key(server, uid);
                state.accounts.successor(param.user_ids(), kept)
            }
            _ => SsrAccounts::new(param.user_ids(), bench.registry.clone()),
        };
        let stack = Arc::new(stack);
        let (accounts, fleet) = match server.fleet_users {
            true => {
                let table: Arc<dyn FleetTable> = Arc::new(SsrFleetTable(Arc::downgrade(&stack)));
                bench.fleet.serve(&table)?;
                (accounts.with_fleet(bench.fleet.logins()?), Some(table))
            }
            false => (accounts, None),
        };
        Ok(Self {
            replays,
            stack,
            obfs,
            ids: [hello_id, store_id],
            accounts: Arc::new(accounts),
            _fleet: fleet,
        })
    }
}

/// Fills a port with the users of a fleet, for as long as it is in use.
struct SsrFleetTable(Weak<ServerStack>);

impl FleetTable for SsrFleetTable {
    fn load(&self, directory: &dyn FleetDirectory) {
        let Some(stack) = self.0.upgrade() else {
            return;
        };
        let mut put: Vec<(u32, Secret)> = Vec::new();
        directory.for_each(&mut |user| put.push((user.id(), user.password())));
        let put = put.iter().map(|(id, password)| (*id, password.expose()));
        stack.replace_users(put);
    }

    fn change(&self, removed: &[(u32, &str)], put: &[&dyn FleetUser]) {
        let Some(stack) = self.0.upgrade() else {
            return;
        };
        let gone: Vec<u32> = removed.iter().map(|(id, _)| *id).collect();
        let put: Vec<(u32, Secret)> = put
            .iter()
            .map(|user| (user.id(), user.password()))
            .collect();
        stack.change_users(
            &gone,
            put.iter().map(|(id, password)| (*id, password.expose())),
        );
    }
}

impl SsrState {
    /// Returns the claims of hellos, and those of first messages.
    fn claims(&self, replays: &ReplayRegistry) -> [Arc<FilterClaims>; 2] {
        let [hello_id, store_id] = self.ids;
        [
            replays.claims(hello_id, ReplayFilter::Hellos(self.obfs.clone()), None),
            replays.claims(store_id, ReplayFilter::Messages(self.replays.clone()), None),
        ]
    }
}

pub(super) fn build_handlers(
    server: &SsrServer,
    bench: &ListenerBuilder<'_>,
) -> Result<ListenerHandlers, StartError> {
    let before = bench.previous_ssr();
    let state = match before {
        Some((old, state)) if is_same_service(old, server) => state.clone(),
        before => SsrState::new(server, before, bench)?,
    };
    let rejects = RejectHandler::new(server.reject.clone())
        .with_redirects(server.redirect.clone())
        .with_router(bench.common.router.clone());
    let acceptor = ShadowsocksRAcceptor {
        stack: state.stack.clone(),
        obfs: state.obfs.clone(),
        claims: Some(state.claims(bench.replays)),
        accounts: state.accounts.clone(),
        rejects: Arc::new(rejects),
        deadline: bench.listen.limits.handshake,
    };
    let packets = SsrPackets::new(state.stack.clone(), state.accounts.clone());
    let codec: Box<dyn PacketCodec> = Box::new(packets);
    Ok(ListenerHandlers {
        worker: server.tcp.then(|| bench.build_worker(Box::new(acceptor))),
        packets: server.udp.then(|| (vec![codec], bench.common.ttl)),
        keyed: None,
        proxy_users: None,
        ssr: Some(state),
    })
}

/// Returns true if clients of `before` need no other settings for `server`.
fn is_same_service(before: &SsrServer, server: &SsrServer) -> bool {
    has_same_obfs(before, server)
        && before.protocol_param == server.protocol_param
        && before.fleet_users == server.fleet_users
}

fn has_same_cipher(before: &SsrServer, server: &SsrServer) -> bool {
    before.method == server.method
        && before.password == server.password
        && before.protocol == server.protocol
}

fn has_same_obfs(before: &SsrServer, server: &SsrServer) -> bool {
    has_same_cipher(before, server)
        && before.obfs == server.obfs
        && before.obfs_param == server.obfs_param
        && before.strangers == server.strangers
}

/// Returns true if associations of `before` continue at `server`: the cipher is the same. Those of removed users
/// end with their accounts.
pub(super) fn continues_associations(before: &ListenerKind, server: &SsrServer) -> bool {
    matches!(before, ListenerKind::ShadowsocksR(before) if has_same_cipher(before, server))
}

/// Returns true if `server` opens the same packets as `before`.
pub(super) fn opens_same_packets(before: &ListenerKind, server: &SsrServer) -> bool {
    matches!(before, ListenerKind::ShadowsocksR(before) if is_same_service(before, server))
}

/// Returns the password of a user; the last one of its ID, which is unique in valid settings.
fn user_key(server: &SsrServer, uid: u32) -> Option<&str> {
    let users = server.protocol_param.expose().rsplit('#').next()?;
    let mut users = users.split(',').filter_map(|user| user.split_once(':'));
    let (_, key) = users.find(|(id, _)| id.parse() == Ok(uid))?;
    Some(key)
}
