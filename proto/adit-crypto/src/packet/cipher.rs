//! The ciphers of packets without a tag: a block cipher in CFB mode, Salsa20, or a pad.

use core::num::NonZeroU32;

use aes::{Aes128Enc, Aes192Enc, Aes256Enc, cipher::KeyInit};
use blowfish::Blowfish;
use cast5::Cast5;

use super::{
    PacketKind,
    cfb::Cfb,
    sm4::Sm4,
    tea::{PairBlockCipher, Tea, Xtea},
    triple_des::TripleDes,
    twofish::Twofish,
};
use crate::{
    CryptoError, Direction, Secret, pbkdf2_hmac_sha1, salsa,
    simd::{Chains, CpuPath, VectorLoop, run_widest, xor_salsa20, xor_salsa20_all},
};

/// Length of the pad of [`PacketKind::Xor`], and so of its longest packet, in bytes: also kcp-go's longest.
pub(super) const PAD_LEN: usize = 1500;
const PAD_SALT: &[u8] = b"sH3CIVoF#rWLtJo6";
const PAD_ITERATIONS: NonZeroU32 = NonZeroU32::new(32).unwrap();

/// A cipher with its expanded key. Block ciphers are boxed: some are tables of 4 KiB.
pub(super) enum Cipher {
    Clear,
    Pad(CpuPath, Box<Secret<[u8; PAD_LEN]>>),
    Salsa20(CpuPath, Secret<[u8; 32]>),
    Aes128(Box<Cfb<Aes128Enc>>),
    Aes192(Box<Cfb<Aes192Enc>>),
    Aes256(Box<Cfb<Aes256Enc>>),
    Blowfish(Box<Cfb<Blowfish>>),
    Twofish(Box<Cfb<Twofish>>),
    Cast5(Box<Cfb<Cast5>>),
    TripleDes(Box<Cfb<TripleDes>>),
    Tea(Box<Cfb<PairBlockCipher<Tea>>>),
    Xtea(Box<Cfb<PairBlockCipher<Xtea>>>),
    Sm4(Box<Cfb<Sm4>>),
}

/// Evaluates the call on any CFB variant, or one of the other arms.
macro_rules! by_cfb {
    ($cipher:expr, $cfb:ident => $call:expr, $($other:tt)*) => {
        match $cipher {
            Cipher::Aes128($cfb) => $call,
            Cipher::Aes192($cfb) => $call,
            Cipher::Aes256($cfb) => $call,
            Cipher::Blowfish($cfb) => $call,
            Cipher::Twofish($cfb) => $call,
            Cipher::Cast5($cfb) => $call,
            Cipher::TripleDes($cfb) => $call,
            Cipher::Tea($cfb) => $call,
            Cipher::Xtea($cfb) => $call,
            Cipher::Sm4($cfb) => $call,
            $($other)*
        }
    };
}

impl Cipher {
    /// Creates the cipher of `kind`, which is none for the AEAD. Ciphers use a prefix of the key.
    pub(super) fn new(
        path: CpuPath,
        kind: PacketKind,
        key: &[u8; 32],
    ) -> Result<Self, CryptoError> {
        let (short, middle) = (key_prefix::<16>(key), key_prefix::<24>(key));
        Ok(match kind {
            PacketKind::None | PacketKind::Null | PacketKind::Aes128Gcm => Self::Clear,
            PacketKind::Xor => {
                let mut pad = Box::new(Secret::new([0; PAD_LEN]));
                pbkdf2_hmac_sha1(key, PAD_SALT, PAD_ITERATIONS, pad.expose_mut());
                Self::Pad(path, pad)
            }
            PacketKind::Salsa20 => Self::Salsa20(path, Secret::new(*key)),
            PacketKind::Aes128 => Self::Aes128(
                boxed_cfb(Aes128Enc::new(short.into())).with_chains(Chains::new(path, short)),
            ),
            PacketKind::Aes192 => Self::Aes192(
                boxed_cfb(Aes192Enc::new(middle.into())).with_chains(Chains::new(path, middle)),
            ),
            PacketKind::Aes => Self::Aes256(
                boxed_cfb(Aes256Enc::new(key.into())).with_chains(Chains::new(path, key)),
            ),
            PacketKind::Blowfish => {
                let wrong = |_| CryptoError::KeyLength {
                    expected: 32,
                    found: 32,
                };
                Self::Blowfish(boxed_cfb(Blowfish::new_from_slice(key).map_err(wrong)?))
            }
            PacketKind::Twofish => Self::Twofish(boxed_cfb(Twofish::new(key))),
            PacketKind::Cast5 => Self::Cast5(boxed_cfb(Cast5::new(short.into()))),
            PacketKind::TripleDes => Self::TripleDes(boxed_cfb(TripleDes::new(middle))),
            PacketKind::Tea => Self::Tea(boxed_cfb(PairBlockCipher::new(path, Tea::new(short)))),
            PacketKind::Xtea => Self::Xtea(boxed_cfb(PairBlockCipher::new(path, Xtea::new(short)))),
            PacketKind::Sm4 => Self::Sm4(boxed_cfb(Sm4::new(short))),
        })
    }

    pub(super) fn apply_cipher(&self, direction: Direction, packet: &mut [u8]) {
        by_cfb!(self, cfb => match direction {
                Direction::Encrypt => cfb.encrypt(packet),
                Direction::Decrypt => cfb.decrypt(packet),
            },
            Self::Clear => {}
            Self::Pad(path, pad) => run_widest(*path, PadXor { packet, pad: pad.expose() }),
            Self::Salsa20(path, key) => {
                // The first bytes of kcp's nonce are Salsa20's nonce, and are sent in plain text.
                if let Some((nonce, rest)) = packet.split_first_chunk_mut() {
                    xor_salsa20(*path, &salsa::initial_state(key.expose(), nonce), rest);
                }
            }
        );
    }

    /// Encrypts each packet like [`Self::apply_cipher`].
    pub(super) fn encrypt_all(&self, packets: &mut [&mut [u8]]) {
        let all = packets.iter_mut().map(|packet| &mut **packet);
        by_cfb!(self, cfb => cfb.encrypt_all(packets),
            Self::Salsa20(path, key) => salsa20_all(*path, key, all),
            _ => all.for_each(|packet| self.apply_cipher(Direction::Encrypt, packet))
        );
    }

    /// Returns true if several packets are decrypted faster together than one at a time.
    pub(super) const fn is_better_together(&self) -> bool {
        matches!(self, Self::Salsa20(..))
    }

    /// Decrypts each packet like [`Self::apply_cipher`].
    pub(super) fn decrypt_all<'p>(&self, packets: impl Iterator<Item = &'p mut [u8]>) {
        match self {
            Self::Salsa20(path, key) => salsa20_all(*path, key, packets),
            // The cipher already works on many blocks of one packet.
            _ => packets.for_each(|packet| self.apply_cipher(Direction::Decrypt, packet)),
        }
    }
}

/// Applies Salsa20 to each packet. The first bytes of kcp's nonce are Salsa20's, and are sent in plain
/// text.
fn salsa20_all<'p>(
    path: CpuPath,
    key: &Secret<[u8; 32]>,
    packets: impl Iterator<Item = &'p mut [u8]>,
) {
    let split = |packet: &'p mut [u8]| {
        let (nonce, rest) = packet.split_first_chunk_mut()?;
        Some((&*nonce, rest))
    };
    let state = salsa::initial_state(key.expose(), &[0; 8]);
    xor_salsa20_all(path, &state, packets.filter_map(split));
}

fn boxed_cfb<C: aes::cipher::BlockCipherEncrypt>(cipher: C) -> Box<Cfb<C>> {
    Box::new(Cfb::new(cipher))
}

fn key_prefix<const N: usize>(key: &[u8; 32]) -> &[u8; N] {
    const { assert!(N <= 32) };
    key.first_chunk().unwrap_or(&[0; N])
}

/// The exclusive or of a pad and a packet, which is not longer.
struct PadXor<'a> {
    packet: &'a mut [u8],
    pad: &'a [u8; PAD_LEN],
}

impl VectorLoop for PadXor<'_> {
    #[inline(always)]
    fn run_loop(self) {
        for (byte, pad) in self.packet.iter_mut().zip(self.pad) {
            *byte ^= pad;
        }
    }
}
