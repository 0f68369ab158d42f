//! Properties of a link.

use std::time::Duration;

/// Properties of one direction of a link; usually both directions have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkPath {
    /// Delay from one end to the other, behind the queue.
    pub delay: Duration,
    /// Rate in bytes per second, including IP headers; 0 means unlimited.
    pub rate: u64,
    /// Bytes that may wait for the rate; more are dropped.
    pub queue: u64,
    /// Share of lost packets, in tenths of a percent, independent of each other.
    pub lost: u16,
    /// Share of packets delivered twice, in tenths of a percent.
    pub doubled: u16,
    /// Share of packets held back for [`Self::lateness`], so that later ones overtake them, in
    /// tenths of a percent.
    pub late: u16,
    /// Extra delay of late packets.
    pub lateness: Duration,
    /// Lets the segments of a TCP flow travel together, up to 64 KiB at a time, as between network
    /// cards that segment: a fraction of the work for the link. Each segment has its own headers
    /// and its share of the rate, but a group arrives with its last segment and counts as one
    /// packet; it is dropped if the queue is already full, and may be longer than the space that is
    /// left. Such a link cannot lose, duplicate or delay packets at random, since that would affect
    /// dozens of segments in a row. UDP travels as usual; any packet may arrive half a millisecond
    /// later.
    pub offload: bool,
}

impl LinkPath {
    /// Creates a path with half of this round trip in each direction, a loss of `lost` packets in a
    /// thousand, and no rate limit.
    #[must_use]
    pub fn new(round_trip: Duration, lost: u16) -> Self {
        Self {
            delay: round_trip / 2,
            rate: 0,
            queue: 0,
            lost,
            doubled: 0,
            late: 0,
            lateness: Duration::from_millis(5),
            offload: false,
        }
    }

    /// Sets the rate, in bits per second, and a queue that takes this long to drain.
    #[must_use]
    pub fn with_rate(mut self, bits: u64, queue: Duration) -> Self {
        self.rate = bits / 8;
        let bytes = u128::from(self.rate) * queue.as_micros() / 1_000_000;
        self.queue = u64::try_from(bytes).unwrap_or(u64::MAX);
        self
    }

    /// Returns the time that the rate takes for this many bytes.
    pub(crate) fn transmit_time(&self, bytes: u64) -> Duration {
        let nanos = (u128::from(bytes) * 1_000_000_000).checked_div(u128::from(self.rate));
        Duration::from_nanos(u64::try_from(nanos.unwrap_or(0)).unwrap_or(u64::MAX))
    }
}
