//! The request's body, as it comes from the client.

use adit_wire::{Open, Opened, ProtocolError};

use super::ends::Ends;
use super::progress::Progress;
use super::switch::{Switch, Turn};
use crate::{Framing, MAX_HEAD};

/// Hands through exactly the bytes of the framed body, chunk framing included, then
/// [`Opened::End`].
///
/// A body may be over before any byte of it has come: ask with what there is, even if that is
/// nothing. Bytes behind the body are the client's next request, which is not ours to forward.
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
    /// A body of that framing. See [`super::exchange`] for requests with an upgrade.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Self {
            source: Source::Body(Progress::new(framing)),
            ends: None,
        }
    }

    /// The same; takes note of the end.
    pub(super) fn noting(self, ends: Ends) -> Self {
        let ends = Some(ends);
        Self { ends, ..self }
    }

    /// Bytes that wait for the origin's consent.
    pub(super) const fn behind(switch: Switch) -> Self {
        Self {
            source: Source::Upgrade(switch),
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
                // A client speaks the new protocol only after the 101.
                Turn::Waiting if wire.len() < MAX_HEAD => return Ok(more),
                Turn::Waiting => {
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
            Source::Body(progress) => progress.may_close(),
            Source::Upgrade(switch) => switch.turn() == Turn::Declined || unread == 0,
        }
    }
}
