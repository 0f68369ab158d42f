//! The channel: messages with descriptors over a Unix stream socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;

use adit_wire::{subslice, subslice_mut, u64_from};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use socket2::{Domain, SockRef, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;

use super::HandoverError;
use super::header::{HEADER_BYTES, MAX_DESCRIPTORS, MessageHeader};

/// Step in which the buffer of a body grows, in bytes: only received bytes cost memory.
const BODY_STEP: usize = 64 << 10;

/// One end of the channel between a running process and the one that continues its work.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::os::fd::AsFd;
///
/// use adit_net::handover::{HandoverChannel, continue_tcp_listener};
///
/// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
/// // The second end is the standard input of the new process, which is this one here.
/// let (mut old, stdin) = HandoverChannel::pair()?;
/// let mut new = HandoverChannel::from_fd(stdin)?;
///
/// old.send(1, b"web", &[listener.as_fd()]).await?;
/// let message = new.receive().await?.ok_or("closed")?;
/// assert_eq!((message.kind, &*message.body), (1, &b"web"[..]));
/// let fd = message.fds.into_iter().next().ok_or("no descriptor")?;
/// assert_eq!(continue_tcp_listener(fd)?.local_addr()?, listener.local_addr()?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HandoverChannel {
    stream: UnixStream,
    incoming: Incoming,
    /// True while a message has been sent in part.
    is_sending: bool,
}

/// A message that has been received.
#[derive(Debug)]
pub struct HandoverMessage {
    /// The kind, which the application defines.
    pub kind: u16,
    /// The body, at most 16 MiB.
    pub body: Vec<u8>,
    /// The descriptors, at most 64, closed when a program is executed.
    pub fds: Vec<OwnedFd>,
}

/// The message that is being received.
#[derive(Debug, Default)]
struct Incoming {
    header: [u8; HEADER_BYTES],
    /// Number of received bytes of the header.
    header_len: usize,
    fds: Vec<OwnedFd>,
    body: Vec<u8>,
}

impl HandoverChannel {
    /// Creates a channel. The second result is the end of the other process, to be passed on as its
    /// standard input.
    ///
    /// # Errors
    /// Errors of the system.
    ///
    /// # Panics
    /// Outside of a runtime of tokio with I/O.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (here, there) = StdUnixStream::pair()?;
        Ok((Self::from_stream(here)?, there.into()))
    }

    /// Creates a channel from its descriptor, usually standard input.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if it is not a connected Unix stream socket, and errors
    /// of the system.
    ///
    /// # Panics
    /// Outside of a runtime of tokio with I/O.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        let socket = SockRef::from(&fd);
        let is_channel = matches!(
            (socket.domain(), socket.r#type()),
            (Ok(Domain::UNIX), Ok(Type::STREAM))
        ) && socket.peer_addr().is_ok();
        if !is_channel {
            let what = "the descriptor is not a handover channel (a connected Unix stream socket)";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        Self::from_stream(fd.into())
    }

    /// Returns the ID of the process that has created the channel of this descriptor.
    ///
    /// # Errors
    /// The descriptor is not a Unix socket.
    pub fn creator_of(fd: BorrowedFd<'_>) -> io::Result<u32> {
        let of_peer = getsockopt(&fd, PeerCredentials)?;
        // In another namespace of processes it has the ID 0.
        Ok(of_peer.pid().unsigned_abs())
    }

    fn from_stream(stream: StdUnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream: UnixStream::from_std(stream)?,
            incoming: Incoming::default(),
            is_sending: false,
        })
    }

    /// Sends a message, which ends when the system has it. The descriptors are duplicated; those of the
    /// caller remain open.
    ///
    /// # Errors
    /// A body above 16 MiB or more than 64 descriptors, which leave the channel usable, and errors of the
    /// system, such as [`BrokenPipe`](io::ErrorKind::BrokenPipe) if the peer has ended.
    ///
    /// # Cancel safety
    /// This method is not cancel safe: if its future is dropped within a message, all further calls fail.
    pub async fn send(
        &mut self,
        kind: u16,
        body: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), HandoverError> {
        if self.is_sending {
            return Err(HandoverError::Unusable);
        }
        let header = MessageHeader::new(kind, body.len(), fds.len())?.to_bytes();
        self.is_sending = true;
        // The descriptors accompany the first byte of the header.
        let sent = self
            .stream
            .async_io(Interest::WRITABLE, || {
                send_with_descriptors(self.stream.as_fd(), &header, fds)
            })
            .await
            .map_err(HandoverError::sending)?;
        for rest in [subslice(&header, sent..), body] {
            self.stream
                .write_all(rest)
                .await
                .map_err(HandoverError::sending)?;
        }
        self.is_sending = false;
        Ok(())
    }

    /// Receives a message. Returns `None` if the peer has closed the channel between two messages.
    ///
    /// # Errors
    /// A message that is malformed, above the limits, or incomplete, and errors of the system.
    ///
    /// # Cancel safety
    /// This method is cancel safe: what was received of a message is kept for the next call.
    pub async fn receive(&mut self) -> Result<Option<HandoverMessage>, HandoverError> {
        let Self {
            stream, incoming, ..
        } = self;
        while incoming.header_len < HEADER_BYTES {
            let received = stream
                .async_io(Interest::READABLE, || {
                    let rest = subslice_mut(&mut incoming.header, incoming.header_len..);
                    receive_with_descriptors(stream.as_fd(), rest, &mut incoming.fds)
                })
                .await
                .map_err(HandoverError::receiving)?;
            match received {
                0 if incoming.header_len == 0 => return Ok(None),
                0 => return Err(HandoverError::Truncated),
                received => incoming.header_len += received,
            }
        }
        let header = MessageHeader::parse(incoming.header)?;
        if incoming.fds.len() != header.descriptors() {
            return Err(HandoverError::MissingDescriptors {
                kind: header.kind(),
                announced: header.descriptors(),
                received: incoming.fds.len(),
            });
        }
        while incoming.body.len() < header.body_bytes() {
            let missing = header.body_bytes() - incoming.body.len();
            incoming.body.reserve(missing.min(BODY_STEP));
            let mut rest = (&mut *stream).take(u64_from(missing));
            let received = rest.read_buf(&mut incoming.body).await;
            if received.map_err(HandoverError::receiving)? == 0 {
                return Err(HandoverError::Truncated);
            }
        }
        let Incoming { fds, body, .. } = std::mem::take(incoming);
        let kind = header.kind();
        Ok(Some(HandoverMessage { kind, body, fds }))
    }
}

/// Sends bytes, not necessarily all, and with them the descriptors.
fn send_with_descriptors(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = SendFlags::NOSIGNAL;
    Ok(sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        flags,
    )?)
}

/// Receives bytes, and appends the descriptors that accompany them.
fn receive_with_descriptors(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    fds: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, flags)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    // Also if the process may not open more files. The number is compared with the announced one anyway;
    // this bounds the number of descriptors of a malformed message.
    if received.flags.contains(ReturnFlags::CTRUNC) || fds.len() > MAX_DESCRIPTORS {
        let what = "descriptors were lost; raise the limit of open files (`ulimit -n`)";
        return Err(io::Error::other(what));
    }
    Ok(received.bytes)
}
