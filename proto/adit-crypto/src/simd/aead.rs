//! The construction of RFC 8439 section 2.8 without associated data, written once for all paths.

use subtle::ConstantTimeEq;

use super::{ChaChaRounds, CpuPath, Kernel, TagInput, Task, wipe_stack};
use crate::{Secret, chacha};

/// Keystream computed at the start of a short message, in bytes: block 0 and three blocks of data.
pub(super) const SHORT_HEAD: usize = 256;
/// The same for longer messages: one step of the widest kernel.
pub(super) const LONG_HEAD: usize = 1024;
/// Size of block 0, which keys the authenticator, in bytes.
pub(super) const BLOCK: usize = 64;

/// A ChaCha-Poly1305 key, its number of rounds and its path; cleared on drop.
pub(crate) struct ChaChaKey {
    secret: Secret<[u8; 32]>,
    rounds: ChaChaRounds,
    path: CpuPath,
}

impl ChaChaKey {
    pub(crate) const fn new(secret: Secret<[u8; 32]>, rounds: ChaChaRounds, path: CpuPath) -> Self {
        Self {
            secret,
            rounds,
            path,
        }
    }

    /// Returns the path that it runs on.
    pub(crate) const fn path(&self) -> CpuPath {
        self.path
    }

    /// Returns the key itself, for another implementation of the same algorithm.
    pub(crate) fn expose(&self) -> &[u8; 32] {
        self.secret.expose()
    }

    /// Returns the key and the nonce of a 24-byte XChaCha nonce. Nothing is allocated.
    #[inline]
    pub(crate) fn derive_for_xnonce(&self, nonce: &[u8; 24]) -> (Self, [u8; 12]) {
        let (secret, short) = chacha::derive_xchacha(self.rounds, self.secret.expose(), nonce);
        (Self::new(secret, self.rounds, self.path), short)
    }

    /// Encrypts `buf` in place and returns the tag.
    #[inline]
    pub(crate) fn seal(&self, nonce: &[u8; 12], buf: &mut [u8]) -> [u8; 16] {
        self.path.run_task(Seal(self.new_message(nonce, buf)))
    }

    /// Verifies `tag`, then decrypts `buf` in place. If it returns false, `buf` is unchanged.
    #[inline]
    #[must_use]
    pub(crate) fn open(&self, nonce: &[u8; 12], buf: &mut [u8], tag: &[u8; 16]) -> bool {
        self.path.run_task(Open(self.new_message(nonce, buf), tag))
    }

    const fn new_message<'a>(&'a self, nonce: &'a [u8; 12], buf: &'a mut [u8]) -> Message<'a> {
        Message {
            key: &self.secret,
            nonce,
            rounds: self.rounds,
            buf,
        }
    }
}

struct Message<'a> {
    key: &'a Secret<[u8; 32]>,
    nonce: &'a [u8; 12],
    rounds: ChaChaRounds,
    buf: &'a mut [u8],
}

struct Seal<'a>(Message<'a>);

impl Task for Seal<'_> {
    type Output = [u8; 16];

    #[inline(always)]
    fn run_on<K: Kernel>(self, kernel: K) -> [u8; 16] {
        if self.0.buf.len() <= SHORT_HEAD - BLOCK {
            self.0.seal_message::<K, SHORT_HEAD>(kernel)
        } else {
            self.0.seal_message::<K, LONG_HEAD>(kernel)
        }
    }
}

struct Open<'a>(Message<'a>, &'a [u8; 16]);

impl Task for Open<'_> {
    type Output = bool;

    #[inline(always)]
    fn run_on<K: Kernel>(self, kernel: K) -> bool {
        if self.0.buf.len() <= SHORT_HEAD - BLOCK {
            self.0.open_message::<K, SHORT_HEAD>(kernel, self.1)
        } else {
            self.0.open_message::<K, LONG_HEAD>(kernel, self.1)
        }
    }
}

impl Message<'_> {
    #[inline(always)]
    fn seal_message<K: Kernel, const HEAD: usize>(self, kernel: K) -> [u8; 16] {
        let len = self.buf.len();
        let mut start =
            MessageStart::<HEAD>::new(kernel, self.rounds, self.key.expose(), self.nonce, len);
        start.decrypt(kernel, self.rounds, self.buf);
        kernel.poly1305_tag(start.mac_key(), self.buf, TagInput::Aead)
    }

    #[inline(always)]
    fn open_message<K: Kernel, const HEAD: usize>(self, kernel: K, tag: &[u8; 16]) -> bool {
        let len = self.buf.len();
        let mut start =
            MessageStart::<HEAD>::new(kernel, self.rounds, self.key.expose(), self.nonce, len);
        let found = kernel.poly1305_tag(start.mac_key(), self.buf, TagInput::Aead);
        let authentic = bool::from(found.ct_eq(tag));
        if authentic {
            start.decrypt(kernel, self.rounds, self.buf);
        }
        authentic
    }
}

/// The state of one message of `len` bytes, and its first `HEAD` bytes of keystream.
pub(super) struct MessageStart<const HEAD: usize> {
    state: [u32; 16],
    keystream: CacheAligned<HEAD>,
}

/// Aligned to a cache line, so that no vector crosses one.
#[repr(align(64))]
struct CacheAligned<const N: usize>([u8; N]);

impl<const HEAD: usize> MessageStart<HEAD> {
    #[inline(always)]
    pub(super) fn new<K: Kernel>(
        kernel: K,
        rounds: ChaChaRounds,
        key: &[u8; 32],
        nonce: &[u8; 12],
        len: usize,
    ) -> Self {
        let mut new = Self {
            state: chacha::initial_state(key, nonce),
            keystream: CacheAligned([0; HEAD]),
        };
        let used = HEAD.min(BLOCK + len);
        kernel.xor_chacha(&new.state, rounds, &mut new.keystream.0[..used]);
        new
    }

    /// Returns the one-time key of Poly1305, at the start of block 0.
    #[inline(always)]
    pub(super) fn mac_key(&self) -> &[u8; 32] {
        const { assert!(HEAD > BLOCK && HEAD.is_multiple_of(BLOCK)) };
        self.keystream
            .0
            .first_chunk()
            .expect("HEAD must be more than a block")
    }

    /// Adds the keystream from block 1 on.
    #[inline(always)]
    pub(super) fn decrypt<K: Kernel>(&mut self, kernel: K, rounds: ChaChaRounds, buf: &mut [u8]) {
        let (front, rest) = buf.split_at_mut(buf.len().min(HEAD - BLOCK));
        for (byte, key) in front.iter_mut().zip(&self.keystream.0[BLOCK..]) {
            *byte ^= key;
        }
        if !rest.is_empty() {
            self.state[12] = const { (HEAD / BLOCK) as u32 };
            kernel.xor_chacha(&self.state, rounds, rest);
        }
    }
}

impl<const HEAD: usize> Drop for MessageStart<HEAD> {
    #[inline(always)]
    fn drop(&mut self) {
        wipe_stack(&mut self.state);
        wipe_stack(&mut self.keystream.0);
    }
}
