//! Detection of the number of shards in the peer's groups, from the order of their kinds.

use alloc::vec::Vec;

/// Number of shards to examine: a whole group of any size, and its edges.
const SAMPLES: usize = 258;

/// The kind of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ShardKind {
    Data,
    Parity,
}

/// The last shards, by number and kind.
#[derive(Debug, Clone)]
pub(crate) struct GroupSizeDetector {
    /// At most [`SAMPLES`]; fewer for a session with little traffic.
    samples: Vec<(u32, ShardKind)>,
    taken: usize,
}

impl GroupSizeDetector {
    pub(crate) const fn new() -> Self {
        Self {
            samples: Vec::new(),
            taken: 0,
        }
    }

    /// Stores a shard in place of the oldest. Returns true if its kind differs from that of the previous
    /// one.
    pub(crate) fn record_shard(&mut self, seqid: u32, kind: ShardKind) -> bool {
        let before = self.taken.checked_sub(1).map(|last| last % SAMPLES);
        let turned = before
            .and_then(|last| self.samples.get(last))
            .is_some_and(|(_, last)| *last != kind);
        match self.samples.get_mut(self.taken % SAMPLES) {
            Some(sample) => *sample = (seqid, kind),
            None => self.samples.push((seqid, kind)),
        }
        self.taken += 1;
        turned
    }

    /// Returns the numbers of data and parity shards of a group: the lengths of the first runs that were
    /// seen whole, from the last shard of the other kind before them to the first one after them, without a
    /// gap.
    pub(crate) fn detect(&self) -> Option<(usize, usize)> {
        let mut sorted = self.samples.clone();
        sorted.sort_unstable();
        let data = first_whole_run(&sorted, ShardKind::Data)?;
        let parity = first_whole_run(&sorted, ShardKind::Parity)?;
        (data + parity < 256).then_some((data, parity))
    }
}

fn first_whole_run(sorted: &[(u32, ShardKind)], kind: ShardKind) -> Option<usize> {
    // Number of shards since the run's left edge, if that was seen.
    let mut run = None;
    for ((seqid, before), (next, now)) in sorted.iter().zip(sorted.iter().skip(1)) {
        let step = next - seqid;
        if step == 0 {
            continue;
        }
        run = match (*before == kind, *now == kind) {
            _ if step > 1 => None,
            (false, true) => Some(1),
            (true, true) => run.map(|shards| shards + 1),
            (true, false) if run.is_some() => return run,
            _ => None,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(
        tuner: &mut GroupSizeDetector,
        data: u32,
        parity: u32,
        seqids: impl Iterator<Item = u32>,
    ) {
        for seqid in seqids {
            let is_data = seqid % (data + parity) < data;
            tuner.record_shard(
                seqid,
                if is_data {
                    ShardKind::Data
                } else {
                    ShardKind::Parity
                },
            );
        }
    }

    #[test]
    fn finds_every_size_that_a_window_can_show() {
        for (data, parity) in [(1, 1), (3, 1), (1, 3), (10, 3), (70, 30), (80, 4)] {
            let mut tuner = GroupSizeDetector::new();
            feed(&mut tuner, data, parity, 1000..1258);
            let expected = (data as usize, parity as usize);
            assert_eq!(tuner.detect(), Some(expected), "{data}+{parity}");
        }
    }

    #[test]
    fn order_and_repetition_do_not_matter() {
        let mut tuner = GroupSizeDetector::new();
        feed(&mut tuner, 10, 3, (0..60).rev());
        feed(&mut tuner, 10, 3, 20..40);
        assert_eq!(tuner.detect(), Some((10, 3)));
    }

    #[test]
    fn a_run_with_a_hole_is_no_measure() {
        let mut tuner = GroupSizeDetector::new();
        feed(&mut tuner, 10, 3, (0..39).filter(|s| s % 13 != 4));
        assert_eq!(tuner.detect(), None);
        feed(&mut tuner, 10, 3, 39..66);
        assert_eq!(tuner.detect(), Some((10, 3)));
    }

    #[test]
    fn one_kind_alone_says_nothing() {
        let mut tuner = GroupSizeDetector::new();
        feed(&mut tuner, 300, 1, 0..258);
        assert_eq!(tuner.detect(), None);
        assert_eq!(GroupSizeDetector::new().detect(), None);
    }
}
