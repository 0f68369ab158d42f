//! ChaCha20 and Poly1305 in OpenSSH's combination for packets: two keys, and a tag over the encrypted
//! length and the encrypted rest, with nothing added.

use subtle::ConstantTimeEq;

use super::{
    ChaChaRounds, CpuPath, Kernel, TagInput, Task,
    aead::{BLOCK, LONG_HEAD, MessageStart, SHORT_HEAD},
    xor_chacha20,
};
use crate::{Secret, chacha};

/// Size of the length field at the start of a packet, in bytes.
const LENGTH: usize = 4;

/// The two keys of one direction, and the path to run on; cleared on drop.
pub(crate) struct SshKeys {
    main: Secret<[u8; 32]>,
    length: Secret<[u8; 32]>,
    path: CpuPath,
}

impl SshKeys {
    pub(crate) const fn new(
        main: Secret<[u8; 32]>,
        length: Secret<[u8; 32]>,
        path: CpuPath,
    ) -> Self {
        Self { main, length, path }
    }

    /// Returns the path that it runs on.
    pub(crate) const fn path(&self) -> CpuPath {
        self.path
    }

    /// Encrypts or decrypts the length of a packet.
    pub(crate) fn apply_length(&self, nonce: &[u8; 12], length: &mut [u8; LENGTH]) {
        let state = chacha::initial_state(self.length.expose(), nonce);
        xor_chacha20(self.path, &state, length);
    }

    /// Encrypts a packet in place, including the length at its start, and returns the tag.
    pub(crate) fn seal(&self, nonce: &[u8; 12], packet: &mut [u8]) -> [u8; 16] {
        if let Some(length) = packet.first_chunk_mut() {
            self.apply_length(nonce, length);
        }
        self.path.run_task(Seal(self.new_packet(nonce, packet)))
    }

    /// Verifies `tag`, then decrypts everything after the length. If it returns false, the packet is
    /// unchanged.
    #[must_use]
    pub(crate) fn open(&self, nonce: &[u8; 12], packet: &mut [u8], tag: &[u8; 16]) -> bool {
        self.path
            .run_task(Open(self.new_packet(nonce, packet), tag))
    }

    const fn new_packet<'a>(&'a self, nonce: &'a [u8; 12], bytes: &'a mut [u8]) -> Packet<'a> {
        Packet {
            key: &self.main,
            nonce,
            bytes,
        }
    }
}

struct Packet<'a> {
    key: &'a Secret<[u8; 32]>,
    nonce: &'a [u8; 12],
    bytes: &'a mut [u8],
}

impl Packet<'_> {
    #[inline(always)]
    fn is_short(&self) -> bool {
        self.bytes.len() <= SHORT_HEAD - BLOCK
    }

    #[inline(always)]
    fn start_message<K: Kernel, const HEAD: usize>(&self, kernel: K) -> MessageStart<HEAD> {
        let len = self.bytes.len();
        MessageStart::new(
            kernel,
            ChaChaRounds::TWENTY,
            self.key.expose(),
            self.nonce,
            len,
        )
    }

    #[inline(always)]
    fn seal_packet<K: Kernel, const HEAD: usize>(self, kernel: K) -> [u8; 16] {
        let mut start = self.start_message::<K, HEAD>(kernel);
        if let Some((_, body)) = self.bytes.split_at_mut_checked(LENGTH) {
            start.decrypt(kernel, ChaChaRounds::TWENTY, body);
        }
        kernel.poly1305_tag(start.mac_key(), self.bytes, TagInput::Bare)
    }

    #[inline(always)]
    fn open_packet<K: Kernel, const HEAD: usize>(self, kernel: K, tag: &[u8; 16]) -> bool {
        let mut start = self.start_message::<K, HEAD>(kernel);
        let found = kernel.poly1305_tag(start.mac_key(), self.bytes, TagInput::Bare);
        let authentic = bool::from(found.ct_eq(tag));
        if authentic && let Some((_, body)) = self.bytes.split_at_mut_checked(LENGTH) {
            start.decrypt(kernel, ChaChaRounds::TWENTY, body);
        }
        authentic
    }
}

struct Seal<'a>(Packet<'a>);

impl Task for Seal<'_> {
    type Output = [u8; 16];

    #[inline(always)]
    fn run_on<K: Kernel>(self, kernel: K) -> [u8; 16] {
        if self.0.is_short() {
            self.0.seal_packet::<K, SHORT_HEAD>(kernel)
        } else {
            self.0.seal_packet::<K, LONG_HEAD>(kernel)
        }
    }
}

struct Open<'a>(Packet<'a>, &'a [u8; 16]);

impl Task for Open<'_> {
    type Output = bool;

    #[inline(always)]
    fn run_on<K: Kernel>(self, kernel: K) -> bool {
        if self.0.is_short() {
            self.0.open_packet::<K, SHORT_HEAD>(kernel, self.1)
        } else {
            self.0.open_packet::<K, LONG_HEAD>(kernel, self.1)
        }
    }
}
