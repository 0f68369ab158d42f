//! Tests of every kind with golden bytes, other libraries and other splits of the data.

use chacha20::cipher::{KeyIvInit, StreamCipherSeek};
use proptest::prelude::*;

use super::*;
use crate::{
    evp_bytes_to_key,
    tests::{hex, vectors},
};

/// A stream under a key and an IV made of `seed`.
fn start(kind: StreamKind, seed: u8, direction: Direction) -> StreamCipher {
    let key: Vec<u8> = (0..kind.key_len()).map(|i| seed ^ (i * 7) as u8).collect();
    let iv: Vec<u8> = (0..kind.iv_len()).map(|i| seed ^ (i * 13) as u8).collect();
    StreamCipher::new(kind, &key, &iv, direction).unwrap()
}

#[test]
fn golden_vectors() {
    let all = vectors("ciphers");
    let mut missing: Vec<StreamKind> = StreamKind::ALL.into();
    for case in all["streams"].as_array().unwrap() {
        let kind: StreamKind = case["method"].as_str().unwrap().parse().unwrap();
        missing.retain(|left| *left != kind);
        let password = hex(&case["password"]);
        let key = kind.key_from_password(&password);
        let written = hex(&case["key"]);
        if !written.is_empty() && kind != StreamKind::Table {
            assert_eq!(*key.expose(), written, "{kind}");
        }
        let shared = StreamKey::new(kind, key.expose()).unwrap();
        let iv = hex(&case["iv"]);
        let pieces = |name: &str| -> Vec<Vec<u8>> {
            case[name].as_array().unwrap().iter().map(hex).collect()
        };
        let (plain, cipher) = (pieces("plain"), pieces("cipher"));
        for (direction, from, to) in [
            (Direction::Encrypt, &plain, &cipher),
            (Direction::Decrypt, &cipher, &plain),
        ] {
            let mut as_written = shared.start_stream(&iv, direction).unwrap();
            for (from, to) in from.iter().zip(to) {
                let mut data = from.clone();
                as_written.apply(&mut data);
                assert_eq!(data, *to, "{kind}, {direction:?}");
            }
            let (from, to) = (from.concat(), to.concat());
            for size in [1, 3, 16, 17, from.len()] {
                let mut data = from.clone();
                let mut stream = StreamCipher::new(kind, key.expose(), &iv, direction).unwrap();
                for piece in data.chunks_mut(size) {
                    stream.apply(piece);
                }
                assert_eq!(data, to, "{kind}, {direction:?} by {size}");
            }
        }
    }
    assert_eq!(missing, [], "without vectors");
}

/// Long enough for every number of blocks that a cipher processes in parallel. Byte by byte this code would
/// not run.
#[test]
fn long_messages_equal_their_bytes() {
    for kind in StreamKind::ALL {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let len = if kind.name().ends_with("cfb1") {
                300
            } else {
                4000
            };
            let message: Vec<u8> = (0..len).map(|i: u32| (i * i / 8) as u8).collect();
            let mut bytes = message.clone();
            let mut stream = start(kind, 0xff, direction);
            bytes.chunks_mut(1).for_each(|byte| stream.apply(byte));
            let mut whole = message.clone();
            start(kind, 0xff, direction).apply(&mut whole);
            assert!(whole == bytes, "{kind}, {direction:?}");
            // A few blocks less than a set, and from the middle of a block.
            for first in [5, 1029] {
                let mut pieces = message.clone();
                let mut stream = start(kind, 0xff, direction);
                let (front, back) = pieces.split_at_mut(first.min(message.len()));
                let (middle, back) = back.split_at_mut(back.len() / 2);
                [front, &mut [], middle, back]
                    .into_iter()
                    .for_each(|piece| stream.apply(piece));
                assert!(pieces == bytes, "{kind}, {direction:?} from {first}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_split_gives_the_same_bytes(
        kind in prop::sample::select(&StreamKind::ALL[..]), seed in any::<u8>(),
        message in proptest::collection::vec(any::<u8>(), 0..700),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
        back in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut whole = message.clone();
        start(kind, seed, Direction::Encrypt).apply(&mut whole);
        let mut pieces = message.clone();
        in_pieces(&mut start(kind, seed, Direction::Encrypt), &mut pieces, &cuts);
        prop_assert_eq!(&pieces, &whole);
        in_pieces(&mut start(kind, seed, Direction::Decrypt), &mut pieces, &back);
        prop_assert_eq!(pieces, message);
    }

    #[test]
    fn words_equal_the_crates_at_any_block(
        key in any::<[u8; 32]>(), iv in any::<[u8; 24]>(), far in any::<u32>(), near in 0..4u64,
        skip in 0..200usize, len in 0..3000usize,
    ) {
        // Around the carry into the upper half of the counter, and anywhere below it.
        for block in [u64::from(far), (1 << 32) - near - 1] {
            let ours = |kind: StreamKind| {
                let iv = &iv[..kind.iv_len()];
                let mut stream = StreamCipher::new(kind, &key, iv, Direction::Encrypt).unwrap();
                stream.seek_block(block);
                let mut data = vec![0; skip + len];
                let (front, back) = data.split_at_mut(skip);
                stream.apply(front);
                stream.apply(back);
                data
            };
            let long = skip + len;
            prop_assert_eq!(ours(StreamKind::ChaCha20), theirs::<chacha20::ChaCha20Legacy>(&key, &iv, block, long));
            prop_assert_eq!(ours(StreamKind::Salsa20), theirs::<salsa20::Salsa20>(&key, &iv, block, long));
            prop_assert_eq!(ours(StreamKind::XSalsa20), theirs::<salsa20::XSalsa20>(&key, &iv, block, long));
            // These end with the lower half in the crate.
            let short = long.min(usize::try_from((1 << 32) - 1 - block).unwrap() * 64);
            let expected = theirs::<chacha20::ChaCha20>(&key, &iv, block, short);
            prop_assert_eq!(&ours(StreamKind::ChaCha20Ietf)[..short], expected);
            let expected = theirs::<chacha20::XChaCha20>(&key, &iv, block, short);
            prop_assert_eq!(&ours(StreamKind::XChaCha20)[..short], expected);
        }
    }
}

fn in_pieces(stream: &mut StreamCipher, data: &mut [u8], cuts: &[prop::sample::Index]) {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(data.len() + 1)).collect();
    cuts.sort_unstable();
    let mut rest = data;
    let mut done = 0;
    for cut in cuts {
        let (piece, later) = rest.split_at_mut(cut - done);
        stream.apply(piece);
        (rest, done) = (later, cut);
    }
    stream.apply(rest);
}

fn theirs<C: KeyIvInit + chacha20::cipher::StreamCipher + StreamCipherSeek>(
    key: &[u8; 32],
    iv: &[u8; 24],
    block: u64,
    len: usize,
) -> Vec<u8> {
    let mut data = vec![0; len];
    let mut cipher = C::new_from_slices(key, &iv[..C::iv_size()]).unwrap();
    cipher.seek(u128::from(block) * 64);
    cipher.apply_keystream(&mut data);
    data
}

/// Without a carry into the nonce.
#[test]
fn the_ietf_counter_wraps() {
    let mut end = start(StreamKind::ChaCha20Ietf, 1, Direction::Encrypt);
    end.seek_block((1 << 32) - 2);
    let mut data = [0; 300];
    let (front, back) = data.split_at_mut(3);
    end.apply(front);
    end.apply(back);
    let mut first = [0; 172];
    start(StreamKind::ChaCha20Ietf, 1, Direction::Encrypt).apply(&mut first);
    assert_eq!(data[128..], first);
}

#[test]
fn lengths_of_keys_and_ivs_are_checked() {
    for kind in StreamKind::ALL {
        let (k, v) = (kind.key_len(), kind.iv_len());
        for found in [0, k - 1, k + 1] {
            let key = StreamKey::new(kind, &vec![1; found]);
            if matches!(kind, StreamKind::None | StreamKind::Table) {
                assert!(key.is_ok());
            } else {
                let wrong = CryptoError::KeyLength { expected: k, found };
                assert_eq!(key.err(), Some(wrong), "{kind}");
            }
        }
        let key = StreamKey::new(kind, &vec![1; k]).unwrap();
        assert_eq!(key.kind(), kind);
        assert_eq!(
            key.start_stream(&vec![2; v], Direction::Encrypt)
                .unwrap()
                .kind(),
            kind
        );
        for found in (0..v).chain([v + 1]) {
            let wrong = CryptoError::NonceLength { expected: v, found };
            let stream = key.start_stream(&vec![2; found], Direction::Decrypt);
            assert_eq!(stream.err(), Some(wrong), "{kind}");
        }
    }
}

#[test]
fn debug_prints_the_kind_alone() {
    let key = StreamKey::new(StreamKind::Rc4Md5, &[0x41; 16]).unwrap();
    assert_eq!(format!("{key:?}"), "StreamKey(rc4-md5)");
    let stream = key.start_stream(&[0x42; 16], Direction::Encrypt).unwrap();
    assert_eq!(format!("{stream:?}"), "StreamCipher(rc4-md5)");
    assert_eq!(format!("{:?}", Rc4::new(b"key").unwrap()), "Rc4(***)");
}

/// A stream does not affect other streams of the same key.
#[test]
fn streams_of_one_key_are_apart() {
    for kind in StreamKind::ALL {
        let mut key = vec![0; kind.key_len()];
        evp_bytes_to_key(b"barfoo!", &mut key);
        let key = StreamKey::new(kind, &key).unwrap();
        let iv = vec![9; kind.iv_len()];
        let mut one = key.start_stream(&iv, Direction::Encrypt).unwrap();
        let (mut first, mut second) = ([0; 40], [0; 40]);
        one.apply(&mut first);
        one.apply(&mut [0; 100]);
        key.start_stream(&iv, Direction::Encrypt)
            .unwrap()
            .apply(&mut second);
        assert_eq!(first, second, "{kind}");
        let mut back = key.start_stream(&iv, Direction::Decrypt).unwrap();
        back.apply(&mut first);
        assert_eq!(first, [0; 40], "{kind}");
    }
}

/// A connection has two of these for its whole lifetime.
#[test]
fn a_stream_is_small() {
    assert!(
        size_of::<StreamCipher>() <= 544,
        "{}",
        size_of::<StreamCipher>()
    );
}
