//! A global request of an own type, at the end that answers it.

use adit_ssh_proto::connection::{GlobalAnswer, GlobalRequest, Own, OwnError};

use crate::forwards::GlobalReply;

/// Something that the peer asks for, or tells, outside of channels. Dropped without an answer, it
/// is refused.
///
/// Answers leave in the order of the requests (RFC 4254 section 4): later ones wait for this, those
/// to the peer's signs of life among them.
#[derive(Debug)]
pub struct OwnRequest {
    own: Own,
    reply: GlobalReply,
}

impl OwnRequest {
    /// `None` for other requests, which are refused by that.
    pub(crate) fn of(request: GlobalRequest, reply: GlobalReply) -> Option<Self> {
        match request {
            GlobalRequest::Own { own, .. } => Some(Self { own, reply }),
            _ => None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.own.name()
    }

    /// Its data.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.own.data()
    }

    /// Whether the peer waits for an answer.
    #[must_use]
    pub const fn wants_reply(&self) -> bool {
        self.reply.is_wanted()
    }

    /// It is granted; `data` go with the answer, if one is wanted.
    ///
    /// # Errors
    /// The data are longer than [`Own::MAX_DATA`]; then it is refused.
    pub fn grant(self, data: impl Into<Vec<u8>>) -> Result<(), OwnError> {
        let data = data.into();
        Own::fits(data.len())?;
        self.reply.give(GlobalAnswer::Granted { data });
        Ok(())
    }

    /// It is not.
    pub fn refuse(self) {
        self.reply.give(GlobalAnswer::Refused);
    }
}
