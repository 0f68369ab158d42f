//! The server's end: requests in, each to be executed and answered by the caller, one by one.

use adit_wire::narrow_int;

use super::answer::Ticket;
use super::extended::Extended;
use super::extension::{Extensions, parse_init, put_version};
use super::limits::Limits;
use super::request::Request;
use super::status::Status;
use super::{MAX_DATA, MAX_HANDLES, VERSION};
use crate::error::SshError;
use crate::wire::Reader;

/// One client. `H` is what the caller keeps for an open file or folder.
///
/// Answered without the caller are the versions, limits, numbers and names that are not known,
/// handles that are not open, and one handle too many.
#[derive(Debug)]
pub struct Server<H> {
    extensions: Extensions,
    begun: bool,
    handles: Vec<Slot<H>>,
}

#[derive(Debug)]
struct Slot<H> {
    /// How often it was used, so that a closed handle is not taken for the next one's.
    turn: u32,
    open: Option<H>,
}

/// An open file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HandleId {
    slot: u32,
    turn: u32,
}

/// What a message of the client asks.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// It is answered.
    Answered,
    /// To be executed, and answered through the ticket. READs ask for at most [`MAX_DATA`].
    Execute(Ticket, Request<'a, HandleId>),
}

impl<H> Server<H> {
    /// A server that has these extensions.
    #[must_use]
    pub const fn new(extensions: Extensions) -> Self {
        Self {
            extensions,
            begun: false,
            handles: Vec::new(),
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// The client broke the protocol: the channel is to be closed.
    pub fn handle_input<'a>(
        &mut self,
        frame: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Step<'a>, SshError> {
        if !self.begun {
            if parse_init(frame)? < VERSION {
                return Err(SshError::Policy(
                    "the client speaks an SFTP below version 3",
                ));
            }
            self.begun = true;
            put_version(self.extensions, out);
            return Ok(Step::Answered);
        }
        let (id, request) = Request::parse(frame)?;
        let ticket = Ticket(id);
        let find = |bytes: &[u8]| self.find(bytes);
        let Some(mut request) = request.with_handles(find) else {
            ticket.told(Status::Failure, "No such handle", out);
            return Ok(Step::Answered);
        };
        match &mut request {
            Request::Open { .. } | Request::Opendir { .. } if self.is_full() => {
                ticket.told(Status::Failure, "Too many open files", out);
            }
            Request::Unknown { .. } => ticket.status(Status::Unsupported, out),
            Request::Extended(extended)
                if extended
                    .extension()
                    .is_none_or(|one| !self.extensions.has(one)) =>
            {
                ticket.status(Status::Unsupported, out);
            }
            Request::Extended(Extended::Limits) => ticket.limits(&Limits::OURS, out),
            Request::Read { len, .. } => {
                *len = (*len).min(MAX_DATA);
                return Ok(Step::Execute(ticket, request));
            }
            _ => return Ok(Step::Execute(ticket, request)),
        }
        Ok(Step::Answered)
    }

    /// Keeps what was opened and answers with its handle; with a failure if there are too many.
    pub fn opened(&mut self, ticket: Ticket, open: H, out: &mut Vec<u8>) {
        let free = self.handles.iter().position(|slot| slot.open.is_none());
        let place = free.unwrap_or(self.handles.len());
        if place >= MAX_HANDLES {
            return ticket.told(Status::Failure, "Too many open files", out);
        }
        if free.is_none() {
            self.handles.push(Slot {
                turn: 0,
                open: None,
            });
        }
        let Some(slot) = self.handles.get_mut(place) else {
            return ticket.status(Status::Failure, out);
        };
        slot.turn = slot.turn.wrapping_add(1);
        slot.open = Some(open);
        let place = narrow_int::<u32>(place);
        let mut handle = [0; 8];
        let (front, back) = handle.split_at_mut(4);
        front.copy_from_slice(&place.to_be_bytes());
        back.copy_from_slice(&slot.turn.to_be_bytes());
        ticket.handle(&handle, out);
    }

    /// What is open under this handle.
    #[must_use]
    pub fn get(&self, id: HandleId) -> Option<&H> {
        let slot = self.handles.get(usize::try_from(id.slot).ok()?)?;
        slot.open.as_ref().filter(|_| slot.turn == id.turn)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, id: HandleId) -> Option<&mut H> {
        let slot = self.handles.get_mut(usize::try_from(id.slot).ok()?)?;
        slot.open.as_mut().filter(|_| slot.turn == id.turn)
    }

    /// Ends the handle and gives what was open.
    pub fn close(&mut self, id: HandleId) -> Option<H> {
        let slot = self.handles.get_mut(usize::try_from(id.slot).ok()?)?;
        slot.open.take_if(|_| slot.turn == id.turn)
    }

    /// Handles that are open.
    #[must_use]
    pub fn open_handles(&self) -> usize {
        self.handles
            .iter()
            .filter(|slot| slot.open.is_some())
            .count()
    }

    fn is_full(&self) -> bool {
        self.open_handles() >= MAX_HANDLES
    }

    /// The handle of these octets, if it is open.
    fn find(&self, bytes: &[u8]) -> Option<HandleId> {
        let mut reader = Reader::new(bytes, "SFTP handle");
        let id = HandleId {
            slot: reader.u32().ok()?,
            turn: reader.u32().ok()?,
        };
        reader.end().ok()?;
        self.get(id).map(|_| id)
    }
}
