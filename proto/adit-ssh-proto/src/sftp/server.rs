//! Server: receives requests, which the caller executes and answers one by one.

use adit_wire::narrow_int;

use super::extended::ExtendedRequest;
use super::extension::{ExtensionSet, parse_init, put_version};
use super::limits::SftpLimits;
use super::request::SftpRequest;
use super::server_answer::ReplyTicket;
use super::status::SftpStatus;
use super::{MAX_DATA, MAX_HANDLES, VERSION};
use crate::error::SshError;
use crate::wire::MessageReader;

/// Server side of a channel with one client. `H` is the caller's state of an open file or
/// directory.
///
/// Answered without the caller: versions, limits, unknown numbers and names, handles that are not
/// open, and requests to open too many.
#[derive(Debug)]
pub struct SftpServer<H> {
    extensions: ExtensionSet,
    begun: bool,
    handles: Vec<HandleSlot<H>>,
}

#[derive(Debug)]
struct HandleSlot<H> {
    /// Number of uses, so that a closed handle is not mistaken for a later one.
    turn: u32,
    open: Option<H>,
}

/// Handle of an open file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HandleId {
    slot: u32,
    turn: u32,
}

/// Result of handling a client's message.
#[derive(Debug, PartialEq, Eq)]
pub enum SftpServerStep<'a> {
    /// The message was answered.
    Answered,
    /// A request to execute, and to answer through the ticket. A READ is for at most [`MAX_DATA`]
    /// bytes.
    Execute(ReplyTicket, SftpRequest<'a, HandleId>),
}

impl<H> SftpServer<H> {
    /// Creates a server that announces these extensions.
    #[must_use]
    pub const fn new(extensions: ExtensionSet) -> Self {
        Self {
            extensions,
            begun: false,
            handles: Vec::new(),
        }
    }

    /// Handles a message.
    ///
    /// # Errors
    /// [`SshError`] if the client violated the protocol: close the channel.
    pub fn handle_input<'a>(
        &mut self,
        frame: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<SftpServerStep<'a>, SshError> {
        if !self.begun {
            if parse_init(frame)? < VERSION {
                return Err(SshError::Policy("the client's SFTP version is below 3"));
            }
            self.begun = true;
            put_version(self.extensions, out);
            return Ok(SftpServerStep::Answered);
        }
        let (id, request) = SftpRequest::parse(frame)?;
        let ticket = ReplyTicket(id);
        let find = |bytes: &[u8]| self.find_handle(bytes);
        let Some(mut request) = request.with_handles(find) else {
            ticket.answer_status_with(SftpStatus::Failure, "No such handle", out);
            return Ok(SftpServerStep::Answered);
        };
        match &mut request {
            SftpRequest::Open { .. } | SftpRequest::Opendir { .. } if self.is_full() => {
                ticket.answer_status_with(SftpStatus::Failure, "Too many open files", out);
            }
            SftpRequest::Unknown { .. } => ticket.answer_status(SftpStatus::Unsupported, out),
            SftpRequest::Extended(extended)
                if extended
                    .extension()
                    .is_none_or(|one| !self.extensions.contains(one)) =>
            {
                ticket.answer_status(SftpStatus::Unsupported, out);
            }
            SftpRequest::Extended(ExtendedRequest::Limits) => {
                ticket.answer_limits(&SftpLimits::LOCAL, out);
            }
            SftpRequest::Read { len, .. } => {
                *len = (*len).min(MAX_DATA);
                return Ok(SftpServerStep::Execute(ticket, request));
            }
            _ => return Ok(SftpServerStep::Execute(ticket, request)),
        }
        Ok(SftpServerStep::Answered)
    }

    /// Stores an opened file or directory and answers with its handle; answers with a failure if
    /// too many are open.
    pub fn answer_opened(&mut self, ticket: ReplyTicket, open: H, out: &mut Vec<u8>) {
        let free = self.handles.iter().position(|slot| slot.open.is_none());
        let place = free.unwrap_or(self.handles.len());
        if place >= MAX_HANDLES {
            return ticket.answer_status_with(SftpStatus::Failure, "Too many open files", out);
        }
        if free.is_none() {
            self.handles.push(HandleSlot {
                turn: 0,
                open: None,
            });
        }
        let Some(slot) = self.handles.get_mut(place) else {
            return ticket.answer_status(SftpStatus::Failure, out);
        };
        slot.turn = slot.turn.wrapping_add(1);
        slot.open = Some(open);
        let place = narrow_int::<u32>(place);
        let mut handle = [0; 8];
        let (front, back) = handle.split_at_mut(4);
        front.copy_from_slice(&place.to_be_bytes());
        back.copy_from_slice(&slot.turn.to_be_bytes());
        ticket.answer_handle(&handle, out);
    }

    /// Returns the state of an open handle.
    #[must_use]
    pub fn get(&self, id: HandleId) -> Option<&H> {
        let slot = self.handles.get(usize::try_from(id.slot).ok()?)?;
        slot.open.as_ref().filter(|_| slot.turn == id.turn)
    }

    /// Returns the state of an open handle for modification.
    pub fn get_mut(&mut self, id: HandleId) -> Option<&mut H> {
        let slot = self.handles.get_mut(usize::try_from(id.slot).ok()?)?;
        slot.open.as_mut().filter(|_| slot.turn == id.turn)
    }

    /// Closes the handle and returns its state.
    pub fn close(&mut self, id: HandleId) -> Option<H> {
        let slot = self.handles.get_mut(usize::try_from(id.slot).ok()?)?;
        slot.open.take_if(|_| slot.turn == id.turn)
    }

    /// Returns the number of open handles.
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

    /// Returns the handle with this encoding, if it is open.
    fn find_handle(&self, bytes: &[u8]) -> Option<HandleId> {
        let mut reader = MessageReader::new(bytes, "SFTP handle");
        let id = HandleId {
            slot: reader.read_u32().ok()?,
            turn: reader.read_u32().ok()?,
        };
        reader.expect_end().ok()?;
        self.get(id).map(|_| id)
    }
}
