//! A channel for a program, as the server that runs it sees it.

use std::fmt;
use std::sync::Arc;

use adit_ssh_proto::connection::{Kind, ReplyTo, Request};

use crate::channel::{Channel, ChannelWriter, Handle};
use crate::mail::{Command, Mail};

/// A channel for a program: requests come, then bytes both ways, then it is told how it ended.
///
/// The end of the program's output is the end of the channel and of `stderr` together: it is sent
/// when both were shut down or dropped.
#[derive(Debug)]
pub struct ServerSession {
    control: SessionControl,
    channel: Channel,
    stderr: ChannelWriter,
}

/// What the client wants of a program, and how it ended.
#[derive(Debug, Clone)]
pub struct SessionControl(Handle);

/// Something that the client wants, or tells, about a program.
#[derive(Debug)]
pub struct SessionRequest {
    /// What.
    pub request: Request,
    /// To be answered; of what wants no answer it is done without.
    pub reply: Reply,
}

/// The duty to answer a request; dropped, it refuses.
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

    /// What the client wants, and how the program ended.
    #[must_use]
    pub const fn control(&self) -> &SessionControl {
        &self.control
    }

    /// What the client wants next; `None` once the channel has closed. Cancel-safe.
    pub async fn next_request(&self) -> Option<SessionRequest> {
        self.control.next_request().await
    }

    /// The program's standard input and output.
    pub const fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// All of it apart: control, standard input and output, standard error.
    #[must_use]
    pub fn into_parts(self) -> (SessionControl, Channel, ChannelWriter) {
        (self.control, self.channel, self.stderr)
    }
}

impl SessionControl {
    /// What the client wants next; `None` once the channel has closed. Cancel-safe.
    pub async fn next_request(&self) -> Option<SessionRequest> {
        let pipe = self.0.pipe();
        let next = pipe.until(|state| state.requests.pop_front()).await;
        next.map(|(request, to)| SessionRequest {
            request,
            reply: Reply::new(to, Arc::clone(&pipe.mail)),
        })
    }

    /// Tells how the program ended, behind the last byte of its output: when both streams have
    /// ended. Then the channel closes. The first word counts.
    pub fn exit(&self, status: u32) {
        self.ended(Request::ExitStatus(status));
    }

    /// Tells that a signal ended the program, by its name without SIG.
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

    /// Waits until the channel has closed, whoever closed it.
    pub async fn closed(&self) {
        self.0.pipe().until(|_| None::<()>).await;
    }
}

impl Reply {
    pub(crate) const fn new(to: Option<ReplyTo>, mail: Arc<Mail>) -> Self {
        Self { to, mail }
    }

    /// Whether the client waits for it.
    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        self.to.is_some()
    }

    /// It is granted.
    pub fn grant(mut self) {
        self.give(true);
    }

    /// It is not.
    pub fn refuse(mut self) {
        self.give(false);
    }

    fn give(&mut self, ok: bool) {
        if let Some(to) = self.to.take() {
            // Without a session nobody waits.
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
