//! CFB mode over whole packets under one fixed IV: single packets, or the chains of several packets in
//! parallel.
//!
//! Since the IV never changes, the keystream of the first block is a constant of the key and is encrypted
//! once. A CPU with AES instructions can process many blocks at a time, but the chain of one packet allows
//! only one; eight packets keep it busy.

use core::slice;

use aes::cipher::{
    Block, BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser,
    array::Array, array::ArraySize,
};
use zeroize::Zeroize;

use crate::{
    simd::{Chains, MOST_CHAINS},
    stream::feedback::{FeedbackSource, apply_feedback, xor_block},
};

/// The IV of every packet; ciphers with blocks of 8 bytes use its first half.
const IV: [u8; 16] = [
    0xa7, 0x73, 0x4f, 0x9c, 0x12, 0xac, 0x1b, 0x01, 0xa4, 0x15, 0xf2, 0xc1, 0xfc, 0x78, 0xe6, 0x6b,
];

/// Number of packets in parallel.
const LANES: usize = 8;

/// A cipher prepared for packets; cleared on drop.
pub(super) struct Cfb<C: BlockCipherEncrypt> {
    cipher: C,
    /// The encrypted IV.
    first: Block<C>,
    /// A faster implementation for many packets, with the same key.
    chains: Option<Chains>,
}

impl<C: BlockCipherEncrypt> Cfb<C> {
    pub(super) fn new(cipher: C) -> Self {
        let mut first = Block::<C>::default();
        for (byte, iv) in first.iter_mut().zip(IV) {
            *byte = iv;
        }
        cipher.encrypt_block(&mut first);
        Self {
            cipher,
            first,
            chains: None,
        }
    }

    /// Adds `chains` of the same key.
    pub(super) fn with_chains(self: Box<Self>, chains: Option<Chains>) -> Box<Self> {
        let mut with = self;
        with.chains = chains;
        with
    }

    pub(super) fn encrypt(&self, packet: &mut [u8]) {
        self.apply_from(FeedbackSource::Output, self.first.clone(), packet);
    }

    pub(super) fn decrypt(&self, packet: &mut [u8]) {
        self.apply_from(FeedbackSource::Input, self.first.clone(), packet);
    }

    /// Processes a packet whose first block is encrypted with `register` as keystream.
    fn apply_from(&self, direction: FeedbackSource, mut register: Block<C>, packet: &mut [u8]) {
        let (blocks, tail) = Array::slice_as_chunks_mut(packet);
        if !blocks.is_empty() {
            apply_feedback(&self.cipher, direction, &mut register, blocks);
        }
        xor_tail(tail, &register);
        register.as_mut_slice().zeroize();
    }

    /// Encrypts each of the packets, like [`Self::encrypt`].
    pub(super) fn encrypt_all(&self, packets: &mut [&mut [u8]]) {
        let Some(chains) = &self.chains else {
            return self.encrypt_lanes(packets);
        };
        for some in packets.chunks_mut(MOST_CHAINS) {
            let together = chains.parallel_count(some.len());
            let (front, rest) = some.split_at_mut(together);
            self.encrypt_chains(chains, front);
            if !rest.is_empty() {
                self.encrypt_lanes(rest);
            }
        }
    }

    /// Encrypts as many packets as [`Chains::parallel_count`] returns, possibly none.
    fn encrypt_chains(&self, chains: &Chains, packets: &mut [&mut [u8]]) {
        debug_assert_eq!(self.first.len(), 16, "chains require the block size of AES");
        let first = self.first.as_slice().try_into().unwrap_or_default();
        let mut registers = [first; MOST_CHAINS];
        let done = chains.encrypt(packets, &mut registers) * first.len();
        for (packet, register) in packets.iter_mut().zip(&registers) {
            let mut block = self.first.clone();
            for (to, byte) in block.iter_mut().zip(register) {
                *to = *byte;
            }
            let (_, rest) = packet.split_at_mut(done);
            self.apply_from(FeedbackSource::Output, block, rest);
        }
        registers.as_flattened_mut().zeroize();
    }

    /// Encrypts any number of packets, a few in parallel.
    fn encrypt_lanes(&self, packets: &mut [&mut [u8]]) {
        self.cipher.encrypt_with_backend(Lanes {
            first: &self.first,
            packets: packets.iter_mut(),
        });
    }
}

impl<C: BlockCipherEncrypt> Drop for Cfb<C> {
    fn drop(&mut self) {
        self.first.as_mut_slice().zeroize();
    }
}

/// The rest of a packet in a lane.
struct Lane<'p, N: ArraySize> {
    blocks: slice::IterMut<'p, Array<u8, N>>,
    tail: &'p mut [u8],
}

impl<'p, N: ArraySize> Lane<'p, N> {
    #[inline(always)]
    fn new(packet: &'p mut [u8]) -> Self {
        let (blocks, tail) = Array::slice_as_chunks_mut(packet);
        Self {
            blocks: blocks.iter_mut(),
            tail,
        }
    }
}

struct Lanes<'a, 'p, N: ArraySize> {
    first: &'a Array<u8, N>,
    packets: slice::IterMut<'a, &'p mut [u8]>,
}

impl<N: ArraySize> BlockSizeUser for Lanes<'_, '_, N> {
    type BlockSize = N;
}

impl<N: ArraySize> BlockCipherEncClosure for Lanes<'_, '_, N> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = N>>(mut self, backend: &B) {
        let mut registers: [Array<u8, N>; LANES] = core::array::from_fn(|_| self.first.clone());
        let mut lanes: [Lane<'_, N>; LANES] = core::array::from_fn(|_| Lane::new(&mut []));
        let mut busy = 0;
        loop {
            // A free lane takes the next packet, whatever the length of the others.
            while busy < LANES
                && let Some(packet) = self.packets.next()
            {
                registers[busy].clone_from(self.first);
                lanes[busy] = Lane::new(packet);
                busy += 1;
            }
            let (now, _) = lanes.split_at(busy);
            let Some(steps) = now.iter().map(|lane| lane.blocks.len()).min() else {
                break;
            };
            if busy == LANES {
                // The compiler knows this length.
                advance_lanes(backend, steps, &mut registers, &mut lanes);
            } else {
                let ((registers, _), (lanes, _)) =
                    (registers.split_at_mut(busy), lanes.split_at_mut(busy));
                advance_lanes(backend, steps, registers, lanes);
            }
            let mut lane = 0;
            while lane < busy {
                if lanes[lane].blocks.len() == 0 {
                    xor_tail(core::mem::take(&mut lanes[lane].tail), &registers[lane]);
                    busy -= 1;
                    lanes.swap(lane, busy);
                    registers.swap(lane, busy);
                } else {
                    lane += 1;
                }
            }
        }
        registers
            .iter_mut()
            .for_each(|register| register.as_mut_slice().zeroize());
    }
}

/// Encrypts the next `steps` blocks of each lane.
#[inline(always)]
fn advance_lanes<B: BlockCipherEncBackend>(
    backend: &B,
    steps: usize,
    registers: &mut [Block<B>],
    lanes: &mut [Lane<'_, B::BlockSize>],
) {
    for _ in 0..steps {
        for (register, lane) in registers.iter_mut().zip(&mut *lanes) {
            if let Some(block) = lane.blocks.next() {
                // A separate copy: the compiler then treats it as one vector.
                let mut mixed = block.clone();
                xor_block(&mut mixed, register);
                block.clone_from(&mixed);
                register.clone_from(&mixed);
            }
        }
        encrypt_blocks(backend, registers);
    }
}

/// Encrypts blocks, as many in parallel as the cipher supports.
#[inline(always)]
fn encrypt_blocks<B: BlockCipherEncBackend>(backend: &B, blocks: &mut [Block<B>]) {
    let (sets, rest) = Array::<Block<B>, B::ParBlocksSize>::slice_as_chunks_mut(blocks);
    for set in sets {
        backend.encrypt_par_blocks_inplace(set);
    }
    if !rest.is_empty() {
        backend.encrypt_tail_blocks_inplace(rest);
    }
}

/// Encrypts the end of a packet, less than a block, with its keystream.
#[inline(always)]
fn xor_tail(tail: &mut [u8], register: &[u8]) {
    for (byte, key) in tail.iter_mut().zip(register) {
        *byte ^= key;
    }
}
