//! Ciphers of the program's own.

use adit_crypto::CryptoError;
use adit_crypto::packet::crc32;
use adit_wire::Entropy;

/// Seals and opens whole datagrams in place, for [`Settings::crypt`](super::Settings::crypt): a
/// cipher that adit does not have, an AEAD with keys of the program's own.
///
/// ```text
/// head | payload | tail
/// ```
///
/// A session calls this while it is locked, and a listener for every datagram that comes: it must
/// not wait, nor use a stream. What it has to guarantee:
///
/// * [`open`](Self::open) undoes [`seal`](Self::seal) under the same key, whatever the payload is and
///   in whatever order datagrams come: some are lost, and some come twice.
/// * `open` refuses what was not sealed under its key, or was changed on the way. KCP has no check of
///   its own: damaged bytes that are let through end up in the stream, or end the session.
/// * Sealing the same payload again makes another datagram, by a nonce from `chance` or a counter.
///   Two sessions and two directions share the key: a counter must not repeat between them.
/// * Datagrams that come may have been forged. `open` takes any bytes without a panic.
///
/// Nothing here keeps a recorded datagram from being opened again; only
/// [`Settings::session`](super::Settings::session) has a window against that.
///
/// [`Checked`] makes one of a cipher alone, as kcp-go does of its `BlockCrypt`.
pub trait PacketCrypt: Send + Sync + 'static {
    /// Bytes in front of the payload, for nonce and check. They are asked for once, when a socket is
    /// opened, and count in [`Settings::mtu`](super::Settings::mtu).
    fn head(&self) -> usize;

    /// Bytes behind the payload, for a tag. As [`head`](Self::head) asked for once.
    fn tail(&self) -> usize {
        0
    }

    /// Seals `packet`, all of which is the datagram then. Head and tail hold anything before, and are
    /// written over. `chance` is the system's generator of random bytes.
    ///
    /// # Errors
    /// The datagram is lost, with up to 15 others that are sealed together. A session
    /// of which none can be sealed fails with `TimedOut`.
    fn seal(&self, packet: &mut [u8], chance: &mut dyn Entropy) -> Result<(), CryptoError>;

    /// Opens a datagram of at least head and tail, and leaves the payload where it is, between the
    /// two. Shorter ones are dropped before.
    ///
    /// # Errors
    /// [`CryptoError::Unauthentic`], or any other: the datagram is dropped and counted.
    fn open(&self, packet: &mut [u8]) -> Result<(), CryptoError>;

    /// Whether nobody without the key can make a datagram that [`open`](Self::open) takes. False for
    /// a cipher with a checksum. Where it is false, a listener begins 256 sessions a second at most.
    fn authenticates(&self) -> bool {
        false
    }
}

/// A cipher over a whole packet: kcp-go's `BlockCrypt`. [`Checked`] sends with it.
///
/// Both ways are in place and have the packet's length. The first 16 bytes are random, for a cipher
/// that needs a nonce or chains its blocks. It must not wait, and takes any bytes without a panic.
pub trait BlockCrypt: Send + Sync + 'static {
    /// Encrypts the packet: nonce, check and payload.
    fn encrypt(&self, packet: &mut [u8]);
    /// Decrypts what [`encrypt`](Self::encrypt) has made under the same key. Under another one
    /// anything may come out.
    fn decrypt(&self, packet: &mut [u8]);
}

/// A [`BlockCrypt`] in kcp-go's frame, for peers that use kcp-go with the same cipher:
///
/// ```text
/// nonce 16 | CRC-32 of the payload u32 | payload          encrypted from the first byte on
/// ```
///
/// CRC-32 finds damage and other keys, and is no authentication.
#[derive(Debug, Clone, Copy)]
pub struct Checked<C>(pub C);

/// Bytes of the nonce and of the check.
const NONCE: usize = 16;
const CHECK: usize = 4;

impl<C: BlockCrypt> PacketCrypt for Checked<C> {
    fn head(&self) -> usize {
        NONCE + CHECK
    }

    fn seal(&self, packet: &mut [u8], chance: &mut dyn Entropy) -> Result<(), CryptoError> {
        let (nonce, check, payload) = pieces(packet).ok_or(CryptoError::NoRoom)?;
        chance.fill(nonce);
        *check = crc32(payload).to_le_bytes();
        self.0.encrypt(packet);
        Ok(())
    }

    fn open(&self, packet: &mut [u8]) -> Result<(), CryptoError> {
        self.0.decrypt(packet);
        let (_, check, payload) = pieces(packet).ok_or(CryptoError::Unauthentic)?;
        if *check != crc32(payload).to_le_bytes() {
            return Err(CryptoError::Unauthentic);
        }
        Ok(())
    }
}

/// Nonce, check and payload.
fn pieces(packet: &mut [u8]) -> Option<(&mut [u8; NONCE], &mut [u8; CHECK], &mut [u8])> {
    let (nonce, rest) = packet.split_first_chunk_mut()?;
    let (check, payload) = rest.split_first_chunk_mut()?;
    Some((nonce, check, payload))
}
