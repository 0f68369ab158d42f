//! Channels for programs, on the server that runs them.

use std::fmt;
use std::sync::Arc;

use adit_ssh_proto::connection::{DataKind, PendingReply, SshChannelRequest};

use crate::channel::{Channel, ChannelHandle, ChannelWriter};
use crate::shared_session::{Command, SharedSession};

/// A channel for a program: requests arrive first, then bytes flow both ways, then the server reports
/// the exit status.
///
/// EOF is sent when both `channel` and `stderr` were shut down or dropped.
#[derive(Debug)]
pub struct ServerSession {
    control: SessionControl,
    channel: Channel,
    stderr: ChannelWriter,
}

/// A handle that receives the client's requests and reports the program's exit status.
#[derive(Debug, Clone)]
pub struct SessionControl(ChannelHandle);

/// A request or a notification of the client about a program.
#[derive(Debug)]
pub struct SessionRequest {
    /// The request.
    pub request: SshChannelRequest,
    /// The reply; for a request that wants none it does nothing.
    pub reply: RequestReply,
}

/// The obligation to reply to a request. Dropping it refuses the request.
pub struct RequestReply {
    to: Option<PendingReply>,
    mail: Arc<SharedSession>,
}

impl ServerSession {
    pub(super) fn new(handle: ChannelHandle) -> Self {
        Self {
            stderr: ChannelWriter::new(handle.clone(), DataKind::Stderr),
            control: SessionControl(handle.clone()),
            channel: Channel::new(handle),
        }
    }

    /// Returns the handle for requests and the exit status.
    #[must_use]
    pub const fn control(&self) -> &SessionControl {
        &self.control
    }

    /// Returns the client's next request; `None` once the channel has closed.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn next_request(&self) -> Option<SessionRequest> {
        self.control.next_request().await
    }

    /// Returns the program's standard input and output.
    pub const fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// Splits this into the control handle, standard input and output, and standard error.
    #[must_use]
    pub fn into_parts(self) -> (SessionControl, Channel, ChannelWriter) {
        (self.control, self.channel, self.stderr)
    }
}

impl SessionControl {
    /// Returns the client's next request; `None` once the channel has closed.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn next_request(&self) -> Option<SessionRequest> {
        let pipe = self.0.pipe();
        let next = pipe.wait_until(|state| state.requests.pop_front()).await;
        next.map(|(request, to)| SessionRequest {
            request,
            reply: RequestReply::new(to, Arc::clone(&pipe.mail)),
        })
    }

    /// Reports the exit status. It is sent after the last byte of output, when both streams have ended;
    /// then the channel closes. Only the first report counts.
    pub fn send_exit_status(&self, status: u32) {
        self.set_exit(SshChannelRequest::ExitStatus(status));
    }

    /// Reports that a signal terminated the program, by the signal's name without `SIG`.
    pub fn send_exit_signal(
        &self,
        name: impl Into<String>,
        core_dumped: bool,
        message: impl Into<String>,
    ) {
        self.set_exit(SshChannelRequest::ExitSignal {
            name: name.into(),
            core_dumped,
            message: message.into(),
        });
    }

    fn set_exit(&self, how: SshChannelRequest) {
        self.0.pipe().update_state(|state| state.set_exit(how));
    }

    /// Waits until the channel has closed, at either end.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn wait_closed(&self) {
        self.0.pipe().wait_until(|_| None::<()>).await;
    }
}

impl RequestReply {
    pub(crate) const fn new(to: Option<PendingReply>, mail: Arc<SharedSession>) -> Self {
        Self { to, mail }
    }

    /// Returns true if the client waits for the reply.
    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        self.to.is_some()
    }

    /// Grants the request.
    pub fn grant(mut self) {
        self.send_reply(true);
    }

    /// Refuses the request.
    pub fn refuse(mut self) {
        self.send_reply(false);
    }

    fn send_reply(&mut self, ok: bool) {
        if let Some(to) = self.to.take() {
            // No one waits for the reply once the session is over.
            let _ = self.mail.send_command(Command::Answer { to, ok });
        }
    }
}

impl Drop for RequestReply {
    fn drop(&mut self) {
        self.send_reply(false);
    }
}

impl fmt::Debug for RequestReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reply").field(&self.to).finish()
    }
}
