//! RC4, for the protocols that prescribe it. Broken: nothing new is to use it.

use core::fmt;

use zeroize::Zeroize;

/// The RC4 key stream, continuous over calls; cleared on drop.
pub struct Rc4 {
    table: [u8; 256],
    i: u8,
    j: u8,
}

impl Rc4 {
    /// A stream from its start, for a key of 1 to 256 bytes (longer ones count to there; an empty
    /// one counts as one zero byte).
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        let mut table = [0; 256];
        for (place, value) in table.iter_mut().zip(0..=u8::MAX) {
            *place = value;
        }
        let key = if key.is_empty() { &[0] } else { key };
        let mut j = 0u8;
        for (i, byte) in (0..=u8::MAX).zip(key.iter().cycle()) {
            let mine = table[usize::from(i)];
            j = j.wrapping_add(mine).wrapping_add(*byte);
            table[usize::from(i)] = table[usize::from(j)];
            table[usize::from(j)] = mine;
        }
        Self { table, i: 0, j: 0 }
    }

    /// Encrypts or decrypts `data` in place.
    pub fn apply(&mut self, data: &mut [u8]) {
        let (mut i, mut j) = (self.i, self.j);
        // Indices of eight bits into 256 entries: no check is left in the loop.
        let table = &mut self.table;
        for byte in data {
            i = i.wrapping_add(1);
            let a = table[usize::from(i)];
            j = j.wrapping_add(a);
            let b = table[usize::from(j)];
            table[usize::from(i)] = b;
            table[usize::from(j)] = a;
            *byte ^= table[usize::from(a.wrapping_add(b))];
        }
        (self.i, self.j) = (i, j);
    }
}

impl Drop for Rc4 {
    fn drop(&mut self) {
        self.table.zeroize();
        self.i.zeroize();
        self.j.zeroize();
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
