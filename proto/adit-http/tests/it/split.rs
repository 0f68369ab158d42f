//! One conversation in every split.

use std::fmt::Debug;

use adit_wire::codec_laws::run_handshake;
use adit_wire::{Handshake, HandshakeProgress};

/// Output, sent bytes and remaining bytes.
pub(crate) type Outcome<T, E> = Result<(HandshakeProgress<T>, Vec<u8>, Vec<u8>), (E, Vec<u8>)>;

/// Runs a new handshake over `input` in one chunk, byte by byte, and cut once at every position;
/// all must agree.
///
/// Waits may have different totals, so only sent and remaining bytes are compared.
pub(crate) fn every_split<H>(new: impl Fn() -> H, input: &[u8]) -> Outcome<H::Output, H::Error>
where
    H: Handshake<Output: PartialEq + Debug, Error: PartialEq + Debug>,
{
    let whole = run_handshake(&mut new(), input, &[input.len()]);
    let mut splits = vec![vec![1], vec![2, 3]];
    splits.extend((1..input.len()).map(|cut| vec![cut, input.len() - cut]));
    for pieces in splits {
        let other = run_handshake(&mut new(), input, &pieces);
        match (&whole, &other) {
            (
                Ok((HandshakeProgress::NeedMore { .. }, a, b)),
                Ok((HandshakeProgress::NeedMore { .. }, c, d)),
            ) => {
                assert_eq!((a, b), (c, d), "{pieces:?}");
            }
            _ => assert_eq!(whole, other, "{pieces:?}"),
        }
    }
    whole
}
