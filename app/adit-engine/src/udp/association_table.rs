//! The table of associations of one UDP socket. The task of an association is in `task`.

mod handover;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod handover_tests;
mod task;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use adit_net::{BatchUdpSocket, PacketBuf, system};
use adit_stream::CountBytes;
use adit_wire::{Target, Time};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, yield_now};
use tokio::time::sleep;
use tracing::{Instrument, debug, trace, warn};

use super::association_table_updater::{AssociationTableUpdater, TableUpdate};
use super::backlog::Backlog;
use super::client_side::{ClientReceiver, ClientSide};
use super::transparent::{ContactedAddrs, InterceptedDatagrams};
use super::ttl::AssociationTtl;
use super::{AssociationKey, AssociationSlot, BoxDatagramPath, ListenerQuota, PacketCodec};
use crate::connector::Connector;
use crate::reject_cause::RejectCause;
use crate::session_span::session_span;
use crate::session_table::{ListenerSessions, NewSession, SessionKind, SessionRecord};
use crate::user_account::{UserAccount, client_lookup_owner};
use crate::user_registry::SessionPermit;
use crate::{DialError, RequestContext, Router};
use task::{AssociationStage, AssociationTask, OpeningPath};

/// Minimum interval between warnings about lost datagrams.
const WARN_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of batches moved in one go before other tasks run.
const MAX_BATCHES: usize = 8;
/// Number of descriptors of an association: its outgoing socket.
const DESCRIPTORS_PER_ASSOCIATION: u8 = 1;

/// Receives on one socket for all associations of a listener.
pub struct UdpListener {
    near: ClientSide,
    common: Arc<TableState>,
    room: SlotSource,
    table: HashMap<AssociationKey, TableEntry>,
    /// True if an association had to be refused.
    is_full: bool,
    control: AssociationTableUpdater,
    /// Addresses of clients whose associations have ended since the socket was handed over.
    unreleased: handover::UnreleasedSources,
}

/// An association and its task.
struct TableEntry {
    entry: Arc<AssociationState>,
    task: AbortHandle,
}

impl Drop for UdpListener {
    fn drop(&mut self) {
        self.table.values().for_each(|known| known.task.abort());
    }
}

/// State that all associations of a table share.
struct TableState {
    router: Arc<Router>,
    sessions: Arc<ListenerSessions>,
    ttl: RwLock<AssociationTtl>,
    /// The user of all associations, where the protocol has none.
    user: AssociationUser,
    /// Time of the last warning about lost datagrams.
    last_warning: Mutex<Option<Time>>,
    /// Associations that have ended but are still in the table; each is listed once.
    ended: Mutex<Vec<AssociationKey>>,
    /// Shared with the successors of this state.
    some_ended: Arc<Notify>,
}

/// The user of an association that was requested with a login.
#[derive(Debug, Clone, Default)]
pub(crate) struct AssociationUser {
    /// The name that the client stated.
    pub(crate) name: Option<String>,
    /// The account, if the user is configured.
    pub(crate) account: Option<Arc<UserAccount>>,
}

/// The slots of associations.
enum SlotSource {
    /// Each association takes a slot of the listener's quota.
    Shared(Arc<ListenerQuota>),
    /// The listener exists for one association and ends with it; its creator owns the slot.
    Single(Arc<AssociationSlot>),
}

/// State shared by the receiving side and the association's own task.
struct AssociationState {
    path: OnceLock<BoxDatagramPath>,
    /// Datagrams that wait for the path; `None` once it is open.
    waiting: Mutex<Option<Box<Backlog<Target>>>>,
    /// The account of the association's user.
    account: Option<Arc<UserAccount>>,
    /// The counters of the session.
    session: Arc<SessionRecord>,
    /// Counts the session of a user; the creator of a single association has counted it already.
    permit: Option<SessionPermit>,
    place: SlotHold,
    /// Destination of replies: the source of the last authentic packet.
    reply_addr: Mutex<SocketAddr>,
    dns_only: AtomicBool,
    /// The addresses that the client has sent to, where these decide which replies are accepted.
    contacts: Option<Arc<ContactedAddrs>>,
    /// Keeps the plugins of the chain running, after a reload too.
    _chain: Arc<dyn Connector>,
}

/// The slot of an association.
enum SlotHold {
    Own(AssociationSlot),
    Lent(Arc<AssociationSlot>),
}

impl Deref for SlotHold {
    type Target = AssociationSlot;

    fn deref(&self) -> &AssociationSlot {
        match self {
            Self::Own(place) => place,
            Self::Lent(place) => place,
        }
    }
}

impl AssociationState {
    fn lock_ignoring_poison<'a, T>(mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a packet from `from`, which replies are sent to from now on.
    fn record_packet(&self, from: SocketAddr, target: &Target, now: Time) {
        let mut back = Self::lock_ignoring_poison(&self.reply_addr);
        if *back != from {
            debug!(client = %from, before = %*back, "the client of an association moved");
            *back = from;
        }
        drop(back);
        self.place.record_activity(now);
        if target.port != 53 && self.dns_only.load(Ordering::Relaxed) {
            self.dns_only.store(false, Ordering::Relaxed);
        }
        if let Some(contacts) = &self.contacts {
            contacts.record_contact(target);
        }
    }

    /// Sends a packet, or keeps it until the path is open.
    fn send_or_queue(&self, packet: &mut PacketBuf, target: &Target) -> io::Result<()> {
        if let Some(way) = self.path.get() {
            return way.send(packet, target);
        }
        let mut waiting = Self::lock_ignoring_poison(&self.waiting);
        // The path may have opened between the first check and the lock.
        if let Some(way) = self.path.get() {
            return way.send(packet, target);
        }
        let waiting = waiting.get_or_insert_default();
        let taken = waiting.push(target.clone(), packet.payload());
        let full = "too many datagrams wait for their path to open";
        let full = || io::Error::new(io::ErrorKind::QuotaExceeded, full);
        taken.then_some(()).ok_or_else(full)
    }

    fn flush_path(&self) {
        if let Some(Err(e)) = self.path.get().map(|way| way.flush()) {
            trace!("datagrams were lost: {e}");
        }
    }

    fn set_path(&self, way: BoxDatagramPath, lost: impl Fn(&io::Error)) {
        let mut waiting = Self::lock_ignoring_poison(&self.waiting);
        // Only the association's own task opens its path, and does so once.
        let _ = self.path.set(way);
        let (Some(way), Some(mut backlog)) = (self.path.get(), waiting.take()) else {
            return;
        };
        SCRATCH.with_borrow_mut(|packet| {
            for (target, payload) in backlog.take_all() {
                if !packet.copy_from(&payload) {
                    continue;
                }
                if let Err(e) = way.send(packet, &target) {
                    lost(&e);
                }
            }
        });
        drop(waiting);
        self.flush_path();
    }
}

impl TableState {
    fn ttl(&self) -> AssociationTtl {
        *self.ttl.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks an association as ended.
    fn mark_ended(&self, key: AssociationKey) {
        AssociationState::lock_ignoring_poison(&self.ended).push(key);
        self.some_ended.notify_one();
    }

    /// Reports the loss of a client's datagram.
    fn report_loss(&self, why: &io::Error) {
        trace!("a datagram was lost: {why}");
        self.sessions.meter().count_lost();
        // Denials by a rule are expected, and network failures are not in our control.
        if !matches!(
            why.kind(),
            io::ErrorKind::QuotaExceeded | io::ErrorKind::WouldBlock
        ) {
            return;
        }
        let now = system::monotonic_now();
        let mut complained = AssociationState::lock_ignoring_poison(&self.last_warning);
        if complained.is_none_or(|at| now.duration_since(at) >= WARN_INTERVAL) {
            *complained = Some(now);
            warn!(
                "datagrams were lost: {why} (reported once in {} s)",
                WARN_INTERVAL.as_secs()
            );
        }
    }
}

impl UdpListener {
    /// Creates an empty table.
    #[must_use]
    pub fn new(
        socket: Arc<BatchUdpSocket>,
        codec: Box<dyn PacketCodec>,
        router: Arc<Router>,
        sessions: Arc<ListenerSessions>,
        ttl: AssociationTtl,
        share: Arc<ListenerQuota>,
    ) -> Self {
        let near = ClientSide::new(socket, codec);
        let user = AssociationUser::default();
        let room = SlotSource::Shared(share);
        Self::build(near, router, sessions, ttl, room, user)
    }

    /// Creates a table for one association that has its slot already, and ends with it.
    pub(crate) fn for_association(
        socket: Arc<BatchUdpSocket>,
        codec: Box<dyn PacketCodec>,
        router: Arc<Router>,
        sessions: Arc<ListenerSessions>,
        ttl: AssociationTtl,
        place: Arc<AssociationSlot>,
        user: AssociationUser,
    ) -> Self {
        let near = ClientSide::new(socket, codec);
        Self::build(near, router, sessions, ttl, SlotSource::Single(place), user)
    }

    /// Creates a table for intercepted datagrams.
    #[must_use]
    pub fn transparent(
        interception: InterceptedDatagrams,
        router: Arc<Router>,
        sessions: Arc<ListenerSessions>,
        ttl: AssociationTtl,
        share: Arc<ListenerQuota>,
    ) -> Self {
        let near = ClientSide::Intercepted(Arc::new(interception.with_quota(share.clone())));
        let user = AssociationUser::default();
        let room = SlotSource::Shared(share);
        Self::build(near, router, sessions, ttl, room, user)
    }

    fn build(
        near: ClientSide,
        router: Arc<Router>,
        sessions: Arc<ListenerSessions>,
        ttl: AssociationTtl,
        room: SlotSource,
        user: AssociationUser,
    ) -> Self {
        let control = AssociationTableUpdater::default();
        let common = Arc::new(TableState {
            router,
            sessions,
            ttl: RwLock::new(ttl),
            user,
            last_warning: Mutex::default(),
            ended: Mutex::default(),
            some_ended: control.wakeup(),
        });
        Self {
            control,
            near,
            common,
            room,
            table: HashMap::new(),
            is_full: false,
            unreleased: handover::UnreleasedSources::default(),
        }
    }

    /// Returns the control of the table.
    pub(crate) fn control(&self) -> AssociationTableUpdater {
        self.control.clone()
    }

    /// Applies the changes of a reload.
    fn apply_update(&mut self, update: TableUpdate) {
        let TableUpdate {
            ttl,
            codec,
            ends_associations,
        } = update;
        if let Some(codec) = codec {
            self.near.replace_codec(codec);
        }
        if !ends_associations {
            *self
                .common
                .ttl
                .write()
                .unwrap_or_else(PoisonError::into_inner) = ttl;
            return;
        }
        // The tasks of these associations end later, and report that to the state which they have.
        let before = std::mem::take(&mut self.table);
        before.values().for_each(|known| known.task.abort());
        self.common = Arc::new(TableState {
            router: self.common.router.clone(),
            sessions: self.common.sessions.clone(),
            ttl: RwLock::new(ttl),
            user: self.common.user.clone(),
            last_warning: Mutex::default(),
            ended: Mutex::default(),
            some_ended: self.common.some_ended.clone(),
        });
    }

    /// Receives forever, or until its only association ends. When dropped, all associations end.
    pub async fn run(mut self) {
        let mut common = self.common.clone();
        let ear = self.near.receiver();
        let single = matches!(self.room, SlotSource::Single(_));
        let idle = self.common.ttl().idle;
        loop {
            tokio::select! {
                biased;
                () = common.some_ended.notified() => {
                    let ended = std::mem::take(&mut *AssociationState::lock_ignoring_poison(&common.ended));
                    for key in &ended {
                        let known = self.table.remove(key);
                        self.near.forget_association(*key);
                        self.note_ended(known);
                    }
                    if single && !ended.is_empty() {
                        return;
                    }
                    if let Some(update) = self.control.take_update() {
                        self.apply_update(update);
                        common = self.common.clone();
                    }
                    #[cfg(target_os = "linux")]
                    self.answer_handover();
                }
                () = self.wait_release() => self.release_sources(),
                () = sleep(idle), if single && self.table.is_empty() => return,
                ready = ear.wait_readable() => {
                    let received = ready.and_then(|()| self.receive_batches(&ear));
                    if std::mem::take(&mut self.is_full) {
                        // Lets associations that were asked to end do so.
                        yield_now().await;
                    }
                    if let Err(e) = received {
                        warn!("cannot receive datagrams: {e}");
                        sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        }
    }

    /// Receives what is available, up to [`MAX_BATCHES`].
    fn receive_batches(&mut self, ear: &ClientReceiver) -> io::Result<()> {
        SCRATCH.with_borrow_mut(|packet| {
            for _ in 0..MAX_BATCHES {
                let now = system::monotonic_now();
                // Consecutive packets of one association are flushed together.
                let mut last: Option<(AssociationKey, Arc<AssociationState>)> = None;
                let received = ear.try_recv_batch(packet, |packet, from, to| {
                    let copy = self.near.copy_to_forward(packet);
                    let (key, target) = match self.near.open_packet(packet, from, to) {
                        Ok(opened) => opened,
                        Err(why) => {
                            self.near.forward_copy(copy.as_deref(), from, why);
                            self.common.sessions.stages().count_rejected_datagram(why);
                            return trace!("datagram from {from} dropped: {why}");
                        }
                    };
                    if self.near.forward_opened(copy.as_deref(), from, key) {
                        if !self.table.contains_key(&key) {
                            self.near.forget_association(key);
                        }
                        return;
                    }
                    if last.as_ref().is_none_or(|(known, _)| *known != key) {
                        if let Some((_, entry)) = last.take() {
                            entry.flush_path();
                        }
                        last = self.association_for(key, from, &target).map(|e| (key, e));
                    }
                    if let Some((_, entry)) = &last {
                        let n = packet.payload().len();
                        let account = entry.account.as_ref();
                        if account.is_some_and(|account| !account.pass_datagram(n, true)) {
                            self.common.sessions.meter().count_lost();
                            return trace!("datagram from {from} dropped: the limits of the user");
                        }
                        self.common.sessions.meter().add_up(n);
                        entry.session.record_up(n);
                        entry.record_packet(from, &target, now);
                        if let Err(e) = entry.send_or_queue(packet, &target) {
                            self.common.report_loss(&e);
                        }
                    }
                });
                if let Some((_, entry)) = last {
                    entry.flush_path();
                }
                match received {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    received => received?,
                }
            }
            Ok(())
        })
    }

    /// Returns the association of a packet, which is created if there is none and a slot is free.
    fn association_for(
        &mut self,
        key: AssociationKey,
        from: SocketAddr,
        target: &Target,
    ) -> Option<Arc<AssociationState>> {
        if let Some(known) = self.table.get(&key) {
            return Some(known.entry.clone());
        }
        let account = self.near.account_of(key);
        let account = account.or_else(|| self.common.user.account.clone());
        let permit = match (&self.room, &account) {
            (SlotSource::Shared(_), Some(account)) => match account.admit_session(from.ip()) {
                Ok(permit) => permit,
                Err(why) => {
                    self.near.forget_association(key);
                    let sessions = &self.common.sessions;
                    sessions.meter().count_lost();
                    let cause = RejectCause::from_refusal(why);
                    sessions.stages().count_datagram_reject(cause);
                    debug!("no association for {from}: {}", why.text());
                    return None;
                }
            },
            _ => None,
        };
        let place = match &self.room {
            SlotSource::Shared(share) => share
                .reserve_slot(account.as_ref(), from.ip(), DESCRIPTORS_PER_ASSOCIATION)
                .map(SlotHold::Own),
            SlotSource::Single(place) => Some(SlotHold::Lent(place.clone())),
        };
        let Some(place) = place else {
            self.is_full = true;
            self.near.forget_association(key);
            let why = "the limit of associations is reached";
            let why = io::Error::new(io::ErrorKind::QuotaExceeded, why);
            let stages = self.common.sessions.stages();
            stages.count_datagram_reject(RejectCause::Exhausted);
            self.common.report_loss(&why);
            return None;
        };
        let user = account.as_ref().and_then(|account| account.name());
        let user = user.or(self.common.user.name.as_deref());
        let context = RequestContext::datagrams(from, user);
        let connector = self.common.router.select_connector(target, &context);
        let asker = client_lookup_owner(account.as_ref(), from.ip());
        let chain = connector.clone();
        let answer = self.near.claim_association(key);
        let associate = async move {
            let Some(answer) = answer else {
                return connector.open_datagrams().await;
            };
            // Without a path, the datagrams wait for the other nodes.
            let (way, is_new) = tokio::join!(connector.open_datagrams(), answer);
            if is_new {
                way
            } else {
                Err(DialError::replayed())
            }
        };
        let associate = asker.scope(associate);
        let id = self.common.sessions.next_id();
        let span = session_span(id, SessionKind::Udp, from, &self.common.sessions);
        let mut opening: OpeningPath = match &span {
            Some(span) => Box::pin(associate.instrument((**span).clone())),
            None => Box::pin(associate),
        };
        // Most paths open without waiting.
        let way = match opening
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(Ok(way)) => OnceLock::from(way),
            Poll::Ready(Err(why)) => {
                // Treated as an association that started and ended.
                self.common.mark_ended(key);
                debug!(session = id, client = %from, %target, cause = why.cause.label(), "cannot open a path for datagrams: {why}");
                return None;
            }
            Poll::Pending => OnceLock::new(),
        };
        let stage = match way.get() {
            Some(_) => AssociationStage::Open(Box::pin(sleep(self.common.ttl().dns))),
            None => AssociationStage::Opening(opening),
        };
        let mouth = self.near.sender_for(key)?;
        debug!(session = id, client = %from, %target, "association starts");
        let mut removed = None;
        if let Some(account) = &account {
            if account.is_one_user() {
                let Some(leaves) = account.end_notice(permit.as_ref()) else {
                    self.common.mark_ended(key);
                    return None;
                };
                removed = Some(leaves);
            }
            account.count_udp_session();
        }
        let session = self.common.sessions.open_with_id(
            id,
            NewSession {
                kind: SessionKind::Udp,
                user: self.common.user.name.as_deref(),
                account: account.as_ref(),
                target: Some(target),
            },
        );
        let entry = Arc::new(AssociationState {
            account,
            session: session.record(),
            permit,
            place,
            path: way,
            waiting: Mutex::default(),
            reply_addr: Mutex::new(from),
            dns_only: AtomicBool::new(true),
            contacts: mouth.contacts(),
            _chain: chain,
        });
        let task = AssociationTask {
            entry: entry.clone(),
            session,
            mouth,
            common: self.common.clone(),
            stage,
            removed,
            key,
        };
        let task = match span {
            None => tokio::spawn(task),
            Some(span) => tokio::spawn(task.instrument(*span)),
        };
        let task = task.abort_handle();
        let known = TableEntry {
            entry: entry.clone(),
            task,
        };
        self.table.insert(key, known);
        Some(entry)
    }
}

thread_local! {
    /// One buffer for all associations of a thread, so that idle ones need none.
    static SCRATCH: RefCell<PacketBuf> = RefCell::new(PacketBuf::default());
}
