//! The receiver of shards: it identifies groups in any order of arrival, and restores lost datagrams.

use adit_wire::usize_from;

use crate::{
    Code, Matrix, Packet,
    group::{Added, Group, Lent, Pool, Shard},
    packet::{Numbers, SIZE},
    tune::{Kind, Tuner},
};

/// Number of groups that are tracked: the newest and the three before it.
const WINDOW: usize = 4;

/// Counters of a [`Decoder`], since its creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
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
/// groups; [`trim`](Self::trim) frees them when the peer is idle.
#[derive(Debug)]
pub struct Decoder {
    matrix: Matrix,
    state: Option<State>,
    /// True if the shard numbers were configured or measured, and no shard has contradicted them since.
    sure: bool,
    tuner: Tuner,
    longest: usize,
    pool: Pool,
    ready: Vec<Shard>,
    shown: Option<Shard>,
    counters: Counters,
}

#[derive(Debug)]
struct State {
    code: Code,
    numbers: Numbers,
    window: Window,
}

/// The groups around the newest one.
#[derive(Debug)]
struct Window {
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
    pub fn new(code: Code, max_datagram: usize) -> Self {
        let mut new = Self::unknown(code.matrix(), max_datagram);
        new.state = State::new(code);
        new.sure = new.state.is_some();
        new
    }

    /// Creates a decoder for a peer whose shard numbers are not known.
    #[must_use]
    pub fn unknown(matrix: Matrix, max_datagram: usize) -> Self {
        let longest = max_datagram.min(usize::from(u16::MAX) - SIZE) + SIZE;
        Self {
            matrix,
            state: None,
            sure: false,
            tuner: Tuner::new(),
            longest,
            pool: Pool::new(longest),
            ready: Vec::new(),
            shown: None,
            counters: Counters::default(),
        }
    }

    /// Processes a packet and returns its content; `None` if it has no valid shard header.
    ///
    /// Restored datagrams that have not been polled are discarded.
    pub fn handle_input<'p>(&mut self, packet: &'p [u8]) -> Option<Packet<'p>> {
        self.look_at(&[packet]).handle_input(0)
    }

    /// Like [`handle_input`](Self::handle_input), for several packets in memory: shards of groups that are
    /// complete when the last packet has been processed are not copied.
    pub const fn look_at<'d, 'p>(&'d mut self, packets: &'d [&'p [u8]]) -> View<'d, 'p> {
        View {
            decoder: self,
            packets,
        }
    }

    /// Returns the next restored datagram.
    ///
    /// This is neither `poll_output`, which returns packets for the peer, nor `poll_event`, which reports
    /// what happened: it is incoming data, borrowed until the next call, and so it has its own name.
    pub fn poll_recovered(&mut self) -> Option<&[u8]> {
        if let Some(shard) = self.shown.take() {
            self.pool.give(shard);
        }
        loop {
            let shard = self.ready.pop()?;
            match datagram(&shard) {
                Some([_, ..]) => {
                    self.counters.recovered += 1;
                    return datagram(self.shown.insert(shard));
                }
                // A slot that its sender filled with an empty datagram.
                Some([]) => {}
                None => self.counters.errors += 1,
            }
            self.pool.give(shard);
        }
    }

    /// Returns the numbers of data and parity shards of the peer's groups, if they are known.
    #[must_use]
    pub fn shards(&self) -> Option<(usize, usize)> {
        let state = self.state.as_ref().filter(|_| self.sure)?;
        Some((state.code.data(), state.code.parity()))
    }

    /// Returns the number of groups with shards that wait for others.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let groups = self.state.iter().flat_map(|state| &state.window.groups);
        groups.filter(|group| group.waits()).count()
    }

    /// Returns the number of the newest group: that of its first shard divided by the number of shards in a
    /// group.
    #[must_use]
    pub fn newest_group(&self) -> Option<u32> {
        self.state.as_ref()?.window.newest
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Frees all buffers and discards the shards waiting in them: for an idle peer.
    pub fn trim(&mut self) {
        self.forget_ready();
        self.forget_groups();
        self.pool.trim();
    }

    fn forget_groups(&mut self) {
        let groups = self.state.iter_mut().flat_map(|s| &mut s.window.groups);
        groups.for_each(|group| group.clear(&mut self.pool));
    }

    fn forget_ready(&mut self) {
        for shard in self.ready.drain(..).chain(self.shown.take()) {
            self.pool.give(shard);
        }
    }

    fn input_lent<'p>(&mut self, packet: &'p [u8], lent: Lent<'_>) -> Option<Packet<'p>> {
        let found = Packet::parse(packet)?;
        self.forget_ready();
        match found {
            Packet::Data { seqid, payload, .. } => {
                self.take(seqid, Kind::Data, payload.len(), lent);
            }
            Packet::Parity { seqid, payload } => {
                self.counters.parity += 1;
                self.take(seqid, Kind::Parity, payload.len(), lent);
            }
            Packet::Oob { .. } => {}
        }
        Some(found)
    }

    /// Copies what is still needed of packets that go out of view.
    fn hold(&mut self, packets: &[&[u8]]) {
        let groups = self.state.iter_mut().flat_map(|s| &mut s.window.groups);
        groups.for_each(|group| group.hold(packets, &mut self.pool));
    }

    /// Processes a shard with this number of bytes of payload.
    fn take(&mut self, seqid: u32, kind: Kind, len: usize, lent: Lent<'_>) {
        let turned = self.tuner.sample(seqid, kind);
        let place = self.place(seqid, kind);
        let was_sure = self.sure;
        self.sure &= place.is_some();
        if !self.sure {
            // A run ends where the kind changes: no other shard can be the missing one.
            let measured = (was_sure || turned).then(|| self.tuner.groups());
            if let Some(groups) = measured.flatten() {
                self.tune(groups);
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
        let Some(group) = state.window.group(group, &mut self.pool) else {
            return;
        };
        let (code, pool, ready) = (&mut state.code, &mut self.pool, &mut self.ready);
        match group.add(place, kind, lent, code, pool, ready) {
            Added::Nothing => {}
            Added::Complete => self.counters.complete += 1,
            // They are taken from the end.
            Added::Restored => self.ready.reverse(),
            Added::Inconsistent => {
                self.counters.errors += 1;
                self.forget_ready();
            }
        }
    }

    /// Returns group and index, if a shard of this kind belongs there.
    fn place(&self, seqid: u32, kind: Kind) -> Option<(u32, usize)> {
        let state = self.state.as_ref()?;
        let (group, place) = state.numbers.place(seqid)?;
        let expected = if place < state.code.data() {
            Kind::Data
        } else {
            Kind::Parity
        };
        (kind == expected).then_some((group, place))
    }

    fn tune(&mut self, (data, parity): (usize, usize)) {
        let known = self.state.as_ref();
        let same = known.is_some_and(|s| (s.code.data(), s.code.parity()) == (data, parity));
        if !same {
            self.forget_groups();
            let code = Code::new(self.matrix, data, parity).ok();
            self.state = code.and_then(State::new);
        }
        self.sure = self.state.is_some();
    }
}

/// Packets of one peer that are processed in sequence without being moved.
#[derive(Debug)]
pub struct View<'d, 'p> {
    decoder: &'d mut Decoder,
    packets: &'d [&'p [u8]],
}

impl<'p> View<'_, 'p> {
    /// Like [`Decoder::handle_input`], for the packet at this index; also returns `None` if there is none.
    pub fn handle_input(&mut self, at: usize) -> Option<Packet<'p>> {
        let packets = self.packets;
        self.decoder
            .input_lent(packets.get(at)?, Lent { packets, at })
    }

    /// Like [`Decoder::poll_recovered`].
    pub fn poll_recovered(&mut self) -> Option<&[u8]> {
        self.decoder.poll_recovered()
    }
}

impl Drop for View<'_, '_> {
    fn drop(&mut self) {
        self.decoder.hold(self.packets);
    }
}

/// Returns the datagram in a restored payload, according to its size field.
fn datagram(shard: &Shard) -> Option<&[u8]> {
    let (size, _) = shard.payload().split_first_chunk()?;
    let size = usize::from(u16::from_le_bytes(*size));
    shard.payload().get(SIZE..size)
}

impl State {
    fn new(code: Code) -> Option<Self> {
        let shards = code.shards();
        let numbers = Numbers::new(shards).ok()?;
        let window = Window {
            groups: core::array::from_fn(|_| Group::new(shards)),
            newest: None,
            all: numbers.groups(),
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

impl Window {
    /// Returns the group `id`; `None` if it is too old.
    ///
    /// One wrong number far ahead makes all correct ones too old: after two groups of these the window
    /// moves back to where the shards are.
    fn group(&mut self, id: u32, pool: &mut Pool) -> Option<&mut Group> {
        let newest = self.newest.unwrap_or(id);
        let behind = usize_from(self.distance(id, newest));
        let ahead = self.distance(newest, id);
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
        new.for_each(|group| group.clear(pool));
        (self.newest, self.stale) = (Some(id), 0);
        self.groups.first_mut()
    }

    /// Returns the distance from one group up to another, across the end of the numbers if necessary.
    const fn distance(&self, from: u32, to: u32) -> u32 {
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
        held + self.pool.stock() + self.ready.len() + usize::from(self.shown.is_some())
    }
}
