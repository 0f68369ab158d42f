//! Exact names and domains: sorted, reversed, and each stored without what it shares with the one before.
//!
//! An entry is `shared` (one byte), the kind (2 bits) and the length of the rest (6 bits; 63 is followed by
//! a byte with the length), and the rest. Every 16th entry shares nothing: it begins a block. Names below
//! a domain of the table are not stored, so the last entry that is not after a name decides about it.

use core::cmp::Ordering;

use adit_wire::{Reader, subslice};

use crate::name::{MAX_NAME, NameKey, SEPARATOR};

/// The name itself matches.
pub(crate) const EXACT: u8 = 1;
/// The names below match.
pub(crate) const BELOW: u8 = 2;

/// Entries of a block.
const BLOCK: usize = 16;
/// Lengths from this one on have a byte of their own.
const LONG: u8 = 63;

/// The largest table, in bytes; positions are stored as `u32`.
pub(crate) const MAX_TABLE: usize = 512 << 20;

/// The compiled table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NameTable {
    /// The first eight bytes of the first key of each block.
    heads: Box<[u64]>,
    /// Where each block starts.
    starts: Box<[u32]>,
    bytes: Box<[u8]>,
    count: usize,
}

struct Entry<'a> {
    shared: usize,
    kind: u8,
    rest: &'a [u8],
}

impl<'a> Entry<'a> {
    #[inline]
    fn read(from: &mut Reader<'a>) -> Option<Self> {
        let shared = from.u8().ok()?.into();
        let byte = from.u8().ok()?;
        let len = match byte & LONG {
            LONG => from.u8().ok()?,
            short => short,
        };
        let rest = from.take(len.into()).ok()?;
        Some(Self {
            shared,
            kind: byte >> 6,
            rest,
        })
    }
}

impl NameTable {
    /// True if the name, or a domain that it is below, is in the table.
    pub(crate) fn contains(&self, name: &NameKey) -> bool {
        self.find(name).is_some()
    }

    /// Returns the length of the entry that has the name, in bytes, and its kind.
    pub(crate) fn find(&self, name: &NameKey) -> Option<(usize, u8)> {
        let key = name.key();
        let block = self.find_block(key)?;
        // The longest prefix that the last entry before the key shares with it, and that entry.
        let (mut common, mut len, mut kind) = (0, 0, 0);
        let mut rest = self.block(block);
        for _ in 0..BLOCK {
            let Some(entry) = Entry::read(&mut rest) else {
                break;
            };
            match entry.shared.cmp(&common) {
                Ordering::Less => break,
                // It differs from the key where the entry before does.
                Ordering::Greater => (len, kind) = (entry.shared + entry.rest.len(), entry.kind),
                Ordering::Equal => {
                    let key_rest = subslice(key, common..);
                    let same = common_prefix(entry.rest, key_rest);
                    if subslice(entry.rest, same..) > subslice(key_rest, same..) {
                        break;
                    }
                    common += same;
                    (len, kind) = (entry.shared + entry.rest.len(), entry.kind);
                }
            }
        }
        if kind == 0 || common != len {
            return None;
        }
        let matches = match subslice(key, len..) {
            [] => kind & EXACT != 0,
            [SEPARATOR, _, ..] => kind & BELOW != 0,
            _ => false,
        };
        matches.then_some((len, kind))
    }

    /// Returns the last block that does not start after `key`.
    fn find_block(&self, key: &[u8]) -> Option<usize> {
        let head = head_of(key);
        let low = self.heads.partition_point(|other| *other < head);
        let equal = subslice(&self.heads, low..).partition_point(|other| *other == head);
        let ties = subslice(&self.starts, low..low + equal);
        let before = ties.partition_point(|start| {
            let mut at = self.reader_at(*start);
            Entry::read(&mut at).is_some_and(|entry| entry.rest <= key)
        });
        (low + before).checked_sub(1)
    }

    fn block(&self, block: usize) -> Reader<'_> {
        let start = self.starts.get(block).copied();
        start.map_or(Reader::new(&[]), |start| self.reader_at(start))
    }

    fn reader_at(&self, start: u32) -> Reader<'_> {
        Reader::new(subslice(&self.bytes, start as usize..))
    }

    /// Returns the number of stored names and domains.
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// Returns the entries as they are stored.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the occupied memory, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.len() + self.starts.len() * 4 + self.heads.len() * 8
    }

    /// Reads a table as [`Self::bytes`] returns it, and checks it. Returns `None` if it is not a table.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > MAX_TABLE {
            return None;
        }
        let (mut heads, mut starts) = (Vec::new(), Vec::new());
        let mut key: Vec<u8> = Vec::with_capacity(MAX_NAME);
        let mut next: Vec<u8> = Vec::with_capacity(MAX_NAME);
        let mut rest = Reader::new(bytes);
        let mut count = 0_usize;
        while !rest.rest().is_empty() {
            let start = u32::try_from(rest.consumed()).ok()?;
            let entry = Entry::read(&mut rest)?;
            let opens = count.is_multiple_of(BLOCK);
            next.clear();
            next.extend_from_slice(key.get(..entry.shared)?);
            next.extend_from_slice(entry.rest);
            let maximal = entry.shared == common_prefix(&next, &key);
            let good = entry.kind != 0
                && !next.is_empty()
                && next.len() <= MAX_NAME
                && (count == 0 || next > key)
                && (if opens { entry.shared == 0 } else { maximal });
            if !good {
                return None;
            }
            if opens {
                heads.push(head_of(&next));
                starts.push(start);
            }
            core::mem::swap(&mut key, &mut next);
            count += 1;
        }
        Some(Self {
            heads: heads.into(),
            starts: starts.into(),
            bytes: bytes.into(),
            count,
        })
    }
}

/// Returns the first eight bytes of a key as a number, so that numbers compare as keys do.
fn head_of(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    for (to, from) in head.iter_mut().zip(key) {
        *to = *from;
    }
    u64::from_be_bytes(head)
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Names that become a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameTableBuilder {
    keys: Vec<u8>,
    entries: Vec<(u32, u8, u8)>,
}

impl NameTableBuilder {
    /// Adds a name. Returns false if the table is full.
    pub(crate) fn add(&mut self, name: &NameKey, kind: u8) -> bool {
        self.add_key(name.key(), kind)
    }

    fn add_key(&mut self, key: &[u8], kind: u8) -> bool {
        let start = u32::try_from(self.keys.len());
        let (Ok(start), Ok(len)) = (start, u8::try_from(key.len())) else {
            return false;
        };
        // An entry is longer than its key by three bytes at most.
        if self.keys.len() + key.len() + 3 * (self.entries.len() + 1) > MAX_TABLE {
            return false;
        }
        self.keys.extend_from_slice(key);
        self.entries.push((start, len, kind));
        true
    }

    /// Adds the names of another builder. Returns false if the table is full.
    pub(crate) fn append(&mut self, other: &Self) -> bool {
        if self.entries.is_empty() {
            self.clone_from(other);
            return true;
        }
        let mut all = other.entries.iter();
        all.all(|entry| self.add_key(other.key(*entry), entry.2))
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn key(&self, (start, len, _): (u32, u8, u8)) -> &[u8] {
        let start = start as usize;
        subslice(&self.keys, start..start + usize::from(len))
    }

    pub(crate) fn build(mut self) -> NameTable {
        let mut entries = core::mem::take(&mut self.entries);
        entries.sort_unstable_by(|a, b| self.key(*a).cmp(self.key(*b)));
        entries.dedup_by(|next, kept| {
            let same = self.key(*next) == self.key(*kept);
            if same {
                kept.2 |= next.2;
            }
            same
        });
        let mut bytes = Vec::with_capacity(entries.len() * 12);
        let (mut before, mut domain): (&[u8], Option<&[u8]>) = (&[], None);
        let mut count = 0_usize;
        for entry in entries {
            let key = self.key(entry);
            let covered = domain.is_some_and(|domain| {
                let rest = key.strip_prefix(domain);
                rest.is_some_and(|rest| rest.first() == Some(&SEPARATOR))
            });
            if covered {
                continue;
            }
            if entry.2 & BELOW != 0 {
                domain = Some(key);
            }
            let opens = count.is_multiple_of(BLOCK);
            let shared = if opens { 0 } else { common_prefix(before, key) };
            let rest = subslice(key, shared..);
            let len = adit_wire::narrow_int::<u8>(rest.len());
            bytes.push(adit_wire::narrow_int(shared));
            bytes.push(entry.2 << 6 | len.min(LONG));
            if len >= LONG {
                bytes.push(len);
            }
            bytes.extend_from_slice(rest);
            before = key;
            count += 1;
        }
        let table = NameTable::from_bytes(&bytes);
        debug_assert!(table.is_some(), "a built table is a table");
        table.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(name: &str) -> NameKey {
        NameKey::new(name).unwrap()
    }

    fn table(names: &[(String, u8)]) -> NameTable {
        let mut builder = NameTableBuilder::default();
        for (name, kind) in names {
            assert!(builder.add(&key(name), *kind));
        }
        builder.build()
    }

    /// The definition, without a table.
    fn expected(names: &[(String, u8)], name: &str) -> bool {
        names.iter().any(|(rule, kind)| {
            let below = name
                .strip_suffix(rule.as_str())
                .is_some_and(|head| head.len() > 1 && head.ends_with('.'));
            (kind & EXACT != 0 && name == rule) || (kind & BELOW != 0 && below)
        })
    }

    proptest! {
        #[test]
        fn a_table_answers_as_its_definition(
            names in prop::collection::vec(("[ab-]{1,2}(\\.[ab-]{1,2}){0,4}", 1_u8..4), 0..120),
            asked in prop::collection::vec("[ab-]{1,2}(\\.[ab-]{1,2}){0,5}", 1..40),
        ) {
            let table = table(&names);
            let own = names.iter().map(|(name, _)| name.clone());
            for name in asked.into_iter().chain(own) {
                prop_assert_eq!(table.contains(&key(&name)), expected(&names, &name), "{}", name);
            }
            prop_assert_eq!(NameTable::from_bytes(table.bytes()), Some(table));
        }

        #[test]
        fn any_bytes_are_a_table_or_not(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(table) = NameTable::from_bytes(&bytes) {
                let _ = table.contains(&key("a.b"));
            }
        }
    }

    #[test]
    fn long_names_are_stored() {
        let long = "a".repeat(63);
        let name = format!("{long}.{long}.{long}.example");
        let table = table(&[(name.clone(), EXACT), ("example".to_owned(), EXACT)]);
        assert!(table.contains(&key(&name)) && table.contains(&key("example")));
        assert!(!table.contains(&key(&format!("{long}.{long}.example"))));
        assert_eq!(table.len(), 2);
    }
}
