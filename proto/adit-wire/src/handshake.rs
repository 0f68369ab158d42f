//! Bounded dialogues with a peer.

use alloc::vec::Vec;

use crate::{ProtocolError, subslice, subslice_mut};

/// A dialogue with a peer that ends in a value: SOCKS, HTTP CONNECT, a Shadowsocks header.
///
/// The driver reads bytes, calls [`step`](Self::step), sends what was appended to `tx`, and continues until
/// [`HandshakeProgress::Done`]. Bytes after the end of the dialogue stay in `rx`.
///
/// # Examples
///
/// A server whose client sends one name with its length:
///
/// ```
/// use adit_wire::{Handshake, ProtocolError, HandshakeInput, HandshakeProgress, HandshakeOutput};
///
/// struct NameServer;
///
/// impl Handshake for NameServer {
///     type Output = Vec<u8>;
///     type Error = ProtocolError;
///
///     fn step(&mut self, rx: &mut HandshakeInput<'_>, tx: &mut HandshakeOutput<'_>) -> Result<HandshakeProgress<Vec<u8>>, ProtocolError> {
///         let Some((len, rest)) = rx.bytes().split_first() else {
///             return Ok(HandshakeProgress::NeedMore { total: 1 });
///         };
///         let Some(name) = rest.get(..usize::from(*len)) else {
///             return Ok(HandshakeProgress::NeedMore { total: 1 + usize::from(*len) });
///         };
///         let name = name.to_vec();
///         rx.consume(1 + name.len());
///         tx.extend_from_slice(b"ok");
///         Ok(HandshakeProgress::Done(name))
///     }
/// }
///
/// let (mut received, mut answer) = (*b"\x04adit and more", Vec::new());
/// let mut rx = HandshakeInput::new(&mut received);
/// let step = NameServer.step(&mut rx, &mut HandshakeOutput::new(&mut answer))?;
/// assert_eq!(step, HandshakeProgress::Done(b"adit".to_vec()));
/// assert_eq!((rx.bytes(), &*answer), (&b" and more"[..], &b"ok"[..]));
/// # Ok::<(), ProtocolError>(())
/// ```
pub trait Handshake {
    /// The result of the dialogue.
    type Output;
    /// The reason of a failure; converted to a [`ProtocolError`] at the engine's boundary.
    type Error: Into<ProtocolError>;

    /// Consumes what it can from `rx` and appends answers to `tx`.
    ///
    /// After [`HandshakeProgress::NeedMore`], the next call's `rx` begins with the bytes that were not consumed. The
    /// core may have altered these in place (decrypted them); the driver passes them back unchanged.
    ///
    /// # Errors
    /// The driver still sends what was appended to `tx` (a refusal), then closes the connection.
    fn step(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        tx: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<Self::Output>, Self::Error>;
}

/// The progress of a [`Handshake`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandshakeProgress<T> {
    /// More input is needed: call again when `rx` has at least `total` bytes, counted from the first one
    /// that was not consumed. `total` is always greater than the length of `rx`.
    NeedMore {
        /// Minimum length of `rx`, in bytes.
        total: usize,
    },
    /// The dialogue is complete.
    Done(T),
}

/// A buffer of received bytes, which may be opened in place.
#[derive(Debug)]
pub struct HandshakeInput<'a> {
    bytes: &'a mut [u8],
    consumed: usize,
}

impl<'a> HandshakeInput<'a> {
    /// Wraps the bytes received so far.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, consumed: 0 }
    }

    /// Returns the bytes that have not been consumed.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        subslice(self.bytes, self.consumed..)
    }

    /// Returns the bytes that have not been consumed, to be opened in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        subslice_mut(self.bytes, self.consumed..)
    }

    /// Marks the next `n` bytes as consumed, or all of them if there are fewer.
    pub fn consume(&mut self, n: usize) {
        self.consumed = self.consumed.saturating_add(n).min(self.bytes.len());
    }

    /// Returns the number of bytes consumed since [`HandshakeInput::new`].
    #[must_use]
    pub const fn consumed(&self) -> usize {
        self.consumed
    }
}

/// A buffer of bytes to send.
#[derive(Debug)]
pub struct HandshakeOutput<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> HandshakeOutput<'a> {
    /// Creates a buffer that appends to `out`.
    pub const fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Appends `bytes`.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Returns the underlying buffer, for encoders that append to a `Vec`.
    pub const fn as_vec_mut(&mut self) -> &mut Vec<u8> {
        self.out
    }
}
