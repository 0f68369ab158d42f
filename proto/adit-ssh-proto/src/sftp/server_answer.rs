//! A server's answers, each to one request.

use adit_wire::narrow_int;

use super::attrs::FileAttrs;
use super::filled_frame::put_filled_frame;
use super::limits::{SftpLimits, StatVfs};
use super::message_number;
use super::names::{FileEntry, put_entry};
use super::reply::{SftpReply, StatusReply};
use super::status::SftpStatus;
use crate::wire::SshBufMut;

/// Length of a NAME reply in bytes from which on no entries are added: all clients accept it.
const MANY_NAMES: usize = 30_000;

/// The right and the obligation to answer one request. Answers are appended as frames.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "every request has to be answered"]
pub struct ReplyTicket(pub(super) u32);

impl ReplyTicket {
    /// Answers with a status and its default message.
    pub fn answer_status(self, status: SftpStatus, out: &mut Vec<u8>) {
        self.answer_status_with(status, status.default_message(), out);
    }

    /// Answers with a status and a message for users.
    pub fn answer_status_with(self, status: SftpStatus, words: &str, out: &mut Vec<u8>) {
        let message = words.as_bytes();
        SftpReply::Status(StatusReply { status, message }).encode(self.0, out);
    }

    /// Answers with the attributes of a file.
    pub fn answer_attrs(self, attrs: &FileAttrs, out: &mut Vec<u8>) {
        SftpReply::Attrs(*attrs).encode(self.0, out);
    }

    pub(super) fn answer_handle(self, handle: &[u8], out: &mut Vec<u8>) {
        SftpReply::Handle(handle).encode(self.0, out);
    }

    /// Answers with data: `fill` reads at most `len` bytes directly into the message, and returns
    /// their number. 0 means the end of the file.
    ///
    /// # Errors
    /// The error of `fill`, with the ticket for another answer.
    pub fn answer_data<E>(
        self,
        len: u32,
        out: &mut Vec<u8>,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), (Self, E)> {
        let head = |out: &mut Vec<u8>| {
            out.put_u8(message_number::DATA);
            out.put_u32(self.0);
        };
        match put_filled_frame(out, len.min(super::MAX_DATA), head, fill) {
            Ok(0) => self.answer_status(SftpStatus::Eof, out),
            Ok(_) => {}
            Err(why) => return Err((self, why)),
        }
        Ok(())
    }

    /// Answers with a path.
    pub fn answer_path(self, path: &[u8], out: &mut Vec<u8>) {
        let mut names = self.begin_names(out);
        names.push(&FileEntry {
            name: path,
            line: path,
            attrs: FileAttrs::default(),
        });
        names.finish();
    }

    /// Starts an answer with files, which are added one by one.
    pub fn begin_names(self, out: &mut Vec<u8>) -> NamesAnswer<'_> {
        let start = out.len();
        out.put_u32(0);
        out.put_u8(message_number::NAME);
        out.put_u32(self.0);
        out.put_u32(0);
        NamesAnswer {
            id: self.0,
            out,
            start,
            count: 0,
        }
    }

    /// Answers with the state of a file system.
    pub fn answer_stat_vfs(self, stat: &StatVfs, out: &mut Vec<u8>) {
        self.answer_extended(out, |out| stat.encode(out));
    }

    /// Answers with the server's limits.
    pub fn answer_limits(self, limits: &SftpLimits, out: &mut Vec<u8>) {
        self.answer_extended(out, |out| limits.encode(out));
    }

    /// Answers with names of users and groups, each list in the order of the request. If they
    /// exceed the length of a message, the answer is a failure.
    pub fn answer_users_groups<S: AsRef<[u8]>>(
        self,
        users: impl Iterator<Item = S>,
        groups: impl Iterator<Item = S>,
        out: &mut Vec<u8>,
    ) {
        let (id, start) = (self.0, out.len());
        self.answer_extended(out, |out| {
            out.put_nested(|out| users.for_each(|name| out.put_string(name.as_ref())));
            out.put_nested(|out| groups.for_each(|name| out.put_string(name.as_ref())));
        });
        if out.len() - start > super::MAX_MESSAGE + 4 {
            out.truncate(start);
            Self(id).answer_status(SftpStatus::Failure, out);
        }
    }

    fn answer_extended(self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        out.put_nested(|out| {
            out.put_u8(message_number::EXTENDED_REPLY);
            out.put_u32(self.0);
            write(out);
        });
    }
}

/// A NAME reply that is being written. It is completed by [`NamesAnswer::finish`], or when dropped.
#[derive(Debug)]
pub struct NamesAnswer<'a> {
    id: u32,
    out: &'a mut Vec<u8>,
    start: usize,
    count: u32,
}

impl NamesAnswer<'_> {
    /// Adds a file.
    pub fn push(&mut self, name: &FileEntry<'_>) {
        put_entry(name, self.out);
        self.count += 1;
    }

    /// True if no more files should be added; the rest is for the next reply.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.out.len() - self.start >= MANY_NAMES
    }

    /// Completes the reply. If no file was added, it is the end of the directory.
    pub fn finish(self) {}

    /// Discards the reply and sends a status instead.
    pub fn answer_status(mut self, status: SftpStatus) {
        self.out.truncate(self.start);
        self.count = u32::MAX;
        ReplyTicket(self.id).answer_status(status, self.out);
    }
}

impl Drop for NamesAnswer<'_> {
    fn drop(&mut self) {
        match self.count {
            u32::MAX => {}
            0 => {
                self.out.truncate(self.start);
                ReplyTicket(self.id).answer_status(SftpStatus::Eof, self.out);
            }
            count => {
                let len = narrow_int(self.out.len() - self.start - 4);
                for (at, value) in [(self.start, len), (self.start + 9, count)] {
                    if let Some(place) = self.out.get_mut(at..at + 4) {
                        place.copy_from_slice(&value.to_be_bytes());
                    }
                }
            }
        }
    }
}
