//! CFB mode with feedback of whole blocks, and OFB mode (NIST SP 800-38A sections 6.3 and 6.4), for any
//! block cipher.
//!
//! Both encrypt the next block of data with an encrypted register. CFB then fills the register with the
//! ciphertext, OFB leaves it unchanged. The register is encrypted as soon as it is full, so it always
//! starts with the next byte's keystream, wherever calls split the data.

use std::sync::Arc;

use aes::cipher::{
    Block, BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser,
    InOutBuf, ParBlocks, array::Array, array::ArraySize, typenum::Unsigned,
};
use zeroize::Zeroize;

/// The source of the register's feedback.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FeedbackSource {
    /// CFB, encrypting: the output
    Output,
    /// CFB, decrypting: the input
    Input,
    /// OFB: the register itself
    Register,
}

/// The state of one direction. The cipher is shared with all streams of the same key.
pub(super) struct Feedback<C: BlockCipherEncrypt> {
    cipher: Arc<C>,
    feed: FeedbackSource,
    /// Keystream from `used` on; before it, the feedback.
    register: Block<C>,
    used: usize,
}

impl<C: BlockCipherEncrypt> Feedback<C> {
    pub(super) fn new(cipher: Arc<C>, mut register: Block<C>, feed: FeedbackSource) -> Self {
        cipher.encrypt_block(&mut register);
        Self {
            cipher,
            feed,
            register,
            used: 0,
        }
    }

    pub(super) fn apply(&mut self, data: &mut [u8]) {
        let open = if self.used == 0 {
            0
        } else {
            C::BlockSize::USIZE - self.used
        };
        let (head, rest) = data.split_at_mut(open.min(data.len()));
        self.apply_partial(head);
        let (blocks, tail) = Array::slice_as_chunks_mut(rest);
        if !blocks.is_empty() {
            apply_feedback(&*self.cipher, self.feed, &mut self.register, blocks);
        }
        self.apply_partial(tail);
    }

    /// Processes data up to the end of the register.
    fn apply_partial(&mut self, data: &mut [u8]) {
        let register = self.register.iter_mut().skip(self.used);
        match self.feed {
            FeedbackSource::Output => {
                for (byte, register) in data.iter_mut().zip(register) {
                    *register ^= *byte;
                    *byte = *register;
                }
            }
            FeedbackSource::Input => {
                for (byte, register) in data.iter_mut().zip(register) {
                    let input = *byte;
                    *byte ^= *register;
                    *register = input;
                }
            }
            FeedbackSource::Register => {
                for (byte, register) in data.iter_mut().zip(register) {
                    *byte ^= *register;
                }
            }
        }
        self.used += data.len();
        if self.used == C::BlockSize::USIZE {
            self.cipher.encrypt_block(&mut self.register);
            self.used = 0;
        }
    }
}

impl<C: BlockCipherEncrypt> Drop for Feedback<C> {
    fn drop(&mut self) {
        self.register.as_mut_slice().zeroize();
    }
}

/// Encrypts or decrypts whole blocks. `register` is the keystream of the first of them, and afterwards that
/// of the block after the last.
#[inline]
pub(crate) fn apply_feedback<C: BlockCipherEncrypt>(
    cipher: &C,
    feed: FeedbackSource,
    register: &mut Block<C>,
    blocks: &mut [Block<C>],
) {
    cipher.encrypt_with_backend(WholeBlocks {
        feed,
        register,
        blocks,
    });
}

/// Whole blocks, in code that is compiled for the cipher's CPU features as one loop.
struct WholeBlocks<'a, N: ArraySize> {
    feed: FeedbackSource,
    register: &'a mut Array<u8, N>,
    blocks: &'a mut [Array<u8, N>],
}

impl<N: ArraySize> BlockSizeUser for WholeBlocks<'_, N> {
    type BlockSize = N;
}

impl<N: ArraySize> BlockCipherEncClosure for WholeBlocks<'_, N> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = N>>(self, backend: &B) {
        let mut register = self.register.clone();
        match self.feed {
            FeedbackSource::Output => {
                for block in self.blocks {
                    xor_block(&mut register, block);
                    block.clone_from(&register);
                    backend.encrypt_block_inplace(&mut register);
                }
            }
            FeedbackSource::Input => decrypt_cfb(backend, &mut register, self.blocks),
            FeedbackSource::Register => {
                for block in self.blocks {
                    xor_block(block, &register);
                    backend.encrypt_block_inplace(&mut register);
                }
            }
        }
        *self.register = register;
    }
}

/// Decrypts CFB, as many blocks at a time as the cipher encrypts in parallel: all inputs of the registers
/// are known in advance.
#[inline(always)]
fn decrypt_cfb<B: BlockCipherEncBackend>(
    backend: &B,
    register: &mut Block<B>,
    blocks: &mut [Block<B>],
) {
    let mut keys = ParBlocks::<B>::default();
    let (sets, rest) = Array::<Block<B>, B::ParBlocksSize>::slice_as_chunks_mut(blocks);
    for set in sets {
        backend.encrypt_par_blocks((&*set, &mut keys).into());
        xor_registers(register, set, &keys);
    }
    if let Some(keys) = keys.get_mut(..rest.len())
        && let Ok(pairs) = InOutBuf::new(rest, keys)
    {
        backend.encrypt_tail_blocks(pairs);
        xor_registers(register, rest, keys);
    }
}

/// Combines each block with the register before it; the following registers are `keys`.
#[inline(always)]
fn xor_registers<N: ArraySize>(
    register: &mut Array<u8, N>,
    blocks: &mut [Array<u8, N>],
    keys: &[Array<u8, N>],
) {
    for (block, key) in blocks.iter_mut().zip(keys) {
        xor_block(block, register);
        register.clone_from(key);
    }
}

#[inline(always)]
pub(crate) fn xor_block<N: ArraySize>(data: &mut Array<u8, N>, key: &Array<u8, N>) {
    for (byte, key) in data.iter_mut().zip(key) {
        *byte ^= key;
    }
}
