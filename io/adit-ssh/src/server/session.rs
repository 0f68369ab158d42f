//! Channels for programs, on the server that runs them.

use std::fmt;
use std::sync::Arc;

use adit_ssh_proto::connection::{Kind, ReplyTo, Request};

use crate::channel::{Channel, ChannelWriter, Handle};
use crate::mail::{Command, Mail};

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
pub struct SessionControl(Handle);

/// A request or a notification of the client about a program.
#[derive(Debug)]
pub struct SessionRequest {
    /// The request.
    pub request: Request,
    /// The reply; for a request that wants none it does nothing.
    pub reply: Reply,
}

/// The obligation to reply to a request. Dropping it refuses the request.
pub struct Reply {
    to: Option<ReplyTo>,
    mail: Arc<Mail>,
}

impl ServerSession {
    pub(super) fn new(handle: Handle) -> Self {
        Self {
            stderr: ChannelWriter::new(handle.clone(), Kind::Stderr),
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
        let next = pipe.until(|state| state.requests.pop_front()).await;
        next.map(|(request, to)| SessionRequest {
            request,
            reply: Reply::new(to, Arc::clone(&pipe.mail)),
        })
    }

    /// Reports the exit status. It is sent after the last byte of output, when both streams have ended;
    /// then the channel closes. Only the first report counts.
    pub fn exit(&self, status: u32) {
        self.ended(Request::ExitStatus(status));
    }

    /// Reports that a signal terminated the program, by the signal's name without `SIG`.
    pub fn exit_signal(
        &self,
        name: impl Into<String>,
        core_dumped: bool,
        message: impl Into<String>,
    ) {
        self.ended(Request::ExitSignal {
            name: name.into(),
            core_dumped,
            message: message.into(),
        });
    }

    fn ended(&self, how: Request) {
        self.0.pipe().set(|state| state.exit(how));
    }

    /// Waits until the channel has closed, at either end.
    pub async fn closed(&self) {
        self.0.pipe().until(|_| None::<()>).await;
    }
}

impl Reply {
    pub(crate) const fn new(to: Option<ReplyTo>, mail: Arc<Mail>) -> Self {
        Self { to, mail }
    }

    /// Returns true if the client waits for the reply.
    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        self.to.is_some()
    }

    /// Grants the request.
    pub fn grant(mut self) {
        self.give(true);
    }

    /// Refuses the request.
    pub fn refuse(mut self) {
        self.give(false);
    }

    fn give(&mut self, ok: bool) {
        if let Some(to) = self.to.take() {
            // Nobody waits for the reply once the session is over.
            let _ = self.mail.send(Command::Answer { to, ok });
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.give(false);
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reply").field(&self.to).finish()
    }
}
