//! The receiving half of a channel, as messages or as bytes.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use adit_ssh::messages::MessageChannel;
use adit_wire::subslice;
use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, ReadBuf};

use super::ChannelMsg;

/// The receiving half of a channel. Unread bytes hold back the channel's window.
pub struct ChannelReadHalf(pub(super) MessageChannel);

impl ChannelReadHalf {
    /// Returns the next message; `None` once the channel has closed.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn wait(&mut self) -> Option<ChannelMsg> {
        poll_fn(|cx| self.poll_message(cx)).await
    }

    fn poll_message(&self, cx: &Context<'_>) -> Poll<Option<ChannelMsg>> {
        while let Some(message) = ready!(self.0.poll_message(cx)) {
            // Messages without an equivalent here are passed to the handler alone.
            if let Some(message) = ChannelMsg::from_message(message) {
                return Poll::Ready(Some(message));
            }
        }
        Poll::Ready(None)
    }

    /// Returns a reader of the channel's bytes. It skips other messages.
    pub fn make_reader(&mut self) -> impl AsyncRead + '_ {
        self.make_reader_ext(None)
    }

    /// Returns a reader of standard error (`ext` 1), or of the channel's bytes (`None`). It skips other
    /// messages.
    pub fn make_reader_ext(&mut self, ext: Option<u32>) -> impl AsyncRead + '_ {
        StreamReader {
            half: self,
            bytes: Bytes::new(),
            ended: false,
            ext,
        }
    }

    /// Returns the next bytes of a stream, or empty bytes at its end.
    fn poll_next_bytes(&self, cx: &Context<'_>, wanted: Option<u32>) -> Poll<Bytes> {
        loop {
            match ready!(self.poll_message(cx)) {
                Some(ChannelMsg::Data { data }) if wanted.is_none() => return Poll::Ready(data),
                Some(ChannelMsg::ExtendedData { data, ext }) if wanted == Some(ext) => {
                    return Poll::Ready(data);
                }
                Some(ChannelMsg::Eof) | None => return Poll::Ready(Bytes::new()),
                Some(_) => {}
            }
        }
    }
}

impl Drop for ChannelReadHalf {
    fn drop(&mut self) {
        self.0.stop_reading();
    }
}

impl fmt::Debug for ChannelReadHalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChannelReadHalf")
            .field(&self.0.id())
            .finish()
    }
}

/// A reader of one stream of a channel.
#[derive(Debug)]
pub(super) struct StreamReader<H> {
    half: H,
    bytes: Bytes,
    ended: bool,
    ext: Option<u32>,
}

impl StreamReader<ChannelReadHalf> {
    /// Creates a reader of the channel's bytes.
    pub(super) const fn for_channel(half: ChannelReadHalf) -> Self {
        Self {
            half,
            bytes: Bytes::new(),
            ended: false,
            ext: None,
        }
    }
}

impl<H: std::borrow::Borrow<ChannelReadHalf> + Unpin> AsyncRead for StreamReader<H> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        if me.bytes.is_empty() && !me.ended {
            me.bytes = ready!(me.half.borrow().poll_next_bytes(cx, me.ext));
            me.ended = me.bytes.is_empty();
        }
        let n = me.bytes.len().min(out.remaining());
        out.put_slice(subslice(&me.bytes, ..n));
        me.bytes.advance(n);
        Poll::Ready(Ok(()))
    }
}
