//! The upgrades of a running process.

use std::future::pending;
use std::path::PathBuf;
use std::pin::pin;

use adit_admin::api::{ApiListenerControl, UpgradeRequest, UpgradeRequests, Upgraded};
use adit_admin::user_store::UserStoreControl;
use adit_admin::webhook::WebhookHub;
use adit_cli::{SignalRequest, Signals};
use adit_engine::Engine;
use tokio::sync::{oneshot, watch};
use tracing::{error, info};

use super::{Exchange, Successor};
use crate::command::fleet_node::FleetControl;

/// Performs the upgrades of a running process.
pub(crate) struct UpgradeHost {
    /// The program that this process was started from.
    program: Exchange<PathBuf>,
    /// The listener of the API, and the requests that it receives.
    api: Option<(ApiListenerControl, UpgradeRequests)>,
    /// The end of the process that this one has succeeded.
    predecessor: Option<PredecessorEnd>,
    /// The files of this process, which another one opens.
    files: ProcessFiles,
}

/// Files that one process has open at a time.
#[derive(Clone, Default)]
pub(crate) struct ProcessFiles {
    /// The store of users.
    pub(crate) store: Option<UserStoreControl>,
    /// The node of a fleet.
    pub(crate) fleet: Option<FleetControl>,
    /// The queues of receivers of events.
    pub(crate) webhooks: Option<WebhookHub>,
}

impl ProcessFiles {
    /// Writes and closes them, so that another process can open them.
    pub(crate) async fn close(&self) {
        if let Some(fleet) = &self.fleet {
            fleet.close().await;
        }
        if let Some(store) = &self.store {
            store.close().await;
        }
        if let Some(webhooks) = &self.webhooks {
            webhooks.close().await;
        }
    }

    /// Opens them again: there is no other process.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "nothing is handed over there")
    )]
    pub(crate) async fn reopen(&self, engine: &Engine) {
        if let Some(store) = &self.store {
            store.reopen().await;
        }
        if let Some(fleet) = &self.fleet {
            fleet.reopen().await;
        }
        if let Some(webhooks) = &self.webhooks {
            webhooks.reopen(engine.user_registry().clone());
        }
    }
}

/// The end of the process that this one has succeeded.
#[derive(Clone)]
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
    pub(crate) fn new(
        program: Exchange<PathBuf>,
        api: Option<(ApiListenerControl, UpgradeRequests)>,
        predecessor: Option<PredecessorEnd>,
    ) -> Self {
        Self {
            program,
            api,
            predecessor,
            files: ProcessFiles::default(),
        }
    }

    /// Sets the files that are handed over.
    pub(crate) fn with_files(mut self, files: ProcessFiles) -> Self {
        self.files = files;
        self
    }

    /// Returns the receivers of events.
    pub(crate) const fn webhooks(&self) -> Option<&WebhookHub> {
        self.files.webhooks.as_ref()
    }

    /// Waits for the end of the process that this one has succeeded, if it still ends connections.
    pub(crate) async fn wait_for_predecessor(&self) {
        if let Some(mut predecessor) = self.predecessor.clone() {
            predecessor.wait().await;
        }
    }

    /// Waits for a request of the API, or of an operator of the fleet.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub(crate) async fn next_request(&mut self) -> UpgradeTrigger {
        let api = self.api.as_mut();
        let by_api = async {
            match api {
                Some((_, requests)) => match requests.recv().await {
                    Some(request) => request.into(),
                    None => pending().await,
                },
                None => pending().await,
            }
        };
        let by_fleet = async {
            match &self.files.fleet {
                Some(fleet) => fleet.next_upgrade().await,
                None => pending().await,
            }
        };
        tokio::select! {
            trigger = by_api => trigger,
            program = by_fleet => UpgradeTrigger { program, reply: None },
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
            Err(why) => {
                error!("not upgraded, this process continues unchanged: {why}");
                if let Some(fleet) = &self.files.fleet {
                    fleet.set_upgrade_result(format!("not upgraded: {why}"));
                }
            }
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
        let files = &self.files;
        Successor::start(&program, engine, api, self.predecessor.clone(), files).await
    }
}
