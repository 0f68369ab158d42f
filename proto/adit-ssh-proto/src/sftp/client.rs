//! Client: sends requests, receives replies, and matches them.

use adit_wire::narrow_int;

use super::data::put_filled;
use super::extended::Extended;
use super::extension::{Extension, Extensions, parse_version, put_init};
use super::limits::Limits;
use super::reply::Reply;
use super::request::Request;
use super::status::Status;
use super::{MAX_MESSAGE, VERSION, number};
use crate::error::SshError;
use crate::wire::Put;

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
pub struct Client<T> {
    state: State,
    extensions: Extensions,
    limits: Limits,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    AwaitVersion,
    AwaitLimits,
    Ready,
}

#[derive(Debug)]
struct Slot<T> {
    /// Number of the last request in the slot: its index below a counter of its uses, to detect a
    /// repeated reply.
    id: u32,
    pending: Option<Pending<T>>,
}

#[derive(Debug)]
struct Pending<T> {
    expected: Expected,
    tag: T,
}

/// Expected reply other than a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Done,
    Handle,
    Data,
    Names,
    Attrs,
    Extended,
}

/// Meaning of a message from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a, T> {
    /// Nothing for the caller yet.
    Waiting,
    /// Requests can be sent.
    Ready,
    /// The reply to a request. Its kind matches the request, or it is a status; [`Status::Ok`] only
    /// occurs if no other reply is expected.
    Reply {
        /// The request's tag.
        tag: T,
        /// Number of the request.
        id: RequestId,
        /// The reply.
        reply: Reply<'a>,
    },
}

impl<T> Client<T> {
    /// Creates a client, and appends INIT to `out`.
    #[must_use]
    pub fn new(out: &mut Vec<u8>) -> Self {
        put_init(out);
        Self {
            state: State::AwaitVersion,
            extensions: Extensions::default(),
            limits: Limits::default(),
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Returns the server's extensions; none before [`Event::Ready`].
    #[must_use]
    pub const fn extensions(&self) -> Extensions {
        self.extensions
    }

    /// Returns the server's limits, which are queried before [`Event::Ready`].
    #[must_use]
    pub const fn limits(&self) -> &Limits {
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
        matches!(self.state, State::Ready) && self.in_flight() < MAX_IN_FLIGHT
    }

    /// Appends a request; its reply will come with `tag`.
    ///
    /// # Errors
    /// [`SshError::Policy`] before [`Event::Ready`]; [`SshError::TooMuch`] if too many requests are
    /// in flight or this one is too long. Nothing is appended then.
    pub fn request(
        &mut self,
        request: &Request<'_>,
        tag: T,
        out: &mut Vec<u8>,
    ) -> Result<RequestId, SshError> {
        let id = self.reserve(expected(request), tag)?;
        let start = out.len();
        request.put(id.0, out);
        if out.len() - start > MAX_MESSAGE + 4 {
            out.truncate(start);
            let _ = self.release(id.0);
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
    /// The errors of `fill` and of [`Client::request`]; nothing is appended then.
    pub fn write_with<E: From<SshError>>(
        &mut self,
        handle: &[u8],
        offset: u64,
        most: u32,
        tag: T,
        out: &mut Vec<u8>,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Option<(RequestId, u32)>, E> {
        let id = self.reserve(Expected::Done, tag)?;
        let head = |out: &mut Vec<u8>| {
            out.put_u8(number::WRITE);
            out.put_u32(id.0);
            out.put_string(handle);
            out.put_u64(offset);
        };
        let written = put_filled(out, most.min(super::MAX_DATA), head, fill);
        match written {
            Ok(1..) => {}
            Ok(0) | Err(_) => drop(self.release(id.0)),
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
    ) -> Result<Event<'a, T>, SshError> {
        match self.state {
            State::AwaitVersion => {
                let (version, extensions) = parse_version(frame)?;
                if version != VERSION {
                    return Err(SshError::Policy(
                        "the server does not support SFTP version 3",
                    ));
                }
                self.extensions = extensions;
                if extensions.has(Extension::Limits) {
                    Request::Extended(Extended::Limits).put(LIMITS_ID, out);
                    self.state = State::AwaitLimits;
                    return Ok(Event::Waiting);
                }
                self.state = State::Ready;
                Ok(Event::Ready)
            }
            State::AwaitLimits => {
                match Reply::parse(frame)? {
                    (LIMITS_ID, Reply::Extended(data)) => self.limits = Limits::parse(data)?,
                    (LIMITS_ID, Reply::Status(_)) => {}
                    _ => return Err(SshError::Malformed("SFTP limits")),
                }
                self.state = State::Ready;
                Ok(Event::Ready)
            }
            State::Ready => {
                let (id, reply) = Reply::parse(frame)?;
                let Pending { expected, tag } = self
                    .release(id)
                    .ok_or(SshError::Malformed("request number of an SFTP reply"))?;
                let id = RequestId(id);
                if suits(&reply, expected) {
                    Ok(Event::Reply { tag, id, reply })
                } else {
                    Err(SshError::Malformed("type of an SFTP reply"))
                }
            }
        }
    }

    fn reserve(&mut self, expected: Expected, tag: T) -> Result<RequestId, SshError> {
        if self.state != State::Ready {
            return Err(SshError::Policy(
                "an SFTP request before the version exchange",
            ));
        }
        let pending = Some(Pending { expected, tag });
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
        self.slots.push(Slot { id, pending });
        Ok(RequestId(id))
    }

    /// Ends a request; returns `None` if no request with this number is in flight.
    fn release(&mut self, id: u32) -> Option<Pending<T>> {
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

const fn expected(request: &Request<'_>) -> Expected {
    match request {
        Request::Open { .. } | Request::Opendir { .. } => Expected::Handle,
        Request::Read { .. } => Expected::Data,
        Request::Readdir { .. } | Request::Realpath { .. } | Request::Readlink { .. } => {
            Expected::Names
        }
        Request::Stat { .. } | Request::Lstat { .. } | Request::Fstat { .. } => Expected::Attrs,
        Request::Extended(extended) => match extended {
            Extended::ExpandPath { .. } | Extended::HomeDirectory { .. } => Expected::Names,
            Extended::StatVfs { .. }
            | Extended::FStatVfs { .. }
            | Extended::Limits
            | Extended::UsersGroupsById { .. }
            | Extended::Unknown { .. } => Expected::Extended,
            _ => Expected::Done,
        },
        _ => Expected::Done,
    }
}

fn suits(reply: &Reply<'_>, expected: Expected) -> bool {
    match reply {
        Reply::Status(reply) => expected == Expected::Done || reply.status != Status::Ok,
        Reply::Handle(_) => expected == Expected::Handle,
        Reply::Data(_) => expected == Expected::Data,
        Reply::Names(_) => expected == Expected::Names,
        Reply::Attrs(_) => expected == Expected::Attrs,
        Reply::Extended(_) => expected == Expected::Extended,
    }
}
