//! Client: sends requests, receives replies, and matches them.

use adit_wire::narrow_int;

use super::extended::ExtendedRequest;
use super::extension::{Extension, ExtensionSet, parse_version, put_init};
use super::filled_frame::put_filled_frame;
use super::limits::SftpLimits;
use super::reply::SftpReply;
use super::request::SftpRequest;
use super::status::SftpStatus;
use super::{MAX_MESSAGE, VERSION, message_number};
use crate::error::SshError;
use crate::wire::SshBufMut;

/// Maximum number of requests in flight.
const MAX_IN_FLIGHT: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 12;
/// Number of the only request that the client sends on its own.
const LIMITS_ID: u32 = u32::MAX;

/// Number of a request in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId(u32);

/// Client side of a channel with an SFTP server. `T` is returned with the reply to a request, for
/// example to identify the transfer that it belongs to.
#[derive(Debug)]
pub struct SftpClient<T> {
    state: ClientState,
    extensions: ExtensionSet,
    limits: SftpLimits,
    slots: Vec<RequestSlot<T>>,
    free: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientState {
    AwaitVersion,
    AwaitLimits,
    Ready,
}

#[derive(Debug)]
struct RequestSlot<T> {
    /// Number of the last request in the slot: its index below a counter of its uses, to detect a
    /// repeated reply.
    id: u32,
    pending: Option<PendingRequest<T>>,
}

#[derive(Debug)]
struct PendingRequest<T> {
    expected: ExpectedSftpReply,
    tag: T,
}

/// Expected reply other than a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedSftpReply {
    Done,
    Handle,
    Data,
    Names,
    Attrs,
    Extended,
}

/// Meaning of a message from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SftpClientEvent<'a, T> {
    /// Nothing for the caller yet.
    Waiting,
    /// Requests can be sent.
    Ready,
    /// The reply to a request. Its kind matches the request, or it is a status; [`SftpStatus::Ok`] only
    /// occurs if no other reply is expected.
    Reply {
        /// The request's tag.
        tag: T,
        /// Number of the request.
        id: RequestId,
        /// The reply.
        reply: SftpReply<'a>,
    },
}

impl<T> SftpClient<T> {
    /// Creates a client, and appends INIT to `out`.
    #[must_use]
    pub fn new(out: &mut Vec<u8>) -> Self {
        put_init(out);
        Self {
            state: ClientState::AwaitVersion,
            extensions: ExtensionSet::default(),
            limits: SftpLimits::default(),
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Returns the server's extensions; none before `SftpClientEvent::Ready`.
    #[must_use]
    pub const fn extensions(&self) -> ExtensionSet {
        self.extensions
    }

    /// Returns the server's limits, which are queried before `SftpClientEvent::Ready`.
    #[must_use]
    pub const fn limits(&self) -> &SftpLimits {
        &self.limits
    }

    /// Returns the number of requests in flight.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// True if another request can be sent now.
    #[must_use]
    pub const fn can_request(&self) -> bool {
        matches!(self.state, ClientState::Ready) && self.in_flight() < MAX_IN_FLIGHT
    }

    /// Appends a request; its reply will come with `tag`.
    ///
    /// # Errors
    /// [`SshError::Policy`] before `SftpClientEvent::Ready`; [`SshError::TooMuch`] if too many requests are
    /// in flight or this one is too long. Nothing is appended then.
    pub fn send_request(
        &mut self,
        request: &SftpRequest<'_>,
        tag: T,
        out: &mut Vec<u8>,
    ) -> Result<RequestId, SshError> {
        let id = self.reserve_slot(expected_reply(request), tag)?;
        let start = out.len();
        request.encode(id.0, out);
        if out.len() - start > MAX_MESSAGE + 4 {
            out.truncate(start);
            let _ = self.release_slot(id.0);
            return Err(SshError::TooMuch {
                what: "length of an SFTP request",
                limit: MAX_MESSAGE,
            });
        }
        Ok(id)
    }

    /// Appends a WRITE of at most `most` bytes, which `fill` writes in place; it returns their
    /// number. If it returns 0, nothing is sent. Returns the request and the number of bytes.
    ///
    /// # Errors
    /// The errors of `fill` and of [`SftpClient::send_request`]; nothing is appended then.
    pub fn write_with<E: From<SshError>>(
        &mut self,
        handle: &[u8],
        offset: u64,
        most: u32,
        tag: T,
        out: &mut Vec<u8>,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Option<(RequestId, u32)>, E> {
        let id = self.reserve_slot(ExpectedSftpReply::Done, tag)?;
        let head = |out: &mut Vec<u8>| {
            out.put_u8(message_number::WRITE);
            out.put_u32(id.0);
            out.put_string(handle);
            out.put_u64(offset);
        };
        let written = put_filled_frame(out, most.min(super::MAX_DATA), head, fill);
        match written {
            Ok(1..) => {}
            Ok(0) | Err(_) => drop(self.release_slot(id.0)),
        }
        written.map(|len| (len > 0).then_some((id, len)))
    }

    /// Handles a message. Bytes to send in response are appended to `out`.
    ///
    /// # Errors
    /// [`SshError`] if the server violated the protocol: close the channel.
    pub fn handle_input<'a>(
        &mut self,
        frame: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<SftpClientEvent<'a, T>, SshError> {
        match self.state {
            ClientState::AwaitVersion => {
                let (version, extensions) = parse_version(frame)?;
                if version != VERSION {
                    return Err(SshError::Policy(
                        "the server does not support SFTP version 3",
                    ));
                }
                self.extensions = extensions;
                if extensions.contains(Extension::Limits) {
                    SftpRequest::Extended(ExtendedRequest::Limits).encode(LIMITS_ID, out);
                    self.state = ClientState::AwaitLimits;
                    return Ok(SftpClientEvent::Waiting);
                }
                self.state = ClientState::Ready;
                Ok(SftpClientEvent::Ready)
            }
            ClientState::AwaitLimits => {
                match SftpReply::parse(frame)? {
                    (LIMITS_ID, SftpReply::Extended(data)) => {
                        self.limits = SftpLimits::parse(data)?;
                    }
                    (LIMITS_ID, SftpReply::Status(_)) => {}
                    _ => return Err(SshError::Malformed("SFTP limits")),
                }
                self.state = ClientState::Ready;
                Ok(SftpClientEvent::Ready)
            }
            ClientState::Ready => {
                let (id, reply) = SftpReply::parse(frame)?;
                let PendingRequest { expected, tag } = self
                    .release_slot(id)
                    .ok_or(SshError::Malformed("request number of an SFTP reply"))?;
                let id = RequestId(id);
                if is_expected(&reply, expected) {
                    Ok(SftpClientEvent::Reply { tag, id, reply })
                } else {
                    Err(SshError::Malformed("type of an SFTP reply"))
                }
            }
        }
    }

    fn reserve_slot(&mut self, expected: ExpectedSftpReply, tag: T) -> Result<RequestId, SshError> {
        if self.state != ClientState::Ready {
            return Err(SshError::Policy(
                "an SFTP request before the version exchange",
            ));
        }
        let pending = Some(PendingRequest { expected, tag });
        if let Some(slot) = self.free.pop().and_then(|index| {
            let index = usize::try_from(index).ok()?;
            self.slots.get_mut(index)
        }) {
            slot.id = slot.id.wrapping_add(1 << INDEX_BITS);
            slot.pending = pending;
            return Ok(RequestId(slot.id));
        }
        if self.slots.len() >= MAX_IN_FLIGHT {
            return Err(SshError::TooMuch {
                what: "number of SFTP requests in flight",
                limit: MAX_IN_FLIGHT,
            });
        }
        let id = narrow_int(self.slots.len());
        self.slots.push(RequestSlot { id, pending });
        Ok(RequestId(id))
    }

    /// Ends a request; returns `None` if no request with this number is in flight.
    fn release_slot(&mut self, id: u32) -> Option<PendingRequest<T>> {
        let index = id & ((1 << INDEX_BITS) - 1);
        let slot = self.slots.get_mut(usize::try_from(index).ok()?)?;
        if slot.id != id {
            return None;
        }
        let pending = slot.pending.take()?;
        self.free.push(index);
        Some(pending)
    }
}

const fn expected_reply(request: &SftpRequest<'_>) -> ExpectedSftpReply {
    match request {
        SftpRequest::Open { .. } | SftpRequest::Opendir { .. } => ExpectedSftpReply::Handle,
        SftpRequest::Read { .. } => ExpectedSftpReply::Data,
        SftpRequest::Readdir { .. }
        | SftpRequest::Realpath { .. }
        | SftpRequest::Readlink { .. } => ExpectedSftpReply::Names,
        SftpRequest::Stat { .. } | SftpRequest::Lstat { .. } | SftpRequest::Fstat { .. } => {
            ExpectedSftpReply::Attrs
        }
        SftpRequest::Extended(extended) => match extended {
            ExtendedRequest::ExpandPath { .. } | ExtendedRequest::HomeDirectory { .. } => {
                ExpectedSftpReply::Names
            }
            ExtendedRequest::StatVfs { .. }
            | ExtendedRequest::FStatVfs { .. }
            | ExtendedRequest::Limits
            | ExtendedRequest::UsersGroupsById { .. }
            | ExtendedRequest::Unknown { .. } => ExpectedSftpReply::Extended,
            _ => ExpectedSftpReply::Done,
        },
        _ => ExpectedSftpReply::Done,
    }
}

fn is_expected(reply: &SftpReply<'_>, expected: ExpectedSftpReply) -> bool {
    match reply {
        SftpReply::Status(reply) => {
            expected == ExpectedSftpReply::Done || reply.status != SftpStatus::Ok
        }
        SftpReply::Handle(_) => expected == ExpectedSftpReply::Handle,
        SftpReply::Data(_) => expected == ExpectedSftpReply::Data,
        SftpReply::Names(_) => expected == ExpectedSftpReply::Names,
        SftpReply::Attrs(_) => expected == ExpectedSftpReply::Attrs,
        SftpReply::Extended(_) => expected == ExpectedSftpReply::Extended,
    }
}
