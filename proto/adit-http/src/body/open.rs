//! The request's body, received from the client.

use adit_wire::{Broken, Open, Opened};

use super::ends::Ends;
use super::progress::Progress;
use super::switch::{Switch, Turn};
use crate::{Framing, MAX_HEAD};

/// Passes exactly the bytes of the framed body, including chunk framing, then returns
/// [`Opened::End`].
///
/// A body may be complete before any of its bytes has arrived: call this codec even with an empty
/// buffer. Bytes after the body belong to the client's next request and must not be forwarded.
#[derive(Debug)]
pub struct BodyOpen {
    source: Source,
    ends: Option<Ends>,
}

#[derive(Debug)]
enum Source {
    Body(Progress),
    Upgrade(Switch),
}

impl BodyOpen {
    /// Creates the codec for a body with that framing. See [`super::exchange`] for requests with an
    /// upgrade.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Self {
            source: Source::Body(Progress::new(framing)),
            ends: None,
        }
    }

    /// Also records the end in `ends`.
    pub(super) fn noting(self, ends: Ends) -> Self {
        let ends = Some(ends);
        Self { ends, ..self }
    }

    /// Creates the codec for bytes that wait until the origin accepts the upgrade.
    pub(super) const fn behind(switch: Switch) -> Self {
        Self {
            source: Source::Upgrade(switch),
            ends: None,
        }
    }
}

impl Open for BodyOpen {
    fn open(&mut self, wire: &mut [u8]) -> Result<Opened, Broken> {
        let more = Opened::NeedMore {
            total: wire.len() + 1,
        };
        let n = match &mut self.source {
            Source::Body(progress) if progress.ended() => {
                if let Some(ends) = &self.ends {
                    ends.set_request();
                }
                return Ok(Opened::End);
            }
            Source::Body(progress) => progress.take(wire)?,
            Source::Upgrade(switch) => match switch.turn() {
                Turn::Declined => return Ok(Opened::End),
                Turn::Accepted => wire.len(),
                // A client sends the new protocol only after the 101.
                Turn::Waiting if wire.len() < MAX_HEAD => return Ok(more),
                Turn::Waiting => {
                    return Err(Broken::TooLong {
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

    fn at_boundary(&self, unread: usize) -> bool {
        match &self.source {
            Source::Body(progress) => progress.may_close(),
            Source::Upgrade(switch) => switch.turn() == Turn::Declined || unread == 0,
        }
    }
}
