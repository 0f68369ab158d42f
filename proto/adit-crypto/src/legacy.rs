//! RC4, for the protocols that prescribe it. Broken: nothing new is to use it.

use core::fmt;

use zeroize::Zeroize;

/// The RC4 key stream, continuous over calls; cleared on drop.
pub struct Rc4 {
    /// Values of one byte: wider entries are written and read back faster.
    table: [u16; 256],
    /// The place of the next byte's entry, and the entry.
    i: u8,
    ahead: u16,
    j: u8,
}

impl Rc4 {
    /// A stream from its start, for a key of 1 to 256 bytes (longer ones count to there; an empty
    /// one counts as one zero byte).
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        let mut table = [0; 256];
        for (place, value) in table.iter_mut().zip(0..=u8::MAX) {
            *place = u16::from(value);
        }
        let key = if key.is_empty() { &[0] } else { key };
        let mut j = 0u8;
        for (i, byte) in (0..=u8::MAX).zip(key.iter().cycle()) {
            let mine = table[usize::from(i)];
            j = j.wrapping_add(low(mine)).wrapping_add(*byte);
            table[usize::from(i)] = table[usize::from(j)];
            table[usize::from(j)] = mine;
        }
        Self {
            ahead: table[1],
            table,
            i: 1,
            j: 0,
        }
    }

    /// Encrypts or decrypts `data` in place.
    pub fn apply(&mut self, data: &mut [u8]) {
        let (words, rest) = data.as_chunks_mut::<8>();
        for word in words {
            let mut key = 0;
            for at in 0..8 {
                key |= u64::from(self.next()) << (8 * at);
            }
            *word = (u64::from_le_bytes(*word) ^ key).to_le_bytes();
        }
        for byte in rest {
            *byte ^= self.next();
        }
    }

    /// The entry for the next byte is read before this one's are exchanged, which nearly always
    /// leaves it as it was: that halves the chain of loads and stores.
    #[inline(always)]
    fn next(&mut self) -> u8 {
        let a = self.ahead;
        let i = self.i;
        self.j = self.j.wrapping_add(low(a));
        self.i = i.wrapping_add(1);
        let b = self.table[usize::from(self.j)];
        let ahead = self.table[usize::from(self.i)];
        self.table[usize::from(self.j)] = a;
        self.table[usize::from(i)] = b;
        self.ahead = if self.i == self.j { a } else { ahead };
        low(self.table[usize::from(low(a).wrapping_add(low(b)))])
    }
}

/// An entry's value.
const fn low(entry: u16) -> u8 {
    entry.to_le_bytes()[0]
}

impl Drop for Rc4 {
    fn drop(&mut self) {
        self.table.zeroize();
        self.ahead.zeroize();
    }
}

impl fmt::Debug for Rc4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rc4(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6229, key 0x0102030405, offsets 0 and 240, in pieces.
    #[test]
    fn key_stream_of_the_standard() {
        let mut rc4 = Rc4::new(&[1, 2, 3, 4, 5]);
        let mut stream = [0; 256];
        for piece in stream.chunks_mut(7) {
            rc4.apply(piece);
        }
        let start = [0xb2, 0x39, 0x63, 0x05, 0xf0, 0x3d, 0xc0, 0x27];
        assert_eq!(stream[..8], start);
        let later = [0x28, 0xcb, 0x11, 0x32, 0xc9, 0x6c, 0xe2, 0x86];
        assert_eq!(stream[240..248], later);
    }
}
