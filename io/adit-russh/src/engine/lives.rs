//! A channel that has not closed: what waits to be sent in it, and who waits for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use adit_ssh_proto::connection::{Kind, ReplyTo, Request};
use bytes::Bytes;
use tokio::sync::oneshot;

use super::Mailbox;
use crate::Error;

/// What is sent in a channel in its order.
#[derive(Debug)]
pub(crate) enum Behind {
    /// Bytes of one of its two streams.
    Data(Kind, Bytes),
    /// Something told that wants no answer.
    Told(Request),
    /// The end of the own side.
    Eof,
    /// The end of the channel.
    Close,
}

/// A channel that has not closed.
#[derive(Debug)]
pub(crate) struct Live {
    /// What came for it.
    pub(crate) mailbox: Arc<Mailbox>,
    /// Both sides have agreed to it.
    pub(crate) open: bool,
    /// Whoever wants it waits for the peer's word.
    pub(crate) opening: Option<oneshot::Sender<Result<(), Error>>>,
    /// Answers that the peer waits for.
    pub(crate) owed: VecDeque<ReplyTo>,
    /// What is to be sent.
    pub(super) behind: VecDeque<Behind>,
    /// Octets of data in it.
    pub(super) waiting: usize,
    /// Who waits until there is less of it.
    pub(super) writers: Vec<Waker>,
}

impl Live {
    pub(crate) fn new(mailbox: Arc<Mailbox>) -> Self {
        Self {
            mailbox,
            open: false,
            opening: None,
            owed: VecDeque::new(),
            behind: VecDeque::new(),
            waiting: 0,
            writers: Vec::new(),
        }
    }

    /// The bytes in front, as many as `room` lets go.
    pub(super) fn next_data(&mut self, room: usize) -> Option<(Kind, Bytes)> {
        let Some(Behind::Data(kind, bytes)) = self.behind.front_mut() else {
            return None;
        };
        let part = bytes.split_to(room.min(bytes.len()));
        let kind = *kind;
        if bytes.is_empty() {
            self.behind.pop_front();
        }
        self.waiting -= part.len();
        Some((kind, part)).filter(|(_, part)| !part.is_empty())
    }

    /// Wakes who waits for room.
    pub(super) fn wake(&mut self) {
        self.writers.drain(..).for_each(Waker::wake);
    }
}
