//! Compression in both directions: its start, packets of all sizes, streams of other encoders,
//! bombs.

use super::*;
use crate::packet::MAX_PAYLOAD;

const SUITE: Suite = (Cipher::Aes128Gcm, None);

/// Bytes that cannot be compressed.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..len).map(|_| next()).collect()
}

fn there_and_back(sealer: &mut Sealer, opener: &mut Opener, payload: &[u8]) -> usize {
    let mut wire = sealed(sealer, payload);
    let (found, consumed) = open_one(opener, &mut wire).unwrap();
    assert!(found == payload, "{} bytes", payload.len());
    consumed
}

#[test]
fn packets_of_all_sizes() {
    for suite in [SUITE, (Cipher::Aes128Ctr, Some(Mac::HmacSha256))] {
        let (mut sealer, mut opener) = pair(suite, Compression::Zlib);
        for len in (1..400).chain([4095, 32_768, 40_960, 40_961, 65_536, 200_000]) {
            there_and_back(&mut sealer, &mut opener, &bytes(len));
            there_and_back(&mut sealer, &mut opener, &noise(len));
            there_and_back(&mut sealer, &mut opener, &vec![b'a'; len]);
        }
        // Repetition costs almost nothing, because there is a single stream.
        let text = noise(5000);
        there_and_back(&mut sealer, &mut opener, &text);
        let again = there_and_back(&mut sealer, &mut opener, &text);
        assert!(again < 200, "{again} bytes");
        there_and_back(&mut sealer, &mut opener, &vec![0; MAX_PAYLOAD]);
    }
}

#[test]
fn long_streams_go_on() {
    let (mut sealer, mut opener) = pair(SUITE, Compression::Zlib);
    let noise = noise(150_000);
    for turn in 0..60 {
        let at = turn * 1777 % 100_000;
        there_and_back(&mut sealer, &mut opener, &noise[at..at + 20_000 + turn]);
    }
}

/// `zlib@openssh.com` waits for the end of authentication at both ends; `zlib` does not.
#[test]
fn delayed_compression_begins_when_told() {
    let plain = vec![b'a'; 1000];
    let (mut sealer, mut opener) = pair(SUITE, Compression::ZlibDelayed);
    assert!(there_and_back(&mut sealer, &mut opener, &plain) > 1000);
    sealer.start_compression();
    opener.start_compression();
    assert!(there_and_back(&mut sealer, &mut opener, &plain) < 100);
    let first = there_and_back(&mut sealer, &mut opener, &noise(500));
    // A second call has no effect: the stream continues.
    sealer.start_compression();
    opener.start_compression();
    assert!(there_and_back(&mut sealer, &mut opener, &noise(500)) < first / 2);
    // New keys start new streams, now immediately.
    for kind in [Compression::ZlibDelayed, Compression::Zlib] {
        sealer.set_keys(keys(SUITE, 5, kind), true).unwrap();
        opener.set_keys(keys(SUITE, 5, kind), true).unwrap();
        assert_eq!(there_and_back(&mut sealer, &mut opener, &noise(500)), first);
        assert!(there_and_back(&mut sealer, &mut opener, &noise(500)) < first / 2);
    }
    // They may also end compression.
    sealer
        .set_keys(keys(SUITE, 6, Compression::None), true)
        .unwrap();
    opener
        .set_keys(keys(SUITE, 6, Compression::None), true)
        .unwrap();
    assert!(there_and_back(&mut sealer, &mut opener, &plain) > 1000);
    assert!(there_and_back(&mut Sealer::new(), &mut Opener::new(), &plain) > 1000);
}

/// Returns an opener with compression that has received `deflated` in an authentic packet.
fn given(opener: &mut Opener, sealer: &mut Sealer, deflated: &[u8]) -> Result<Vec<u8>, SshError> {
    open_one(opener, &mut sealed(sealer, deflated)).map(|(payload, _)| payload)
}

/// Returns a sealer without compression, and an opener with it.
fn forger() -> (Sealer, Opener) {
    (
        pair(SUITE, Compression::None).0,
        pair(SUITE, Compression::Zlib).1,
    )
}

/// 200 KB of zeros deflate to a few hundred bytes; four of them in one packet exceed the limit.
#[test]
fn bombs_are_refused() {
    let mut stream = crate::packet::deflate::Deflater::new();
    let mut bomb = Vec::new();
    for _ in 0..40 {
        let start = bomb.len();
        bomb.resize(start + 200_000, 0);
        stream.compress_in_place(&mut bomb, start).unwrap();
    }
    assert!(bomb.len() < 40_000, "{}", bomb.len());
    let (mut sealer, mut opener) = forger();
    let too_much = SshError::TooMuch {
        what: "decompressed payload",
        limit: MAX_PAYLOAD,
    };
    assert_eq!(
        given(&mut opener, &mut sealer, &bomb),
        Err(too_much.clone())
    );
    // One byte above the limit is too much, the limit itself is not.
    for (len, fits) in [(MAX_PAYLOAD, true), (MAX_PAYLOAD + 1, false)] {
        let (mut sealer, mut opener) = forger();
        let mut deflated = vec![0; len];
        crate::packet::deflate::Deflater::new()
            .compress_in_place(&mut deflated, 0)
            .unwrap();
        let found = given(&mut opener, &mut sealer, &deflated);
        assert_eq!(found.is_ok(), fits);
        if !fits {
            assert_eq!(found, Err(too_much.clone()));
        }
    }
}

#[test]
fn what_is_no_stream_is_refused() {
    let malformed = Err(SshError::Malformed("compressed payload"));
    for bad in [
        &b"not zlib"[..],
        &[0x78, 0x9c, 0x07],
        // A complete stream: those of SSH do not end.
        &[0x78, 0x9c, 0x03, 0x00, 0x00, 0x00, 0x00, 0x01],
    ] {
        let (mut sealer, mut opener) = forger();
        assert_eq!(given(&mut opener, &mut sealer, bad), malformed);
    }
    // Only the header, or an empty block: authentic, but empty.
    for empty in [&[0x78, 0x9c][..], &[0x78, 0x9c, 0, 0, 0, 0xff, 0xff]] {
        let (mut sealer, mut opener) = forger();
        let found = given(&mut opener, &mut sealer, empty);
        assert_eq!(found, Err(SshError::Malformed("empty payload")));
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn no_stream_panics(rest: Vec<u8>, header: bool) {
        let (mut sealer, mut opener) = forger();
        let head: &[u8] = if header { &[0x78, 0x9c] } else { &[7] };
        let _ = given(&mut opener, &mut sealer, &[head, &rest].concat());
    }
}

/// Output of zlib with `Z_PARTIAL_FLUSH`, as in OpenSSH: the last bits of a packet may be delayed
/// until the next one.
#[derive(Default)]
struct Partial {
    bits: u64,
    count: u32,
    out: Vec<u8>,
}

impl Partial {
    fn put(&mut self, value: u64, count: u32) {
        self.bits |= value << self.count;
        self.count += count;
        while self.count >= 8 {
            self.out.extend(self.bits.to_le_bytes().first());
            self.bits >>= 8;
            self.count -= 8;
        }
    }

    /// Builds a block with dynamic codes (RFC 1951 section 3.2.7), like zlib's for zeros: a single
    /// one, then this number times 258 more. The empty block of a flush follows.
    fn zeros(&mut self, matches: usize) -> Vec<u8> {
        self.put(0b100, 3);
        self.put(29, 5);
        self.put(0, 5);
        self.put(14, 4);
        // Lengths of the codes of 16, 17, 18, 0, 8, 7, 9, …, 1.
        for len in [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2] {
            self.put(len, 3);
        }
        let one = |to: &mut Self| to.put(0b01, 2);
        let two = |to: &mut Self| to.put(0b11, 2);
        let none = |to: &mut Self, times: u64| to.put((times - 11) << 1, 8);
        two(self);
        none(self, 138);
        none(self, 117);
        two(self);
        none(self, 28);
        one(self);
        one(self);
        self.put(0b01, 2);
        for _ in 0..matches {
            self.put(0b00, 2);
        }
        self.put(0b11, 2);
        self.put(0b010, 3);
        self.put(0, 7);
        std::mem::take(&mut self.out)
    }
}

/// No packet ends too early, wherever it reaches the end of the inflater's window of 32 KiB.
#[test]
fn all_of_a_partial_flush_is_there() {
    let mut inflater = crate::packet::deflate::Inflater::new();
    let mut zlib = Partial {
        out: vec![0x78, 0x9c],
        ..Partial::default()
    };
    for turn in 0..20_000 {
        let matches = 1 + turn % 7;
        inflater.inflate(&zlib.zeros(matches)).unwrap();
        let len = inflater.payload().len();
        assert_eq!(len, 1 + 258 * matches, "packet {turn}");
    }
}
