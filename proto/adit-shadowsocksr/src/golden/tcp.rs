//! Opens every exchange of the reference implementation, in one chunk and byte by byte.

use adit_wire::{FixedEntropy, HandshakeProgress};

use super::{Exchange, plains, wires};
use crate::chain_padding::PaddingSizes;
use crate::frame::{FrameOpen, FrameOpener, TaggedCodec};
use crate::head;
use crate::protocol_kind::ProtocolFamily;
use crate::tests::{open_all, serve};
use crate::user_key::UserKey;

impl Exchange {
    /// Returns the key of a request.
    pub(super) fn user(&self) -> UserKey {
        match self.client_param.split_once(':') {
            Some((_, password)) => {
                UserKey::from_password(self.kind, &self.key, password.as_bytes())
            }
            None => UserKey::from_port_key(self.kind, &self.key),
        }
    }

    /// Returns the initial state of both directions, from the recorded request.
    pub(super) fn start(&self) -> head::chain::ChainStart {
        let iv_key = [&self.iv[..], &self.key].concat();
        let user = self.user();
        let wire = wires(&self.requests);
        match head::chain::read_message(&iv_key, &wire, |_| Some(&user)).unwrap() {
            HandshakeProgress::Done((_, _, start)) => start,
            HandshakeProgress::NeedMore { .. } => panic!("the head is complete"),
        }
    }

    /// Returns the codec of the client that sent the recorded request.
    fn client_open(&self) -> FrameOpen {
        let user = self.user();
        match self.kind.family() {
            ProtocolFamily::Mac(kind) => {
                FrameOpen(FrameOpener::Tagged(TaggedCodec::new(kind, user.key())))
            }
            ProtocolFamily::Chain(kind) => {
                let sizes = PaddingSizes::new(kind, &self.key, 4, 0);
                let frames = self
                    .start()
                    .answer_codec(sizes.into(), &user)
                    .expecting_mss();
                FrameOpen(FrameOpener::Chained(Box::new(frames)))
            }
            _ => {
                let rng = &mut FixedEntropy::default();
                self.client()
                    .connect_codecs(&self.iv, self.now, rng)
                    .unwrap()
                    .1
            }
        }
    }
}

#[test]
fn requests_are_opened() {
    for case in Exchange::all() {
        for piece in [usize::MAX, 1, 7, 1460] {
            let server = case.server();
            let mut handshake = server.new_handshake(&case.iv, 1460, &mut FixedEntropy::default());
            let wire = wires(&case.requests);
            let (plain, accepted) = serve(&mut handshake, &wire, piece, case.now).unwrap();
            assert!(plain == plains(&case.requests), "{} {piece}", case.kind);
            let uid = (!case.client_param.is_empty()).then_some(42);
            assert_eq!(accepted.uid, uid);
            assert!(!accepted.fell_back);
        }
    }
}

#[test]
fn answers_are_opened() {
    for case in Exchange::all() {
        for piece in [usize::MAX, 1, 7, 1460] {
            let mut open = case.client_open();
            let plain = open_all(&mut open, &wires(&case.answers), piece).unwrap();
            assert!(plain == plains(&case.answers), "{} {piece}", case.kind);
            let is_chain = matches!(case.kind.family(), ProtocolFamily::Chain(_));
            assert_eq!(
                open.segment_size(),
                is_chain.then_some(1460),
                "{}",
                case.kind
            );
        }
    }
}

#[test]
fn every_flipped_bit_of_a_first_message_is_noticed() {
    for case in Exchange::all()
        .iter()
        .filter(|case| case.kind.is_authenticated())
    {
        let wire = &case.requests[0].wire;
        let open = |wire: &[u8]| {
            let mut wire = wire.to_vec();
            let mut handshake =
                case.server()
                    .new_handshake(&case.iv, 1460, &mut FixedEntropy::default());
            match handshake.step(&mut wire, case.now) {
                Ok(HandshakeProgress::Done(accepted)) => Some(accepted.consumed),
                _ => None,
            }
        };
        let len = open(wire).unwrap();
        for bit in (0..len * 8).step_by(3) {
            let mut wire = wire.clone();
            wire[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&wire), None, "{} bit {bit}", case.kind);
        }
    }
}
