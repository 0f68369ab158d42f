//! Options of whole-file transfers, and the sending half that they share.

use adit_ssh_proto::SshError;
use adit_ssh_proto::sftp::{FileAttrs, SftpReply, TransferError, Upload};
use adit_wire::usize_from;

use super::connection::{ConnectionState, Operation};
use crate::SftpError;

/// Options of a transfer of a whole file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransferOptions {
    /// Continue after the bytes that the target has already, which are not compared.
    pub resume: bool,
    /// Copy times and permissions to the target, too.
    pub preserve: bool,
    /// Attributes of a source on a server, if they are known. Otherwise, they are queried.
    pub attrs: Option<FileAttrs>,
}

impl TransferOptions {
    /// Creates the default options.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            resume: false,
            preserve: false,
            attrs: None,
        }
    }

    /// Sets [`resume`](Self::resume).
    #[must_use]
    pub const fn with_resume(mut self, resume: bool) -> Self {
        self.resume = resume;
        self
    }

    /// Sets [`preserve`](Self::preserve).
    #[must_use]
    pub const fn with_preserve(mut self, preserve: bool) -> Self {
        self.preserve = preserve;
        self
    }

    /// Sets [`attrs`](Self::attrs).
    #[must_use]
    pub const fn with_attrs(mut self, attrs: FileAttrs) -> Self {
        self.attrs = Some(attrs);
        self
    }
}

/// Attributes for a copy that is complete.
pub(super) fn kept(attrs: &FileAttrs) -> FileAttrs {
    FileAttrs {
        permissions: attrs.permissions.map(|mode| mode & 0o7777),
        times: attrs.times,
        ..FileAttrs::default()
    }
}

/// Attributes that cut a copy.
pub(super) fn cut(size: u64) -> FileAttrs {
    FileAttrs {
        size: Some(size),
        ..FileAttrs::default()
    }
}

/// Keeps the first refusal.
///
/// # Errors
/// A violation of the protocol.
pub(super) fn keep_first(
    first: &mut Result<(), SftpError>,
    why: TransferError,
) -> Result<(), SshError> {
    match why {
        TransferError::Protocol(why) => Err(why),
        TransferError::Refused(refused) => {
            if first.is_ok() {
                *first = Err(refused.into());
            }
            Ok(())
        }
    }
}

/// Reads from an offset of the source into a message; returns the number of bytes, 0 at the end.
pub(super) type Fill<'a> = dyn FnMut(u64, &mut [u8]) -> Result<usize, SftpError> + Send + 'a;

/// An upload with its operation.
#[derive(Debug)]
pub(super) struct UploadRun {
    operation: Operation,
    upload: Upload,
    outcome: Result<(), SftpError>,
    over: bool,
}

impl UploadRun {
    pub(super) const fn new(operation: Operation, upload: Upload) -> Self {
        Self {
            operation,
            upload,
            outcome: Ok(()),
            over: false,
        }
    }

    /// Offset before which the server has everything.
    pub(super) fn written_to(&self) -> u64 {
        self.upload.written_to()
    }

    /// Sends what there is room for and handles replies that arrived; returns the number of bytes sent,
    /// and `None` at the end. After a failure, the replies in flight are awaited before it is returned.
    pub(super) async fn advance(
        &mut self,
        fill: &mut Fill<'_>,
    ) -> Result<Option<usize>, SftpError> {
        let prepared = match self.prepare(fill) {
            Ok(prepared) => prepared,
            Err(why) if why.is_fatal() => return Err(why),
            Err(why) => {
                self.outcome = std::mem::replace(&mut self.outcome, Ok(())).and(Err(why));
                0
            }
        };
        self.over |= self.outcome.is_err() || self.upload.is_done();
        if self.over && self.upload.in_flight() == 0 {
            return std::mem::replace(&mut self.outcome, Ok(())).map(|()| None);
        }
        let now = self.operation.lock().now();
        let Self {
            upload, outcome, ..
        } = self;
        let mut take = |id, reply: &SftpReply<'_>| match upload.handle_reply(now, id, reply) {
            Ok(()) => Ok(()),
            Err(why) => keep_first(outcome, why),
        };
        self.operation.turn(&mut take).await?;
        Ok(Some(prepared))
    }

    fn prepare(&mut self, fill: &mut Fill<'_>) -> Result<usize, SftpError> {
        let mut prepared = 0;
        if self.over || self.outcome.is_err() {
            return Ok(0);
        }
        let tag = self.operation.tag();
        let mut state = self.operation.lock();
        let now = state.now();
        while self.upload.wants_data() && state.has_room(tag) {
            let ConnectionState { client, out, .. } = &mut *state;
            let chunk = self.upload.send_chunk(now, client, tag, out, &mut *fill);
            match chunk? {
                0 => break,
                len => prepared += usize_from(len),
            }
        }
        Ok(prepared)
    }
}
