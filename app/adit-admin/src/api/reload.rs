//! `POST /v1/reload`: the configuration file is read again.

use adit_engine::ReloadSummary;
use hyper::StatusCode;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use super::Api;
use super::reply::{ApiResult, Refusal, Reply};

/// Number of requests that may wait for their turn.
const MAX_WAITING: usize = 16;

/// The requests of clients, which the process that runs the plan performs.
pub type ReloadRequests = mpsc::Receiver<ReloadReply>;
/// Takes the result of one request: the numbers of listeners, or the reason why nothing has changed.
pub type ReloadReply = oneshot::Sender<Result<ReloadSummary, String>>;
pub(super) type ReloadSender = mpsc::Sender<ReloadReply>;

#[derive(Serialize)]
struct Reloaded {
    added: usize,
    changed: usize,
    removed: usize,
}

impl Api {
    /// Accepts requests for a reload, and returns them.
    #[must_use]
    pub fn with_reload(self) -> (Self, ReloadRequests) {
        let (sender, requests) = mpsc::channel(MAX_WAITING);
        let api = Self {
            reload: Some(sender),
            ..self
        };
        (api, requests)
    }

    /// Answers `POST /v1/reload`.
    pub(super) async fn request_reload(&self) -> ApiResult {
        let unavailable = || {
            let why = "there is no configuration file: adit was started with URLs";
            Refusal::new(StatusCode::CONFLICT, why)
        };
        let ended = || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "adit is about to end");
        let sender = self.reload.as_ref().ok_or_else(unavailable)?;
        let (reply, result) = oneshot::channel();
        sender.send(reply).await.map_err(|_| ended())?;
        match result.await.map_err(|_| ended())? {
            Ok(ReloadSummary {
                added,
                changed,
                removed,
            }) => Ok(Reply::ok(&Reloaded {
                added,
                changed,
                removed,
            })),
            Err(why) => Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, why)),
        }
    }
}
