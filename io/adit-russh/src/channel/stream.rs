//! Channels as byte streams.

use std::io;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use adit_ssh_proto::connection::DataKind;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::read_half::StreamReader;
use super::write_half::StreamWriter;
use super::{ChannelReadHalf, ChannelWriteHalf};

/// A channel as a byte stream. Dropping it closes the channel, after the bytes that were written.
#[derive(Debug)]
pub struct ChannelStream<S> {
    reader: StreamReader<ChannelReadHalf>,
    writer: StreamWriter,
    side: PhantomData<fn() -> S>,
}

impl<S> ChannelStream<S> {
    pub(super) fn new(read: ChannelReadHalf, write: ChannelWriteHalf<S>) -> Self {
        Self {
            reader: StreamReader::for_channel(read),
            writer: write.stream_writer(DataKind::Stdout),
            side: PhantomData,
        }
    }
}

impl<S> Drop for ChannelStream<S> {
    fn drop(&mut self) {
        self.writer.close_channel();
    }
}

impl<S> AsyncRead for ChannelStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().reader).poll_read(cx, out)
    }
}

impl<S> AsyncWrite for ChannelStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().writer).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().writer).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().writer).poll_shutdown(cx)
    }
}
