//! Changes to a running listener: its handlers are replaced, its sockets and its sessions stay.

#[cfg(target_os = "linux")]
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use adit_config::{ListenerConfig, ListenerKind, SsRole};
#[cfg(target_os = "linux")]
use adit_net::handover::HandedOverUdp;
use adit_wire::Host;
use tokio::task::JoinHandle;

use super::open_sockets::{DatagramService, PacketHandlers};
use super::ports::PortHandlers;
use super::{
    KeyedState, ListenerBuilder, ListenerHandlers, ListenerResources, ListenerTask, LiveState,
    OpenSockets, PreviousListener, ProcessState, ProxyUsers, fast_open_mode, keyed, ssr,
};
#[cfg(target_os = "linux")]
use crate::BoxFuture;
use crate::carrier::{CarrierControl, CarrierUpdate};
use crate::handover::{SharedSockets, SocketHandle, SocketKind, SocketSource};
use crate::serve::{AcceptSwitch, ConnectionHandler, HandlerSlot};
use crate::udp::{AssociationTableUpdater, AssociationTtl, PacketCodec, TableUpdate};
use crate::{StartError, UserTable};

/// The running parts of a listener. Dropping one ends its task.
pub(crate) struct ListenerParts {
    streams: Option<RunningStreams>,
    carrier: Option<CarrierControl>,
    datagrams: Vec<RunningTable>,
    others: Vec<OwnedTask>,
    /// Pause those of `others` that receive requests.
    switches: Vec<AcceptSwitch>,
    /// The sockets that a successor can continue.
    exports: Vec<SocketHandle>,
}

/// The running task that receives datagrams.
struct RunningTable {
    control: AssociationTableUpdater,
    task: OwnedTask,
    /// True if another process can receive on the socket, and forward the datagrams of associations.
    can_share: bool,
}

/// The running task that accepts streams.
struct RunningStreams {
    slot: HandlerSlot,
    task: OwnedTask,
    accepting: Option<AcceptSwitch>,
}

/// A task that ends when this is dropped.
struct OwnedTask(JoinHandle<()>);

impl OwnedTask {
    fn spawn(task: ListenerTask) -> Self {
        Self(tokio::spawn(task))
    }
}

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The kinds of sockets that a listener has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartsShape {
    streams: bool,
    datagrams: bool,
}

impl ListenerParts {
    /// Returns the kinds of sockets.
    pub(crate) const fn shape(&self) -> PartsShape {
        PartsShape {
            streams: self.streams.is_some(),
            datagrams: !self.datagrams.is_empty(),
        }
    }

    /// Starts the tasks of a bound listener.
    ///
    /// Sockets that the predecessor of this process still serves peers on are taken from `shared`.
    pub(crate) fn start(opened: OpenSockets, shared: &mut SharedSockets) -> Self {
        let mut parts = Self {
            streams: None,
            carrier: None,
            datagrams: Vec::new(),
            others: Vec::new(),
            switches: Vec::new(),
            exports: Vec::new(),
        };
        parts.add_sockets(opened, shared);
        parts
    }

    fn add_sockets(&mut self, opened: OpenSockets, shared: &mut SharedSockets) {
        if let Some(streams) = opened.streams {
            self.streams = Some(RunningStreams {
                slot: streams.slot,
                task: OwnedTask::spawn(streams.task.start(shared)),
                accepting: streams.accepting,
            });
        }
        self.exports.extend(opened.exports);
        if opened.carrier.is_some() {
            self.carrier = opened.carrier;
        }
        let datagrams = opened.datagrams.into_iter();
        self.datagrams.extend(datagrams.map(|service| {
            let can_share = matches!(service, DatagramService::OnSocket(..));
            let (control, task) = service.start(shared);
            RunningTable {
                control,
                task: OwnedTask::spawn(task),
                can_share,
            }
        }));
        if let Some(channels) = opened.channels {
            self.others.push(OwnedTask::spawn(channels.start(shared)));
        }
        self.others
            .extend(opened.tasks.into_iter().map(OwnedTask::spawn));
        self.switches.extend(opened.switches);
    }

    /// Closes the further descriptors of sockets of this kind, except for the first `count`.
    fn keep_handles(&mut self, kind: SocketKind, count: usize) {
        let mut left = count;
        self.exports.retain(|handle| {
            let stays = handle.kind != kind || left > 0;
            if handle.kind == kind {
                left = left.saturating_sub(1);
            }
            stays
        });
    }

    /// Returns the sockets that a successor can continue.
    pub(crate) fn exports(&self) -> &[SocketHandle] {
        &self.exports
    }

    /// Pauses the accepting of connections, which wait in the kernel's backlog from now on.
    pub(crate) fn pause_accepting(&self) -> impl Future<Output = ()> + Send + use<> {
        let pauses: Vec<_> = self.all_switches().map(AcceptSwitch::pause).collect();
        async {
            for pause in pauses {
                pause.await;
            }
        }
    }

    /// Continues after [`Self::pause_accepting`].
    pub(crate) fn resume_accepting(&self) {
        for switch in self.all_switches() {
            switch.resume();
        }
    }

    /// Closes the sockets, which a successor has, except for those that were handed over with their sessions. What is
    /// open on connections continues, new streams of theirs included.
    pub(crate) fn leave_to_successor(&mut self) -> impl Future<Output = ()> + Send + use<> {
        self.exports = Vec::new();
        let tables = self.datagrams.extract_if(.., |table| !table.can_share);
        let tables: Vec<OwnedTask> = tables.map(|table| table.task).collect();
        let closes: Vec<_> = self.all_switches().map(AcceptSwitch::close).collect();
        async {
            for close in closes {
                close.await;
            }
            end_tasks(tables).await;
        }
    }

    /// Ends all associations.
    pub(crate) fn end_associations(&mut self) -> impl Future<Output = ()> + Send + use<> {
        let tables = self.datagrams.drain(..).map(|table| table.task);
        end_tasks(tables.collect())
    }

    /// Requests the sockets of datagrams for another process, with the peers that this one still serves.
    #[cfg(target_os = "linux")]
    pub(crate) fn hand_over_udp(&self) -> Vec<BoxFuture<'static, io::Result<HandedOverUdp>>> {
        let carrier = self.carrier.iter().map(|control| {
            let answer = control.hand_over();
            let ended = |_| Err(io::ErrorKind::NotConnected.into());
            Box::pin(async move { answer.await.unwrap_or_else(ended) }) as BoxFuture<'static, _>
        });
        let tables = self.datagrams.iter().filter(|table| table.can_share);
        let tables = tables.map(|table| {
            let control = table.control.clone();
            Box::pin(async move { control.hand_over().await }) as BoxFuture<'static, _>
        });
        carrier.chain(tables).collect()
    }

    /// Returns the number of open sessions that are not connections.
    pub(crate) fn session_count(&self) -> usize {
        self.carrier
            .as_ref()
            .map_or(0, CarrierControl::session_count)
    }

    fn all_switches(&self) -> impl Iterator<Item = &AcceptSwitch> {
        let streams = self.streams.iter();
        let accepting = streams.filter_map(|streams| streams.accepting.as_ref());
        accepting.chain(&self.switches)
    }

    /// Ends all tasks, and waits until they have closed their sockets.
    pub(crate) async fn stop(&mut self) {
        self.exports = Vec::new();
        let streams = self.streams.take().map(|streams| streams.task);
        let datagrams = self.datagrams.drain(..).map(|table| table.task);
        let mut tasks: Vec<OwnedTask> = streams.into_iter().chain(datagrams).collect();
        tasks.append(&mut self.others);
        end_tasks(tasks).await;
    }
}

/// Ends tasks, and waits until they have ended.
async fn end_tasks(mut tasks: Vec<OwnedTask>) {
    for task in &tasks {
        task.0.abort();
    }
    for task in &mut tasks {
        // It was aborted, or had ended by a panic that was reported then.
        let _ = (&mut task.0).await;
    }
}

/// A prepared change of a listener, which cannot fail any more.
pub(crate) struct ListenerChange {
    worker: Option<ConnectionHandler>,
    packets: Option<PacketHandlers>,
    ttl: AssociationTtl,
    carrier: Option<CarrierUpdate>,
    /// True if datagrams are intercepted, which needs no codec.
    intercepts: bool,
    /// The treatment of associations and codecs.
    codecs: CodecChange,
    /// Sockets that the listener did not have before.
    added: Option<OpenSockets>,
    keyed: Option<KeyedState>,
    /// True if the users of the settings replace those of the table.
    replaces_users: bool,
    max_connections: usize,
    live: LiveState,
}

/// The consequences of a change for the codecs of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodecChange {
    /// The codecs stay.
    Keep,
    /// The codecs are replaced, and associations continue.
    Replace,
    /// The codecs are replaced, and associations end, because their clients have another key now.
    EndAssociations,
}

impl CodecChange {
    fn between(before: &ListenerKind, now: &ListenerKind) -> Self {
        match now {
            ListenerKind::Shadowsocks(server) if keyed::has_same_keys(before, server) => Self::Keep,
            ListenerKind::ShadowsocksR(server) if ssr::opens_same_packets(before, server) => {
                Self::Keep
            }
            ListenerKind::ShadowsocksR(server) if ssr::continues_associations(before, server) => {
                Self::Replace
            }
            ListenerKind::Forward(_) if before == now => Self::Keep,
            ListenerKind::Forward(_) if matches!(before, ListenerKind::Forward(_)) => Self::Replace,
            ListenerKind::Transparent(_) if before == now => Self::Keep,
            _ => Self::EndAssociations,
        }
    }
}

impl ListenerChange {
    /// Prepares the change of a listener that is bound to `bound`. Nothing of it is affected yet.
    pub(crate) async fn prepare(
        listen: &ListenerConfig,
        previous: PreviousListener<'_>,
        shape: PartsShape,
        bound: SocketAddr,
        process: &ProcessState<'_>,
    ) -> Result<Self, StartError> {
        let bench = ListenerBuilder::for_change(listen, previous, process);
        let ListenerHandlers {
            mut worker,
            mut packets,
            keyed,
            proxy_users,
            ssr,
        } = super::build_handlers(&bench)?;
        let live = bench.live_state(keyed.as_ref(), proxy_users, ssr);
        let intercepts = matches!(listen.kind, ListenerKind::Transparent(_));
        let mut takes_streams = worker.take_if(|_| !shape.streams);
        if listen.carrier.is_some() {
            packets = None;
        }
        if intercepts {
            // The sockets of such a listener stay as they are.
            takes_streams = None;
        }
        let takes_datagrams = packets.take_if(|_| !shape.datagrams);
        let mut added = None;
        if takes_streams.is_some() || takes_datagrams.is_some() {
            let ports = PortHandlers {
                worker: takes_streams,
                packets: takes_datagrams,
                fast_open: fast_open_mode(&listen.kind),
            };
            let addr = adit_config::ListenAddr {
                host: Some(Host::Ip(bound.ip())),
                port: bound.port(),
            };
            let bound = ports.bind_ports(&addr, &bench.common, SocketSource::NONE);
            added = Some(bound.await?);
        }
        let same_users = match (&previous.config.kind, &listen.kind) {
            (ListenerKind::Shadowsocks(before), ListenerKind::Shadowsocks(now)) => {
                // The users of a fleet do not come from the settings.
                before.role == now.role || matches!(now.role, SsRole::Fleet { .. })
            }
            _ => false,
        };
        Ok(Self {
            codecs: CodecChange::between(&previous.config.kind, &listen.kind),
            replaces_users: !same_users,
            ttl: bench.common.ttl,
            carrier: CarrierUpdate::between(previous.config, listen, &process.chains.kcp)?,
            intercepts,
            max_connections: listen.limits.max_connections.unwrap_or(usize::MAX),
            worker,
            packets,
            added,
            keyed,
            live,
        })
    }

    /// Returns the transports of the listener after the change.
    pub(crate) fn transports(&self, before: &'static str) -> &'static str {
        let added = |of: fn(&OpenSockets) -> bool| self.added.as_ref().is_some_and(of);
        let tcp = self.worker.is_some() || added(|sockets| sockets.streams.is_some());
        let udp = self.packets.is_some() || added(|sockets| !sockets.datagrams.is_empty());
        match (tcp, udp) {
            _ if !before.split('+').all(|one| one == "tcp" || one == "udp") => before,
            (true, true) => "tcp+udp",
            (false, true) => "udp",
            _ => "tcp",
        }
    }

    /// Applies the change to the listener that it was prepared for, whose state is `live`.
    pub(crate) fn apply(
        self,
        live: &mut LiveState,
        parts: &mut ListenerParts,
        resources: &mut ListenerResources,
    ) {
        live.gate.set_max(self.max_connections);
        let before = std::mem::replace(live, self.live);
        match self.worker {
            Some(worker) => {
                if let Some(streams) = &parts.streams {
                    streams.slot.replace(worker);
                }
            }
            None => {
                parts.streams = None;
                parts.keep_handles(SocketKind::Tcp, 0);
            }
        }
        if let (Some(control), Some(update)) = (&parts.carrier, self.carrier) {
            control.update(update);
        }
        match self.packets {
            Some((codecs, ttl)) => update_tables(parts, codecs, ttl, self.codecs),
            None if self.intercepts => {
                for table in &parts.datagrams {
                    table.control.update(TableUpdate::timeouts(self.ttl));
                }
            }
            None => {
                parts.datagrams.clear();
                // The socket of a carrier stays.
                if parts.carrier.is_none() {
                    parts.keep_handles(SocketKind::Udp, 0);
                }
            }
        }
        parts.others.clear();
        if let Some(added) = self.added {
            parts.add_sockets(added, &mut SharedSockets::default());
        }
        let watch = live.proxy_users.clone().and_then(ProxyUsers::watch_task);
        parts.others.extend(watch.map(OwnedTask::spawn));
        end_removed_users(&before, live);
        let mut salts = None;
        if let Some(keyed) = self.keyed {
            salts.clone_from(&keyed.salts);
            if self.replaces_users {
                keyed
                    .user_table
                    .reconfigure(keyed.configured.clone(), keyed.file.clone());
            }
            let tasks = keyed.into_tasks();
            parts.others.extend(tasks.map(OwnedTask::spawn));
        }
        let same = match (&salts, &resources.salts) {
            (Some(now), Some(before)) => Arc::ptr_eq(now, before),
            (now, before) => now.is_none() && before.is_none(),
        };
        if !same && let Some(before) = std::mem::replace(&mut resources.salts, salts) {
            before.write();
        }
    }
}

/// Updates the tables of a listener's UDP sockets.
fn update_tables(
    parts: &mut ListenerParts,
    codecs: Vec<Box<dyn PacketCodec>>,
    ttl: AssociationTtl,
    change: CodecChange,
) {
    // A socket without a codec could not be served: it is closed, and the system uses the others.
    if change != CodecChange::Keep {
        parts.datagrams.truncate(codecs.len());
        parts.keep_handles(SocketKind::Udp, codecs.len());
    }
    for (table, codec) in parts.datagrams.iter().zip(codecs) {
        table.control.update(TableUpdate {
            ttl,
            codec: (change != CodecChange::Keep).then_some(codec),
            ends_associations: change == CodecChange::EndAssociations,
        });
    }
}

/// Ends the sessions of users that the new state does not share with the old one.
fn end_removed_users(before: &LiveState, now: &LiveState) {
    before.logins.end_sessions_missing_in(&now.logins);
    let same_table = |a: &Arc<UserTable>, b: &Arc<UserTable>| Arc::ptr_eq(a, b);
    match (&before.user_table, &now.user_table) {
        (Some(old), Some(new)) if !same_table(old, new) => new.take_over(old),
        (Some(old), None) => old.end_sessions(),
        _ => {}
    }
    if let Some(old) = &before.ssr {
        let accounts = now.ssr.as_ref().map(|state| &*state.accounts);
        old.accounts.end_sessions_missing_in(accounts);
    }
}
