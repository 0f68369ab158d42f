//! Channels: requests, received messages, and their bytes.

mod message;
mod open_handle;
mod read_half;
mod stream;
mod write_half;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use adit_ssh::messages::MessageChannel;
use tokio::io::AsyncRead;

pub use message::ChannelMsg;
pub use open_handle::ChannelOpenHandle;
pub use read_half::ChannelReadHalf;
pub use stream::ChannelStream;
pub use write_half::ChannelWriteHalf;

/// A channel. `S` is [`client::Msg`](crate::client::Msg) or [`server::Msg`](crate::server::Msg), and
/// distinguishes the two sides.
///
/// A channel derefs to its [`ChannelWriteHalf`]. Dropping it does not close the channel: see
/// [`ChannelWriteHalf::close`].
pub struct Channel<S> {
    read: ChannelReadHalf,
    write: ChannelWriteHalf<S>,
}

impl<S> Channel<S> {
    pub(crate) fn new(channel: MessageChannel) -> Self {
        Self {
            read: ChannelReadHalf(channel.clone()),
            write: ChannelWriteHalf {
                channel,
                side: PhantomData,
            },
        }
    }

    /// Returns the next message; `None` once the channel has closed.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn wait(&mut self) -> Option<ChannelMsg> {
        self.read.wait().await
    }

    /// Splits the channel into halves for two tasks.
    #[must_use]
    pub fn split(self) -> (ChannelReadHalf, ChannelWriteHalf<S>) {
        (self.read, self.write)
    }

    /// Converts this into a byte stream in both directions. The channel closes when the stream is
    /// dropped.
    #[must_use]
    pub fn into_stream(self) -> ChannelStream<S> {
        ChannelStream::new(self.read, self.write)
    }

    /// Returns a reader of the channel's bytes.
    pub fn make_reader(&mut self) -> impl AsyncRead + '_ {
        self.read.make_reader()
    }

    /// Returns a reader of standard error (`ext` 1), or of the channel's bytes (`None`).
    pub fn make_reader_ext(&mut self, ext: Option<u32>) -> impl AsyncRead + '_ {
        self.read.make_reader_ext(ext)
    }
}

impl<S> Deref for Channel<S> {
    type Target = ChannelWriteHalf<S>;

    fn deref(&self) -> &ChannelWriteHalf<S> {
        &self.write
    }
}

impl<S> fmt::Debug for Channel<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Channel").field(&self.id()).finish()
    }
}
