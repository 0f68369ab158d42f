//! The handover of replay states to the process that succeeds this one.
//!
//! Each state is sent under the keyed hash of its name, so that no key of a listener is sent; the new process continues
//! with the same hash keys. A round is a snapshot of all states. One is sent before the new process binds, a second one
//! when accepting is paused. From then on the new process decides: it confirms what handshakes of the first one accept
//! ([`crate::replay_claims`]), and opens packets before it forwards them. Later rounds only have the states of packets.

use std::collections::HashMap;
use std::sync::Arc;

use adit_crypto::Secret;
use adit_net::system;
use adit_obfs::HelloRestoreError;
use adit_shadowsocks::udp::{SessionRegistry, SessionRestoreError};
use adit_shadowsocks::{SaltPool, SaltRestoreError};
use adit_shadowsocksr::{ReplayRestoreError, ReplayStore};
use adit_wire::UnixTime;
use tokio::sync::mpsc;

use super::replay_state::{ReplayRegistry, ReplayState, StateId};
use super::ssr_stores::{InheritedStores, SsrStores};
use crate::replay_claims::{ClaimScope, ReplayFilter};
use crate::{FilterClaims, ReplayClaim, SharedReplayFilter};

/// A part of the replay state of listeners, for another process. It is as secret as a key.
pub struct ReplayPart(Secret<Vec<u8>>);

/// A part of a replay state that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReplayPartError {
    /// The bytes are not a part of a replay state.
    #[error("the replay state is malformed, or of another version of adit")]
    Malformed,
    /// Salts cannot be restored.
    #[error(transparent)]
    Salts(#[from] SaltRestoreError),
    /// UDP sessions cannot be restored.
    #[error(transparent)]
    Sessions(#[from] SessionRestoreError),
    /// Messages of ShadowsocksR cannot be restored.
    #[error(transparent)]
    Ssr(#[from] ReplayRestoreError),
    /// Hellos of obfs cannot be restored.
    #[error(transparent)]
    Hellos(#[from] HelloRestoreError),
}

/// The content of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartKind {
    /// The hash keys of names, and the start of the process.
    Names = 1,
    /// Salts of connections.
    Salts = 2,
    /// Salts of packets.
    Packets = 3,
    /// Sessions of packets.
    Sessions = 4,
    /// Messages of ShadowsocksR.
    Ssr = 5,
    /// Hellos of obfs.
    Hellos = 6,
}

impl PartKind {
    fn parse(byte: u8) -> Option<Self> {
        let all = [
            Self::Names,
            Self::Salts,
            Self::Packets,
            Self::Sessions,
            Self::Ssr,
            Self::Hellos,
        ];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

impl ReplayPart {
    /// Reads a part from bytes that another process has sent.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(Secret::new(bytes))
    }

    /// Returns the bytes, which must only be sent to a process of the same user.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        self.0.expose()
    }

    fn new(kind: PartKind, id: StateId, body: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(1 + 16 + body.len());
        bytes.push(kind as u8);
        for half in id {
            bytes.extend_from_slice(&half.to_be_bytes());
        }
        bytes.extend_from_slice(body);
        Self(Secret::new(bytes))
    }

    fn parse(&self) -> Result<(PartKind, StateId, &[u8]), ReplayPartError> {
        let malformed = || ReplayPartError::Malformed;
        let (kind, rest) = self.0.expose().split_first().ok_or_else(malformed)?;
        let (high, rest) = rest.split_first_chunk().ok_or_else(malformed)?;
        let (low, body) = rest.split_first_chunk().ok_or_else(malformed)?;
        let kind = PartKind::parse(*kind).ok_or_else(malformed)?;
        let id = [u64::from_be_bytes(*high), u64::from_be_bytes(*low)];
        Ok((kind, id, body))
    }
}

impl std::fmt::Debug for ReplayPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ReplayPart").finish_non_exhaustive()
    }
}

/// The parts of one round, by state.
#[derive(Default)]
struct Round<'a> {
    states: HashMap<StateId, StateParts<'a>>,
    ssr: HashMap<StateId, Vec<&'a [u8]>>,
    hellos: HashMap<StateId, &'a [u8]>,
}

#[derive(Default)]
struct StateParts<'a> {
    salts: Vec<&'a [u8]>,
    packets: Vec<&'a [u8]>,
    sessions: Vec<&'a [u8]>,
}

impl<'a> Round<'a> {
    fn state(&mut self, id: StateId) -> &mut StateParts<'a> {
        self.states.entry(id).or_default()
    }

    /// Sorts parts, and also returns the body of the part with the names.
    fn sort(parts: &'a [ReplayPart]) -> Result<(Self, Option<&'a [u8]>), ReplayPartError> {
        let (mut round, mut names) = (Self::default(), None);
        for part in parts {
            let (kind, id, body) = part.parse()?;
            match kind {
                PartKind::Names => names = Some(body),
                PartKind::Salts => round.state(id).salts.push(body),
                PartKind::Packets => round.state(id).packets.push(body),
                PartKind::Sessions => round.state(id).sessions.push(body),
                PartKind::Ssr => round.ssr.entry(id).or_default().push(body),
                PartKind::Hellos => drop(round.hellos.insert(id, body)),
            }
        }
        Ok((round, names))
    }
}

impl ReplayRegistry {
    /// Returns a snapshot of all states.
    pub(crate) fn snapshot(&self, started: UnixTime) -> Vec<ReplayPart> {
        let now = system::unix_now();
        let mut names = Vec::with_capacity(2 * 16 + 8);
        for seed in self.seeds.expose() {
            names.extend_from_slice(seed);
        }
        names.extend_from_slice(&started.0.to_be_bytes());
        let mut parts = vec![ReplayPart::new(PartKind::Names, [0, 0], &names)];
        for (id, state) in self.states() {
            let salts = state.salts.snapshot(now);
            parts.extend(salts.map(|part| ReplayPart::new(PartKind::Salts, id, part.expose())));
        }
        for (id, store) in self.ssr.messages() {
            let snapshot = store.snapshot();
            parts.extend(snapshot.map(|part| ReplayPart::new(PartKind::Ssr, id, part.expose())));
        }
        for (id, state) in self.ssr.hellos() {
            let hellos = state.snapshot().into_iter();
            parts.extend(hellos.map(|part| ReplayPart::new(PartKind::Hellos, id, part.expose())));
        }
        parts.extend(self.packet_snapshot());
        parts
    }

    /// Returns a snapshot of the states of packets alone: what a successor has to know of those that belong to
    /// associations of this process. It confirms everything else.
    pub(crate) fn packet_snapshot(&self) -> Vec<ReplayPart> {
        let now = system::unix_now();
        let mut parts = Vec::new();
        for (id, state) in self.states() {
            let packets = state.packets.snapshot(now);
            parts.extend(packets.map(|part| ReplayPart::new(PartKind::Packets, id, part.expose())));
        }
        parts.extend(self.session_snapshot());
        parts
    }

    /// Returns a snapshot of the sessions of packets alone.
    pub(crate) fn session_snapshot(&self) -> Vec<ReplayPart> {
        let now = system::unix_now();
        let mut parts = Vec::new();
        for (id, state) in self.states() {
            let sessions = state.sessions.snapshot(now).into_iter();
            parts.extend(sessions.map(|part| ReplayPart::new(PartKind::Sessions, id, &part)));
        }
        parts
    }

    /// Returns a number that changes when the salt of a packet is accepted.
    pub(crate) fn packet_count(&self) -> u64 {
        let states = self.states().into_iter();
        let counts = states.map(|(_, state)| state.packets.accepted_count());
        counts.fold(0, u64::wrapping_add)
    }

    /// Starts to let a successor confirm what the states of connections accept. Returns the claims, and a snapshot of
    /// everything that is no claim.
    pub(crate) fn start_claims(
        &self,
        started: UnixTime,
    ) -> (mpsc::Receiver<ReplayClaim>, Vec<ReplayPart>) {
        self.gate.open(|| self.snapshot(started))
    }

    /// Ends what [`Self::start_claims`] has started: this process decides alone.
    pub(crate) fn end_claims(&self) {
        self.gate.close();
    }

    /// Sets the filter that this node of a fleet shares with others.
    pub(crate) fn share(&self, fleet: Option<Arc<dyn SharedReplayFilter>>) {
        self.gate.share(fleet);
    }

    /// Returns the claims of a filter; `scope` is that of claims at other nodes of a fleet.
    pub(super) fn claims(
        &self,
        id: StateId,
        filter: ReplayFilter,
        scope: Option<ClaimScope>,
    ) -> Arc<FilterClaims> {
        let name = filter_name(id, &filter);
        let gate = self.gate.clone();
        Arc::new(FilterClaims::new(gate, name, filter, scope))
    }

    /// Returns all filters that claims can be about, with their names.
    fn filters(&self) -> Vec<(Vec<u8>, ReplayFilter)> {
        let salts = self.states().into_iter();
        let salts = salts.map(|(id, state)| (id, ReplayFilter::Salts(state.salts)));
        let messages = self.ssr.messages().into_iter();
        let messages = messages.map(|(id, store)| (id, ReplayFilter::Messages(store)));
        let hellos = self.ssr.hellos().into_iter();
        let hellos = hellos.map(|(id, state)| (id, ReplayFilter::Hellos(state)));
        let all = salts.chain(messages).chain(hellos);
        all.map(|(id, filter)| (filter_name(id, &filter), filter))
            .collect()
    }

    /// Decides a claim of the process that this one succeeds; returns false if it is a replay here.
    pub(crate) async fn decide_claim(&self, claim: &[u8]) -> bool {
        match self.gate.decide_claim(claim, || self.confirm(claim)) {
            Ok(is_new) => is_new,
            // If the next successor has ended, this process decides.
            Err(answer) => answer.await.unwrap_or_else(|_| self.confirm(claim)),
        }
    }

    fn confirm(&self, claim: &[u8]) -> bool {
        let filters = self.filters();
        let mut named = filters.iter().filter_map(|(name, filter)| {
            let entry = claim.strip_prefix(&**name)?;
            Some((filter, entry))
        });
        // Without a listener with this key, nothing is accepted here.
        named
            .next()
            .is_none_or(|(filter, entry)| filter.insert_logged(entry))
    }

    /// Creates the states of another process from its snapshot, for listeners of the same names. Also returns the start
    /// of that process.
    pub(crate) fn from_snapshot(parts: &[ReplayPart]) -> Result<(Self, UnixTime), ReplayPartError> {
        let (round, names) = Round::sort(parts)?;
        let malformed = || ReplayPartError::Malformed;
        let (seeds, started) = names
            .and_then(|n| n.split_last_chunk())
            .ok_or_else(malformed)?;
        let ([first, second], []) = seeds.as_chunks() else {
            return Err(ReplayPartError::Malformed);
        };
        let now = system::unix_now();
        let mut states = HashMap::new();
        for (id, parts) in &round.states {
            let sessions = SessionRegistry::from_snapshot(&parts.sessions, now)?;
            let salts = pool_from_snapshot(&parts.salts, now)?;
            let packets = pool_from_snapshot(&parts.packets, now)?;
            states.insert(*id, ReplayState::inherited(*id, salts, packets, sessions));
        }
        let mut stores = InheritedStores::default();
        for (id, parts) in &round.ssr {
            let (first, rest) = parts.split_first().ok_or(ReplayPartError::Malformed)?;
            let store = ReplayStore::from_snapshot(first)?;
            for part in rest {
                store.merge_snapshot(part)?;
            }
            stores.messages.insert(*id, Arc::new(store));
        }
        for (id, hellos) in &round.hellos {
            stores.hellos.insert(*id, Secret::new(hellos.to_vec()));
        }
        let mut registry = Self::with_inherited([*first, *second], states);
        registry.ssr = SsrStores::with_inherited(stores);
        Ok((registry, UnixTime(u64::from_be_bytes(*started))))
    }

    /// Adds a later snapshot of the process whose states these continue.
    pub(crate) fn merge_snapshot(&self, parts: &[ReplayPart]) -> Result<(), ReplayPartError> {
        let (round, _) = Round::sort(parts)?;
        let now = system::unix_now();
        for (id, state) in self.states() {
            let Some(parts) = round.states.get(&id) else {
                continue;
            };
            for part in &parts.salts {
                state.salts.merge_snapshot(part, now)?;
            }
            for part in &parts.packets {
                state.packets.merge_snapshot(part, now)?;
            }
            if !parts.sessions.is_empty() {
                state.sessions.merge_snapshot(&parts.sessions, now)?;
            }
        }
        for (id, state) in self.ssr.hellos() {
            if let Some(hellos) = round.hellos.get(&id) {
                state.merge_snapshot(hellos)?;
            }
        }
        for (id, store) in self.ssr.messages() {
            for part in round.ssr.get(&id).into_iter().flatten() {
                store.merge_snapshot(part)?;
            }
        }
        Ok(())
    }

    /// Records that the process whose states these continue has ended.
    pub(crate) fn end_previous_process(&self) {
        let now = system::unix_now();
        for (_, state) in self.states() {
            state.sessions.end_previous_process(now);
        }
    }
}

/// Returns the name of a filter in claims.
fn filter_name(id: StateId, filter: &ReplayFilter) -> Vec<u8> {
    let kind = match filter {
        ReplayFilter::Salts(_) => PartKind::Salts,
        ReplayFilter::Messages(_) => PartKind::Ssr,
        ReplayFilter::Hellos(_) => PartKind::Hellos,
    };
    ReplayPart::new(kind, id, &[]).expose().to_vec()
}

/// Creates a pool from all parts of its snapshot.
fn pool_from_snapshot(parts: &[&[u8]], now: UnixTime) -> Result<SaltPool, ReplayPartError> {
    let (first, rest) = parts.split_first().ok_or(ReplayPartError::Malformed)?;
    let pool = SaltPool::from_snapshot(first, now)?;
    for part in rest {
        pool.merge_snapshot(part, now)?;
    }
    Ok(pool)
}
