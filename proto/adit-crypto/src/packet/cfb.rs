//! CFB over whole packets under one fixed IV: alone, or the chains of several packets side by side.
//!
//! Since the IV never changes, the keystream of the first block is a constant of the key and is
//! encrypted once. A CPU with AES instructions works on many blocks at a time, of which the chain
//! of one packet keeps it from all but one; eight packets keep it busy.

use core::slice;

use aes::cipher::{
    Block, BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser,
    array::Array, array::ArraySize,
};
use zeroize::Zeroize;

use crate::stream::feedback::{Feed, feed, xor};

/// The IV of every packet; ciphers with blocks of 8 bytes take its first half.
const IV: [u8; 16] = [
    0xa7, 0x73, 0x4f, 0x9c, 0x12, 0xac, 0x1b, 0x01, 0xa4, 0x15, 0xf2, 0xc1, 0xfc, 0x78, 0xe6, 0x6b,
];

/// Packets side by side.
const LANES: usize = 8;

/// A cipher that is ready for packets; cleared on drop.
pub(super) struct Cfb<C: BlockCipherEncrypt> {
    cipher: C,
    /// The encrypted IV.
    first: Block<C>,
}

impl<C: BlockCipherEncrypt> Cfb<C> {
    pub(super) fn new(cipher: C) -> Self {
        let mut first = Block::<C>::default();
        for (byte, iv) in first.iter_mut().zip(IV) {
            *byte = iv;
        }
        cipher.encrypt_block(&mut first);
        Self { cipher, first }
    }

    pub(super) fn encrypt(&self, packet: &mut [u8]) {
        self.apply(Feed::Output, packet);
    }

    pub(super) fn decrypt(&self, packet: &mut [u8]) {
        self.apply(Feed::Input, packet);
    }

    fn apply(&self, direction: Feed, packet: &mut [u8]) {
        let mut register = self.first.clone();
        let (blocks, tail) = Array::slice_as_chunks_mut(packet);
        feed(&self.cipher, direction, &mut register, blocks);
        cover(tail, &register);
        register.as_mut_slice().zeroize();
    }

    /// Encrypts each of the packets, as [`Self::encrypt`] would.
    pub(super) fn encrypt_all<'p>(&self, packets: impl Iterator<Item = &'p mut [u8]>) {
        self.cipher.encrypt_with_backend(Chains {
            first: &self.first,
            packets,
        });
    }
}

impl<C: BlockCipherEncrypt> Drop for Cfb<C> {
    fn drop(&mut self) {
        self.first.as_mut_slice().zeroize();
    }
}

/// What is left of a packet in a lane.
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

struct Chains<'f, N: ArraySize, I> {
    first: &'f Array<u8, N>,
    packets: I,
}

impl<N: ArraySize, I> BlockSizeUser for Chains<'_, N, I> {
    type BlockSize = N;
}

impl<'p, N: ArraySize, I: Iterator<Item = &'p mut [u8]>> BlockCipherEncClosure
    for Chains<'_, N, I>
{
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = N>>(mut self, backend: &B) {
        let mut registers: [Array<u8, N>; LANES] = core::array::from_fn(|_| self.first.clone());
        let mut lanes: [Lane<'p, N>; LANES] = core::array::from_fn(|_| Lane::new(&mut []));
        let mut busy = 0;
        loop {
            // A lane that is free takes the next packet, whatever the others' lengths.
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
                // Of a length that the compiler knows.
                advance(backend, steps, &mut registers, &mut lanes);
            } else {
                let ((registers, _), (lanes, _)) =
                    (registers.split_at_mut(busy), lanes.split_at_mut(busy));
                advance(backend, steps, registers, lanes);
            }
            let mut lane = 0;
            while lane < busy {
                if lanes[lane].blocks.len() == 0 {
                    cover(core::mem::take(&mut lanes[lane].tail), &registers[lane]);
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
fn advance<B: BlockCipherEncBackend>(
    backend: &B,
    steps: usize,
    registers: &mut [Block<B>],
    lanes: &mut [Lane<'_, B::BlockSize>],
) {
    for _ in 0..steps {
        for (register, lane) in registers.iter_mut().zip(&mut *lanes) {
            if let Some(block) = lane.blocks.next() {
                // A copy of its own: the compiler takes it for one vector.
                let mut mixed = block.clone();
                xor(&mut mixed, register);
                block.clone_from(&mixed);
                register.clone_from(&mixed);
            }
        }
        encrypt(backend, registers);
    }
}

/// As many blocks at a time as the cipher takes.
#[inline(always)]
fn encrypt<B: BlockCipherEncBackend>(backend: &B, blocks: &mut [Block<B>]) {
    let (sets, rest) = Array::<Block<B>, B::ParBlocksSize>::slice_as_chunks_mut(blocks);
    for set in sets {
        backend.encrypt_par_blocks_inplace(set);
    }
    if !rest.is_empty() {
        backend.encrypt_tail_blocks_inplace(rest);
    }
}

/// Puts the end of a packet, less than a block, under its keystream.
#[inline(always)]
fn cover(tail: &mut [u8], register: &[u8]) {
    for (byte, key) in tail.iter_mut().zip(register) {
        *byte ^= key;
    }
}
