//! The request's body, received from the client.

use adit_wire::{Open, Opened, ProtocolError};

use super::exchange_ends::ExchangeEnds;
use super::progress::BodyProgress;
use super::upgrade_state::{UpgradeState, UpgradeSwitch};
use crate::{Framing, MAX_HEAD};

/// Passes exactly the bytes of the framed body, including chunk framing, then returns
/// [`Opened::End`].
///
/// A body may be complete before any of its bytes has arrived: call this codec even with an empty
/// buffer. Bytes after the body belong to the client's next request and must not be forwarded.
#[derive(Debug)]
pub struct BodyOpen {
    source: BodySource,
    ends: Option<ExchangeEnds>,
}

#[derive(Debug)]
enum BodySource {
    Body(BodyProgress),
    Upgrade(UpgradeSwitch),
}

impl BodyOpen {
    /// Creates the codec for a body with that framing. See [`super::exchange_codecs`] for requests with an
    /// upgrade.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Self {
            source: BodySource::Body(BodyProgress::new(framing)),
            ends: None,
        }
    }

    /// Also records the end in `ends`.
    pub(super) fn with_ends(self, ends: ExchangeEnds) -> Self {
        let ends = Some(ends);
        Self { ends, ..self }
    }

    /// Creates the codec for bytes that wait until the origin accepts the upgrade.
    pub(super) const fn after_upgrade(switch: UpgradeSwitch) -> Self {
        Self {
            source: BodySource::Upgrade(switch),
            ends: None,
        }
    }
}

impl Open for BodyOpen {
    fn open(&mut self, wire: &mut [u8]) -> Result<Opened, ProtocolError> {
        let more = Opened::NeedMore {
            total: wire.len() + 1,
        };
        let n = match &mut self.source {
            BodySource::Body(progress) if progress.is_ended() => {
                if let Some(ends) = &self.ends {
                    ends.set_request();
                }
                return Ok(Opened::End);
            }
            BodySource::Body(progress) => progress.take_body(wire)?,
            BodySource::Upgrade(switch) => match switch.upgrade_state() {
                UpgradeState::Declined => return Ok(Opened::End),
                UpgradeState::Accepted => wire.len(),
                // A client sends the new protocol only after the 101.
                UpgradeState::Waiting if wire.len() < MAX_HEAD => return Ok(more),
                UpgradeState::Waiting => {
                    return Err(ProtocolError::TooLong {
                        what: "data before the upgrade",
                        limit: MAX_HEAD,
                    });
                }
            },
        };
        Ok(match n {
            0 => more,
            n => Opened::Record {
                consumed: n,
                payload: 0..n,
            },
        })
    }

    fn is_at_boundary(&self, unread: usize) -> bool {
        match &self.source {
            BodySource::Body(progress) => progress.may_close(),
            BodySource::Upgrade(switch) => {
                switch.upgrade_state() == UpgradeState::Declined || unread == 0
            }
        }
    }
}
