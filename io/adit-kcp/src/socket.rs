//! The state that all sessions of a socket share.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use adit_fec::ErasureCode;
use adit_wire::Time;

use super::settings::{DatagramLayout, Settings};
use super::socket_timers::SocketTimers;
use super::transport::Transport;

/// A socket, its settings, and the timers of its sessions.
#[derive(Debug)]
pub(super) struct KcpSocket {
    pub(super) transport: Transport,
    pub(super) settings: Settings,
    pub(super) layout: DatagramLayout,
    /// The code of sent datagrams, created once.
    pub(super) code: Option<ErasureCode>,
    alarms: Mutex<SocketTimers>,
    /// Datagrams from the address of a session that did not pass the check.
    refused: AtomicU64,
}

impl KcpSocket {
    /// Opens a socket with `open` if the settings are valid.
    pub(super) fn new(
        settings: Settings,
        open: impl FnOnce() -> io::Result<Transport>,
    ) -> io::Result<Self> {
        let wrong = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
        let layout = settings.compute_layout().map_err(wrong)?;
        let code = settings
            .fec
            .map(|fec| ErasureCode::new(fec.matrix, fec.data, fec.parity));
        Ok(Self {
            code: code.transpose().map_err(|why| wrong(why.into()))?,
            transport: open()?,
            layout,
            settings,
            alarms: Mutex::default(),
            refused: AtomicU64::new(0),
        })
    }

    pub(super) fn lock_timers(&self) -> MutexGuard<'_, SocketTimers> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused_count(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}
