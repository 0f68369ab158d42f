//! The state that all sessions of a socket share.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use adit_fec::ErasureCode;
#[cfg(target_os = "linux")]
use adit_net::handover::HandedOverUdp;
use adit_wire::Time;
#[cfg(target_os = "linux")]
use tokio::sync::oneshot;

use super::settings::{DatagramLayout, Settings};
use super::socket_timers::SocketTimers;
use super::transport::Transport;

/// A socket, its settings, and the timers of its sessions.
#[derive(Debug)]
pub(super) struct KcpSocket {
    pub(super) transport: Arc<Transport>,
    pub(super) settings: Settings,
    pub(super) layout: DatagramLayout,
    /// The code of sent datagrams, created once.
    pub(super) code: Option<ErasureCode>,
    /// State that the successors of this value share.
    shared: Arc<SharedState>,
}

/// State of a socket that does not depend on its settings.
#[derive(Debug, Default)]
struct SharedState {
    alarms: Mutex<SocketTimers>,
    /// Datagrams from the address of a session that did not pass the check.
    refused: AtomicU64,
    /// Other settings, which the driver has not applied yet.
    next: Mutex<Option<SettingsChange>>,
    /// True if `next` is set.
    has_next: AtomicBool,
    #[cfg(target_os = "linux")]
    handover: HandoverRequest,
}

/// A request to hand the socket over to the next process, which the driver has not answered yet.
#[cfg(target_os = "linux")]
#[derive(Debug, Default)]
struct HandoverRequest {
    reply: Mutex<Option<HandoverReply>>,
    /// True if `reply` is set.
    is_open: AtomicBool,
}

/// The recipient of a socket that is handed over.
#[cfg(target_os = "linux")]
pub(super) type HandoverReply = oneshot::Sender<io::Result<HandedOverUdp>>;

/// Other settings for the sessions that start from now on.
#[derive(Debug)]
pub(super) struct SettingsChange {
    pub(super) socket: Arc<KcpSocket>,
    /// True if open sessions end, because their packets cannot be opened any more.
    pub(super) ends_sessions: bool,
}

impl KcpSocket {
    /// Opens a socket with `open` if the settings are valid.
    pub(super) fn new(
        settings: Settings,
        open: impl FnOnce() -> io::Result<Transport>,
    ) -> io::Result<Self> {
        let (layout, code) = check_settings(&settings)?;
        Ok(Self {
            code,
            transport: Arc::new(open()?),
            layout,
            settings,
            shared: Arc::default(),
        })
    }

    /// Returns the same socket with other settings.
    pub(super) fn with_settings(&self, settings: Settings) -> io::Result<Self> {
        let (layout, code) = check_settings(&settings)?;
        Ok(Self {
            code,
            transport: Arc::clone(&self.transport),
            layout,
            settings,
            shared: Arc::clone(&self.shared),
        })
    }

    /// Passes other settings to the driver.
    pub(super) fn send_change(&self, change: SettingsChange) {
        let mut next = self.lock_change();
        let ends_sessions = next.as_ref().is_some_and(|before| before.ends_sessions);
        *next = Some(SettingsChange {
            ends_sessions: change.ends_sessions || ends_sessions,
            ..change
        });
        self.shared.has_next.store(true, Ordering::Release);
        drop(next);
        self.wake_driver();
    }

    /// Returns the settings to apply.
    pub(super) fn take_change(&self) -> Option<SettingsChange> {
        // A load is cheaper than a lock, and there is rarely a change.
        if !self.shared.has_next.load(Ordering::Acquire) {
            return None;
        }
        let mut next = self.lock_change();
        self.shared.has_next.store(false, Ordering::Release);
        next.take()
    }

    /// Requests the driver to hand the socket over.
    #[cfg(target_os = "linux")]
    pub(super) fn request_handover(&self) -> oneshot::Receiver<io::Result<HandedOverUdp>> {
        let (reply, answer) = oneshot::channel();
        let request = &self.shared.handover;
        *request.lock_reply() = Some(reply);
        request.is_open.store(true, Ordering::Release);
        self.wake_driver();
        answer
    }

    /// Returns the request to answer.
    #[cfg(target_os = "linux")]
    pub(super) fn take_handover_request(&self) -> Option<HandoverReply> {
        let request = &self.shared.handover;
        // A load is cheaper than a lock, and there is rarely a request.
        if !request.is_open.load(Ordering::Acquire) {
            return None;
        }
        let mut reply = request.lock_reply();
        request.is_open.store(false, Ordering::Release);
        reply.take()
    }

    fn lock_change(&self) -> MutexGuard<'_, Option<SettingsChange>> {
        let next = self.shared.next.lock();
        next.unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock_timers(&self) -> MutexGuard<'_, SocketTimers> {
        let alarms = self.shared.alarms.lock();
        alarms.unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves a session's timer, and wakes the driver if it sleeps longer.
    pub(super) fn set_timer(&self, slot: usize, old: Option<Time>, new: Time) {
        let waker = self.lock_timers().set_timer(slot, old, new);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Wakes the driver to check if it is still needed.
    pub(super) fn wake_driver(&self) {
        let waker = self.lock_timers().take_waker();
        waker.into_iter().for_each(Waker::wake);
    }

    pub(super) fn count_refused(&self) {
        self.shared.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused_count(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }
}

#[cfg(target_os = "linux")]
impl HandoverRequest {
    fn lock_reply(&self) -> MutexGuard<'_, Option<HandoverReply>> {
        self.reply.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks settings, and creates what depends on them.
fn check_settings(settings: &Settings) -> io::Result<(DatagramLayout, Option<ErasureCode>)> {
    let wrong = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
    let layout = settings.compute_layout().map_err(wrong)?;
    let code = settings
        .fec
        .map(|fec| ErasureCode::new(fec.matrix, fec.data, fec.parity));
    let code = code.transpose().map_err(|why| wrong(why.into()))?;
    Ok((layout, code))
}
