//! Custom ciphers.

use adit_crypto::CryptoError;
use adit_crypto::packet::crc32;
use adit_wire::Entropy;

/// Seals and opens whole datagrams in place, for [`Settings::crypt`](super::Settings::crypt): a
/// cipher that adit does not have, or an AEAD with your own keys.
///
/// ```text
/// head | payload | tail
/// ```
///
/// A session calls this while it is locked, and a listener for every received datagram: it must not
/// block, nor use a stream. An implementation has to guarantee:
///
/// * [`open`](Self::open) reverses [`seal`](Self::seal) under the same key, for any payload and any
///   order of datagrams: some are lost, and some are duplicated.
/// * `open` rejects datagrams that were not sealed under its key, or were changed in transit. KCP
///   has no check of its own: damaged bytes that pass end up in the stream, or end the session.
/// * Sealing the same payload again produces another datagram, by a nonce from `rng` or a
///   counter. Two sessions and two directions share the key: a counter must not repeat between
///   them.
/// * Received datagrams may have been forged. `open` accepts any bytes without a panic.
///
/// Nothing here prevents a recorded datagram from being opened again; only
/// [`Settings::session`](super::Settings::session) has a replay window.
///
/// [`ChecksumCrypt`] makes an implementation of a plain cipher, as kcp-go does of its `BlockCrypt`.
pub trait PacketCrypt: Send + Sync + 'static {
    /// Returns the number of bytes before the payload, for nonce and check. Called once, when a
    /// socket is opened; the bytes count in [`Settings::mtu`](super::Settings::mtu).
    fn head_len(&self) -> usize;

    /// Returns the number of bytes after the payload, for a tag. Called once, like
    /// [`head_len`](Self::head_len).
    fn tail_len(&self) -> usize {
        0
    }

    /// Seals `packet`, which becomes the whole datagram. Head and tail contain arbitrary bytes, and
    /// are overwritten. `rng` is the system's random number generator.
    ///
    /// # Errors
    ///
    /// The datagram is lost, with up to 15 others that are sealed together. A session that cannot
    /// seal any datagram fails with `TimedOut`.
    fn seal(&self, packet: &mut [u8], rng: &mut dyn Entropy) -> Result<(), CryptoError>;

    /// Opens a datagram in place; the payload stays between head and tail. Datagrams shorter than
    /// both are dropped before.
    ///
    /// # Errors
    ///
    /// [`CryptoError::Unauthentic`], or any other: the datagram is dropped and counted.
    fn open(&self, packet: &mut [u8]) -> Result<(), CryptoError>;

    /// True if only holders of the key can make a datagram that [`open`](Self::open) accepts; false
    /// for a cipher with a checksum. If false, a listener starts at most 256 sessions a second.
    fn authenticates(&self) -> bool {
        false
    }
}

/// A cipher over a whole packet: kcp-go's `BlockCrypt`. [`ChecksumCrypt`] sends with it.
///
/// Both methods work in place and keep the packet's length. The first 16 bytes are random, for a
/// cipher that needs a nonce or chains its blocks. It must not block, and accepts any bytes without
/// a panic.
pub trait BlockCrypt: Send + Sync + 'static {
    /// Encrypts the packet: nonce, check and payload.
    fn encrypt(&self, packet: &mut [u8]);
    /// Decrypts the result of [`encrypt`](Self::encrypt) under the same key. Under another key the
    /// result is arbitrary.
    fn decrypt(&self, packet: &mut [u8]);
}

/// A [`BlockCrypt`] in kcp-go's frame, for peers that use kcp-go with the same cipher:
///
/// ```text
/// nonce 16 | CRC-32 of the payload u32 | payload          encrypted from the first byte on
/// ```
///
/// CRC-32 detects damage and other keys, and is not an authentication.
#[derive(Debug, Clone, Copy)]
pub struct ChecksumCrypt<C>(pub C);

/// Lengths of the nonce and of the check, in bytes.
const NONCE_LEN: usize = 16;
const CHECK_LEN: usize = 4;

impl<C: BlockCrypt> PacketCrypt for ChecksumCrypt<C> {
    fn head_len(&self) -> usize {
        NONCE_LEN + CHECK_LEN
    }

    fn seal(&self, packet: &mut [u8], rng: &mut dyn Entropy) -> Result<(), CryptoError> {
        let (nonce, check, payload) = split_packet(packet).ok_or(CryptoError::NoRoom)?;
        rng.fill(nonce);
        *check = crc32(payload).to_le_bytes();
        self.0.encrypt(packet);
        Ok(())
    }

    fn open(&self, packet: &mut [u8]) -> Result<(), CryptoError> {
        self.0.decrypt(packet);
        let (_, check, payload) = split_packet(packet).ok_or(CryptoError::Unauthentic)?;
        if *check != crc32(payload).to_le_bytes() {
            return Err(CryptoError::Unauthentic);
        }
        Ok(())
    }
}

/// Splits a packet into nonce, check and payload.
fn split_packet(
    packet: &mut [u8],
) -> Option<(&mut [u8; NONCE_LEN], &mut [u8; CHECK_LEN], &mut [u8])> {
    let (nonce, rest) = packet.split_first_chunk_mut()?;
    let (check, payload) = rest.split_first_chunk_mut()?;
    Some((nonce, check, payload))
}
