//! Changes to the carrier of a running listener.

use std::sync::{Arc, Mutex, PoisonError};

use adit_config::{CarrierSettings, ListenerConfig};
use adit_kcp::Counters;
use tokio::sync::Notify;

use super::settings::{self, CarrierError, SessionSettings};
#[cfg(target_os = "linux")]
use crate::handover::SharedSocketAnswer;
use crate::handover::SharedSocketReply;

/// Changes the settings of a KCP listener; clones belong to the same one.
#[derive(Clone, Default)]
pub(crate) struct CarrierControl(Arc<Mailbox>);

#[derive(Default)]
struct Mailbox {
    next: Mutex<Option<CarrierUpdate>>,
    /// Takes the socket that is handed over to another process.
    handover: Mutex<Option<SharedSocketReply>>,
    sent: Notify,
    /// Has a reference for each open session.
    sessions: Arc<()>,
}

/// A request to the task of a listener.
pub(super) enum CarrierRequest {
    Update(Box<CarrierUpdate>),
    HandOver(SharedSocketReply),
}

/// Settings for the sessions that start from now on.
pub(crate) struct CarrierUpdate {
    pub(super) settings: SessionSettings,
    /// True if open sessions end, because their clients have another key now.
    pub(super) ends_sessions: bool,
}

impl CarrierUpdate {
    /// Prepares the change from one listener to another; `None` if the carrier is the same, or not KCP.
    pub(crate) fn between(
        before: &ListenerConfig,
        now: &ListenerConfig,
        counters: &Arc<Counters>,
    ) -> Result<Option<Self>, CarrierError> {
        let (Some(CarrierSettings::Kcp(old)), Some(CarrierSettings::Kcp(new))) =
            (&before.carrier, &now.carrier)
        else {
            return Ok(None);
        };
        if old == new {
            return Ok(None);
        }
        Ok(Some(Self {
            settings: settings::session_settings(new, counters.clone())?,
            ends_sessions: old.seal != new.seal,
        }))
    }
}

impl CarrierControl {
    /// Applies `update` before the next session starts.
    pub(crate) fn update(&self, update: CarrierUpdate) {
        let mut next = self.0.next.lock().unwrap_or_else(PoisonError::into_inner);
        let ends_sessions = next.as_ref().is_some_and(|before| before.ends_sessions);
        *next = Some(CarrierUpdate {
            ends_sessions: update.ends_sessions || ends_sessions,
            ..update
        });
        drop(next);
        self.0.sent.notify_one();
    }

    /// Hands the socket over to another process. Open sessions continue here, and no further ones start.
    #[cfg(target_os = "linux")]
    pub(crate) fn hand_over(&self) -> SharedSocketAnswer {
        let (reply, answer) = tokio::sync::oneshot::channel();
        let mut handover = self
            .0
            .handover
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *handover = Some(reply);
        drop(handover);
        self.0.sent.notify_one();
        answer
    }

    /// Returns the number of open sessions.
    pub(crate) fn session_count(&self) -> usize {
        Arc::strong_count(&self.0.sessions) - 1
    }

    /// Returns a value that counts as an open session until it is dropped.
    pub(super) fn count_session(&self) -> Arc<()> {
        self.0.sessions.clone()
    }

    /// Waits for the next request.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub(super) async fn next_request(&self) -> CarrierRequest {
        loop {
            let next = self.0.next.lock();
            let update = next.unwrap_or_else(PoisonError::into_inner).take();
            if let Some(update) = update {
                return CarrierRequest::Update(Box::new(update));
            }
            let handover = self.0.handover.lock();
            let reply = handover.unwrap_or_else(PoisonError::into_inner).take();
            if let Some(reply) = reply {
                return CarrierRequest::HandOver(reply);
            }
            self.0.sent.notified().await;
        }
    }
}
