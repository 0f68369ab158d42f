//! Complete connections of the reference implementation, including obfs.

use std::sync::Arc;

use adit_obfs::{ClientSettings, ClientState, ObfsKind, ObfsParam, ServerSettings, ServerState};
use adit_wire::codec_laws::{open_all as law_open_all, run_handshake};
use adit_wire::{
    FixedEntropy, Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, UnixTime,
};
use serde_json::Value;

use super::{ClientStack, ServerStack, StackOpen, open_all};
use crate::frame::{FrameOpen, FrameOpener};
use crate::golden::{hex, text, vectors};
use crate::protocol_kind::ProtocolFamily;
use crate::tests::TestRng;
use crate::user_key::UserKey;
use crate::{ClientParam, ProtocolKind, ReplayStore, ServerParam};
use adit_crypto::StreamKind;

struct Case {
    method: StreamKind,
    kind: ProtocolKind,
    obfs: ObfsKind,
    password: Vec<u8>,
    key: Vec<u8>,
    param: String,
    overhead: u16,
    now: UnixTime,
    steps: Vec<Value>,
}

fn cases() -> Vec<Case> {
    let read = |case: &Value| {
        let obfs: ObfsKind = text(&case["obfs"]).parse().unwrap();
        Case {
            method: text(&case["method"]).parse().unwrap(),
            kind: text(&case["protocol"]).parse().unwrap(),
            password: hex(&case["password"]),
            key: hex(&case["key"]),
            param: text(&case["client_protocol_param"]).to_owned(),
            overhead: u16::try_from(obfs.overhead()).unwrap(),
            now: UnixTime(case["time"].as_u64().unwrap()),
            steps: case["steps"].as_array().unwrap().clone(),
            obfs,
        }
    };
    let all: Vec<Case> = vectors("full_stack").iter().map(read).collect();
    assert_eq!(all.len(), 7);
    all
}

impl Case {
    /// The bytes that one side sent or received, in one chunk.
    fn all(&self, dir: &str, field: &str) -> Vec<u8> {
        let steps = self.steps.iter().filter(|step| step["dir"] == dir);
        steps.flat_map(|step| hex(&step[field])).collect()
    }

    fn server(&self) -> Arc<ServerStack> {
        let users = match self.param.as_str() {
            "" => String::new(),
            user => format!("64#{user}"),
        };
        let param = ServerParam::parse(self.kind, &users).unwrap();
        let replays = ReplayStore::new([7; 16], self.now).into();
        let (kind, overhead) = (self.kind.into(), self.overhead);
        let stack = ServerStack::new(self.method, &self.password, kind, &param, overhead, replays);
        Arc::new(stack.unwrap())
    }

    /// Returns the requests without their obfs, as opened by our server's obfs.
    fn requests(&self, piece: usize) -> Vec<u8> {
        let param = ObfsParam::default();
        let mut settings = ServerSettings::new(self.obfs, &param, Arc::new(self.now));
        settings.key = &self.key;
        settings.password = &self.password;
        let state = ServerState::new(&settings, &mut TestRng(1)).unwrap();
        let mut handshake = state.new_handshake(&mut TestRng(2));
        let wire = self.all("c2s", "wire");
        let (step, _, held) = run_handshake(&mut handshake, &wire, &[piece]).unwrap();
        let HandshakeProgress::Done(mut codecs) = step else {
            panic!("the obfs of the request is complete");
        };
        let (plain, left) = law_open_all(&mut codecs.open, &held, &[piece]).unwrap();
        assert_eq!(left, 0);
        plain
    }

    /// Returns the answers without their obfs, as opened by our client's obfs.
    fn answers(&self, piece: usize) -> Vec<u8> {
        let param = ObfsParam::parse("example.com").unwrap();
        let server = "127.0.0.1:443".parse().unwrap();
        let mut settings = ClientSettings::new(self.obfs, &param, &server);
        settings.key = &self.key;
        settings.password = &self.password;
        // The session id of the recorded hello, to which the answers are bound; it is drawn first.
        let hello = hex(&self.steps[0]["wire"]);
        let id = hello.get(44..76).unwrap_or_default();
        let state = ClientState::new(&settings, &mut FixedEntropy::new(id)).unwrap();
        let mut handshake = state.new_handshake(self.now, &mut TestRng(3));
        let mut wire = self.all("s2c", "wire");
        let mut rx = HandshakeInput::new(&mut wire);
        let step = handshake.step(&mut rx, &mut HandshakeOutput::new(&mut Vec::new()));
        let Ok(HandshakeProgress::Done(mut codecs)) = step else {
            panic!("the answer is complete: {step:?}");
        };
        let rest = rx.bytes();
        let (plain, left) = law_open_all(&mut codecs.open, rest, &[piece]).unwrap();
        assert_eq!(left, 0);
        plain
    }

    /// Returns the codec of the client that sent the recorded request.
    fn client_open(&self) -> StackOpen {
        let param = ClientParam::parse(self.kind, &self.param).unwrap();
        let stack =
            ClientStack::new(self.method, &self.password, self.kind, param, self.overhead).unwrap();
        let target = "example.com:80".parse().unwrap();
        let (_, open) = stack
            .connect_codecs(&target, self.now, &mut TestRng(4))
            .unwrap();
        let ProtocolFamily::Chain(kind) = self.kind.family() else {
            return open;
        };
        // The initial state of these frames is in the request.
        let requests = self.requests(usize::MAX);
        let (iv, message) = requests.split_at(self.method.iv_len());
        let key = adit_crypto::StreamKey::new(self.method, &self.key).unwrap();
        let mut message = message.to_vec();
        let mut cipher = key
            .start_stream(iv, adit_crypto::Direction::Decrypt)
            .unwrap();
        cipher.apply(&mut message);
        let user = UserKey::from_port_key(self.kind, &self.key);
        let iv_key = [iv, &self.key].concat();
        let found = crate::head::chain::read_message(&iv_key, &message, |_| Some(&user)).unwrap();
        let HandshakeProgress::Done((_, _, start)) = found else {
            panic!("the first message is complete");
        };
        let overhead = self.overhead + 4;
        let sizes = crate::chain_padding::PaddingSizes::new(kind, &self.key, overhead, 0);
        let frames = start.answer_codec(sizes.into(), &user).expecting_mss();
        let frames = FrameOpen(FrameOpener::Chained(Box::new(frames)));
        StackOpen::awaiting_iv(key.into(), frames)
    }
}

#[test]
fn requests_of_the_reference_are_served() {
    for case in cases() {
        for piece in [usize::MAX, 1, 7, 1460] {
            let wire = case.requests(piece);
            let server = case.server();
            let mut handshake = server.new_handshake(1460, Arc::new(case.now), &mut TestRng(5));
            let (step, _, mut held) = run_handshake(&mut handshake, &wire, &[piece]).unwrap();
            let HandshakeProgress::Done(mut accepted) = step else {
                panic!("the request is complete");
            };
            let name = format!("{} {} {}", case.method, case.kind, case.obfs);
            assert_eq!(accepted.target.to_string(), "example.com:80", "{name}");
            assert_eq!(
                accepted.uid,
                (!case.param.is_empty()).then_some(42),
                "{name}"
            );
            let mut plain = header_of(&accepted.target);
            plain.append(&mut accepted.first);
            plain.extend(open_all(&mut accepted.open, &mut held, &[], 1));
            assert!(plain == case.all("c2s", "plain"), "{name} {piece}");
        }
    }
}

fn header_of(target: &adit_wire::Target) -> Vec<u8> {
    let mut header = Vec::new();
    adit_wire::encode_addr(target, &mut header);
    header
}

#[test]
fn answers_of_the_reference_are_opened() {
    for case in cases() {
        for piece in [usize::MAX, 1, 7, 1460] {
            let wire = case.answers(piece);
            let mut open = case.client_open();
            let plain = open_all(&mut open, &mut Vec::new(), &wire, piece.min(wire.len()));
            let name = format!("{} {} {}", case.method, case.kind, case.obfs);
            assert!(plain == case.all("s2c", "plain"), "{name} {piece}");
            assert!(open.progress().is_answered());
        }
    }
}
