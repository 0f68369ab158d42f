//! Every kernel compared with the portable code and with a second, literal implementation of the
//! RFC.

use std::vec::Vec;

use super::{hex, levels, noise, vectors};
use crate::kdf::{HashKeys, expand_key};
use crate::nh::{BLOCK, GROUP, GroupRun, Sums, nh_portable};
use crate::simd::NhKernel;
use crate::{Nonce, SimdLevel, Umac};

fn keys(seed: u64) -> HashKeys {
    expand_key(&noise(seed, 16).try_into().unwrap()).0
}

/// Returns the groups that NH processes for a block, padded with zeros.
fn groups_of(block: &[u8]) -> Vec<[u8; GROUP]> {
    let mut octets = block.to_vec();
    octets.resize(block.len().next_multiple_of(GROUP).max(GROUP), 0);
    octets.as_chunks().0.to_vec()
}

#[test]
fn golden_nh() {
    let all = vectors();
    let golden = &all["intermediate"];
    let key: [u8; 16] = hex(&golden["key"]).try_into().unwrap();
    let keys = expand_key(&key).0;
    let message: Vec<u8> = (0..2500usize)
        .map(|i| u8::try_from((7 * i + (i >> 8) + 3) % 256).unwrap())
        .collect();
    let number =
        |text: &serde_json::Value| u64::from_str_radix(text.as_str().unwrap(), 16).unwrap();
    for level in levels() {
        let kernel = NhKernel::for_level(level).unwrap();
        let nh = |block: &[u8]| -> Sums {
            let groups = groups_of(block);
            let bits = u64::try_from(8 * block.len()).unwrap();
            kernel
                .compute_nh::<16>(&keys.nh, GroupRun::new(0, &groups, None))
                .map(|sum| sum.wrapping_add(bits))
        };
        for (stream, right) in golden["nh_of_counter_100"]
            .as_array()
            .unwrap()
            .iter()
            .enumerate()
        {
            assert_eq!(nh(&message[..100])[stream], number(right), "{level:?}");
        }
        let rights = golden["nh_of_counter_2500_blocks_stream0"]
            .as_array()
            .unwrap();
        for (block, right) in message.chunks(BLOCK).zip(rights) {
            assert_eq!(nh(block)[0], number(right), "{level:?}");
        }
    }
}

fn runs_agree<const TAG: usize>(kernel: NhKernel, keys: &HashKeys, run: GroupRun<'_>) {
    let (plain, vector) = (
        nh_portable::<TAG>(&keys.nh, run),
        kernel.compute_nh::<TAG>(&keys.nh, run),
    );
    assert_eq!(
        plain[..TAG / 4],
        vector[..TAG / 4],
        "{TAG} {:?}",
        kernel.level()
    );
}

fn all_agree(kernel: NhKernel, keys: &HashKeys, run: GroupRun<'_>) {
    runs_agree::<4>(kernel, keys, run);
    runs_agree::<8>(kernel, keys, run);
    runs_agree::<12>(kernel, keys, run);
    runs_agree::<16>(kernel, keys, run);
}

#[test]
fn kernels_agree_on_every_run_of_a_block() {
    let (keys, data) = (keys(3), noise(4, BLOCK + 64));
    for level in levels() {
        let kernel = NhKernel::for_level(level).unwrap();
        for at in [0, 1, 16, 31] {
            let (groups, _) = data[at..].as_chunks();
            for first in 0..=32 {
                for end in first..=32 {
                    let whole = &groups[first..end];
                    all_agree(kernel, &keys, GroupRun::new(first, whole, None));
                    if end < 32 {
                        let tail = &groups[end][..(first + 7 * end) % GROUP];
                        all_agree(kernel, &keys, GroupRun::new(first, whole, Some(tail)));
                    }
                }
            }
        }
    }
}

#[test]
fn kernels_agree_on_every_tail() {
    let (keys, data) = (keys(8), noise(9, 2 * GROUP));
    for level in levels() {
        let kernel = NhKernel::for_level(level).unwrap();
        for at in 0..GROUP {
            for length in 0..GROUP {
                // On the heap with its exact length: a sanitizer detects reads beyond it.
                let tail = data[at..at + length].to_vec();
                all_agree(kernel, &keys, GroupRun::new(at, &[], Some(&tail)));
            }
        }
    }
}

#[test]
#[should_panic(expected = "first <= GROUPS")]
fn a_run_does_not_exceed_its_block() {
    let _run = GroupRun::new(31, &[[0; GROUP]], Some(&[]));
}

#[test]
#[should_panic(expected = "tail.len() < GROUP")]
fn a_tail_is_less_than_a_group() {
    let _run = GroupRun::new(0, &[], Some(&[0; GROUP]));
}

fn tags_agree<const TAG: usize>(
    level: SimdLevel,
    data: &[u8],
    lengths: impl Iterator<Item = usize>,
) {
    let key = noise(5, 16).try_into().unwrap();
    let plain = Umac::<TAG>::with_level(&key, SimdLevel::Portable).unwrap();
    let vector = Umac::<TAG>::with_level(&key, level).unwrap();
    for length in lengths {
        let nonce = Nonce::from(u64::try_from(length).unwrap());
        // Every length starts at another position in the cache line.
        let message = &data[length % 64..][..length];
        assert_eq!(
            plain.compute_tag(nonce, message),
            vector.compute_tag(nonce, message),
            "{TAG} {level:?} {length}"
        );
    }
}

#[test]
fn levels_agree_on_every_length() {
    let data = noise(6, 4200 + 64);
    for level in levels() {
        tags_agree::<4>(level, &data, 0..=4200);
        tags_agree::<8>(level, &data, 0..=4200);
        tags_agree::<12>(level, &data, 0..=4200);
        tags_agree::<16>(level, &data, 0..=4200);
    }
}

#[test]
fn levels_agree_at_every_alignment() {
    let data = noise(7, 2200);
    for level in levels() {
        for at in 0..64 {
            let lengths = || [1, 31, 33, 64, 500, 1024, 1025, 2100].into_iter();
            tags_agree::<4>(level, &data[at..], lengths().filter(|n| n % 64 + n <= 2130));
            tags_agree::<16>(level, &data[at..], lengths().filter(|n| n % 64 + n <= 2130));
        }
    }
}

/// Bytes of all ones make every word and key wrap around.
#[test]
fn levels_agree_on_extreme_octets() {
    for octet in [0, 0xff, 0x80, 0x7f] {
        let data = std::vec![octet; 3200];
        for level in levels() {
            tags_agree::<8>(level, &data, (0..3100).step_by(61));
            tags_agree::<12>(level, &data, (0..3100).step_by(61));
        }
    }
}
