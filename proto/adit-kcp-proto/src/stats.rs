//! What a session counts.

/// Counters since the session's start, and gauges of the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Datagrams that came in.
    pub datagrams_in: u64,
    /// Datagrams that went out.
    pub datagrams_out: u64,
    /// Datagrams refused, wholly or from some segment on.
    pub errors_in: u64,
    /// Segments that came in, of all kinds.
    pub segments_in: u64,
    /// Segments that went out, of all kinds.
    pub segments_out: u64,
    /// Bytes taken from the application.
    pub bytes_sent: u64,
    /// Bytes given to the application.
    pub bytes_received: u64,
    /// Data segments sent again: the sum of the next three.
    pub retransmitted: u64,
    /// Sent again since later ones had been acknowledged.
    pub fast: u64,
    /// Sent again by the weaker rule of kcp-go, when there was nothing new to send.
    pub early: u64,
    /// Sent again since the time-out had passed.
    pub lost: u64,
    /// Data segments that had been received before.
    pub repeated: u64,
    /// Data segments beyond the receive window, dropped.
    pub overrun: u64,
    /// Smoothed round-trip time in milliseconds; 0 before the first sample.
    pub rtt_ms: u32,
    /// Its mean deviation in milliseconds.
    pub rtt_var_ms: u32,
    /// The time-out of the next segment in milliseconds.
    pub rto_ms: u32,
    /// The congestion window in segments; without congestion control it limits nothing.
    pub cwnd: u32,
    /// The slow start threshold in segments.
    pub ssthresh: u32,
    /// The pace in bytes per second; 0 where nothing is paced.
    pub pace: u64,
    /// The peer's free window in segments.
    pub peer_window: u32,
    /// Segments sent and not acknowledged.
    pub in_flight: u32,
    /// Segments accepted and not sent yet.
    pub queued: u32,
}
