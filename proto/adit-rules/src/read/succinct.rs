//! The succinct sets of names in `.srs` files: a trie whose shape is a list of bits.
//!
//! Nodes are numbered level by level. For each node the bits have a 0 for each child, and a 1 as the end;
//! the labels of the children are bytes in the same order. Names are stored from right to left.

use adit_wire::Reader;

use super::protobuf::read_varint;

/// The longest name, with its mark.
const MAX_KEY: usize = 258;

/// A set.
pub(super) struct SuccinctSet<'a> {
    leaves: Words<'a>,
    bitmap: Words<'a>,
    labels: &'a [u8],
    /// Positions of the bits that are 1.
    ends: Vec<u32>,
}

/// Bits in words of eight bytes.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn bit(&self, at: usize) -> Option<bool> {
        // The first bit is the lowest one of a word, whose bytes are big-endian.
        let byte = self.0.get((at / 64) * 8 + 7 - (at % 64) / 8)?;
        Some(byte >> (at % 8) & 1 == 1)
    }

    const fn len(&self) -> usize {
        self.0.len() * 8
    }
}

/// A reason to stop.
pub(super) enum Stop<E> {
    /// The set is damaged.
    Damaged,
    /// The receiver of names stopped.
    Receiver(E),
}

impl<'a> SuccinctSet<'a> {
    /// Reads a set.
    pub(super) fn read(from: &mut Reader<'a>) -> Option<Self> {
        let _version = from.u8().ok()?;
        let leaves = read_words(from)?;
        let bitmap = read_words(from)?;
        let len = usize::try_from(read_varint(from)?).ok()?;
        let labels = from.take(len).ok()?;
        // Every label has a node, and every node a bit as its end.
        if u32::try_from(bitmap.len()).is_err() || labels.len() >= bitmap.len() {
            return None;
        }
        let ones = (0..bitmap.len()).filter(|at| bitmap.bit(*at) == Some(true));
        let ends = ones
            .filter_map(|at| u32::try_from(at).ok())
            .take(labels.len() + 1);
        let ends = ends.collect();
        Some(Self {
            leaves,
            bitmap,
            labels,
            ends,
        })
    }

    /// Passes every key to `receive`, in the order of names (not reversed), mark included.
    pub(super) fn visit<E>(
        &self,
        mut receive: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), Stop<E>> {
        // The nodes from the root to here: number, and the next bit.
        let mut path: Vec<(usize, usize)> = vec![(0, 0)];
        // The key so far, from right to left.
        let mut key: Vec<u8> = Vec::new();
        if self.leaves.bit(0) == Some(true) {
            return Err(Stop::Damaged);
        }
        while let Some((node, bit)) = path.last_mut() {
            let (here, at) = (*node, *bit);
            match self.bitmap.bit(at) {
                None => return Err(Stop::Damaged),
                Some(true) => {
                    path.pop();
                    key.pop();
                }
                Some(false) => {
                    *bit += 1;
                    let index = at.checked_sub(here).ok_or(Stop::Damaged)?;
                    let child = index + 1;
                    // Later than its parent, so that there is no circle.
                    if child <= here || path.len() > MAX_KEY {
                        return Err(Stop::Damaged);
                    }
                    key.push(*self.labels.get(index).ok_or(Stop::Damaged)?);
                    let end = self.ends.get(index).ok_or(Stop::Damaged)?;
                    path.push((child, *end as usize + 1));
                    if self.leaves.bit(child) == Some(true) {
                        let name: Vec<u8> = reversed(&key).ok_or(Stop::Damaged)?;
                        receive(&name).map_err(Stop::Receiver)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the characters in reverse order.
fn reversed(key: &[u8]) -> Option<Vec<u8>> {
    let text = core::str::from_utf8(key).ok()?;
    Some(text.chars().rev().collect::<String>().into_bytes())
}

fn read_words<'a>(from: &mut Reader<'a>) -> Option<Words<'a>> {
    let count = usize::try_from(read_varint(from)?).ok()?;
    let bytes = from.take(count.checked_mul(8)?).ok()?;
    Some(Words(bytes))
}
