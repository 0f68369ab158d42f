//! What came for one channel and was not taken out yet.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::ChannelMsg;

/// What came for one channel. Its bytes are bounded by the channel's window, the rest by `limit`.
#[derive(Debug)]
pub(crate) struct Mailbox {
    inner: Mutex<Inbox>,
    /// Messages without bytes that may wait.
    limit: usize,
}

#[derive(Debug, Default)]
struct Inbox {
    queue: VecDeque<ChannelMsg>,
    /// Messages in the queue that have no bytes.
    plain: usize,
    /// Nothing follows.
    closed: bool,
    /// Nobody reads any more.
    deaf: bool,
    reader: Option<Waker>,
}

/// The octets of a message's data, which stand for as many of the window.
pub(crate) fn octets(message: &ChannelMsg) -> usize {
    match message {
        ChannelMsg::Data { data } | ChannelMsg::ExtendedData { data, .. } => data.len(),
        _ => 0,
    }
}

impl Mailbox {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            inner: Mutex::default(),
            limit: limit.max(1),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message in; gives the octets that nobody will read.
    pub(crate) fn put(&self, message: ChannelMsg) -> usize {
        let mut inbox = self.lock();
        let octets = octets(&message);
        let last = matches!(message, ChannelMsg::Eof | ChannelMsg::Close);
        let plain = octets == 0 && !last;
        if inbox.deaf || inbox.closed || plain && inbox.plain >= self.limit {
            return octets;
        }
        inbox.plain += usize::from(plain);
        inbox.queue.push_back(message);
        wake(inbox);
        0
    }

    /// Nothing follows.
    pub(crate) fn close(&self) {
        let mut inbox = self.lock();
        inbox.closed = true;
        wake(inbox);
    }

    /// The next message; `None` if nothing follows.
    pub(crate) fn poll_take(&self, cx: &Context<'_>) -> Poll<Option<ChannelMsg>> {
        let mut inbox = self.lock();
        if let Some(message) = inbox.queue.pop_front() {
            let last = matches!(message, ChannelMsg::Eof | ChannelMsg::Close);
            let plain = octets(&message) == 0 && !last;
            inbox.plain -= usize::from(plain);
            return Poll::Ready(Some(message));
        }
        if inbox.closed {
            return Poll::Ready(None);
        }
        match &mut inbox.reader {
            Some(old) => old.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Nobody reads any more; gives the octets that were left.
    pub(crate) fn deafen(&self) -> usize {
        let mut inbox = self.lock();
        inbox.deaf = true;
        inbox.plain = 0;
        let left = std::mem::take(&mut inbox.queue);
        drop(inbox);
        left.iter().map(octets).sum()
    }
}

fn wake(mut inbox: MutexGuard<'_, Inbox>) {
    let reader = inbox.reader.take();
    drop(inbox);
    if let Some(reader) = reader {
        reader.wake();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn take(mailbox: &Mailbox) -> Poll<Option<ChannelMsg>> {
        mailbox.poll_take(&Context::from_waker(Waker::noop()))
    }

    #[test]
    fn what_has_no_bytes_is_bounded() {
        let mailbox = Mailbox::new(2);
        for _ in 0..5 {
            assert_eq!(mailbox.put(ChannelMsg::Success), 0);
        }
        let data = Bytes::from_static(b"abc");
        assert_eq!(mailbox.put(ChannelMsg::Data { data: data.clone() }), 0);
        assert_eq!(mailbox.put(ChannelMsg::Close), 0);
        mailbox.close();
        for _ in 0..2 {
            assert!(matches!(
                take(&mailbox),
                Poll::Ready(Some(ChannelMsg::Success))
            ));
        }
        assert!(matches!(
            take(&mailbox),
            Poll::Ready(Some(ChannelMsg::Data { .. }))
        ));
        assert!(matches!(
            take(&mailbox),
            Poll::Ready(Some(ChannelMsg::Close))
        ));
        assert!(matches!(take(&mailbox), Poll::Ready(None)));
        assert_eq!(mailbox.put(ChannelMsg::Data { data }), 3);
    }

    #[test]
    fn what_nobody_reads_is_given_back() {
        let mailbox = Mailbox::new(2);
        let data = Bytes::from_static(b"abc");
        assert_eq!(mailbox.put(ChannelMsg::Data { data: data.clone() }), 0);
        assert_eq!(mailbox.deafen(), 3);
        assert_eq!(mailbox.put(ChannelMsg::Data { data }), 3);
    }
}
