//! Tests of the properties of a code: any sufficient set of shards restores all data.

use proptest::prelude::*;

use super::TestRng;
use crate::{CodeError, CodeMatrix, ErasureCode, FecLevel};

struct Shards {
    all: Vec<Vec<u8>>,
    data: usize,
}

impl Shards {
    fn roll(code: &ErasureCode, rng: &mut TestRng, len: usize) -> Self {
        let data: Vec<Vec<u8>> = (0..code.data_shards()).map(|_| rng.bytes(len)).collect();
        let mut parity = vec![vec![0; len]; code.parity_shards()];
        let inputs: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let mut outputs: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        code.encode_parity(&inputs, &mut outputs).unwrap();
        Self {
            data: data.len(),
            all: data.into_iter().chain(parity).collect(),
        }
    }

    /// Removes `lost`, restores them, and compares.
    fn lose(&self, code: &mut ErasureCode, lost: &[usize]) -> Result<(), CodeError> {
        let at_hand: Vec<Option<&[u8]>> = self
            .all
            .iter()
            .enumerate()
            .map(|(i, shard)| (!lost.contains(&i)).then_some(shard.as_slice()))
            .collect();
        let gone: Vec<usize> = (0..self.data).filter(|i| lost.contains(i)).collect();
        let mut found = vec![vec![0x77; self.all[0].len()]; gone.len()];
        let mut outputs: Vec<&mut [u8]> = found.iter_mut().map(Vec::as_mut_slice).collect();
        code.reconstruct(&at_hand, &mut outputs)?;
        for (place, found) in gone.iter().zip(found) {
            assert_eq!(found, self.all[*place]);
        }
        Ok(())
    }

    /// Removes `lost`, restores them with the parity among them, and compares.
    fn lose_with_parity(&self, code: &mut ErasureCode, lost: &[usize]) -> Result<(), CodeError> {
        let shards = self.all.iter().enumerate();
        let at_hand: Vec<Option<&[u8]>> = shards
            .map(|(i, shard)| (!lost.contains(&i)).then_some(shard.as_slice()))
            .collect();
        let mut gone = lost.to_vec();
        gone.sort_unstable();
        let mut found = vec![vec![0x77; self.all[0].len()]; gone.len()];
        let mut outputs: Vec<&mut [u8]> = found.iter_mut().map(Vec::as_mut_slice).collect();
        let done = code.reconstruct_all(&at_hand, &mut outputs);
        for (place, found) in gone.iter().zip(found) {
            if done.is_ok() {
                assert_eq!(found, self.all[*place]);
            } else {
                assert!(found.iter().all(|byte| *byte == 0x77));
            }
        }
        done
    }

    fn verify(&self, code: &ErasureCode) -> bool {
        let shards: Vec<&[u8]> = self.all.iter().map(Vec::as_slice).collect();
        let (data, parity) = shards.split_at(self.data);
        code.verify_parity(data, parity).unwrap()
    }
}

/// Returns the first `count` of the numbers below `bound`, shuffled.
fn some(rng: &mut TestRng, bound: usize, count: usize) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..bound).collect();
    for i in 0..count {
        numbers.swap(i, i + rng.below(bound - i));
    }
    numbers.truncate(count);
    numbers
}

#[test]
fn every_loss_of_small_codes() {
    for matrix in [CodeMatrix::Vandermonde, CodeMatrix::Cauchy] {
        for (data, parity) in [(1, 1), (1, 3), (3, 1), (4, 4), (10, 3)] {
            let mut code = ErasureCode::new(matrix, data, parity).unwrap();
            let shards = Shards::roll(&code, &mut TestRng(1), 20);
            for pattern in 0u32..1 << (data + parity) {
                let lost: Vec<usize> = (0..data + parity)
                    .filter(|i| pattern >> i & 1 == 1)
                    .collect();
                let lost_data = lost.iter().any(|i| *i < data);
                let expected = if lost.len() <= parity || !lost_data {
                    Ok(())
                } else {
                    Err(CodeError::TooFew)
                };
                assert_eq!(shards.lose(&mut code, &lost), expected, "{lost:?}");
                let found = shards.lose_with_parity(&mut code, &lost);
                assert_eq!(found, expected, "{lost:?}");
            }
        }
    }
}

#[test]
fn the_largest_codes() {
    for matrix in [CodeMatrix::Vandermonde, CodeMatrix::Cauchy] {
        for (data, parity) in [(255, 1), (1, 255), (128, 128), (200, 56)] {
            let mut code = ErasureCode::new(matrix, data, parity).unwrap();
            let mut rng = TestRng(7);
            let shards = Shards::roll(&code, &mut rng, 33);
            for _ in 0..3 {
                let lost = some(&mut rng, data + parity, parity);
                shards.lose(&mut code, &lost).unwrap();
                shards.lose_with_parity(&mut code, &lost).unwrap();
            }
            assert!(shards.verify(&code));
        }
    }
}

#[test]
fn calls_that_make_no_sense_are_refused() {
    for (data, parity) in [(0, 1), (1, 0), (255, 2), (usize::MAX, 1)] {
        assert!(matches!(
            ErasureCode::vandermonde(data, parity),
            Err(CodeError::Count { .. })
        ));
    }
    let mut code = ErasureCode::cauchy(2, 1).unwrap();
    let (a, b) = ([1; 4], [2; 4]);
    assert_eq!(
        code.encode_parity(&[&a], &mut [&mut [0; 4]]),
        Err(CodeError::Shards)
    );
    assert_eq!(
        code.encode_parity(&[&a, &b], &mut []),
        Err(CodeError::Shards)
    );
    assert_eq!(
        code.encode_parity(&[&a, &b], &mut [&mut [0; 3]]),
        Err(CodeError::Length)
    );
    assert_eq!(
        code.encode_parity(&[&a, &b[1..]], &mut [&mut [0; 4]]),
        Err(CodeError::Length)
    );
    assert_eq!(
        code.reconstruct(&[None, None, Some(&a)], &mut [&mut [0; 4], &mut [0; 4]]),
        Err(CodeError::TooFew)
    );
    assert_eq!(
        code.reconstruct(&[None, Some(&b)], &mut [&mut [0; 4]]),
        Err(CodeError::Shards)
    );
    assert_eq!(
        code.reconstruct(&[None, Some(&b), Some(&a)], &mut []),
        Err(CodeError::Shards)
    );
    assert_eq!(
        code.reconstruct(&[None, Some(&b), Some(&a[2..])], &mut [&mut [0; 4]]),
        Err(CodeError::Length)
    );
}

#[test]
fn wrong_calls_for_verification_and_parity_are_refused() {
    let mut code = ErasureCode::cauchy(2, 2).unwrap();
    let (a, b) = ([1; 4], [2; 4]);
    let [a, b] = [&a[..], &b[..]];
    for (shards, lost, expected) in [
        (vec![Some(a)], vec![], CodeError::Shards),
        (vec![Some(a), None, Some(b)], vec![4], CodeError::Shards),
        (
            vec![Some(a), None, Some(b), None],
            vec![4],
            CodeError::Shards,
        ),
        (
            vec![Some(a), None, Some(b), None],
            vec![4; 3],
            CodeError::Shards,
        ),
        (
            vec![Some(a), None, Some(b), None],
            vec![4, 3],
            CodeError::Length,
        ),
        (
            vec![Some(a), Some(&b[1..]), Some(b), None],
            vec![4],
            CodeError::Length,
        ),
        (
            vec![Some(a), None, Some(&b[1..]), None],
            vec![4, 4],
            CodeError::Length,
        ),
        (
            vec![Some(a), None, None, None],
            vec![4; 3],
            CodeError::TooFew,
        ),
    ] {
        let mut lost: Vec<Vec<u8>> = lost.into_iter().map(|len| vec![0x77; len]).collect();
        let mut outputs: Vec<&mut [u8]> = lost.iter_mut().map(Vec::as_mut_slice).collect();
        let done = code.reconstruct_all(&shards, &mut outputs);
        assert_eq!(done, Err(expected), "{shards:?}");
        assert!(lost.iter().flatten().all(|byte| *byte == 0x77));
    }
    for (data, parity, expected) in [
        (vec![a], vec![a, b], CodeError::Shards),
        (vec![a, b], vec![a], CodeError::Shards),
        (vec![a, b], vec![a, &b[1..]], CodeError::Length),
        (vec![a, &b[1..]], vec![a, b], CodeError::Length),
    ] {
        assert_eq!(code.verify_parity(&data, &parity), Err(expected));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn any_loss_up_to_the_parity(
        seed in any::<u64>(), data in 1usize..40, parity in 1usize..20,
        len in 0usize..300, cauchy in any::<bool>(), level in 0usize..7,
    ) {
        let mut rng = TestRng(seed);
        let matrix = if cauchy { CodeMatrix::Cauchy } else { CodeMatrix::Vandermonde };
        let mut code = ErasureCode::new(matrix, data, parity).unwrap().with_level(FecLevel::ALL[level]);
        let shards = Shards::roll(&code, &mut rng, len);
        // More patterns than are cached, so that plans are evicted and computed again.
        for _ in 0..70 {
            let count = rng.below(parity + 1);
            let lost = some(&mut rng, data + parity, count);
            prop_assert_eq!(shards.lose(&mut code, &lost), Ok(()));
            prop_assert_eq!(shards.lose_with_parity(&mut code, &lost), Ok(()));
        }
    }

    #[test]
    fn every_changed_byte_is_noticed(
        seed in any::<u64>(), data in 1usize..40, parity in 1usize..40,
        len in 1usize..1600, cauchy in any::<bool>(), level in 0usize..7,
    ) {
        let mut rng = TestRng(seed);
        let matrix = if cauchy { CodeMatrix::Cauchy } else { CodeMatrix::Vandermonde };
        let code = ErasureCode::new(matrix, data, parity).unwrap().with_level(FecLevel::ALL[level]);
        let mut shards = Shards::roll(&code, &mut rng, len);
        prop_assert!(shards.verify(&code));
        for place in [0, len - 1, rng.below(len), rng.below(len)] {
            let (shard, bit) = (rng.below(data + parity), 1 << rng.below(8));
            shards.all[shard][place] ^= bit;
            prop_assert!(!shards.verify(&code));
            shards.all[shard][place] ^= bit;
        }
    }
}
