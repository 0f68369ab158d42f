//! Rebuilds everything that the reference implementation wrote from its parts, byte for byte.

use core::ops::Range;

use adit_wire::{FixedEntropy, HandshakeProgress, ProtocolError};

use super::{Exchange, Write, wires};
use crate::OpenedFrame;
use crate::chain_padding::PaddingSizes;
use crate::frame::{
    AdlerKind, FrameOpen, FrameOpener, FrameSeal, LengthEncoding, PaddingBlock, TaggedCodec,
    pack_crc,
};
use crate::head::{aes::AesHead, chain, sha1::Sha1Head, simple};
use crate::hello::HELLO_LEN;
use crate::protocol_kind::ProtocolFamily;

/// Room around a payload that suffices for all formats.
const ROOM: usize = 4000;

/// Puts `data` into a record, calls `pack` on it and returns the result.
fn packed(
    data: &[u8],
    pack: impl FnOnce(&mut [u8], Range<usize>) -> Result<Range<usize>, ProtocolError>,
) -> Vec<u8> {
    let mut record = vec![0x5a; ROOM];
    record.extend_from_slice(data);
    record.resize(record.len() + ROOM, 0xa5);
    let range = pack(&mut record, ROOM..ROOM + data.len()).unwrap();
    record[range].to_vec()
}

impl Exchange {
    fn sizes(&self) -> std::sync::Arc<PaddingSizes> {
        match self.kind.family() {
            ProtocolFamily::Chain(kind) => PaddingSizes::new(kind, &self.key, 4, 0).into(),
            _ => panic!("not of this family"),
        }
    }

    /// Rebuilds the first message and returns its length.
    fn head(&self) -> usize {
        let wire = &mut self.requests[0].wire.clone();
        let user = self.user();
        let iv_key = [&self.iv[..], &self.key].concat();
        let whole = "the message is whole";
        let (again, consumed) = match self.kind.family() {
            ProtocolFamily::Crc { auth: true } => {
                let HandshakeProgress::Done(found) = simple::read_message(wire).unwrap() else {
                    panic!("{whole}");
                };
                let data = [&found.hello.to_bytes()[..], &wire[found.payload.clone()]].concat();
                let block = &wire[2..found.payload.start - HELLO_LEN];
                let (pad, mut rng) = PaddingBlock::again(block, LengthEncoding::Byte);
                let again = packed(&data, |r, p| pack_crc(r, p, pad, &mut rng));
                (again, found.consumed)
            }
            ProtocolFamily::Adler(kind) => {
                let head = Sha1Head {
                    kind,
                    name: self.kind.name(),
                    key: &self.key,
                    iv: &self.iv,
                };
                let HandshakeProgress::Done(found) = head.read_message(wire).unwrap() else {
                    panic!("{whole}");
                };
                let block = &wire[6..found.payload.start - HELLO_LEN];
                let (pad, mut rng) = PaddingBlock::again(block, kind.pad_style());
                let data = &wire[found.payload.clone()];
                let again = packed(data, |r, p| {
                    head.pack_message(&found.hello, r, p, pad, &mut rng)
                });
                (again, found.consumed)
            }
            ProtocolFamily::Mac(kind) => {
                let iv_key = &iv_key;
                let head = AesHead { kind, iv_key };
                let HandshakeProgress::Done((found, _)) =
                    head.read_message(wire, |_| Some(&user), |_| true).unwrap()
                else {
                    panic!("{whole}");
                };
                let uid = *wire[7..].first_chunk().unwrap();
                let n = found.payload.start - 31;
                let mut rng = FixedEntropy::new([&wire[..1], &wire[31..31 + n]].concat());
                let data = &wire[found.payload.clone()];
                let again = packed(data, |r, p| {
                    head.pack_message((&user, uid), &found.hello, r, p, n, &mut rng)
                });
                (again, found.consumed)
            }
            ProtocolFamily::Chain(_) => {
                let find = |uid: u32| {
                    assert!(self.client_param.is_empty() || uid == 42);
                    Some(&user)
                };
                let HandshakeProgress::Done((found, uid, _)) =
                    chain::read_message(&iv_key, wire, find).unwrap()
                else {
                    panic!("{whole}");
                };
                let mut rng = FixedEntropy::new(&wire[..4]);
                let uid = uid.to_le_bytes();
                let again = chain::pack_message(&iv_key, &user, uid, &found.hello, 4, &mut rng);
                (again.unwrap().0.to_vec(), found.consumed)
            }
            _ => return 0,
        };
        assert!(again == wire[..consumed], "{}", self.kind);
        consumed
    }

    /// Rebuilds frames, one by one.
    fn frames(&self, wire: &[u8], open: FrameOpener, mut seal: FrameSeal) {
        let (mut open, mut at) = (FrameOpen(open), 0);
        while at < wire.len() {
            let mss = open.segment_size();
            let mut opened = wire[at..].to_vec();
            let Ok(OpenedFrame::Plain { consumed, payload }) = open.open_frame(&mut opened) else {
                panic!("{}: a frame at {at}", self.kind);
            };
            let (data, frame) = (&opened[payload.clone()], &wire[at..at + consumed]);
            let block = |head| &frame[head..payload.start];
            let again = match &mut seal {
                FrameSeal::Crc => {
                    let (pad, mut rng) = PaddingBlock::again(block(2), LengthEncoding::Byte);
                    packed(data, |r, p| pack_crc(r, p, pad, &mut rng))
                }
                FrameSeal::Adler(kind) => {
                    let head = if *kind == AdlerKind::V4 { 4 } else { 2 };
                    let (pad, mut rng) = PaddingBlock::again(block(head), kind.pad_style());
                    packed(data, |r, p| kind.pack_frame(r, p, pad, &mut rng))
                }
                FrameSeal::Tagged(frames) => {
                    let (pad, mut rng) = PaddingBlock::again(block(4), LengthEncoding::Little);
                    packed(data, |r, p| frames.pack_frame(r, p, pad, &mut rng))
                }
                FrameSeal::Chained(frames) => {
                    // The segment size in front of the first data is part of the frame's data.
                    let start = payload.start - if open.segment_size() == mss { 0 } else { 2 };
                    let noise = [&frame[2..start], &frame[payload.end..consumed - 2]].concat();
                    let mut rng = FixedEntropy::new(noise);
                    packed(data, |r, p| frames.seal_data(r, p, &mut rng))
                }
                _ => panic!("no frames to rebuild"),
            };
            assert!(again == frame, "{} at {at}", self.kind);
            at += consumed;
        }
    }
}

#[test]
fn first_messages() {
    let heads = Exchange::all()
        .iter()
        .filter(|case| case.head() > 0)
        .count();
    assert_eq!(heads, 21);
}

#[test]
fn frames() {
    for case in Exchange::all() {
        let user = case.user();
        let (requests, answers) = (wires(&case.requests), wires(&case.answers));
        // The rest of the first frame of `auth_simple` is written with the head.
        let requests = &requests[case.head()..];
        match case.kind.family() {
            ProtocolFamily::Crc { .. } => {
                case.frames(requests, FrameOpener::Crc, FrameSeal::Crc);
                case.frames(&answers, FrameOpener::Crc, FrameSeal::Crc);
            }
            ProtocolFamily::Adler(kind) => {
                case.frames(requests, FrameOpener::Adler(kind), FrameSeal::Adler(kind));
                case.frames(&answers, FrameOpener::Adler(kind), FrameSeal::Adler(kind));
            }
            ProtocolFamily::Mac(kind) => {
                let frames = || TaggedCodec::new(kind, user.key());
                for wire in [requests, &answers] {
                    let seal = FrameSeal::Tagged(frames());
                    case.frames(wire, FrameOpener::Tagged(frames()), seal);
                }
            }
            ProtocolFamily::Chain(_) => {
                let start = case.start();
                let frames = || Box::new(start.request_codec(case.sizes(), &user));
                let seal = FrameSeal::Chained(frames());
                case.frames(requests, FrameOpener::Chained(frames()), seal);
                let open = start.answer_codec(case.sizes(), &user).expecting_mss();
                let seal = start.answer_codec(case.sizes(), &user).reporting_mss(1460);
                let seal = FrameSeal::Chained(Box::new(seal));
                case.frames(&answers, FrameOpener::Chained(Box::new(open)), seal);
            }
            ProtocolFamily::OneTime => one_time(&case),
            // Compressed bytes depend on the compressor.
            ProtocolFamily::Deflate | ProtocolFamily::Origin => {}
        }
    }
}

/// `verify_sha1` has no random bytes, so complete writes are identical.
fn one_time(case: &Exchange) {
    let (mut seal, _) = case
        .client()
        .connect_codecs(&case.iv, case.now, &mut FixedEntropy::default())
        .unwrap();
    for Write { plain, wire } in &case.requests {
        // The reference splits writes at the same sizes as adit.
        let again = adit_wire::codec_laws::seal_all(&mut seal, plain, usize::MAX).unwrap();
        assert!(again == *wire, "a write of {}", plain.len());
    }
}
