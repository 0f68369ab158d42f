//! Tests of every kernel of this CPU against the portable one, and of that against the definition.

use super::{FactorRows, KernelPath, portable};
use crate::gf256::gf_mul;

/// A small generator (SplitMix64), so that failures are reproducible.
struct TestRng(u64);

impl TestRng {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next_u64() % bound as u64).unwrap()
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let words = (0..len.div_ceil(8)).flat_map(|_| self.next_u64().to_le_bytes());
        words.take(len).collect()
    }
}

/// One sum of products: `shift` is the offset of the shards in their buffers.
struct Case {
    factors: Vec<u8>,
    inputs: Vec<Vec<u8>>,
    rows: usize,
    len: usize,
    shift: usize,
}

impl Case {
    fn roll(rng: &mut TestRng, columns: usize, rows: usize, len: usize, shift: usize) -> Self {
        Self {
            factors: rng.bytes(columns * rows),
            inputs: (0..columns).map(|_| rng.bytes(shift + len + 3)).collect(),
            rows,
            len,
            shift,
        }
    }

    /// Returns the outputs in their buffers, with the bytes around them.
    fn run(&self, combine: impl Fn(FactorRows<'_>, &[&[u8]], &mut [&mut [u8]])) -> Vec<Vec<u8>> {
        let place = self.shift..self.shift + self.len;
        let inputs: Vec<&[u8]> = self.inputs.iter().map(|i| &i[place.clone()]).collect();
        let mut buffers = vec![vec![0x5a; self.shift + self.len + 5]; self.rows];
        let mut outputs: Vec<&mut [u8]> = buffers
            .iter_mut()
            .map(|buffer| &mut buffer[place.clone()])
            .collect();
        combine(
            FactorRows::new(&self.factors, inputs.len()),
            &inputs,
            &mut outputs,
        );
        buffers
    }

    fn check(&self) {
        let expected = self.run(portable::sum_products);
        for path in KernelPath::available() {
            let found = self.run(|f, i, o| path.sum_products(f, i, o));
            assert!(
                found == expected,
                "{path:?}: {} rows of {} columns, {} bytes at {}",
                self.rows,
                self.inputs.len(),
                self.len,
                self.shift
            );
        }
    }
}

#[test]
fn the_portable_twin_is_the_definition() {
    let mut rng = TestRng(5);
    for len in 0..300 {
        let case = Case::roll(&mut rng, 1 + len % 11, 1 + len % 4, len, len % 8);
        let found = case.run(portable::sum_products);
        for (row, found) in found.iter().enumerate() {
            for at in case.shift..case.shift + len {
                let inputs = case.inputs.iter().enumerate();
                let products = inputs.map(|(column, input)| {
                    gf_mul(case.factors[row * case.inputs.len() + column], input[at])
                });
                assert_eq!(found[at], products.fold(0, |sum, product| sum ^ product));
            }
        }
    }
}

#[test]
fn every_length() {
    let mut rng = TestRng(1);
    for len in 0..=2000 {
        let (columns, rows, shift) = (1 + rng.below(4), 1 + rng.below(5), rng.below(64));
        Case::roll(&mut rng, columns, rows, len, shift).check();
    }
}

#[test]
fn every_alignment() {
    let mut rng = TestRng(2);
    for shift in 0..64 {
        for len in [15, 16, 17, 63, 64, 65, 127, 130, 191, 257, 300] {
            Case::roll(&mut rng, 3, 3, len, shift).check();
        }
    }
}

#[test]
fn every_number_of_rows() {
    let mut rng = TestRng(3);
    for rows in 0..=17 {
        Case::roll(&mut rng, 7, rows, 333, 1).check();
    }
}

#[test]
fn several_tiles_and_groups_of_inputs() {
    let mut rng = TestRng(7);
    for columns in [1, 15, 16, 17, 32, 40] {
        for len in [
            2047, 2048, 2049, 2063, 2064, 2111, 2112, 4095, 4096, 4200, 6211,
        ] {
            let (rows, shift) = (1 + rng.below(9), rng.below(64));
            Case::roll(&mut rng, columns, rows, len, shift).check();
        }
    }
    // At most as many inputs, and bytes of them, as one pass takes, and more than that.
    for (columns, len) in [(32, 1023), (32, 1024), (32, 1025), (33, 900)] {
        Case::roll(&mut rng, columns, 5, len, 3).check();
    }
    for columns in [16, 17, 32, 33] {
        for len in 0..200 {
            let rows = 1 + rng.below(5);
            Case::roll(&mut rng, columns, rows, len, 0).check();
        }
    }
}

#[test]
fn every_factor_times_every_byte() {
    for factor in 0..=255u8 {
        let case = Case {
            factors: vec![factor],
            inputs: vec![(0..=255).collect()],
            rows: 1,
            len: 256,
            shift: 0,
        };
        case.check();
        let products: Vec<u8> = (0..=255).map(|byte| gf_mul(factor, byte)).collect();
        assert_eq!(case.run(portable::sum_products)[0][..256], products);
    }
}

#[test]
fn random_cases() {
    let mut rng = TestRng(4);
    for _ in 0..500 {
        let (columns, rows) = (1 + rng.below(20), 1 + rng.below(8));
        let (len, shift) = (rng.below(500), rng.below(64));
        Case::roll(&mut rng, columns, rows, len, shift).check();
    }
}

#[test]
fn what_is_added_comes_to_what_was_there() {
    let mut rng = TestRng(6);
    for (rows, len) in (1..=9).zip([64, 128, 192, 256, 320, 448, 512, 832, 1408]) {
        let (factors, input) = (rng.bytes(rows), rng.bytes(len));
        let before: Vec<Vec<u8>> = (0..rows).map(|_| rng.bytes(len)).collect();
        for path in KernelPath::available() {
            let mut found = before.clone();
            let mut outputs: Vec<&mut [u8]> = found.iter_mut().map(|row| &mut row[..]).collect();
            path.add_products(&factors, &input, &mut outputs);
            for ((found, before), factor) in found.iter().zip(&before).zip(&factors) {
                let sums = before.iter().zip(&input);
                let sums: Vec<u8> = sums
                    .map(|(sum, byte)| sum ^ gf_mul(*factor, *byte))
                    .collect();
                assert!(*found == sums, "{path:?}: {rows} rows of {len} bytes");
            }
        }
    }
}
