//! The start of an engine that succeeds the one of another process, and the end of one that has a successor.
//!
//! ```text
//! old: export_sockets ───────────────▶ pause_accepting ─▶ counters ─▶ leave_to_successor ─▶ drain
//! new:                 prepare (bind) ───────────────────────────────▶ start
//! ```
//!
//! The sockets are open in both processes: connections wait in the kernel's backlog in between, and none is refused.

use std::sync::Arc;
use std::time::Duration;

use adit_config::Plan;
use adit_net::system;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::{DRAIN_CHECK, Engine};
use crate::connector::MemberSelections;
use crate::fleet::FleetUsers;
use crate::handover::{ExportError, HandoverSocket, InheritedSockets, SharedSockets};
use crate::listener::{BoundListener, ReplayPart, ReplayPartError, ReplayRegistry};
#[cfg(target_os = "linux")]
use crate::plugin::HandedOverPlugin;
use crate::{ReplayClaim, RuleSetTable, SharedReplayFilter, StartError};

/// The sockets and the states of the process that an engine succeeds.
#[derive(Debug, Default)]
pub struct Inheritance {
    /// The sockets of its listeners.
    pub sockets: InheritedSockets,
    /// A snapshot of its replay states; empty if there is none.
    pub replays: Vec<ReplayPart>,
    /// The selections that an earlier process made in manual groups.
    pub selections: MemberSelections,
}

/// An engine whose listeners are bound and accept nothing yet.
pub struct PreparedEngine {
    engine: Engine,
    /// The listeners of each route.
    bound: Vec<(String, Vec<BoundListener>)>,
    /// Plugins of the predecessor that no listener needs.
    #[cfg(target_os = "linux")]
    unneeded: Vec<HandedOverPlugin>,
}

impl std::fmt::Debug for PreparedEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let routes: Vec<&String> = self.bound.iter().map(|(route, _)| route).collect();
        f.debug_struct("PreparedEngine")
            .field("routes", &routes)
            .finish_non_exhaustive()
    }
}

impl PreparedEngine {
    /// Returns the engine, which has no listeners yet.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Starts to accept connections, and takes over the plugins of the predecessor. UDP sockets on which the predecessor still serves peers are taken from `shared`.
    #[must_use]
    pub fn start(self, mut shared: SharedSockets) -> Engine {
        for (route, bound) in self.bound {
            self.engine.start_route(&route, bound, &mut shared);
        }
        #[cfg(target_os = "linux")]
        for plugin in self.unneeded {
            tokio::spawn(plugin.end());
        }
        self.engine
    }
}

impl Engine {
    /// Does everything that [`Self::start_with_rule_sets`] does, except for accepting. Listeners continue the sockets
    /// in `inherited` that are bound to their addresses; with port 0, those of the listener with the same number in
    /// the route of the same name. They also continue the replay states of their keys. Plugins are taken over when the
    /// engine starts: those with other settings are restarted then, and those of no listener end.
    ///
    /// # Errors
    ///
    /// As for [`Self::start_with_rule_sets`], and if the replay states cannot be used.
    pub async fn prepare(
        plan: &Plan,
        sets: RuleSetTable,
        inherited: &Inheritance,
    ) -> Result<PreparedEngine, StartError> {
        Self::prepare_with_fleet(plan, sets, inherited, Arc::default()).await
    }

    /// Does the same as [`Self::prepare`] in a node of a fleet, whose users listeners with `users=fleet` have from the
    /// beginning.
    ///
    /// # Errors
    ///
    /// As for [`Self::prepare`].
    pub async fn prepare_with_fleet(
        plan: &Plan,
        sets: RuleSetTable,
        inherited: &Inheritance,
        fleet: Arc<FleetUsers>,
    ) -> Result<PreparedEngine, StartError> {
        let (replays, started) = match inherited.replays.as_slice() {
            [] => (ReplayRegistry::default(), system::unix_now()),
            parts => ReplayRegistry::from_snapshot(parts)?,
        };
        let selections = inherited.selections.clone();
        let engine = Self::without_routes(sets, replays, started, selections, fleet);
        engine.start_dns(plan).await?;
        let mut bound = Vec::with_capacity(plan.routes.len());
        for route in &plan.routes {
            let sockets = Some(&inherited.sockets);
            let listeners = engine.bind_route(route, sockets).await?;
            bound.push((route.name.clone(), listeners));
        }
        Ok(PreparedEngine {
            engine,
            bound,
            #[cfg(target_os = "linux")]
            unneeded: inherited.sockets.take_plugins(),
        })
    }

    /// Returns a snapshot of the replay states of all keys, for a successor.
    #[must_use]
    pub fn replay_snapshot(&self) -> Vec<ReplayPart> {
        self.replays.snapshot(self.started)
    }

    /// Lets a successor decide about replays from now on. Returns the last snapshot, and the decisions of handshakes that
    /// this process still has to finish: they wait for [an answer](ReplayClaim::answer).
    #[must_use]
    pub fn start_claims(&self) -> (mpsc::Receiver<ReplayClaim>, Vec<ReplayPart>) {
        self.replays.start_claims(self.started)
    }

    /// Ends what [`Self::start_claims`] has started: there is no successor, and this process decides alone.
    pub fn end_claims(&self) {
        self.replays.end_claims();
    }

    /// Sets the filter of replays that this node of a fleet shares with others; `None` for a process on its own. It is
    /// asked about the requests to servers whose keys other nodes have.
    pub fn share_replays(&self, fleet: Option<Arc<dyn SharedReplayFilter>>) {
        self.replays.share(fleet);
    }

    /// Decides a claim of the process that this one succeeds. Returns false if it is a replay.
    pub async fn decide_claim(&self, claim: &[u8]) -> bool {
        self.replays.decide_claim(claim).await
    }

    /// Returns the selections that were made in manual groups.
    #[must_use]
    pub fn member_selections(&self) -> MemberSelections {
        self.chains.groups.selections()
    }

    /// Reads the files of made-up addresses again, which the process that this one succeeds has written when it paused.
    /// This function blocks.
    pub fn read_fake_ips_again(&self) {
        self.chains.fake_ips.read_again();
    }

    /// Applies selections of the process that this one succeeds, which can be newer than those it was prepared with.
    pub fn restore_selections(&self, made: MemberSelections) {
        self.chains.groups.restore_selections(made);
    }

    /// Returns a snapshot of the sessions of datagrams alone.
    #[must_use]
    pub fn session_snapshot(&self) -> Vec<ReplayPart> {
        self.replays.session_snapshot()
    }

    /// Returns a snapshot of the replay states of datagrams.
    #[must_use]
    pub fn packet_snapshot(&self) -> Vec<ReplayPart> {
        self.replays.packet_snapshot()
    }

    /// Returns a number that changes when a datagram without a session is recorded in a replay state.
    #[must_use]
    pub fn packet_count(&self) -> u64 {
        self.replays.packet_count()
    }

    /// Adds a later snapshot of the process that this one succeeds.
    ///
    /// # Errors
    ///
    /// Returns a [`ReplayPartError`] if the parts are not those of a snapshot.
    pub fn merge_replays(&self, parts: &[ReplayPart]) -> Result<(), ReplayPartError> {
        self.replays.merge_snapshot(parts)
    }

    /// Records that the process which this one succeeds has ended, and its sessions with it.
    pub fn end_predecessor(&self) {
        self.replays.end_previous_process();
    }

    /// Returns further descriptors of the sockets of all listeners.
    ///
    /// # Errors
    ///
    /// Returns an [`ExportError`] if the system refuses a descriptor.
    pub fn export_sockets(&self) -> Result<Vec<HandoverSocket>, ExportError> {
        let mut exported = Vec::new();
        for listener in self.lock_running().iter() {
            let info = &listener.listening;
            for handle in listener.parts.exports() {
                let socket = handle.export(&info.route, listener.index);
                exported.push(socket.map_err(|why| ExportError::Descriptor {
                    addr: info.addr,
                    why,
                })?);
            }
        }
        Ok(exported)
    }

    /// Returns the plugins of all listeners for a successor. They are not restarted until [`Self::resume_plugins`], or
    /// until the successor supervises them.
    ///
    /// # Errors
    ///
    /// Returns an [`ExportError`] if the system refuses a descriptor.
    #[cfg(target_os = "linux")]
    pub async fn hand_over_plugins(&self) -> Result<Vec<HandedOverPlugin>, ExportError> {
        let answers: Vec<_> = {
            let running = self.lock_running();
            let each = running.iter();
            each.filter_map(|r| Some((r.listening.addr, r.kept.hand_over_plugin()?)))
                .collect()
        };
        let mut plugins = Vec::new();
        for (addr, answer) in answers {
            match answer.await {
                Ok(plugin) => plugins.extend(plugin),
                Err(why) => return Err(ExportError::Plugin { addr, why }),
            }
        }
        Ok(plugins)
    }

    /// Supervises the plugins of all listeners again after [`Self::hand_over_plugins`].
    #[cfg(target_os = "linux")]
    pub fn resume_plugins(&self) {
        for listener in self.lock_running().iter() {
            listener.kept.resume_plugin();
        }
    }

    /// Pauses the accepting of connections, which wait in the kernel's backlog. When this returns, none is accepted.
    pub async fn pause_accepting(&self) {
        let pauses: Vec<_> = {
            let running = self.lock_running();
            running.iter().map(|r| r.parts.pause_accepting()).collect()
        };
        for pause in pauses {
            pause.await;
        }
        let fake_ips = self.chains.fake_ips.clone();
        if !fake_ips.is_empty() {
            // A panic while writing must not end the handover.
            let _ = tokio::task::spawn_blocking(move || fake_ips.write_all()).await;
        }
    }

    /// Continues after [`Self::pause_accepting`].
    pub fn resume_accepting(&self) {
        for listener in self.lock_running().iter() {
            listener.parts.resume_accepting();
        }
    }

    /// Hands the UDP sockets of sessions over. The sessions stay here: the successor forwards their datagrams. No
    /// further ones start here, unless the result is dropped, or the successor ends.
    ///
    /// # Errors
    ///
    /// The error of the system.
    #[cfg(target_os = "linux")]
    pub async fn hand_over_udp(&self) -> std::io::Result<SharedSockets> {
        let answers: Vec<_> = {
            let running = self.lock_running();
            let each = running.iter();
            each.flat_map(|r| r.parts.hand_over_udp()).collect()
        };
        let mut shared = SharedSockets::default();
        for answer in answers {
            match answer.await {
                Ok(socket) => shared.push(socket),
                // A task that has ended has no peers.
                Err(why) if why.kind() == std::io::ErrorKind::NotConnected => {}
                Err(why) => return Err(why),
            }
        }
        Ok(shared)
    }

    /// Returns the number of open connections, and of the sessions of the listeners of datagrams.
    fn open_count(&self) -> usize {
        let running = self.lock_running();
        let sessions = running
            .iter()
            .map(|r| r.parts.session_count())
            .sum::<usize>();
        sessions + self.gate.open_count() + self.associations.open_count()
    }

    /// Ends all associations of listeners, so that a successor may start their sessions again.
    pub async fn end_associations(&self) {
        let ends: Vec<_> = {
            let mut running = self.lock_running();
            let each = running.iter_mut();
            each.map(|listener| listener.parts.end_associations())
                .collect()
        };
        for ended in ends {
            ended.await;
        }
    }

    /// Closes the sockets of all listeners, which a successor has and continues, and leaves their plugins to it. Open
    /// connections continue, and so do new streams on them.
    pub async fn leave_to_successor(&self) {
        let closing: Vec<_> = {
            let mut running = self.lock_running();
            let each = running.iter_mut();
            each.map(|listener| {
                let released = listener.kept.leave_to_successor();
                (released, listener.parts.leave_to_successor())
            })
            .collect()
        };
        for (released, closed) in closing {
            released.await;
            closed.await;
        }
    }

    /// Waits until all connections and sessions have ended, for at most `drain`.
    pub async fn wait_until_idle(&self, drain: Duration) {
        let until = Instant::now() + drain;
        while self.open_count() > 0 && Instant::now() < until {
            sleep_until((Instant::now() + DRAIN_CHECK).min(until)).await;
        }
    }
}
