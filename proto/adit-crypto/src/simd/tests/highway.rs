//! Tests of HighwayHash on every path against the crate, over lengths, and of two messages in parallel.

use highway::{HighwayHash, Key, PortableHash};

use super::TestRng;
use crate::simd::{CpuPath, highway64};

fn by_crate(key: &[u64; 4], head: &[u8], rest: &[u8]) -> u64 {
    let mut hash = PortableHash::new(Key(*key));
    hash.append(head);
    hash.append(rest);
    hash.finalize64()
}

#[test]
fn every_length_equals_the_crate_on_every_path() {
    let mut rng = TestRng(17);
    let key = [rng.roll(), rng.roll(), rng.roll(), rng.roll()];
    let mut bytes = [0; 600];
    rng.fill(&mut bytes);
    for head in [0, 1, 15, 16, 31, 32] {
        let (head, rest) = bytes.split_at(head);
        for len in 0..500 {
            let other = rng.below(568);
            let messages = [(head, &rest[..len]), (head, &rest[..other])];
            let expected = messages.map(|(head, rest)| by_crate(&key, head, rest));
            for path in CpuPath::available() {
                let context = || format!("{path:?}, {} + {len} and {other}", head.len());
                assert_eq!(highway64(path, &key, messages), expected, "{}", context());
                assert_eq!(
                    highway64(path, &key, [messages[0]]),
                    [expected[0]],
                    "{}",
                    context()
                );
            }
        }
    }
}
