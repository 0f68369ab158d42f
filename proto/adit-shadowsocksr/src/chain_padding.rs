//! Lengths of the paddings of the `auth_chain` protocols, and the position of the data in them.
//!
//! Both sides compute these from the length of the data and the tag of the previous frame, so the
//! computation is part of the wire format.

mod generator;

pub(crate) use generator::Generator;

/// The protocols of this family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainKind {
    A,
    B,
    C,
    D,
    E,
    F,
}

/// Maximum length of data that [`draw_by_size`] pads.
const MAX_PADDED_DATA: usize = 1440;

/// Upper bound of all paddings: entries of a list, and results of [`draw_by_size`], are below it.
pub(crate) const PAD_MAX: usize = MAX_PADDED_DATA;

/// Maximum number of entries to which a list is extended.
const LIST_MAX: usize = 64;

/// The layout of a frame's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameLayout {
    /// Number of bytes of padding, in front of the data and after it together.
    pub(crate) pad: usize,
    /// Number of padding bytes in front of the data.
    pub(crate) start: usize,
}

/// The lists of one port, and the rule that uses them.
#[derive(Debug, Clone)]
pub(crate) struct PaddingSizes {
    kind: ChainKind,
    overhead: usize,
    first: Vec<usize>,
    second: Vec<usize>,
}

impl PaddingSizes {
    /// Derives the lists from the port's key (never a user's). `period` is the time divided by the
    /// interval, used only by `auth_chain_f`.
    pub(crate) fn new(kind: ChainKind, key: &[u8], overhead: u16, period: u64) -> Self {
        let mut seed = crate::mac::first_16(key);
        if kind == ChainKind::F {
            for (byte, mask) in seed.iter_mut().zip(period.to_be_bytes()) {
                *byte ^= mask;
            }
        }
        let mut g = Generator::from_seed(&seed);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        match kind {
            ChainKind::A => {}
            ChainKind::B => {
                let len = 4 + g.draw_below(8);
                first = draw_list(&mut g, len);
                let len = 8 + g.draw_below(16);
                second = draw_list(&mut g, len);
            }
            _ => {
                let len = 12 + g.draw_below(24);
                first = draw_list(&mut g, len);
            }
        }
        if matches!(kind, ChainKind::D | ChainKind::E | ChainKind::F) {
            // The entry appended last decides, not the largest one.
            while first.len() < LIST_MAX && first.last().is_some_and(|last| *last < 1300) {
                first.push(draw_entry(&mut g));
            }
            first.sort_unstable();
        }
        Self {
            kind,
            overhead: usize::from(overhead),
            first,
            second,
        }
    }

    /// True for the length of data, 1,440 bytes, about whose frames implementations disagree.
    pub(crate) const fn must_split(&self, len: usize) -> bool {
        matches!(self.kind, ChainKind::B | ChainKind::C) && len == MAX_PADDED_DATA
    }

    /// Returns the layout of a frame with `len` bytes of data after a frame with the tag `hash`.
    pub(crate) fn layout(&self, hash: &[u8; 16], len: usize) -> FrameLayout {
        // Without padding no number may be drawn either.
        let Some((mut g, pad)) = self.draw_padding(hash, len) else {
            return FrameLayout { pad: 0, start: 0 };
        };
        let start = if pad > 0 && len > 0 {
            g.draw_start(pad)
        } else {
            0
        };
        FrameLayout { pad, start }
    }

    fn draw_padding(&self, hash: &[u8; 16], len: usize) -> Option<(Generator, usize)> {
        let need = len + self.overhead;
        let last = self.first.last().copied().unwrap_or(0);
        let seeded = || Generator::from_hash_and_len(hash, len);
        match self.kind {
            ChainKind::A if len > MAX_PADDED_DATA => None,
            ChainKind::A => {
                let mut g = seeded();
                let pad = draw_by_size(&mut g, len);
                Some((g, pad))
            }
            ChainKind::B if len >= MAX_PADDED_DATA => None,
            ChainKind::B => {
                let mut g = seeded();
                let pad = self.draw_from_lists(&mut g, need, len);
                Some((g, pad))
            }
            ChainKind::C if need >= last => {
                // Implementations differ here: some compare the length of the data instead.
                if need >= MAX_PADDED_DATA {
                    return None;
                }
                let mut g = seeded();
                let pad = draw_by_size(&mut g, need);
                Some((g, pad))
            }
            ChainKind::D | ChainKind::E | ChainKind::F if need >= last => None,
            ChainKind::C | ChainKind::D => {
                let mut g = seeded();
                let at = lower_bound(&self.first, need);
                let at = at + g.draw_below(self.first.len() - at);
                Some((g, entry_excess(&self.first, at, need)?))
            }
            ChainKind::E | ChainKind::F => {
                let at = lower_bound(&self.first, need);
                Some((seeded(), entry_excess(&self.first, at, need)?))
            }
        }
    }

    fn draw_from_lists(&self, g: &mut Generator, need: usize, len: usize) -> usize {
        let at = lower_bound(&self.first, need);
        let found = at + g.draw_below(self.first.len());
        if let Some(pad) = entry_excess(&self.first, found, need) {
            return pad;
        }
        let at = lower_bound(&self.second, need);
        let found = at + g.draw_below(self.second.len());
        if let Some(pad) = entry_excess(&self.second, found, need) {
            return pad;
        }
        if found + 1 < at + self.second.len() {
            return 0;
        }
        draw_by_size(g, len)
    }
}

fn draw_list(g: &mut Generator, len: usize) -> Vec<usize> {
    let mut list: Vec<usize> = (0..len).map(|_| draw_entry(g)).collect();
    list.sort_unstable();
    list
}

fn draw_entry(g: &mut Generator) -> usize {
    g.draw_below(2340) % 2040 % 1440
}

/// Returns the index of the first entry that is not less than `need`.
fn lower_bound(list: &[usize], need: usize) -> usize {
    list.partition_point(|entry| *entry < need)
}

/// Returns the difference between the entry at `at` and `need`, if there is such an entry.
fn entry_excess(list: &[usize], at: usize, need: usize) -> Option<usize> {
    list.get(at)?.checked_sub(need)
}

/// Draws a padding by size: the shorter the data, the longer the padding.
fn draw_by_size(g: &mut Generator, len: usize) -> usize {
    match len {
        1301.. => g.draw_below(31),
        901.. => g.draw_below(127),
        401.. => g.draw_below(521),
        _ => g.draw_below(1021),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(super) const KINDS: [ChainKind; 6] = [
        ChainKind::A,
        ChainKind::B,
        ChainKind::C,
        ChainKind::D,
        ChainKind::E,
        ChainKind::F,
    ];

    #[test]
    fn bulk_is_never_padded() {
        for kind in KINDS {
            let sizes = PaddingSizes::new(kind, &[3; 16], 9, 0);
            for len in MAX_PADDED_DATA + 1..4096 {
                assert_eq!(sizes.layout(&[9; 16], len).pad, 0, "{kind:?} {len}");
            }
        }
    }

    #[test]
    fn the_period_changes_the_list_of_f_alone() {
        for kind in KINDS {
            let lists = |period| PaddingSizes::new(kind, &[3; 16], 9, period).first;
            assert_eq!(lists(1) != lists(2), kind == ChainKind::F);
        }
    }

    proptest! {
        #[test]
        fn layouts_are_bounded(
            kind in proptest::sample::select(KINDS.to_vec()),
            key in any::<[u8; 32]>(), hash in any::<[u8; 16]>(),
            len in 0usize..65_536, overhead in 0u16..20,
        ) {
            let sizes = PaddingSizes::new(kind, &key, overhead, 7);
            prop_assert!(sizes.first.len() <= LIST_MAX && sizes.first.is_sorted());
            let FrameLayout { pad, start } = sizes.layout(&hash, len);
            prop_assert!(pad <= PAD_MAX && (start < pad || start == 0));
            // A sender relies on this when it splits data of 1,440 bytes.
            prop_assert!(len != MAX_PADDED_DATA - 1 || pad <= 30);
        }
    }
}
