//! Limits on what a peer may cause.

use adit_wire::usize_from;

/// Limits of one connection. A zero counts as one where zero makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionLimits {
    /// Maximum number of channels, opened by either end.
    pub channels: usize,
    /// Maximum number of channels that the peer requested and the application has not answered yet.
    pub pending_opens: usize,
    /// Maximum number of unanswered requests in each direction, outside of channels and in each
    /// channel.
    pub requests: usize,
    /// Bytes of queued answers, and bytes of queued events, from which on the driver should not
    /// read. See [`Connection::wants_input`](super::Connection::wants_input).
    pub queue: usize,
    /// Maximum number of bytes that peers were allowed to send and that are not consumed, over all
    /// channels. Each channel gets one `max_packet` even beyond it. Windows stop growing once seven
    /// eighths are in use: the rest is reserved for new channels.
    pub buffer: usize,
    /// Window of a new channel, in bytes: less when `buffer` is nearly used up.
    pub window: u32,
    /// Maximum size of a window, in bytes.
    pub max_window: u32,
    /// Maximum number of data bytes in one message from the peer.
    pub max_packet: u32,
    /// Maximum number of data bytes in one message to the peer, if the peer allows as much.
    pub max_send: u32,
}

impl Default for ConnectionLimits {
    /// OpenSSH's initial windows: 2 MiB, in messages of 32 KiB.
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

impl ConnectionLimits {
    pub(super) fn normalized(mut self) -> Self {
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

    /// Returns the minimum window of each channel, in bytes.
    pub(super) fn min_window(&self) -> u32 {
        self.max_packet.min(self.window)
    }
}
