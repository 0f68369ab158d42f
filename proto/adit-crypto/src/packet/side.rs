//! This crate's table ciphers as block ciphers of the RustCrypto traits, encryption only.
//!
//! A block of such a cipher is a sequence of dependent look-ups. CFB decryption and batches have several
//! independent blocks, which are processed in parallel.

/// Implements the traits for `$cipher`, whose `blocks::<N>` encrypts `N` blocks in parallel.
macro_rules! side_by_side {
    ($cipher:ty, $block:ty, $side:ty) => {
        impl aes::cipher::BlockSizeUser for $cipher {
            type BlockSize = $block;
        }

        impl aes::cipher::ParBlocksSizeUser for $cipher {
            type ParBlocksSize = $side;
        }

        impl aes::cipher::BlockCipherEncBackend for $cipher {
            #[inline(always)]
            fn encrypt_block(&self, mut block: InOut<'_, '_, Block<Self>>) {
                let mut one = [block.clone_in()];
                self.blocks::<1>(one[..].as_mut().into());
                [*block.get_out()] = one;
            }

            #[inline(always)]
            fn encrypt_par_blocks(&self, blocks: InOut<'_, '_, aes::cipher::ParBlocks<Self>>) {
                const SIDE: usize = <$side as aes::cipher::typenum::Unsigned>::USIZE;
                self.blocks::<SIDE>(blocks.into_buf());
            }
        }

        impl aes::cipher::BlockCipherEncrypt for $cipher {
            #[inline]
            fn encrypt_with_backend(
                &self,
                closure: impl aes::cipher::BlockCipherEncClosure<BlockSize = $block>,
            ) {
                closure.call(self);
            }
        }
    };
}

pub(super) use side_by_side;
