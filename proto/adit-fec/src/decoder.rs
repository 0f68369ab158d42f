//! The receiver of shards: finds groups in whatever order they come, and restores what was lost.

use adit_wire::usize_from;

use crate::{
    Code, Matrix, Packet,
    group::{Added, Group, Lent, Pool, Shard},
    packet::{Numbers, SIZE},
    tune::{Kind, Tuner},
};

/// Groups that are looked after: the newest and the three before it.
const WINDOW: usize = 4;

/// What a [`Decoder`] has seen, since its birth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Parity shards that came.
    pub parity: u64,
    /// Groups whose data shards all came by themselves.
    pub complete: u64,
    /// Datagrams that were restored.
    pub recovered: u64,
    /// Shards without a place, groups that make no sense, and restored sizes that lie.
    pub errors: u64,
}

/// Restores lost datagrams of one peer.
///
/// Every packet goes to [`handle_input`](Self::handle_input); the datagram of a data shard is to be
/// used at once, whether or not it came before. Then [`poll_recovered`](Self::poll_recovered) gives
/// what could be restored. A shard that turns up later than its restored twin is not kept back: the
/// receiver of datagrams knows duplicates.
///
/// The peer's shard numbers need not be known: shards whose kind does not fit their place start a
/// search, and until it has measured a whole run of each kind nothing is restored.
///
/// Memory: buffers for shards of groups that are not complete, four groups at most. They are kept
/// for the next ones; [`trim`](Self::trim) gives them back when the peer falls silent.
#[derive(Debug)]
pub struct Decoder {
    matrix: Matrix,
    state: Option<State>,
    /// Whether the shard numbers were told or measured, and nothing spoke against them since.
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
    /// Groups before the numbers begin again.
    all: u32,
    /// Shards in a row that were too old, and how many of them it takes to be believed.
    stale: usize,
    patience: usize,
}

impl Decoder {
    /// For a peer whose shard numbers are probably those of `code`, and datagrams of at most
    /// `max_datagram` bytes. Shards of longer ones are not kept.
    #[must_use]
    pub fn new(code: Code, max_datagram: usize) -> Self {
        let mut new = Self::unknown(code.matrix(), max_datagram);
        new.state = State::new(code);
        new.sure = new.state.is_some();
        new
    }

    /// For a peer whose shard numbers are not known.
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

    /// Takes in a packet and says what it is; `None` if it has no valid header of a shard.
    ///
    /// Restored datagrams that were not asked for until now are gone.
    pub fn handle_input<'p>(&mut self, packet: &'p [u8]) -> Option<Packet<'p>> {
        self.look_at(&[packet]).handle_input(0)
    }

    /// The same for several packets that lie side by side: of those whose groups are complete when
    /// the last one is taken in, none is copied.
    pub const fn look_at<'d, 'p>(&'d mut self, packets: &'d [&'p [u8]]) -> View<'d, 'p> {
        View {
            decoder: self,
            packets,
        }
    }

    /// The next restored datagram.
    ///
    /// It is neither output, which goes to the peer, nor an event, which tells what happened: it is
    /// data on its way in, lent until the next call, and so it has a name of its own.
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
                // A place that its sender filled with nothing.
                Some([]) => {}
                None => self.counters.errors += 1,
            }
            self.pool.give(shard);
        }
    }

    /// Data and parity shards of the peer's groups, if they are known.
    #[must_use]
    pub fn shards(&self) -> Option<(usize, usize)> {
        let state = self.state.as_ref().filter(|_| self.sure)?;
        Some((state.code.data(), state.code.parity()))
    }

    /// Groups of which shards wait for others.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let groups = self.state.iter().flat_map(|state| &state.window.groups);
        groups.filter(|group| group.waits()).count()
    }

    /// The number of the newest group: its first shard's, divided by the shards of a group.
    #[must_use]
    pub fn newest_group(&self) -> Option<u32> {
        self.state.as_ref()?.window.newest
    }

    /// What was seen until now.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Frees all buffers, and forgets the shards that wait in them: for a peer that fell silent.
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

    /// Copies what is still needed of packets that go out of sight.
    fn hold(&mut self, packets: &[&[u8]]) {
        let groups = self.state.iter_mut().flat_map(|s| &mut s.window.groups);
        groups.for_each(|group| group.hold(packets, &mut self.pool));
    }

    /// Takes in a shard with so many bytes of payload.
    fn take(&mut self, seqid: u32, kind: Kind, len: usize, lent: Lent<'_>) {
        let turned = self.tuner.sample(seqid, kind);
        let place = self.place(seqid, kind);
        let was_sure = self.sure;
        self.sure &= place.is_some();
        if !self.sure {
            // A run ends where the kind changes: no other shard can be the one that was missing.
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

    /// Group and place, if a shard of this kind belongs there.
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

/// Packets of one peer that are taken in one after the other, where they lie.
#[derive(Debug)]
pub struct View<'d, 'p> {
    decoder: &'d mut Decoder,
    packets: &'d [&'p [u8]],
}

impl<'p> View<'_, 'p> {
    /// As [`Decoder::handle_input`], of the packet in that place; `None` if there is none too.
    pub fn handle_input(&mut self, at: usize) -> Option<Packet<'p>> {
        let packets = self.packets;
        self.decoder
            .input_lent(packets.get(at)?, Lent { packets, at })
    }

    /// As [`Decoder::poll_recovered`].
    pub fn poll_recovered(&mut self) -> Option<&[u8]> {
        self.decoder.poll_recovered()
    }
}

impl Drop for View<'_, '_> {
    fn drop(&mut self) {
        self.decoder.hold(self.packets);
    }
}

/// What a restored payload says it holds.
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
    /// The group called `id`; `None` if it is too old.
    ///
    /// One wrong number far ahead makes all right ones too old: after two groups' worth of those
    /// the window moves back to where the shards are.
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

    /// Steps from one group up to another, over the end of the numbers if need be.
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
    /// Buffers in use and in stock.
    pub(crate) fn buffers(&self) -> usize {
        let groups = self.state.iter().flat_map(|state| &state.window.groups);
        let held: usize = groups.map(Group::held).sum();
        held + self.pool.stock() + self.ready.len() + usize::from(self.shown.is_some())
    }
}
