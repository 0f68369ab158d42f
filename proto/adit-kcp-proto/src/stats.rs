//! Statistics of a session.

/// Counters since the session's start, and current gauges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Datagrams received.
    pub datagrams_in: u64,
    /// Datagrams sent.
    pub datagrams_out: u64,
    /// Datagrams rejected, wholly or from some segment on.
    pub errors_in: u64,
    /// Segments received, of all kinds.
    pub segments_in: u64,
    /// Segments sent, of all kinds.
    pub segments_out: u64,
    /// Bytes accepted from the application.
    pub bytes_sent: u64,
    /// Bytes passed to the application.
    pub bytes_received: u64,
    /// Data segments sent again: the sum of the next three.
    pub retransmitted: u64,
    /// Sent again because later ones had been acknowledged.
    pub fast: u64,
    /// Sent again by the weaker rule of kcp-go, when there was nothing new to send.
    pub early: u64,
    /// Sent again because the time-out had passed.
    pub lost: u64,
    /// Data segments that had been received before.
    pub repeated: u64,
    /// Data segments beyond the receive window, dropped.
    pub overrun: u64,
    /// Smoothed round-trip time in milliseconds; 0 before the first sample.
    pub rtt_ms: u32,
    /// Mean deviation of the round-trip time in milliseconds.
    pub rtt_var_ms: u32,
    /// Time-out of the next segment in milliseconds.
    pub rto_ms: u32,
    /// Congestion window in segments; without congestion control it has no effect.
    pub cwnd: u32,
    /// Slow start threshold in segments.
    pub ssthresh: u32,
    /// Pace in bytes per second; 0 if sending is not paced.
    pub pace: u64,
    /// The peer's free window in segments.
    pub peer_window: u32,
    /// Segments sent and not acknowledged.
    pub in_flight: u32,
    /// Segments accepted and not sent yet.
    pub queued: u32,
}
