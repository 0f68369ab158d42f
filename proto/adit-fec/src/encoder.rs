//! The sender of shards: it numbers datagrams and computes the parity of each full group incrementally;
//! copies are stored only if they may be sent again.

use alloc::{vec, vec::Vec};
use core::{ops::Range, time::Duration};

use adit_wire::{ProtocolError, Time, narrow_int, subslice};

use crate::{
    CodeError, ErasureCode,
    packet::{DATA, PARITY, SHARD_HEADER, SIZE, ShardNumbers, write_header},
    parity_sums::ParitySums,
};

/// Maximum time between the last two datagrams of a group whose parity is worth sending.
const MAX_GAP: Duration = Duration::from_millis(500);

/// The sending side of error correction for one peer.
///
/// [`seal`](Self::seal) each datagram, send it, then send what [`poll_output`](Self::poll_output) returns.
/// As in kcp-go, the parity of a group is sent after its last datagram, and not at all if that came 500 ms
/// or more after the one before.
///
/// # Sparse traffic
///
/// A group that does not fill up protects nothing: the last datagrams of a burst, or all datagrams of a
/// game that sends twenty per second. With [`set_early`](Self::set_early) a datagram waits a bounded time
/// for its parity, then [`handle_timeout`](Self::handle_timeout) protects the waiting datagrams in the
/// cheapest way that any receiver of this framing understands:
///
/// * If the group has enough free slots, the waiting datagrams are sent again, as data shards with their
///   own numbers. One datagram costs one packet. A KCP receiver acknowledges the second copy and drops it;
///   the group stays open, and its parity is omitted if all of it was sent twice.
/// * Otherwise fillers for the free slots are sent, and the parity. A lost shard can only be restored with
///   as many available shards as the code has data shards, so the fillers must be sent.
///
/// A filler is a data shard, so a receiver passes its content on as a datagram. kcp-go drops shards of less
/// than 12 bytes (32 in its first versions) before they are counted, and reports content that is not a KCP
/// segment as an error: a KCP sender should use a whole segment without effect, such as a window
/// announcement of 24 bytes.
///
/// # Examples
///
/// ```
/// use adit_fec::{Encoder, ErasureCode, HEADER};
/// use adit_wire::Time;
///
/// let mut encoder = Encoder::new(ErasureCode::vandermonde(2, 1)?, 1400)?;
/// for text in [b"first", b"later"] {
///     // Space for the header, then the datagram. The packet is ready to send afterwards.
///     let mut packet = [&[0; HEADER], &text[..]].concat();
///     encoder.seal(Time(0), &mut packet).unwrap();
/// }
/// // The group is complete: its parity follows.
/// let mut parity = vec![0; encoder.max_packet()];
/// assert!(encoder.poll_output(&mut parity).is_some());
/// assert!(encoder.poll_output(&mut parity).is_none());
/// # Ok::<(), adit_fec::CodeError>(())
/// ```
#[derive(Debug)]
pub struct Encoder {
    code: ErasureCode,
    numbers: ShardNumbers,
    /// Maximum length of a payload, and distance between two payloads, in bytes.
    longest: usize,
    /// Parity of the current group.
    sums: ParitySums,
    /// Copies of its shards and their lengths, if they may be sent again.
    copies: Vec<u8>,
    copy_lens: Vec<usize>,
    /// Number of shards at the front of the group without a copy.
    uncopied: usize,
    /// Number of the first shard of the current group.
    group_start: u32,
    filled: usize,
    /// True if parts of this group are unknown here: it gets no parity.
    given_up: bool,
    last: Option<Time>,
    early: Option<Duration>,
    /// Number of shards at the front of the group that need no parity, and when the others need it.
    protected: usize,
    due: Option<Time>,
    queued_data: QueuedShards,
    queued_parity: QueuedShards,
    /// Parity of the previous group.
    parity: ParitySums,
}

/// Shards to send: the number of the first shard of the group, and their range in the group.
#[derive(Debug, Clone)]
struct QueuedShards {
    first: u32,
    places: Range<usize>,
}

impl Encoder {
    /// Creates an encoder for datagrams of at most `max_datagram` bytes (65,533 at most). With the first
    /// datagrams it allocates memory for the parity of two groups, and for copies of one group's shards if
    /// they may be sent [again](Self::set_early), until it is trimmed.
    ///
    /// # Errors
    /// [`CodeError::Shards`] if the code has no shards; every [`ErasureCode`] has some.
    pub fn new(code: ErasureCode, max_datagram: usize) -> Result<Self, CodeError> {
        let longest = max_datagram.min(usize::from(u16::MAX) - SIZE) + SIZE;
        let none = QueuedShards {
            first: 0,
            places: 0..0,
        };
        Ok(Self {
            numbers: ShardNumbers::new(code.total_shards())?,
            longest,
            sums: ParitySums::new(longest),
            copies: Vec::new(),
            copy_lens: vec![0; code.data_shards()],
            uncopied: 0,
            group_start: 0,
            filled: 0,
            given_up: false,
            last: None,
            early: None,
            protected: 0,
            due: None,
            queued_data: none.clone(),
            queued_parity: none,
            parity: ParitySums::new(longest),
            code,
        })
    }

    /// Continues where another encoder of the same code [stopped](Self::position). An open group gets no
    /// parity.
    ///
    /// # Errors
    /// See [`new`](Self::new).
    pub fn resume(
        code: ErasureCode,
        max_datagram: usize,
        position: u32,
    ) -> Result<Self, CodeError> {
        let mut new = Self::new(code, max_datagram)?;
        let place = new.numbers.locate(position).map_or(0, |(_, place)| place);
        if place < new.code.data_shards() {
            new.group_start = position.wrapping_sub(narrow_int(place));
            (new.filled, new.given_up) = (place, place > 0);
        }
        Ok(new)
    }

    /// Returns the number of the next data shard.
    #[must_use]
    pub fn position(&self) -> u32 {
        Self::shard_number(self.group_start, self.filled)
    }

    /// Protects datagrams that have waited `after` for their group to fill up; with `None` they are not
    /// protected. See [above](Self#sparse-traffic).
    pub fn set_early(&mut self, after: Option<Duration>) {
        if self.early.is_none() {
            self.uncopied = self.filled;
        }
        self.early = after;
        if after.is_none() {
            self.due = None;
        }
    }

    /// Frees all buffers, for an idle link. An open group continues without parity, which would arrive too
    /// late.
    pub fn release_memory(&mut self) {
        self.copies = Vec::new();
        self.sums.release_memory();
        self.parity.release_memory();
        (self.queued_data.places, self.queued_parity.places) = (0..0, 0..0);
        (self.given_up, self.due) = (self.filled > 0, None);
    }

    /// Returns the maximum length of a packet of [`poll_output`](Self::poll_output), in bytes.
    #[must_use]
    pub const fn max_packet(&self) -> usize {
        SHARD_HEADER + self.longest
    }

    /// Turns `packet` into a data shard in place: it consists of [`HEADER`](crate::HEADER) bytes that are
    /// overwritten, and the datagram.
    ///
    /// # Errors
    /// [`ProtocolError::TooLong`] if the datagram is longer than the encoder allows, or the packet shorter than its
    /// header. Nothing has changed then.
    pub fn seal(&mut self, now: Time, packet: &mut [u8]) -> Result<(), ProtocolError> {
        let payload = packet.len().checked_sub(SHARD_HEADER);
        let payload = payload.filter(|len| (SIZE..=self.longest).contains(len));
        let size = payload.and_then(|len| u16::try_from(len).ok());
        let limit = self.max_packet();
        let what = "a datagram with its FEC header";
        let size = size.ok_or(ProtocolError::TooLong { what, limit })?;
        let seqid = Self::shard_number(self.group_start, self.filled);
        write_header(packet, seqid, DATA, size).ok_or(ProtocolError::NoRoom("the FEC header"))?;
        let continuous = self
            .last
            .is_some_and(|last| now.duration_since(last) < MAX_GAP);
        self.last = Some(now);
        self.add_datagram(subslice(packet, SHARD_HEADER..));
        if self.filled == self.code.data_shards() {
            self.close_group(continuous || self.early.is_some());
        } else if let (Some(after), None, false) = (self.early, self.due, self.given_up) {
            self.due = Some(now + after);
        }
        Ok(())
    }

    /// Writes the next packet that protects others to the front of `out`, and returns its length.
    ///
    /// Returns `None` if there is none, or if `out` is shorter than [`max_packet`](Self::max_packet) and
    /// the packet does not fit. Parity is available until the next is computed, repeats until the next
    /// group starts.
    pub fn poll_output(&mut self, out: &mut [u8]) -> Option<usize> {
        if let Some(place) = self.queued_data.places.clone().next() {
            let seqid = Self::shard_number(self.queued_data.first, place);
            let payload = slot_at(&self.copies, self.longest, place)?;
            let payload = payload.get(..*self.copy_lens.get(place)?)?;
            let len = write_shard(out, seqid, DATA, payload)?;
            self.queued_data.places.start += 1;
            return Some(len);
        }
        let place = self.queued_parity.places.clone().next()?;
        let seqid = Self::shard_number(self.queued_parity.first, self.code.data_shards() + place);
        let len = write_shard(out, seqid, PARITY, self.parity.parity_row(place)?)?;
        self.queued_parity.places.start += 1;
        Some(len)
    }

    /// Returns the time when [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Time> {
        self.due
    }

    /// Protects datagrams that have waited long enough. `filler` is a datagram that the receiver may get
    /// any number of times; it is truncated to the maximum length of a datagram.
    pub fn handle_timeout(&mut self, now: Time, filler: &[u8]) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        self.due = None;
        self.reserve_copies(self.code.data_shards());
        let waiting = self.protected.max(self.uncopied)..self.filled;
        let end = self.filled + waiting.len();
        if end <= self.code.data_shards() {
            self.queue_from_here(end);
            waiting.for_each(|place| self.repeat_shard(place));
            self.protected = self.filled;
        } else {
            self.queue_from_here(self.code.data_shards());
            while self.filled < self.code.data_shards() {
                self.add_filler(filler);
            }
        }
        if self.filled == self.code.data_shards() {
            self.close_group(true);
        }
    }

    /// Allocates space for the copies of this number of datagrams.
    fn reserve_copies(&mut self, places: usize) {
        let len = places * self.longest;
        if self.copies.len() < len {
            self.copies.reserve_exact(len - self.copies.len());
            self.copies.resize(len, 0);
        }
    }

    /// Queues the slots up to `end` for output.
    const fn queue_from_here(&mut self, end: usize) {
        // Repeats that have not been polled may precede these.
        if self.queued_data.first != self.group_start || self.queued_data.places.end != self.filled
        {
            self.queued_data.places.start = self.filled;
        }
        self.queued_data.first = self.group_start;
        self.queued_data.places.end = end;
    }

    fn repeat_shard(&mut self, place: usize) {
        debug_assert!(place < self.filled, "the slot must be in use");
        let from = place * self.longest;
        let len = self.copy_lens.get(place).copied().unwrap_or(0);
        self.copies
            .copy_within(from..from + len, self.filled * self.longest);
        self.count_copy(len);
    }

    fn add_filler(&mut self, filler: &[u8]) {
        let most = self.longest - SIZE;
        let filler = filler.get(..most).unwrap_or(filler);
        let size = narrow_int::<u16>(SIZE + filler.len());
        if let Some(slot) = slot_at_mut(&mut self.copies, self.longest, self.filled) {
            write_at(slot, 0, &size.to_le_bytes());
            write_at(slot, SIZE, filler);
        }
        self.count_copy(SIZE + filler.len());
    }

    fn add_datagram(&mut self, payload: &[u8]) {
        if self.filled == 0 {
            self.queued_data.places = 0..0;
        }
        if self.early.is_some() && !self.given_up {
            // Many sessions never fill a group: the first datagrams allocate little more than they need.
            let places = (self.filled + 1).next_power_of_two();
            self.reserve_copies(places.min(self.code.data_shards()));
            if let Some(slot) = slot_at_mut(&mut self.copies, self.longest, self.filled) {
                write_at(slot, 0, payload);
            }
        }
        if !self.given_up {
            self.sums.add_shard(&self.code, self.filled, payload);
        }
        self.count_shard(payload.len());
    }

    /// Counts a shard that exists only as a copy.
    fn count_copy(&mut self, len: usize) {
        let copy = slot_at(&self.copies, self.longest, self.filled);
        if let (Some(copy), false) = (copy.and_then(|copy| copy.get(..len)), self.given_up) {
            self.sums.add_shard(&self.code, self.filled, copy);
        }
        self.count_shard(len);
    }

    fn count_shard(&mut self, len: usize) {
        debug_assert!(
            self.filled < self.copy_lens.len(),
            "a full group must have been closed"
        );
        if let Some(slot) = self.copy_lens.get_mut(self.filled) {
            *slot = len;
        }
        self.filled += 1;
    }

    /// Ends the group, with its parity if `wanted` and not all of it was sent twice.
    fn close_group(&mut self, wanted: bool) {
        let twice = self.uncopied == 0 && self.protected == self.filled;
        if wanted && !self.given_up && !twice {
            core::mem::swap(&mut self.sums, &mut self.parity);
            self.queued_parity = QueuedShards {
                first: self.group_start,
                places: 0..self.code.parity_shards(),
            };
        }
        self.sums.start_group();
        let shards = narrow_int(self.code.total_shards());
        self.group_start = self.numbers.advance(self.group_start, shards);
        (self.filled, self.protected, self.due) = (0, 0, None);
        (self.given_up, self.uncopied) = (false, 0);
    }

    /// Returns the number of a shard; a group does not cross the end of the numbers.
    fn shard_number(first: u32, place: usize) -> u32 {
        first.wrapping_add(narrow_int(place))
    }
}

fn slot_at(slots: &[u8], size: usize, place: usize) -> Option<&[u8]> {
    slots.chunks_exact(size).nth(place)
}

fn slot_at_mut(slots: &mut [u8], size: usize, place: usize) -> Option<&mut [u8]> {
    slots.chunks_exact_mut(size).nth(place)
}

fn write_at(slot: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = slot.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Writes header and payload of a shard; a data payload starts with its size.
fn write_shard(out: &mut [u8], seqid: u32, kind: u16, payload: &[u8]) -> Option<usize> {
    let len = SHARD_HEADER + payload.len();
    let out = out.get_mut(..len)?;
    write_header(out, seqid, kind, 0)?;
    out.get_mut(SHARD_HEADER..)?.copy_from_slice(payload);
    Some(len)
}

#[cfg(test)]
impl Encoder {
    /// Continues at the group that starts with `seqid`.
    pub(crate) fn start_at(&mut self, seqid: u32) {
        self.group_start = seqid;
    }
}
