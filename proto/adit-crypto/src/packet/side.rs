//! Our own table ciphers as block ciphers of the RustCrypto traits, encryption alone.
//!
//! A block of such a cipher is a chain of look-ups that wait for each other. CFB decryption and
//! batches have several blocks whose chains do not: they go side by side.

/// Implements the traits for `$cipher`, whose `blocks::<N>` encrypts `N` blocks at once.
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
