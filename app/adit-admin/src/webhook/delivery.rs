//! The task of a receiver: one event after the other, with retries.

use std::sync::Arc;
use std::time::Duration;

use adit_config::Secret;
use adit_engine::NameResolver;
use adit_net::system;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use super::queue::{EventQueue, StoredEvent};
use super::{WebhookContext, WebhookTiming};
use crate::subscription::{FetchError, Fetcher, Source, scattered};

/// Bytes of an answer that are read; its body is ignored.
const MAX_ANSWER: usize = 4096;

/// Delivers the events of a queue.
pub(super) struct Delivery {
    source: Source,
    secret: Secret,
    names: NameResolver,
    fetcher: Fetcher,
    timing: WebhookTiming,
    queue: Arc<EventQueue>,
}

/// The reason why an event was not delivered.
#[derive(Debug, thiserror::Error)]
enum DeliveryError {
    #[error(transparent)]
    Request(#[from] FetchError),
    #[error("the receiver answered {0}")]
    Status(StatusCode),
}

impl Delivery {
    pub(super) fn new(
        source: Source,
        secret: Secret,
        context: &WebhookContext,
        queue: Arc<EventQueue>,
    ) -> Self {
        let fetcher = Fetcher::new(context.roots.clone(), MAX_ANSWER);
        Self {
            source,
            secret,
            names: context.names.clone(),
            fetcher: fetcher.with_time_limit(context.timing.request),
            timing: context.timing,
            queue,
        }
    }

    /// Delivers until the task is aborted.
    pub(super) async fn run(self) {
        let mut failures: u32 = 0;
        loop {
            // Before it is delivered, so that a crash loses nothing that was reported.
            self.queue.store().await;
            let Some(event) = self.queue.first() else {
                self.queue.changed().await;
                continue;
            };
            if self.is_too_old(&event) {
                warn!(
                    "{}: event {} is older than {} h and is dropped",
                    self.queue.receiver(),
                    event.id,
                    self.timing.oldest.as_secs() / 3600
                );
                self.queue.remove(&event.id, false);
                continue;
            }
            match self.deliver(&event).await {
                Ok(()) => {
                    if failures > 0 {
                        info!("{}: events are delivered again", self.queue.receiver());
                    }
                    failures = 0;
                    self.queue.remove(&event.id, true);
                }
                Err(why) => {
                    self.queue.count_failure();
                    if failures == 0 {
                        warn!(
                            "{}: event {} is not delivered: {why}; it is tried again (logged once until it succeeds)",
                            self.queue.receiver(),
                            event.id
                        );
                    }
                    failures = failures.saturating_add(1);
                    self.wait(failures).await;
                }
            }
        }
    }

    fn is_too_old(&self, event: &StoredEvent) -> bool {
        let age = system::unix_now().0.saturating_sub(event.time);
        age > self.timing.oldest.as_secs()
    }

    /// Waits after a failure. Events that are added meanwhile are stored at once.
    async fn wait(&self, failures: u32) {
        let doubled = 1u32.checked_shl(failures - 1).unwrap_or(u32::MAX);
        let wait = self.timing.first_wait.saturating_mul(doubled);
        let wait = scattered(wait.min(self.timing.longest_wait));
        let due = Instant::now() + wait.max(Duration::from_millis(1));
        loop {
            tokio::select! {
                () = sleep_until(due) => return,
                () = self.queue.changed() => self.queue.store().await,
            }
        }
    }

    async fn deliver(&self, event: &StoredEvent) -> Result<(), DeliveryError> {
        let now = system::unix_now().0;
        let signature = sign(self.secret.expose().as_bytes(), now, event.body.as_bytes());
        let text = |text: &str| HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""));
        let headers = [
            (
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            ),
            (HeaderName::from_static("x-adit-event"), text(&event.kind)),
            (HeaderName::from_static("x-adit-delivery"), text(&event.id)),
            (
                HeaderName::from_static("x-adit-signature"),
                text(&signature),
            ),
        ];
        let body = Bytes::copy_from_slice(event.body.as_bytes());
        let sent = self.fetcher.post(&self.source, &self.names, &headers, body);
        match sent.await? {
            status if status.is_success() => Ok(()),
            status => Err(DeliveryError::Status(status)),
        }
    }
}

/// Returns the value of `X-Adit-Signature` for a body that is sent at `time`, in seconds since 1970.
#[must_use]
pub fn sign(secret: &[u8], time: u64, body: &[u8]) -> String {
    let prefix = format!("{time}.");
    let tag = adit_crypto::hmac_sha256(secret, &[prefix.as_bytes(), body]);
    let digits: String = tag.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={time},v1={digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tag is that of `printf '1700000000.{}' | openssl dgst -sha256 -hmac secret`.
    #[test]
    fn the_signature_is_that_of_other_programs() {
        assert_eq!(
            sign(b"secret", 1_700_000_000, b"{}"),
            "t=1700000000,v1=b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163"
        );
    }
}
