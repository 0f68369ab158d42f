//! Requests outside of channels, and their answers, in both directions.

use adit_wire::Role;

use super::forwards::ForwardChange;
use super::{
    ChannelCallError, Connection, ConnectionEvent, GlobalAnswer, GlobalRequest, GlobalRequestId,
    PendingGlobalReply, WantReply,
};
use crate::error::SshError;
use crate::msg;
use crate::wire::{MessageReader, SshBufMut};

impl Connection {
    /// Sends a request outside of channels. If it wants an answer, `ConnectionEvent::GlobalReply` follows
    /// with the returned identifier.
    ///
    /// # Errors
    /// [`ChannelCallError`] if too many requests are unanswered, the output is full, or an
    /// [application-defined request](GlobalRequest::Custom) has the name of a built-in one.
    pub fn send_global_request(
        &mut self,
        request: &GlobalRequest,
    ) -> Result<Option<GlobalRequestId>, ChannelCallError> {
        if let GlobalRequest::Custom { own, .. } = request
            && GlobalRequest::is_builtin(own.name())
        {
            return Err(ChannelCallError::Reserved);
        }
        self.check_output_space()?;
        let want = request.want_reply() == WantReply::Yes;
        if want && self.expected.len() >= self.limits.requests {
            return Err(ChannelCallError::TooMany);
        }
        self.outbox.push(|out| {
            out.put_u8(msg::GLOBAL_REQUEST);
            out.put_string(request.name());
            out.put_bool(want);
            request.encode_fields(out);
        });
        if !want {
            return Ok(None);
        }
        let id = GlobalRequestId(self.next_global);
        self.next_global += 1;
        self.expected
            .push_back((id, ForwardChange::for_request(request)));
        Ok(Some(id))
    }

    /// Answers a request of the peer. The port of [`GlobalAnswer::Bound`] is sent only if the peer
    /// asked for any port.
    pub fn answer_global(&mut self, to: PendingGlobalReply, answer: GlobalAnswer) {
        let answer = match answer {
            GlobalAnswer::Bound { .. } if !to.chooses_port => {
                GlobalAnswer::Granted { data: Vec::new() }
            }
            other => other,
        };
        self.owed.set_answer(to.sequence, answer);
        while let Some(answer) = self.owed.pop_ready() {
            self.outbox.push(|out| match answer {
                GlobalAnswer::Refused => out.put_u8(msg::REQUEST_FAILURE),
                GlobalAnswer::Granted { data } => {
                    out.put_u8(msg::REQUEST_SUCCESS);
                    out.put_raw(&data);
                }
                GlobalAnswer::Bound { port } => {
                    out.put_u8(msg::REQUEST_SUCCESS);
                    out.put_u32(u32::from(port));
                }
            });
        }
    }

    pub(super) fn on_global_request(&mut self, body: &[u8]) -> Result<(), SshError> {
        let mut r = MessageReader::new(body, "GLOBAL_REQUEST");
        let (name, want) = (r.read_string()?, r.read_bool()?);
        let wanted = if want { WantReply::Yes } else { WantReply::No };
        let request = GlobalRequest::parse(name, wanted, &mut r)?;
        let limit = self.limits.requests;
        if want && self.owed.len() >= limit {
            return Err(SshError::TooMuch {
                what: "number of unanswered requests",
                limit,
            });
        }
        let chooses_port = matches!(request, Some(GlobalRequest::TcpipForward { port: 0, .. }));
        let reply = want.then(|| PendingGlobalReply {
            sequence: self.owed.add_owed(),
            chooses_port,
        });
        let granted = || GlobalAnswer::Granted { data: Vec::new() };
        let verdict = match request {
            Some(GlobalRequest::KeepAlive) => granted(),
            Some(request) if !request.is_for(self.role) => GlobalAnswer::Refused,
            None => GlobalAnswer::Refused,
            Some(request @ GlobalRequest::NoMoreSessions) => {
                self.no_more_sessions = true;
                let reply = None;
                self.events
                    .push_back(ConnectionEvent::GlobalRequest { request, reply });
                granted()
            }
            Some(request) => {
                self.events
                    .push_back(ConnectionEvent::GlobalRequest { request, reply });
                return Ok(());
            }
        };
        if let Some(reply) = reply {
            self.answer_global(reply, verdict);
        }
        Ok(())
    }

    pub(super) fn on_request_success(&mut self, data: &[u8]) -> Result<(), SshError> {
        let expected = self.expected.pop_front();
        let (id, change) = expected.ok_or(SshError::Unexpected(msg::REQUEST_SUCCESS))?;
        let change = match self.role {
            Role::Client => change,
            // Clients do not listen on behalf of servers.
            Role::Server => ForwardChange::Nothing,
        };
        let answer = self.forwards.apply_granted(change, data)?;
        self.events
            .push_back(ConnectionEvent::GlobalReply { id, answer });
        Ok(())
    }

    pub(super) fn on_request_failure(&mut self, body: &[u8]) -> Result<(), SshError> {
        MessageReader::new(body, "REQUEST_FAILURE").expect_end()?;
        let expected = self.expected.pop_front();
        let (id, _) = expected.ok_or(SshError::Unexpected(msg::REQUEST_FAILURE))?;
        let answer = GlobalAnswer::Refused;
        self.events
            .push_back(ConnectionEvent::GlobalReply { id, answer });
        Ok(())
    }
}
