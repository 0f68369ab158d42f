//! The management API in a build without the feature `management`.
//!
//! The types have the functions that commands use, but no values.

use std::io;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use adit_config::Plan;
use adit_engine::ReloadSummary;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::selection_file::SelectionFile;

/// Answers the requests of the API.
#[derive(Debug)]
pub enum Api {}

/// The listener of the API.
#[derive(Debug)]
pub enum ApiListener {}

/// The reason why a listener cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ApiListenerError {}

/// Hands over the socket of a listener.
#[derive(Debug, Clone)]
pub enum ApiListenerControl {}

/// The requests of clients, which the process that runs the plan performs.
pub type ReloadRequests = mpsc::Receiver<ReloadReply>;
/// Takes the result of one request: the numbers of listeners, or the reason why nothing has changed.
pub type ReloadReply = oneshot::Sender<Result<ReloadSummary, String>>;
/// The requests of clients, which the process performs.
pub type UpgradeRequests = mpsc::Receiver<UpgradeRequest>;

/// A request for an upgrade.
#[derive(Debug)]
pub struct UpgradeRequest {
    /// The program to start, instead of the one that this process was started from.
    pub program: Option<PathBuf>,
    /// Takes the result: the new process, or the reason why this one continues.
    pub reply: oneshot::Sender<Result<Upgraded, String>>,
}

/// The process that continues the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upgraded {
    /// Its process ID.
    pub pid: u32,
    /// Its version of adit.
    pub version: String,
}

impl Api {
    /// Keeps the selections in manual groups in a file.
    #[must_use]
    pub fn with_selection_file(self, _: SelectionFile) -> Self {
        match self {}
    }

    /// Notes that the limits of users are in a store.
    #[must_use]
    pub const fn with_kept_limits(self) -> Self {
        match self {}
    }

    /// Sets the plan that the engine runs now.
    pub const fn set_plan(&self, _: &Plan) {
        match *self {}
    }

    /// Accepts requests for an upgrade, and returns them.
    #[must_use]
    pub const fn with_upgrade(self) -> (Self, UpgradeRequests) {
        match self {}
    }

    /// Accepts requests for a reload, and returns them.
    #[must_use]
    pub const fn with_reload(self) -> (Self, ReloadRequests) {
        match self {}
    }
}

impl ApiListener {
    /// Closes the socket of another process, which this one does not continue.
    ///
    /// # Errors
    /// None.
    #[cfg(unix)]
    pub async fn continue_from(
        _: &str,
        _: bool,
        _: &str,
        _: OwnedFd,
    ) -> Result<Option<Self>, ApiListenerError> {
        Ok(None)
    }
}

impl ApiListenerControl {
    /// Returns the address.
    #[must_use]
    pub const fn address(&self) -> &str {
        match *self {}
    }

    /// Returns a further descriptor of the socket.
    ///
    /// # Errors
    /// None.
    #[cfg(unix)]
    pub const fn export(&self) -> io::Result<Option<OwnedFd>> {
        match *self {}
    }

    /// Closes the socket, which a successor has.
    pub const fn leave_to_successor(&self) {
        match *self {}
    }

    /// Returns true once a successor has the socket.
    #[must_use]
    pub const fn has_successor(&self) -> bool {
        match *self {}
    }
}
