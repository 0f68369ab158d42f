//! A stream: its bytes, its windows and its two ends.

use alloc::collections::VecDeque;

use adit_wire::{narrow_int, usize_from};

use crate::{Version, event::PendingEvents};

/// Number of window updates for each window of bytes read.
const UPDATES_PER_WINDOW: u32 = 8;
/// The window that a sender may assume before the first update, in bytes.
const INITIAL_WINDOW: u32 = 262_144;

/// The number of a stream, chosen by the end that opened it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub(crate) u32);

impl StreamId {
    /// Returns the number on the wire.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// The readable bytes of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFront<'a> {
    /// The next bytes, at least one; more may follow.
    Bytes(&'a [u8]),
    /// No bytes now.
    Nothing,
    /// No bytes any more: the peer has ended its direction.
    End,
}

/// State of the write direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendState {
    /// It accepts writes.
    Open,
    /// The end has to be sent after the queued bytes.
    Ending,
    /// The end was sent.
    Ended,
}

/// Condition for which the application waits before it continues to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteWait {
    None,
    /// Space in the queue.
    QueueSpace,
    /// An empty queue and an open window.
    Direct,
}

/// The state of a stream.
#[derive(Debug)]
pub(crate) struct StreamState {
    /// Received and not read.
    pub(crate) inbox: VecDeque<u8>,
    /// Written and not sent.
    pub(crate) outbox: VecDeque<u8>,
    pub(crate) sending: SendState,
    /// The peer has ended its direction.
    pub(crate) finished: bool,
    /// The application has closed the stream: received data is dropped.
    pub(crate) closed: bool,
    /// The peer claimed to have read more than was sent.
    pub(crate) failed: bool,
    /// The opening frame has to be sent.
    pub(crate) open_pending: bool,
    /// Number of bytes read, to be reported to the peer.
    pub(crate) pending_update: Option<u32>,
    /// Membership in the lists of streams with control frames, and with data.
    pub(crate) in_control: bool,
    pub(crate) in_turn: bool,
    /// The application was informed that there are bytes to read.
    pub(crate) is_readable_reported: bool,
    pub(crate) write_wait: WriteWait,
    /// Pending events.
    pub(crate) events: PendingEvents,
    /// Number of bytes sent, modulo 2³².
    sent: u32,
    /// Number of these that the peer's application has read.
    consumed: u32,
    /// Maximum number of bytes sent and not read.
    window: u32,
    /// Number of bytes read, modulo 2³², and of those since the last update.
    read: u32,
    unreported: u32,
}

impl StreamState {
    pub(crate) const fn new() -> Self {
        Self {
            inbox: VecDeque::new(),
            outbox: VecDeque::new(),
            sending: SendState::Open,
            finished: false,
            closed: false,
            failed: false,
            open_pending: false,
            pending_update: None,
            in_control: false,
            in_turn: false,
            is_readable_reported: false,
            write_wait: WriteWait::None,
            events: PendingEvents::NONE,
            sent: 0,
            consumed: 0,
            window: INITIAL_WINDOW,
            read: 0,
            unreported: 0,
        }
    }

    /// Returns the number of bytes that the peer's window allows now.
    pub(crate) fn allowed_bytes(&self, version: Version) -> usize {
        match version {
            Version::V1 => usize::MAX,
            Version::V2 => {
                let unread = self.sent.wrapping_sub(self.consumed);
                usize_from(self.window.saturating_sub(unread))
            }
        }
    }

    /// True if a data frame or the end can be sent now.
    pub(crate) fn can_send(&self, version: Version) -> bool {
        if self.outbox.is_empty() {
            return self.sending == SendState::Ending;
        }
        self.allowed_bytes(version) > 0
    }

    /// Counts sent bytes.
    pub(crate) fn count_sent(&mut self, len: usize) {
        self.sent = self.sent.wrapping_add(low_u32(len));
    }

    /// Counts bytes that the application has read. Returns true if the peer has to be informed:
    /// after the first bytes, then for each eighth of `buffer`. smux in Go does so for each half,
    /// which leaves the other end half of the window on a long path.
    pub(crate) fn count_read(&mut self, len: usize, buffer: u32) -> bool {
        let len = low_u32(len);
        self.read = self.read.wrapping_add(len);
        self.unreported = self.unreported.saturating_add(len);
        let due = self.unreported >= buffer / UPDATES_PER_WINDOW || self.read == len;
        if due {
            self.unreported = 0;
            self.pending_update = Some(self.read);
        }
        due
    }

    /// Handles an update. Returns false if it changes nothing.
    pub(crate) fn apply_update(&mut self, consumed: u32, window: u32) -> bool {
        let changed = (self.consumed, self.window) != (consumed, window);
        (self.consumed, self.window) = (consumed, window);
        if self.sent.wrapping_sub(consumed).cast_signed() < 0 {
            self.failed = true;
        }
        changed
    }
}

/// Returns `len` modulo 2³², as byte counters wrap.
fn low_u32(len: usize) -> u32 {
    const MASK: usize = 0xffff_ffff;
    narrow_int(len & MASK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_come_after_the_first_bytes_and_each_eighth_of_the_buffer() {
        let mut stream = StreamState::new();
        let told: Vec<usize> = (1..=40).filter(|_| stream.count_read(10, 400)).collect();
        assert_eq!(told, [1, 6, 11, 16, 21, 26, 31, 36]);
        assert_eq!(stream.pending_update, Some(360));
    }

    #[test]
    fn the_window_holds_over_the_end_of_the_count() {
        let mut stream = StreamState::new();
        assert_eq!(stream.allowed_bytes(Version::V2), 262_144);
        assert_eq!(stream.allowed_bytes(Version::V1), usize::MAX);
        stream.sent = u32::MAX - 9;
        assert!(stream.apply_update(u32::MAX - 9, 100));
        stream.count_sent(30);
        assert_eq!(stream.sent, 20);
        assert_eq!(stream.allowed_bytes(Version::V2), 70);
        assert!(stream.apply_update(5, 10) && !stream.failed);
        assert_eq!(stream.allowed_bytes(Version::V2), 0);
        assert!(!stream.apply_update(5, 10));
        assert!(stream.apply_update(21, 10) && stream.failed);
    }
}
