//! A server's answers, each to one request.

use adit_wire::narrow;

use super::attrs::Attrs;
use super::data::put_filled;
use super::limits::{Limits, StatVfs};
use super::names::{Name, put_name};
use super::number;
use super::reply::{Reply, StatusReply};
use super::status::Status;
use crate::wire::Put;

/// Length of a NAME reply in bytes from which on no entries are added: all clients accept it.
const MANY_NAMES: usize = 30_000;

/// The right and the obligation to answer one request. Answers are appended as frames.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "every request has to be answered"]
pub struct Ticket(pub(super) u32);

impl Ticket {
    /// Answers with a status and its default message.
    pub fn status(self, status: Status, out: &mut Vec<u8>) {
        self.told(status, status.text(), out);
    }

    /// Answers with a status and a message for users.
    pub fn told(self, status: Status, words: &str, out: &mut Vec<u8>) {
        let message = words.as_bytes();
        Reply::Status(StatusReply { status, message }).put(self.0, out);
    }

    /// Answers with the attributes of a file.
    pub fn attrs(self, attrs: &Attrs, out: &mut Vec<u8>) {
        Reply::Attrs(*attrs).put(self.0, out);
    }

    pub(super) fn handle(self, handle: &[u8], out: &mut Vec<u8>) {
        Reply::Handle(handle).put(self.0, out);
    }

    /// Answers with data: `fill` reads at most `len` bytes directly into the message, and returns
    /// their number. 0 means the end of the file.
    ///
    /// # Errors
    /// The error of `fill`, with the ticket for another answer.
    pub fn data<E>(
        self,
        len: u32,
        out: &mut Vec<u8>,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), (Self, E)> {
        let head = |out: &mut Vec<u8>| {
            out.put_u8(number::DATA);
            out.put_u32(self.0);
        };
        match put_filled(out, len.min(super::MAX_DATA), head, fill) {
            Ok(0) => self.status(Status::Eof, out),
            Ok(_) => {}
            Err(why) => return Err((self, why)),
        }
        Ok(())
    }

    /// Answers with a path.
    pub fn path(self, path: &[u8], out: &mut Vec<u8>) {
        let mut names = self.names(out);
        names.push(&Name {
            name: path,
            line: path,
            attrs: Attrs::default(),
        });
        names.end();
    }

    /// Starts an answer with files, which are added one by one.
    pub fn names(self, out: &mut Vec<u8>) -> NamesAnswer<'_> {
        let start = out.len();
        out.put_u32(0);
        out.put_u8(number::NAME);
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
    pub fn stat_vfs(self, stat: &StatVfs, out: &mut Vec<u8>) {
        self.extended(out, |out| stat.put(out));
    }

    /// Answers with the server's limits.
    pub fn limits(self, limits: &Limits, out: &mut Vec<u8>) {
        self.extended(out, |out| limits.put(out));
    }

    /// Answers with names of users and groups, each list in the order of the request. If they
    /// exceed the length of a message, the answer is a failure.
    pub fn users_groups<S: AsRef<[u8]>>(
        self,
        users: impl Iterator<Item = S>,
        groups: impl Iterator<Item = S>,
        out: &mut Vec<u8>,
    ) {
        let (id, start) = (self.0, out.len());
        self.extended(out, |out| {
            out.put_nested(|out| users.for_each(|name| out.put_string(name.as_ref())));
            out.put_nested(|out| groups.for_each(|name| out.put_string(name.as_ref())));
        });
        if out.len() - start > super::MAX_MESSAGE + 4 {
            out.truncate(start);
            Self(id).status(Status::Failure, out);
        }
    }

    fn extended(self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        out.put_nested(|out| {
            out.put_u8(number::EXTENDED_REPLY);
            out.put_u32(self.0);
            write(out);
        });
    }
}

/// A NAME reply that is being written. It is completed by [`NamesAnswer::end`], or when dropped.
#[derive(Debug)]
pub struct NamesAnswer<'a> {
    id: u32,
    out: &'a mut Vec<u8>,
    start: usize,
    count: u32,
}

impl NamesAnswer<'_> {
    /// Adds a file.
    pub fn push(&mut self, name: &Name<'_>) {
        put_name(name, self.out);
        self.count += 1;
    }

    /// True if no more files should be added; the rest is for the next reply.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.out.len() - self.start >= MANY_NAMES
    }

    /// Completes the reply. If no file was added, it is the end of the directory.
    pub fn end(self) {}

    /// Discards the reply and sends a status instead.
    pub fn status(mut self, status: Status) {
        self.out.truncate(self.start);
        self.count = u32::MAX;
        Ticket(self.id).status(status, self.out);
    }
}

impl Drop for NamesAnswer<'_> {
    fn drop(&mut self) {
        match self.count {
            u32::MAX => {}
            0 => {
                self.out.truncate(self.start);
                Ticket(self.id).status(Status::Eof, self.out);
            }
            count => {
                let len = narrow(self.out.len() - self.start - 4);
                for (at, value) in [(self.start, len), (self.start + 9, count)] {
                    if let Some(place) = self.out.get_mut(at..at + 4) {
                        place.copy_from_slice(&value.to_be_bytes());
                    }
                }
            }
        }
    }
}
