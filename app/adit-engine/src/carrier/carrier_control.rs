//! Changes to the carrier of a running listener.

use std::sync::{Arc, Mutex, PoisonError};

use adit_config::{CarrierSettings, ListenerConfig};
use adit_kcp::Counters;
use tokio::sync::Notify;

use super::settings::{self, CarrierError, SessionSettings};

/// Changes the settings of a KCP listener; clones belong to the same one.
#[derive(Clone, Default)]
pub(crate) struct CarrierControl(Arc<Mailbox>);

#[derive(Default)]
struct Mailbox {
    next: Mutex<Option<CarrierUpdate>>,
    sent: Notify,
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

    /// Waits for the next update.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub(super) async fn next_update(&self) -> CarrierUpdate {
        loop {
            let next = self.0.next.lock();
            let update = next.unwrap_or_else(PoisonError::into_inner).take();
            if let Some(update) = update {
                return update;
            }
            self.0.sent.notified().await;
        }
    }
}
