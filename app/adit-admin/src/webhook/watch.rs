//! The states of users: who has used up their quota, or whose time has expired, since the last look.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use adit_config::WebhookEventKind;
use adit_engine::{UserRegistry, UserReport, UserState};
use adit_net::persistent_file;
use serde::{Deserialize, Serialize};
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use super::WebhookHub;

/// Maximum size of the file, in bytes.
const MAX_FILE: usize = 64 << 20;

/// The states of the users who may have no sessions, by name.
type BlockedUsers = BTreeMap<String, String>;

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct FileContent {
    blocked: BlockedUsers,
}

/// The data of an event about a user.
#[derive(Serialize)]
struct UserData {
    user: String,
    quota: Option<u64>,
    period: &'static str,
    used: u64,
    expires: Option<u64>,
}

impl From<UserReport> for UserData {
    fn from(report: UserReport) -> Self {
        Self {
            quota: report.limits.quota,
            period: report.limits.period.name(),
            used: report.used_in_period.sum(),
            expires: report.limits.expires.map(|at| at.0),
            user: report.name,
        }
    }
}

/// Reports users whose state changes. Never returns.
pub(super) async fn watch_users(
    hub: WebhookHub,
    registry: Arc<UserRegistry>,
    file: Option<PathBuf>,
) {
    let mut known = match &file {
        Some(path) => read_known(path.clone()).await,
        None => None,
    };
    let mut is_stored = known.is_some();
    let mut timer = interval(hub.0.context.timing.watch);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        timer.tick().await;
        let blocked: BlockedUsers = registry
            .blocked_users()
            .into_iter()
            .map(|(name, state)| (name, state.name().to_owned()))
            .collect();
        // Users who were blocked before there were receivers are no news.
        let before = known.get_or_insert_with(|| blocked.clone());
        for (name, state) in &blocked {
            if before.get(name) == Some(state) {
                continue;
            }
            let kind = match UserState::Expired.name() == state {
                true => WebhookEventKind::UserExpired,
                false => WebhookEventKind::UserQuota,
            };
            if let Some(report) = registry.report(name) {
                hub.emit(kind, &UserData::from(report));
            }
        }
        if *before == blocked && is_stored {
            continue;
        }
        *before = blocked;
        is_stored = true;
        if let Some(path) = &file {
            // A crash in between repeats events, and loses none.
            hub.store_queues().await;
            store_known(path.clone(), before.clone()).await;
        }
    }
}

async fn read_known(path: PathBuf) -> Option<BlockedUsers> {
    let read = move || {
        let bytes = persistent_file::read_bounded(&path, MAX_FILE)?;
        let content = serde_json::from_slice::<FileContent>(&bytes);
        content.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not a file of users"))
    };
    match tokio::task::spawn_blocking(read).await.ok()? {
        Ok(content) => Some(content.blocked),
        Err(why) if why.kind() == io::ErrorKind::NotFound => None,
        Err(why) => {
            warn!(
                "the states of users are not known: {why}; no events are sent for earlier changes"
            );
            None
        }
    }
}

async fn store_known(path: PathBuf, blocked: BlockedUsers) {
    let write = move || {
        let text = serde_json::to_vec(&FileContent { blocked }).map_err(io::Error::other)?;
        persistent_file::write_atomically(&path, &text)
    };
    let written = tokio::task::spawn_blocking(write).await;
    if let Ok(Err(why)) = written {
        warn!("the states of users cannot be stored: {why}; a restart repeats their events");
    }
}
