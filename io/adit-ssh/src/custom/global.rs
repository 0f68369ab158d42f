//! Received global requests with application-defined names.

use adit_ssh_proto::connection::{CustomMessage, CustomMessageError, GlobalAnswer, GlobalRequest};

use crate::routes::GlobalReply;

/// A global request or notification of the peer. Dropping it without an answer refuses it.
///
/// Answers are sent in the order of the requests (RFC 4254 section 4): answers to later requests wait
/// for this one, including those to the peer's keepalives.
#[derive(Debug)]
pub struct CustomRequest {
    own: CustomMessage,
    reply: GlobalReply,
}

impl CustomRequest {
    /// Returns `None` for other requests, which are refused by the drop.
    pub(crate) fn from_global_request(request: GlobalRequest, reply: GlobalReply) -> Option<Self> {
        match request {
            GlobalRequest::Custom { own, .. } => Some(Self { own, reply }),
            _ => None,
        }
    }

    /// Returns the request's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.own.name()
    }

    /// Returns the request's data.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.own.data()
    }

    /// Returns true if the peer waits for an answer.
    #[must_use]
    pub const fn wants_reply(&self) -> bool {
        self.reply.is_wanted()
    }

    /// Grants the request; `data` is sent with the answer, if one is wanted.
    ///
    /// # Errors
    /// Fails if the data is longer than `CustomMessage::MAX_DATA`; the request is then refused.
    pub fn grant(self, data: impl Into<Vec<u8>>) -> Result<(), CustomMessageError> {
        let data = data.into();
        CustomMessage::check_len(data.len())?;
        self.reply.send_answer(GlobalAnswer::Granted { data });
        Ok(())
    }

    /// Refuses the request.
    pub fn refuse(self) {
        self.reply.send_answer(GlobalAnswer::Refused);
    }
}
