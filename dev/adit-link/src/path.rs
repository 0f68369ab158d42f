//! What a link is like.

use std::time::Duration;

/// One direction of a link; usually both are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// From one end to the other, behind the queue.
    pub delay: Duration,
    /// Bytes a second, headers of IP included; 0 is without limit.
    pub rate: u64,
    /// Bytes that wait for the rate before more are dropped.
    pub queue: u64,
    /// Packets lost, in tenths of a per cent, independent of each other.
    pub lost: u16,
    /// Packets that come twice, likewise.
    pub doubled: u16,
    /// Packets held back for [`Self::lateness`], so that later ones overtake them; likewise.
    pub late: u16,
    /// How much later they come.
    pub lateness: Duration,
    /// Segments of one flow of TCP travel together, up to 64 KiB at a time, as between network
    /// cards that segment: a fraction of the work for the link. Each has its own headers and its
    /// share of the rate, but a group arrives with its last segment, and counts as one packet; it
    /// is dropped if the queue is full before it, and may be longer than what is left of it.
    /// Nothing is lost by chance, doubled or late on such a link: it would be dozens of segments
    /// in a row. UDP travels as ever; everything may come half a millisecond later.
    pub offload: bool,
}

impl Path {
    /// Half of this round trip each way, so many packets of a thousand lost, no limit of the rate.
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

    /// With this rate in bits a second, and a queue that takes this long to drain.
    #[must_use]
    pub fn at(mut self, bits: u64, queue: Duration) -> Self {
        self.rate = bits / 8;
        let bytes = u128::from(self.rate) * queue.as_micros() / 1_000_000;
        self.queue = u64::try_from(bytes).unwrap_or(u64::MAX);
        self
    }

    /// How long the rate needs for so many bytes.
    pub(crate) fn time(&self, bytes: u64) -> Duration {
        let nanos = (u128::from(bytes) * 1_000_000_000).checked_div(u128::from(self.rate));
        Duration::from_nanos(u64::try_from(nanos.unwrap_or(0)).unwrap_or(u64::MAX))
    }
}
