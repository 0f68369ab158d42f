//! A cache of plans for restoring lost shards, for the most recent loss patterns.

use alloc::{vec, vec::Vec};

use crate::matrix::solve_equations;

/// Maximum number of shards of a code, data and parity.
pub(crate) const MAX_SHARDS: usize = 256;

/// Maximum size of the cached plans, in bytes; at least one plan is cached.
const KEPT_BYTES: usize = 16 * 1024;
/// Maximum number of cached plans: they are searched one by one.
const KEPT_PLANS: usize = 64;

/// A set of shard numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ShardSet([u64; MAX_SHARDS / 64]);

impl ShardSet {
    pub(crate) fn insert(&mut self, shard: usize) {
        if let Some(word) = self.0.get_mut(shard / 64) {
            *word |= 1 << (shard % 64);
        }
    }

    pub(crate) fn contains(&self, shard: usize) -> bool {
        self.0
            .get(shard / 64)
            .is_some_and(|word| word >> (shard % 64) & 1 == 1)
    }
}

/// The cached plans by the set of available shards. The least recently used one is evicted first.
///
/// The memory is allocated with the first plan and never grows.
#[derive(Debug, Clone, Default)]
pub(crate) struct RepairPlans {
    index: Vec<PlanEntry>,
    rows: Vec<u8>,
    work: Vec<u8>,
    clock: u64,
}

#[derive(Debug, Clone, Copy)]
struct PlanEntry {
    available: ShardSet,
    used: u64,
}

impl RepairPlans {
    /// Returns the factors that compute the lost data shards, `data` for each, from the available shards:
    /// data shards at their index, and at the index of the n-th lost one the n-th parity shard.
    ///
    /// `at_hand` has exactly `data` members. Returns `None` if no plan exists, which cannot happen with the
    /// codes of this crate.
    pub(crate) fn get_or_compute(
        &mut self,
        code: &[u8],
        data: usize,
        at_hand: ShardSet,
    ) -> Option<&[u8]> {
        let lost = (0..data).filter(|&c| !at_hand.contains(c)).count();
        let size = data * data.min(code.len() / data);
        self.clock += 1;
        let slot = match self.index.iter().position(|e| e.available == at_hand) {
            Some(slot) => slot,
            None => self.compute_plan(code, data, at_hand, size)?,
        };
        self.index.get_mut(slot)?.used = self.clock;
        self.rows.get(slot * size..)?.get(..lost * data)
    }

    fn compute_plan(
        &mut self,
        code: &[u8],
        data: usize,
        at_hand: ShardSet,
        size: usize,
    ) -> Option<usize> {
        let most = (KEPT_BYTES / size).clamp(1, KEPT_PLANS);
        if self.rows.is_empty() {
            self.rows = vec![0; most * size];
            self.index.reserve_exact(most);
        }
        let slot = if self.index.len() < most {
            self.index.len()
        } else {
            let oldest = self.index.iter().enumerate().min_by_key(|(_, e)| e.used);
            oldest.map_or(0, |(slot, _)| slot)
        };
        let lost = build_equations(code, data, at_hand, &mut self.work);
        if !solve_equations(&mut self.work, lost, data) {
            return None;
        }
        let kept = self.rows.get_mut(slot * size..)?.get_mut(..lost * data)?;
        for (to, from) in kept
            .chunks_exact_mut(data)
            .zip(self.work.chunks_exact(lost + data))
        {
            to.copy_from_slice(from.get(lost..)?);
        }
        let entry = PlanEntry {
            available: at_hand,
            used: 0,
        };
        match self.index.get_mut(slot) {
            Some(old) => *old = entry,
            None => self.index.push(entry),
        }
        Some(slot)
    }
}

/// Writes one equation for each available parity shard: the lost shards times their factors on the left,
/// the available shards times theirs on the right. Returns the number of equations.
fn build_equations(code: &[u8], data: usize, at_hand: ShardSet, out: &mut Vec<u8>) -> usize {
    out.clear();
    let lost = |c: &usize| !at_hand.contains(*c);
    let rows = code.chunks_exact(data).enumerate();
    let rows = rows.filter(|(r, _)| at_hand.contains(data + r));
    for (n, (_, row)) in rows.enumerate() {
        let factors = || (0..data).zip(row.iter().copied());
        out.extend(factors().filter(|(c, _)| lost(c)).map(|(_, factor)| factor));
        let mut nth = 0;
        out.extend(factors().map(|(c, factor)| {
            if at_hand.contains(c) {
                return factor;
            }
            nth += 1;
            u8::from(nth == n + 1)
        }));
    }
    (0..data).filter(lost).count()
}
