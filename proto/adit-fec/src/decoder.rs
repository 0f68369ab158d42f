//! The receiver of shards: it identifies groups in any order of arrival, and restores lost datagrams.

use alloc::vec::Vec;

use adit_wire::usize_from;

use crate::{
    CodeMatrix, ErasureCode, Packet,
    group_size::{GroupSizeDetector, ShardKind},
    packet::{SIZE, ShardNumbers},
    shard_group::{AddResult, BorrowedShard, BufferPool, Group, Shard},
};

/// Number of groups that are tracked: the newest and the three before it.
const WINDOW: usize = 4;

/// Counters of a [`Decoder`], since its creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FecCounters {
    /// Parity shards received.
    pub parity: u64,
    /// Groups whose data shards all arrived.
    pub complete: u64,
    /// Datagrams restored.
    pub recovered: u64,
    /// Shards without a place, inconsistent groups, and wrong sizes in restored shards.
    pub errors: u64,
}

/// The receiving side of error correction for one peer.
///
/// Pass every packet to [`handle_input`](Self::handle_input), and use the datagram of a data shard
/// immediately, even if it was received before. Then [`poll_recovered`](Self::poll_recovered) returns the
/// datagrams that could be restored. A shard that arrives after it was restored is not suppressed: the
/// receiver of the datagrams handles duplicates.
///
/// The peer's shard numbers need not be known: shards whose kind does not match their place start a search,
/// and until it has measured a whole run of each kind nothing is restored.
///
/// Memory: buffers for the shards of incomplete groups, four groups at most. They are kept for later
/// groups; `trim` frees them when the peer is idle.
///
/// # Examples
///
/// ```
/// use adit_fec::{Decoder, Encoder, ErasureCode, HEADER, Packet};
/// use adit_wire::Time;
///
/// let mut encoder = Encoder::new(ErasureCode::vandermonde(2, 1)?, 1400)?;
/// let mut packet = [&[0; HEADER], &b"hello"[..]].concat();
/// encoder.seal(Time(0), &mut packet).unwrap();
///
/// let mut decoder = Decoder::new(ErasureCode::vandermonde(2, 1)?, 1400);
/// assert!(matches!(decoder.handle_input(&packet), Some(Packet::Data { datagram: b"hello", .. })));
/// assert_eq!(decoder.poll_recovered(), None, "nothing was lost");
/// # Ok::<(), adit_fec::CodeError>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    matrix: CodeMatrix,
    state: Option<DecoderState>,
    /// True if the shard numbers were configured or measured, and no shard has contradicted them since.
    is_group_size_known: bool,
    tuner: GroupSizeDetector,
    longest: usize,
    pool: BufferPool,
    ready: Vec<Shard>,
    polled: Option<Shard>,
    counters: FecCounters,
}

#[derive(Debug)]
struct DecoderState {
    code: ErasureCode,
    numbers: ShardNumbers,
    window: GroupWindow,
}

/// The groups around the newest one.
#[derive(Debug)]
struct GroupWindow {
    /// The newest first.
    groups: [Group; WINDOW],
    newest: Option<u32>,
    /// Number of groups before the numbers wrap around.
    all: u32,
    /// Number of consecutive shards that were too old, and how many of them are needed to be believed.
    stale: usize,
    patience: usize,
}

impl Decoder {
    /// Creates a decoder for a peer that probably uses the shard numbers of `code`, and datagrams of at
    /// most `max_datagram` bytes. Shards of longer ones are not stored.
    #[must_use]
    pub fn new(code: ErasureCode, max_datagram: usize) -> Self {
        let mut new = Self::with_unknown_shards(code.matrix(), max_datagram);
        new.state = DecoderState::new(code);
        new.is_group_size_known = new.state.is_some();
        new
    }

    /// Creates a decoder for a peer whose shard numbers are not known.
    #[must_use]
    pub fn with_unknown_shards(matrix: CodeMatrix, max_datagram: usize) -> Self {
        let longest = max_datagram.min(usize::from(u16::MAX) - SIZE) + SIZE;
        Self {
            matrix,
            state: None,
            is_group_size_known: false,
            tuner: GroupSizeDetector::new(),
            longest,
            pool: BufferPool::new(longest),
            ready: Vec::new(),
            polled: None,
            counters: FecCounters::default(),
        }
    }

    /// Processes a packet and returns its content; `None` if it has no valid shard header.
    ///
    /// Restored datagrams that have not been polled are discarded.
    pub fn handle_input<'p>(&mut self, packet: &'p [u8]) -> Option<Packet<'p>> {
        self.view_packets(&[packet]).handle_input(0)
    }

    /// Like [`handle_input`](Self::handle_input), for several packets in memory: shards of groups that are
    /// complete when the last packet has been processed are not copied.
    pub const fn view_packets<'d, 'p>(&'d mut self, packets: &'d [&'p [u8]]) -> PacketView<'d, 'p> {
        PacketView {
            decoder: self,
            packets,
        }
    }

    /// Returns the next restored datagram.
    ///
    /// This is neither `poll_output`, which returns packets for the peer, nor `poll_event`, which reports
    /// what happened: it is incoming data, borrowed until the next call, and so it has its own name.
    pub fn poll_recovered(&mut self) -> Option<&[u8]> {
        if let Some(shard) = self.polled.take() {
            self.pool.return_buffer(shard);
        }
        loop {
            let shard = self.ready.pop()?;
            match restored_datagram(&shard) {
                Some([_, ..]) => {
                    self.counters.recovered += 1;
                    return restored_datagram(self.polled.insert(shard));
                }
                // A slot that its sender filled with an empty datagram.
                Some([]) => {}
                None => self.counters.errors += 1,
            }
            self.pool.return_buffer(shard);
        }
    }

    /// Returns the numbers of data and parity shards of the peer's groups, if they are known.
    #[must_use]
    pub fn known_shards(&self) -> Option<(usize, usize)> {
        let state = self.state.as_ref().filter(|_| self.is_group_size_known)?;
        Some((state.code.data_shards(), state.code.parity_shards()))
    }

    /// Returns the number of groups with shards that wait for others.
    #[must_use]
    pub fn waiting_groups(&self) -> usize {
        let groups = self.state.iter().flat_map(|state| &state.window.groups);
        groups.filter(|group| group.is_waiting()).count()
    }

    /// Returns the number of the newest group: that of its first shard divided by the number of shards in a
    /// group.
    #[must_use]
    pub fn newest_group(&self) -> Option<u32> {
        self.state.as_ref()?.window.newest
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> FecCounters {
        self.counters
    }

    /// Frees all buffers and discards the shards waiting in them: for an idle peer.
    pub fn release_memory(&mut self) {
        self.forget_ready();
        self.forget_groups();
        self.pool.release_free();
    }

    fn forget_groups(&mut self) {
        let groups = self.state.iter_mut().flat_map(|s| &mut s.window.groups);
        groups.for_each(|group| group.discard_shards(&mut self.pool));
    }

    fn forget_ready(&mut self) {
        for shard in self.ready.drain(..).chain(self.polled.take()) {
            self.pool.return_buffer(shard);
        }
    }

    fn process_packet<'p>(
        &mut self,
        packet: &'p [u8],
        lent: BorrowedShard<'_>,
    ) -> Option<Packet<'p>> {
        let found = Packet::parse(packet)?;
        self.forget_ready();
        match found {
            Packet::Data { seqid, payload, .. } => {
                self.process_shard(seqid, ShardKind::Data, payload.len(), lent);
            }
            Packet::Parity { seqid, payload } => {
                self.counters.parity += 1;
                self.process_shard(seqid, ShardKind::Parity, payload.len(), lent);
            }
            Packet::Oob { .. } => {}
        }
        Some(found)
    }

    /// Copies what is still needed of packets that go out of view.
    fn copy_borrowed(&mut self, packets: &[&[u8]]) {
        let groups = self.state.iter_mut().flat_map(|s| &mut s.window.groups);
        groups.for_each(|group| group.copy_borrowed(packets, &mut self.pool));
    }

    /// Processes a shard with this number of bytes of payload.
    fn process_shard(&mut self, seqid: u32, kind: ShardKind, len: usize, lent: BorrowedShard<'_>) {
        let turned = self.tuner.record_shard(seqid, kind);
        let place = self.locate(seqid, kind);
        let was_sure = self.is_group_size_known;
        self.is_group_size_known &= place.is_some();
        if !self.is_group_size_known {
            // A run ends where the kind changes: no other shard can be the missing one.
            let measured = (was_sure || turned).then(|| self.tuner.detect());
            if let Some(groups) = measured.flatten() {
                self.set_group_size(groups);
            }
            self.counters.errors += u64::from(was_sure);
            return;
        }
        let (Some((group, place)), Some(state)) = (place, self.state.as_mut()) else {
            return;
        };
        if len > self.longest {
            self.counters.errors += 1;
            return;
        }
        let Some(group) = state.window.group_mut(group, &mut self.pool) else {
            return;
        };
        let (code, pool, ready) = (&mut state.code, &mut self.pool, &mut self.ready);
        match group.add_shard(place, kind, lent, code, pool, ready) {
            AddResult::Nothing => {}
            AddResult::Complete => self.counters.complete += 1,
            // They are taken from the end.
            AddResult::Restored => self.ready.reverse(),
            AddResult::Inconsistent => {
                self.counters.errors += 1;
                self.forget_ready();
            }
        }
    }

    /// Returns group and index, if a shard of this kind belongs there.
    fn locate(&self, seqid: u32, kind: ShardKind) -> Option<(u32, usize)> {
        let state = self.state.as_ref()?;
        let (group, place) = state.numbers.locate(seqid)?;
        let expected = if place < state.code.data_shards() {
            ShardKind::Data
        } else {
            ShardKind::Parity
        };
        (kind == expected).then_some((group, place))
    }

    fn set_group_size(&mut self, (data, parity): (usize, usize)) {
        let known = self.state.as_ref();
        let same =
            known.is_some_and(|s| (s.code.data_shards(), s.code.parity_shards()) == (data, parity));
        if !same {
            self.forget_groups();
            let code = ErasureCode::new(self.matrix, data, parity).ok();
            self.state = code.and_then(DecoderState::new);
        }
        self.is_group_size_known = self.state.is_some();
    }
}

/// Packets of one peer that are processed in sequence without being moved.
#[derive(Debug)]
pub struct PacketView<'d, 'p> {
    decoder: &'d mut Decoder,
    packets: &'d [&'p [u8]],
}

impl<'p> PacketView<'_, 'p> {
    /// Like [`Decoder::handle_input`], for the packet at this index; also returns `None` if there is none.
    pub fn handle_input(&mut self, at: usize) -> Option<Packet<'p>> {
        let packets = self.packets;
        self.decoder
            .process_packet(packets.get(at)?, BorrowedShard { packets, at })
    }

    /// Like [`Decoder::poll_recovered`].
    pub fn poll_recovered(&mut self) -> Option<&[u8]> {
        self.decoder.poll_recovered()
    }
}

impl Drop for PacketView<'_, '_> {
    fn drop(&mut self) {
        self.decoder.copy_borrowed(self.packets);
    }
}

/// Returns the datagram in a restored payload, according to its size field.
fn restored_datagram(shard: &Shard) -> Option<&[u8]> {
    let (size, _) = shard.payload().split_first_chunk()?;
    let size = usize::from(u16::from_le_bytes(*size));
    shard.payload().get(SIZE..size)
}

impl DecoderState {
    fn new(code: ErasureCode) -> Option<Self> {
        let shards = code.total_shards();
        let numbers = ShardNumbers::new(shards).ok()?;
        let window = GroupWindow {
            groups: core::array::from_fn(|_| Group::new(shards)),
            newest: None,
            all: numbers.group_count(),
            stale: 0,
            patience: 2 * shards,
        };
        Some(Self {
            code,
            numbers,
            window,
        })
    }
}

impl GroupWindow {
    /// Returns the group `id`; `None` if it is too old.
    ///
    /// One wrong number far ahead makes all correct ones too old: after two groups of these the window
    /// moves back to where the shards are.
    fn group_mut(&mut self, id: u32, pool: &mut BufferPool) -> Option<&mut Group> {
        let newest = self.newest.unwrap_or(id);
        let behind = usize_from(self.group_distance(id, newest));
        let ahead = self.group_distance(newest, id);
        if self.newest.is_some() && behind < WINDOW {
            self.stale = 0;
            return self.groups.get_mut(behind);
        }
        if ahead >= self.all / 2 {
            self.stale += 1;
            if self.stale <= self.patience {
                return None;
            }
        }
        let steps = usize_from(ahead).clamp(1, WINDOW);
        self.groups.rotate_right(steps);
        let new = self.groups.iter_mut().take(steps);
        new.for_each(|group| group.discard_shards(pool));
        (self.newest, self.stale) = (Some(id), 0);
        self.groups.first_mut()
    }

    /// Returns the distance from one group up to another, across the end of the numbers if necessary.
    const fn group_distance(&self, from: u32, to: u32) -> u32 {
        if to >= from {
            to - from
        } else {
            self.all - (from - to)
        }
    }
}

#[cfg(test)]
impl Decoder {
    /// Returns the number of buffers in use and in the pool.
    pub(crate) fn buffers(&self) -> usize {
        let groups = self.state.iter().flat_map(|state| &state.window.groups);
        let held: usize = groups.map(Group::held).sum();
        held + self.pool.stock() + self.ready.len() + usize::from(self.polled.is_some())
    }
}
