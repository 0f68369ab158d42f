//! What this end lets its peer do.

use adit_wire::usize_from;

/// Bounds of one connection. A zero where it makes no sense counts as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Channels at a time, opened by either end.
    pub channels: usize,
    /// Channels that the peer wants and the application has not answered yet.
    pub pending_opens: usize,
    /// Requests without an answer, each way, outside of channels and in each channel.
    pub requests: usize,
    /// Octets of answers that wait to be sent, and octets of events that wait to be polled, from
    /// which no more should be read. See [`Connection::wants_input`](super::Connection::wants_input).
    pub queue: usize,
    /// Octets that the peer may have been allowed to send and that are not consumed, over all
    /// channels. Each channel gets one `max_packet` even if this is used up. A window grows no
    /// further once seven eighths are given away: the rest is for channels that come.
    pub buffer: usize,
    /// The window of a new channel, octets: less when `buffer` gets scarce.
    pub window: u32,
    /// What a window may grow to, octets.
    pub max_window: u32,
    /// The most data we let the peer put into one message, octets.
    pub max_packet: u32,
    /// The most data we put into one message, octets, if the peer allows as much.
    pub max_send: u32,
}

impl Default for Limits {
    /// The windows of OpenSSH to begin with: 2 MiB, in messages of 32 KiB.
    fn default() -> Self {
        Self {
            channels: 1024,
            pending_opens: 128,
            requests: 128,
            queue: 256 << 10,
            buffer: 64 << 20,
            window: 2 << 20,
            max_window: 64 << 20,
            max_packet: 32 << 10,
            max_send: 64 << 10,
        }
    }
}

impl Limits {
    pub(super) fn made_whole(mut self) -> Self {
        let numbers = usize_from(u32::MAX);
        self.channels = self.channels.clamp(1, numbers);
        self.requests = self.requests.max(1);
        self.queue = self.queue.max(1);
        self.window = self.window.max(1);
        self.max_window = self.max_window.max(self.window);
        self.max_packet = self.max_packet.max(1);
        self.max_send = self.max_send.max(1);
        self
    }

    /// The window that every channel gets, octets.
    pub(super) fn floor(&self) -> u32 {
        self.max_packet.min(self.window)
    }
}
