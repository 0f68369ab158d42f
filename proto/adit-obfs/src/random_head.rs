//! `random_head`: each side begins with random bytes.
//!
//! The client's head ends in a CRC-32, from which the server finds its end. The server's head has
//! neither length nor mark: a client takes the first bytes it receives for the whole head, so a
//! head that arrives in two parts breaks the connection. This is a weakness of the format that one
//! side cannot fix.

use adit_wire::{Entropy, HandshakeInput, HandshakeProgress, ProtocolError};
use crc32fast::Hasher;

/// Minimum number of random bytes in a head.
const MIN: u16 = 4;
const MAX: u16 = 99;
/// The checksum over a whole head, including its checksum.
const WHOLE: u32 = 0xffff_ffff;

/// Returns 4 to 99 random bytes: a server's head.
pub(crate) fn server_head(entropy: &mut dyn Entropy) -> Vec<u8> {
    let mut head = vec![0; usize::from(entropy.in_range(MIN, MAX))];
    entropy.fill(&mut head);
    head
}

/// Returns random bytes with the checksum that makes them a client's head.
pub(crate) fn client_head(entropy: &mut dyn Entropy) -> Vec<u8> {
    let mut head = server_head(entropy);
    let sum = WHOLE - crc32fast::hash(&head);
    head.extend_from_slice(&sum.to_le_bytes());
    head
}

/// Finds and consumes a client's head.
///
/// Takes the longest head that matches the checksum: if a head ends in zeros, the checksum matches
/// before each of them too, and a client sends nothing more before it is answered.
pub(crate) fn read_client_head(
    rx: &mut HandshakeInput<'_>,
) -> Result<HandshakeProgress<()>, ProtocolError> {
    let (least, most) = (usize::from(MIN) + 4, usize::from(MAX) + 4);
    let bytes = rx.bytes();
    let (mut sum, mut end) = (Hasher::new(), None);
    for (i, byte) in bytes.iter().enumerate().take(most) {
        sum.update(core::slice::from_ref(byte));
        if i + 1 >= least && sum.clone().finalize() == WHOLE {
            end = Some(i + 1);
        }
    }
    if let Some(end) = end {
        rx.consume(end);
        return Ok(HandshakeProgress::Done(()));
    }
    if bytes.len() >= most {
        return Err(ProtocolError::Malformed("random_head: no checksum"));
    }
    let total = least.max(bytes.len() + 1);
    Ok(HandshakeProgress::NeedMore { total })
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_wire::FixedEntropy;

    #[test]
    fn every_length_is_found_in_any_split() {
        for len in MIN..=MAX {
            let mut rng = u64::from(len - MIN).to_le_bytes().to_vec();
            rng.extend((0..len).map(|i| u8::try_from(i % 251).unwrap() ^ 0x5a));
            let head = client_head(&mut FixedEntropy::new(rng));
            assert_eq!(head.len(), usize::from(len) + 4);
            for end in 0..head.len() {
                let mut part = head[..end].to_vec();
                let step = read_client_head(&mut HandshakeInput::new(&mut part));
                assert!(matches!(step, Ok(HandshakeProgress::NeedMore { total }) if total > end));
            }
            let mut whole = [&head[..], b"data"].concat();
            let mut rx = HandshakeInput::new(&mut whole);
            assert_eq!(read_client_head(&mut rx), Ok(HandshakeProgress::Done(())));
            assert_eq!(rx.bytes(), b"data");
        }
    }

    #[test]
    fn a_checksum_that_ends_in_zero_belongs_to_the_head() {
        // Five bytes more than the minimum, so that it might contain a shorter head.
        let found = (0..4096_u32)
            .map(|n| [&5_u64.to_le_bytes()[..], &n.to_le_bytes()].concat())
            .map(|rng| client_head(&mut FixedEntropy::new(rng)))
            .filter(|head| head.ends_with(&[0]));
        let mut count = 0;
        for mut head in found {
            let mut rx = HandshakeInput::new(&mut head);
            assert_eq!(read_client_head(&mut rx), Ok(HandshakeProgress::Done(())));
            assert_eq!(rx.bytes(), b"");
            count += 1;
        }
        assert!(count > 0);
    }

    #[test]
    fn other_bytes_are_refused_at_the_longest_head() {
        let mut bytes = [7; 103];
        let why = ProtocolError::Malformed("random_head: no checksum");
        assert_eq!(
            read_client_head(&mut HandshakeInput::new(&mut bytes)),
            Err(why)
        );
        let step = read_client_head(&mut HandshakeInput::new(&mut bytes[..102]));
        assert_eq!(step, Ok(HandshakeProgress::NeedMore { total: 103 }));
    }
}
