//! One SFTP channel: requests out, replies in.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;

use adit_ssh::Channel;
use adit_ssh::client::Session;
use adit_ssh_proto::sftp::{
    Extension, FrameReader, RequestId, SftpClient, SftpClientEvent, SftpReply, SftpRequest,
};
use adit_stream::Stream;
use adit_wire::{Time, narrow_int};
use tokio::io::AsyncWrite;

use super::CopyError;

/// What a request is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// Nothing else.
    Alone,
    /// The one transfer that is going on.
    Transfer,
}

/// Takes replies: what the request was a part of, its number, the reply.
pub(super) type Take<'a> = dyn FnMut(Tag, RequestId, &SftpReply<'_>) -> Result<(), CopyError> + 'a;

/// An SFTP channel of a session.
#[derive(Debug)]
pub(crate) struct Remote {
    channel: Channel,
    frames: FrameReader,
    pub(super) client: SftpClient<Tag>,
    pub(super) out: Vec<u8>,
    /// So much of `out` is gone already.
    sent: usize,
    began: Instant,
}

impl Remote {
    /// Opens a channel with the SFTP server of the host.
    ///
    /// # Errors
    /// There is none, or it is of another kind.
    pub(crate) async fn open(session: &Session) -> Result<Self, CopyError> {
        let lost = |why: &dyn std::fmt::Display| {
            CopyError::ConnectionLost(io::Error::other(why.to_string()))
        };
        let program = session.open_session().await.map_err(|why| lost(&why))?;
        let started = program.start_subsystem("sftp").await;
        started.map_err(|why| lost(&format!("no SFTP server: {why}")))?;
        let mut out = Vec::new();
        let mut remote = Self {
            channel: program.into_channel(),
            frames: FrameReader::new(),
            client: SftpClient::new(&mut out),
            out,
            sent: 0,
            began: Instant::now(),
        };
        while !remote.client.can_request() {
            remote.turn(&mut |_, _, _| Ok(())).await?;
        }
        Ok(remote)
    }

    /// Microseconds since the channel was opened.
    pub(super) fn now(&self) -> Time {
        Time(narrow_int(self.began.elapsed().as_micros()))
    }

    /// Whether the server has an extension.
    pub(crate) const fn has(&self, extension: Extension) -> bool {
        self.client.extensions().contains(extension)
    }

    /// Appends a request whose reply will come through [`Remote::toggle`].
    pub(super) fn send(&mut self, request: &SftpRequest<'_>) -> Result<RequestId, CopyError> {
        Ok(self
            .client
            .send_request(request, Tag::Alone, &mut self.out)?)
    }

    /// Asks and waits for the reply.
    pub(super) async fn ask<R>(
        &mut self,
        request: &SftpRequest<'_>,
        mut read: impl FnMut(&SftpReply<'_>) -> Result<R, CopyError>,
    ) -> Result<R, CopyError> {
        let asked = self.send(request)?;
        let mut answer = None;
        while answer.is_none() {
            self.turn(&mut |_, id, reply| {
                if id == asked {
                    answer = Some(read(reply));
                }
                Ok(())
            })
            .await?;
        }
        answer.unwrap_or_else(|| Err(CopyError::other("no answer")))
    }

    /// Sends what waits and gives replies that came to `take`, until something of either happened.
    ///
    /// # Errors
    /// The channel ended, the server broke the protocol, or that of `take`.
    pub(super) async fn turn(&mut self, take: &mut Take<'_>) -> Result<(), CopyError> {
        poll_fn(|cx| {
            let all_sent = self.poll_send(cx)?;
            match self.channel.poll_fill(cx, 1) {
                Poll::Ready(Ok(0)) => {
                    let why = "the SFTP server ended";
                    Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, why)))
                }
                Poll::Ready(Ok(_)) => Poll::Ready(Ok(())),
                Poll::Ready(Err(why)) => Poll::Ready(Err(why)),
                Poll::Pending if all_sent => Poll::Ready(Ok(())),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
        .map_err(CopyError::ConnectionLost)?;
        loop {
            let mut data: &[u8] = self.channel.filled();
            let here = data.len();
            if here == 0 {
                return Ok(());
            }
            while let Some(frame) = self.frames.next_frame(&mut data)? {
                if let SftpClientEvent::Reply { tag, id, reply } =
                    self.client.handle_input(frame, &mut self.out)?
                {
                    take(tag, id, &reply)?;
                }
            }
            self.channel.consume(here);
        }
    }

    /// Whether the last of what waited was sent just now.
    fn poll_send(&mut self, cx: &mut std::task::Context<'_>) -> io::Result<bool> {
        if self.out.is_empty() {
            return Ok(false);
        }
        while let Some(rest) = self.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match Pin::new(&mut self.channel).poll_write(cx, rest) {
                Poll::Ready(n) => self.sent += n?,
                Poll::Pending => return Ok(false),
            }
        }
        self.out.clear();
        self.sent = 0;
        let _ = self.channel.poll_flush(cx)?;
        Ok(true)
    }
}
