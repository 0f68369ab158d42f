//! Bytes to sets: every length is checked against the bytes that are there.

use adit_wire::Reader;

use super::{TAG_ALL, TAG_NOT};
use crate::bounds::{
    MAX_ALL_PATTERNS, MAX_DEPTH, MAX_GLOBS, MAX_KEYWORDS, MAX_PATTERN, MAX_PATTERNS, MAX_PEERS,
    MAX_SETS, MAX_TEXT,
};
use crate::glob::Glob;
use crate::keyword_set::KeywordSet;
use crate::name_table::NameTable;
use crate::network_table::{NetworkTable, Number, Ranges};
use crate::pattern::NamePattern;
use crate::rule_set::{Group, RuleSet};

/// The patterns of all sets of a cache: nested sets share these bounds, so that a small document does not
/// take much memory.
struct Budget {
    patterns: usize,
    sets: usize,
}

/// Reads a set, or returns `None` if the bytes are not one.
pub(super) fn decode_set(from: &mut Reader<'_>) -> Option<RuleSet> {
    let mut budget = Budget {
        patterns: MAX_ALL_PATTERNS + MAX_PATTERNS,
        sets: MAX_SETS + 1,
    };
    read_set(from, MAX_DEPTH, &mut budget)
}

fn read_set(from: &mut Reader<'_>, depth: usize, budget: &mut Budget) -> Option<RuleSet> {
    budget.sets = budget.sets.checked_sub(1)?;
    let everything = match from.u8().ok()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let transports = from.u8().ok().filter(|bits| *bits <= 3)?;
    let len = read_len(from)?;
    let names = NameTable::from_bytes(from.take(len).ok()?)?;
    let mut words = Vec::new();
    read_texts(from, MAX_KEYWORDS, MAX_TEXT, |word| {
        let good = !word.is_empty() && word.is_ascii();
        words.push(word.as_bytes().into());
        good.then_some(())
    })?;
    let mut globs = Vec::new();
    read_texts(from, MAX_GLOBS, MAX_TEXT, |glob| {
        globs.push(Glob::parse(glob)?);
        Some(())
    })?;
    let mut patterns = Vec::new();
    read_texts(from, MAX_PATTERNS, MAX_PATTERN, |pattern| {
        budget.patterns = budget.patterns.checked_sub(1)?;
        patterns.push(NamePattern::parse(pattern).ok()?);
        Some(())
    })?;
    let networks = read_networks(from)?;
    let ports = read_ranges(from, u16::from_be_bytes)?;
    let sources = read_networks(from)?;
    let source_ports = read_ranges(from, u16::from_be_bytes)?;
    let users = read_sorted(from)?;
    let listeners = read_sorted(from)?;
    let mut groups = Vec::new();
    for _ in 0..read_len(from)? {
        let depth = depth.checked_sub(1)?;
        groups.push(match from.u8().ok()? {
            TAG_ALL => {
                let mut sets = Vec::new();
                let count = read_len(from).filter(|count| *count > 0)?;
                for _ in 0..count {
                    sets.push(read_set(from, depth, budget)?);
                }
                Group::All(sets.into())
            }
            TAG_NOT => Group::Not(read_set(from, depth, budget)?.into()),
            _ => return None,
        });
    }
    Some(RuleSet {
        everything,
        transports,
        names,
        keywords: KeywordSet::new(words),
        globs: globs.into(),
        patterns: patterns.into(),
        networks,
        ports,
        sources,
        source_ports,
        users,
        listeners,
        groups: groups.into(),
    })
}

fn read_len(from: &mut Reader<'_>) -> Option<usize> {
    let len = from.array().map(u32::from_be_bytes).ok()?;
    usize::try_from(len).ok()
}

fn read_texts(
    from: &mut Reader<'_>,
    max_count: usize,
    max_len: usize,
    mut receive: impl FnMut(&str) -> Option<()>,
) -> Option<()> {
    let count = read_len(from).filter(|count| *count <= max_count)?;
    for _ in 0..count {
        let len = read_len(from).filter(|len| *len <= max_len)?;
        receive(core::str::from_utf8(from.take(len).ok()?).ok()?)?;
    }
    Some(())
}

/// Reads names of users or listeners, which are sorted.
fn read_sorted(from: &mut Reader<'_>) -> Option<Box<[Box<str>]>> {
    let mut list: Vec<Box<str>> = Vec::new();
    read_texts(from, MAX_PEERS, MAX_TEXT, |text| {
        let sorted = list.last().is_none_or(|before| **before < *text);
        list.push(text.into());
        sorted.then_some(())
    })?;
    Some(list.into())
}

fn read_networks(from: &mut Reader<'_>) -> Option<NetworkTable> {
    Some(NetworkTable {
        v4: read_ranges(from, u32::from_be_bytes)?,
        v6: read_ranges(from, u128::from_be_bytes)?,
    })
}

fn read_ranges<T: Number, const N: usize>(
    from: &mut Reader<'_>,
    number: impl Fn([u8; N]) -> T,
) -> Option<Ranges<T>> {
    let count = read_len(from)?;
    let bytes = from.take(count.checked_mul(2 * N)?).ok()?;
    let (pairs, _) = bytes.as_chunks::<N>();
    let pairs = pairs.chunks_exact(2).filter_map(|pair| match pair {
        [start, end] => Some((number(*start), number(*end))),
        _ => None,
    });
    let pairs: Vec<(T, T)> = pairs.collect();
    // In the form of the compiler, so that the search finds what is there.
    let good = pairs.iter().all(|(start, end)| start <= end);
    let ranges = good.then(|| Ranges::new(pairs))?;
    (ranges.len() == count).then_some(ranges)
}
