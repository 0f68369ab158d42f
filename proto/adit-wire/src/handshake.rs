//! A bounded dialogue, then done.

use crate::{Broken, held, held_mut};

/// A dialogue with a peer that ends in a value: SOCKS, HTTP CONNECT, a Shadowsocks header.
///
/// The driver reads bytes, calls [`step`](Self::step), sends what was appended to `tx`, and goes
/// on until [`Step::Done`]. Bytes behind the end of the dialogue are left in `rx`.
pub trait Handshake {
    /// What the dialogue was for.
    type Output;
    /// Why it failed; becomes a [`Broken`] at the engine's border.
    type Error: Into<Broken>;

    /// Eats what it can from `rx` and appends answers to `tx`.
    ///
    /// On [`Step::NeedMore`] the next call's `rx` begins with the bytes that were not eaten.
    /// On an error the driver still sends what was appended to `tx` (a refusal), then closes.
    /// Bytes in `rx` that are not eaten may have been altered in place (decrypted) by the core;
    /// the driver hands them back unchanged.
    fn step(&mut self, rx: &mut Rx<'_>, tx: &mut Tx<'_>)
    -> Result<Step<Self::Output>, Self::Error>;
}

/// How far a [`Handshake`] has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<T> {
    /// Call again when `rx` holds at least `total` bytes, counted from the first uneaten one.
    /// Always more than `rx` held.
    NeedMore {
        /// Bytes wanted in `rx`.
        total: usize,
    },
    /// The dialogue is over.
    Done(T),
}

/// Received bytes; may be opened in place.
#[derive(Debug)]
pub struct Rx<'a> {
    bytes: &'a mut [u8],
    eaten: usize,
}

impl<'a> Rx<'a> {
    /// Wraps what has been received so far.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, eaten: 0 }
    }

    /// The bytes not eaten yet.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        held(self.bytes, self.eaten..)
    }

    /// The bytes not eaten yet, to be opened in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        held_mut(self.bytes, self.eaten..)
    }

    /// Marks `n` more bytes as used; more than there are eats all.
    pub fn eat(&mut self, n: usize) {
        self.eaten = self.eaten.saturating_add(n).min(self.bytes.len());
    }

    /// Bytes eaten since [`Rx::new`].
    #[must_use]
    pub const fn eaten(&self) -> usize {
        self.eaten
    }
}

/// Bytes to send.
#[derive(Debug)]
pub struct Tx<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Tx<'a> {
    /// Appends to `out`.
    pub const fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Appends `bytes`.
    pub fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// The buffer itself, for encoders that append to a `Vec`.
    pub const fn buf(&mut self) -> &mut Vec<u8> {
        self.out
    }
}
