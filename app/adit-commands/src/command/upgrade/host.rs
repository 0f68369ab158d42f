//! The upgrades of a running process.

use std::future::pending;
use std::path::PathBuf;
use std::pin::pin;

use adit_admin::api::{ApiListenerControl, UpgradeRequest, UpgradeRequests, Upgraded};
use adit_admin::user_store::UserStoreControl;
use adit_cli::{SignalRequest, Signals};
use adit_engine::Engine;
use tokio::sync::{oneshot, watch};
use tracing::{error, info};

use super::{Exchange, Successor};

/// Performs the upgrades of a running process.
pub(crate) struct UpgradeHost {
    /// The program that this process was started from.
    program: Exchange<PathBuf>,
    /// The listener of the API, and the requests that it receives.
    api: Option<(ApiListenerControl, UpgradeRequests)>,
    /// The end of the process that this one has succeeded.
    predecessor: Option<PredecessorEnd>,
    /// The store of users.
    store: Option<UserStoreControl>,
}

/// The end of the process that this one has succeeded.
#[derive(Clone)]
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "no process has a predecessor there")
)]
pub(crate) struct PredecessorEnd(watch::Receiver<()>);

impl PredecessorEnd {
    /// Creates the end that occurs when the sender is dropped.
    #[cfg(target_os = "linux")]
    pub(super) fn new() -> (watch::Sender<()>, Self) {
        let (sender, receiver) = watch::channel(());
        (sender, Self(receiver))
    }

    /// Waits for the end.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    #[cfg(target_os = "linux")]
    pub(super) async fn wait(&mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

/// A request for an upgrade, by a signal if it has no reply.
#[derive(Default)]
pub(crate) struct UpgradeTrigger {
    program: Option<PathBuf>,
    reply: Option<oneshot::Sender<Exchange<Upgraded>>>,
}

/// The outcome of an upgrade.
pub(crate) enum UpgradeOutcome {
    /// Another process continues.
    Replaced(Box<Successor>),
    /// This process continues. If `reload` is set, SIGHUP has arrived meanwhile.
    Failed { reload: bool },
    /// This process has to end.
    Ended(SignalRequest),
}

impl From<UpgradeRequest> for UpgradeTrigger {
    fn from(request: UpgradeRequest) -> Self {
        Self {
            program: request.program,
            reply: Some(request.reply),
        }
    }
}

impl UpgradeHost {
    /// Creates the host of a process that was started from `program`, and has an API if `api` is set.
    pub(crate) const fn new(
        program: Exchange<PathBuf>,
        api: Option<(ApiListenerControl, UpgradeRequests)>,
        predecessor: Option<PredecessorEnd>,
    ) -> Self {
        Self {
            program,
            api,
            predecessor,
            store: None,
        }
    }

    /// Sets the store of users, which is handed over.
    pub(crate) fn with_user_store(mut self, store: Option<UserStoreControl>) -> Self {
        self.store = store;
        self
    }

    /// Waits for a request of the API.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub(crate) async fn next_request(&mut self) -> UpgradeTrigger {
        match &mut self.api {
            Some((_, requests)) => match requests.recv().await {
                Some(request) => request.into(),
                None => pending().await,
            },
            None => pending().await,
        }
    }

    /// Performs an upgrade. Logs its result in one line, and replies to the client of the API.
    pub(crate) async fn perform(
        &self,
        trigger: UpgradeTrigger,
        engine: &Engine,
        signals: &mut Signals,
    ) -> UpgradeOutcome {
        let UpgradeTrigger { program, reply } = trigger;
        let mut reload = false;
        let result = {
            let mut start = pin!(self.start_successor(program, engine));
            loop {
                tokio::select! {
                    result = &mut start => break result,
                    request = signals.next_request() => match request {
                        SignalRequest::Drain | SignalRequest::Stop => {
                            return UpgradeOutcome::Ended(request);
                        }
                        SignalRequest::Reload => reload = true,
                        // Already under way.
                        SignalRequest::Upgrade => {}
                    },
                }
            }
        };
        match &result {
            Ok(successor) => {
                let Upgraded { pid, version } = &successor.about;
                info!("upgraded: process {pid}, adit {version}, continues");
            }
            Err(why) => error!("not upgraded, this process continues unchanged: {why}"),
        }
        if let Some(reply) = reply {
            let about = result.as_ref().map(|successor| successor.about.clone());
            // The client may have closed the connection.
            let _ = reply.send(about.map_err(Clone::clone));
        }
        match result {
            Ok(successor) => UpgradeOutcome::Replaced(Box::new(successor)),
            Err(_) => UpgradeOutcome::Failed { reload },
        }
    }

    async fn start_successor(
        &self,
        program: Option<PathBuf>,
        engine: &Engine,
    ) -> Exchange<Successor> {
        let program = match program {
            Some(program) => program,
            None => self.program.clone()?,
        };
        let api = self.api.as_ref().map(|(control, _)| control);
        let store = self.store.as_ref();
        Successor::start(&program, engine, api, self.predecessor.clone(), store).await
    }
}
