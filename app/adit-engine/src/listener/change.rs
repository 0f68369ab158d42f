//! Changes to a running listener: its handlers are replaced, its sockets and its sessions stay.

use std::net::SocketAddr;
use std::sync::Arc;

use adit_config::{ListenerConfig, ListenerKind};
use adit_wire::Host;
use tokio::task::JoinHandle;

use super::open_sockets::PacketHandlers;
use super::ports::PortHandlers;
use super::{
    KeyedState, ListenerBuilder, ListenerHandlers, ListenerResources, ListenerTask, LiveState,
    OpenSockets, PreviousListener, ProcessState, fast_open_mode, keyed, ssr,
};
use crate::carrier::{CarrierControl, CarrierUpdate};
use crate::serve::{ConnectionHandler, HandlerSlot};
use crate::udp::{AssociationTableUpdater, AssociationTtl, PacketCodec, TableUpdate};
use crate::{StartError, UserTable};

/// The running parts of a listener. Dropping one ends its task.
pub(crate) struct ListenerParts {
    streams: Option<(HandlerSlot, OwnedTask)>,
    carrier: Option<CarrierControl>,
    datagrams: Vec<(AssociationTableUpdater, OwnedTask)>,
    others: Vec<OwnedTask>,
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
    pub(crate) fn start(opened: OpenSockets) -> Self {
        let mut parts = Self {
            streams: None,
            carrier: None,
            datagrams: Vec::new(),
            others: Vec::new(),
        };
        parts.add_sockets(opened);
        parts
    }

    fn add_sockets(&mut self, opened: OpenSockets) {
        if let Some((slot, task)) = opened.streams {
            self.streams = Some((slot, OwnedTask::spawn(task)));
        }
        if opened.carrier.is_some() {
            self.carrier = opened.carrier;
        }
        let datagrams = opened.datagrams.into_iter();
        let spawn = |(control, task)| (control, OwnedTask::spawn(task));
        self.datagrams.extend(datagrams.map(spawn));
        self.others
            .extend(opened.tasks.into_iter().map(OwnedTask::spawn));
    }

    /// Ends all tasks, and waits until they have closed their sockets.
    pub(crate) async fn stop(&mut self) {
        let streams = self.streams.take().map(|(_, task)| task);
        let datagrams = self.datagrams.drain(..).map(|(_, task)| task);
        let mut tasks: Vec<OwnedTask> = streams.into_iter().chain(datagrams).collect();
        tasks.append(&mut self.others);
        for task in &tasks {
            task.0.abort();
        }
        for task in &mut tasks {
            // It was aborted, or had ended by a panic that was reported then.
            let _ = (&mut task.0).await;
        }
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
            ssr,
        } = super::build_handlers(&bench)?;
        let live = bench.live_state(keyed.as_ref(), ssr);
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
            added = Some(ports.bind_ports(&addr, &bench.common).await?);
        }
        let same_users = match (&previous.config.kind, &listen.kind) {
            (ListenerKind::Shadowsocks(before), ListenerKind::Shadowsocks(now)) => {
                before.role == now.role
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
                if let Some((slot, _)) = &parts.streams {
                    slot.replace(worker);
                }
            }
            None => parts.streams = None,
        }
        if let (Some(control), Some(update)) = (&parts.carrier, self.carrier) {
            control.update(update);
        }
        match self.packets {
            Some((codecs, ttl)) => update_tables(parts, codecs, ttl, self.codecs),
            None if self.intercepts => {
                for (control, _) in &parts.datagrams {
                    control.update(TableUpdate::timeouts(self.ttl));
                }
            }
            None => parts.datagrams.clear(),
        }
        parts.others.clear();
        if let Some(added) = self.added {
            parts.add_sockets(added);
        }
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
    }
    for ((control, _), codec) in parts.datagrams.iter().zip(codecs) {
        control.update(TableUpdate {
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
