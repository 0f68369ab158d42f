//! `POST /v1/upgrade`: another process continues the listeners of this one.

use std::path::PathBuf;

use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::Api;
use super::reply::{ApiResult, Refusal, Reply};

/// Number of requests that may wait for their turn.
const MAX_WAITING: usize = 16;

/// The requests of clients, which the process performs.
pub type UpgradeRequests = mpsc::Receiver<UpgradeRequest>;
pub(super) type UpgradeSender = mpsc::Sender<UpgradeRequest>;

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

/// The body of a request.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UpgradeBody {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) program: Option<PathBuf>,
}

impl Api {
    /// Accepts requests for an upgrade, and returns them.
    #[must_use]
    pub fn with_upgrade(self) -> (Self, UpgradeRequests) {
        let (sender, requests) = mpsc::channel(MAX_WAITING);
        let api = Self {
            upgrade: Some(sender),
            ..self
        };
        (api, requests)
    }

    /// Answers `POST /v1/upgrade`. `by_port` is true if all users of this machine can send requests: a token is for
    /// the management of users, and must not start other programs.
    pub(super) async fn request_upgrade(&self, body: &[u8], by_port: bool) -> ApiResult {
        let unavailable = || {
            let why =
                "this process cannot be upgraded: only `adit run` and `adit server` on Linux can";
            Refusal::new(StatusCode::CONFLICT, why)
        };
        let ended = || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "adit is about to end");
        let sender = self.upgrade.as_ref().ok_or_else(unavailable)?;
        let body: UpgradeBody = match body {
            [] => UpgradeBody::default(),
            body => serde_json::from_slice(body)
                .map_err(|why| Refusal::bad_request(format!("the body: {why}")))?,
        };
        if by_port && body.program.is_some() {
            let why =
                "`program` is only allowed at a Unix socket: a token must not start other programs";
            return Err(Refusal::new(StatusCode::FORBIDDEN, why));
        }
        let (reply, result) = oneshot::channel();
        let request = UpgradeRequest {
            program: body.program,
            reply,
        };
        sender.send(request).await.map_err(|_| ended())?;
        match result.await.map_err(|_| ended())? {
            Ok(upgraded) => Ok(Reply::ok(&upgraded)),
            Err(why) => Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, why)),
        }
    }
}
