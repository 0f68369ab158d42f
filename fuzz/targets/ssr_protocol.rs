//! The protocols of ShadowsocksR, both sides: streams that are raw, genuine except for one byte, or
//! genuine at their beginning.

#![no_main]

use adit_fuzz::ssr_pair::{UID, new_pair, open_frames};
use adit_fuzz::{ActionScript, NOW, SeededRng, SplitInput, alter_byte};
use adit_shadowsocksr::{AcceptedConnection, Protocol, ProtocolKind};
use adit_wire::codec_laws::seal_all;
use adit_wire::{HandshakeProgress, ProtocolError};
use libfuzzer_sys::fuzz_target;

const IV: [u8; 16] = [9; 16];
/// The beginning of a first payload: the target header.
const TARGET_HEADER: [u8; 7] = [1, 127, 0, 0, 1, 0, 80];

struct ProtocolCase {
    protocol: Protocol,
    users: bool,
    seed: u64,
}

/// The server's result for a stream.
#[derive(Debug, PartialEq, Eq)]
struct ServerOutcome {
    uid: Option<u32>,
    fell_back: bool,
    plain: Vec<u8>,
    waiting: usize,
}

/// Everything that a client sends and receives.
struct Transcript {
    request: Vec<u8>,
    request_data: Vec<u8>,
    response: Vec<u8>,
    response_data: Vec<u8>,
}

impl ProtocolCase {
    fn kind(&self) -> ProtocolKind {
        self.protocol.kind
    }

    fn accept_stream(
        &self,
        wire: &[u8],
        pieces: &[usize],
    ) -> Result<Option<(AcceptedConnection, usize)>, ProtocolError> {
        let (_, server) = new_pair(self.protocol, self.users);
        let mut handshake = server.new_handshake(&IV, 1460, &mut SeededRng(2));
        let (mut held, mut rest) = (Vec::new(), wire);
        let mut pieces = pieces.iter().cycle();
        loop {
            match handshake.step(&mut held, NOW)? {
                HandshakeProgress::Done(accepted) => {
                    assert!(accepted.payload.end <= accepted.consumed);
                    assert!(accepted.consumed <= held.len());
                    return Ok(Some((accepted, held.len())));
                }
                HandshakeProgress::NeedMore { total } => {
                    assert!(
                        total > held.len(),
                        "NeedMore must ask for more than there is"
                    );
                    assert_eq!(held, wire[..held.len()], "a wait changes nothing");
                    if rest.is_empty() {
                        return Ok(None);
                    }
                    while held.len() < total && !rest.is_empty() {
                        let piece = pieces.next().copied().unwrap_or(1);
                        let (now, later) = rest.split_at(rest.len().min(piece));
                        held.extend_from_slice(now);
                        rest = later;
                    }
                }
            }
        }
    }

    fn serve_stream(
        &self,
        wire: &[u8],
        pieces: &[usize],
    ) -> Result<Option<ServerOutcome>, ProtocolError> {
        let (_, server) = new_pair(self.protocol, self.users);
        let Some((_, len)) = self.accept_stream(wire, pieces)? else {
            return Ok(None);
        };
        // Once more, to obtain the bytes as the handshake left them.
        let mut held = wire[..len].to_vec();
        let mut handshake = server.new_handshake(&IV, 1460, &mut SeededRng(2));
        let HandshakeProgress::Done(mut accepted) = handshake.step(&mut held, NOW)? else {
            panic!("it was complete before");
        };
        let mut plain = held[accepted.payload.clone()].to_vec();
        held.drain(..accepted.consumed);
        let (more, waiting) = open_frames(&mut accepted.open, held, &wire[len..], pieces)?;
        plain.extend(more);
        let (uid, fell_back) = (accepted.uid, accepted.fell_back);
        Ok(Some(ServerOutcome {
            uid,
            fell_back,
            plain,
            waiting,
        }))
    }

    /// Returns the answers that a client reads from arbitrary bytes.
    fn read_response(
        &self,
        wire: &[u8],
        pieces: &[usize],
    ) -> Result<(Vec<u8>, usize), ProtocolError> {
        let (client, _) = new_pair(self.protocol, self.users);
        let codecs = client.connect_codecs(&IV, NOW, &mut SeededRng(self.seed));
        let (_, mut open) = codecs.expect("a client");
        open_frames(&mut open, Vec::new(), wire, pieces)
    }

    fn record_connection(&self, data: &[u8], piece: usize) -> Transcript {
        let (client, _) = new_pair(self.protocol, self.users);
        let codecs = client.connect_codecs(&IV, NOW, &mut SeededRng(self.seed));
        let (mut seal, _) = codecs.expect("a client");
        let asked = [&TARGET_HEADER, data].concat();
        let piece = piece.max(TARGET_HEADER.len());
        let request = seal_all(&mut seal, &asked, piece).expect("sealed");
        let accepted = self
            .accept_stream(&request, &[usize::MAX])
            .expect("genuine");
        let (mut accepted, _) = accepted.expect("complete");
        let response = seal_all(&mut accepted.seal, data, piece).expect("sealed");
        Transcript {
            request,
            request_data: asked,
            response,
            response_data: data.to_vec(),
        }
    }

    /// Returns true if the data from an altered stream is certainly the beginning of the original
    /// data: the tags are long enough, or the check detects any single altered byte.
    fn detects_alteration(&self) -> bool {
        let kind = self.kind();
        !matches!(kind, ProtocolKind::Origin | ProtocolKind::VerifyDeflate)
            && kind < ProtocolKind::AuthChainA
    }

    fn check_altered_request(&self, transcript: &Transcript, wire: &[u8], told: &ServerOutcome) {
        if told.fell_back {
            assert!(self.protocol.compatible && told.plain == wire);
            return;
        }
        assert_eq!(told.uid, self.expected_uid(), "taken for another user");
        if self.detects_alteration() {
            assert!(transcript.request_data.starts_with(&told.plain));
        }
    }

    fn expected_uid(&self) -> Option<u32> {
        (self.users && self.kind().has_users()).then_some(UID)
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let kind = script.pick_one(&ProtocolKind::ALL);
    let flags = script.read_u8();
    let compatible = flags & 1 != 0 && kind.has_compatible();
    let case = ProtocolCase {
        protocol: Protocol { kind, compatible },
        users: flags & 2 != 0,
        seed: u64::from(flags >> 5),
    };
    let SplitInput { sizes, bytes } = SplitInput::new(script.take_rest());
    let served = |wire: &[u8]| {
        let sizes = sizes.clone();
        SplitInput { sizes, bytes: wire }.assert_split_independent(|w, p| case.serve_stream(w, p))
    };
    let heard = |wire: &[u8]| {
        let sizes = sizes.clone();
        SplitInput { sizes, bytes: wire }.assert_split_independent(|w, p| case.read_response(w, p))
    };
    let mode = (flags >> 2) % 6;
    if mode < 2 {
        if mode == 0 {
            if let Ok(Some(told)) = served(bytes) {
                assert!(
                    told.fell_back || !kind.is_authenticated(),
                    "accepted without a key"
                );
                assert!(!told.fell_back || told.plain == bytes);
            }
        } else {
            let _ = heard(bytes);
        }
        return;
    }
    let mut script = ActionScript::new(bytes);
    let (place, flip, piece) = (script.read_u16(), script.read_u8(), script.read_u16());
    let data = script.take_rest();
    let transcript = case.record_connection(data, usize::from(piece));
    match mode {
        2 => {
            let whole = ServerOutcome {
                uid: case.expected_uid(),
                fell_back: false,
                plain: transcript.request_data.clone(),
                waiting: 0,
            };
            assert_eq!(served(&transcript.request), Ok(Some(whole)));
            let mut wire = transcript.request.clone();
            alter_byte(&mut wire, place, flip);
            if let Ok(Some(told)) = served(&wire) {
                case.check_altered_request(&transcript, &wire, &told);
            }
        }
        3 => {
            // Arbitrary bytes after a genuine beginning.
            let wire = [&transcript.request, data].concat();
            if let Ok(Some(told)) = served(&wire) {
                assert!(
                    told.plain.starts_with(&transcript.request_data)
                        && told.uid == case.expected_uid()
                );
            }
        }
        4 => {
            assert_eq!(
                heard(&transcript.response),
                Ok((transcript.response_data.clone(), 0))
            );
            let mut wire = transcript.response;
            if !wire.is_empty() {
                alter_byte(&mut wire, place, flip);
            }
            // The server's stream of this protocol is not authenticated.
            let open = kind == ProtocolKind::VerifySha1;
            if let Ok((plain, _)) = heard(&wire)
                && case.detects_alteration()
                && !open
            {
                assert!(transcript.response_data.starts_with(&plain));
            }
        }
        _ => {
            let wire = [&transcript.response, data].concat();
            if let Ok((plain, _)) = heard(&wire) {
                assert!(plain.starts_with(&transcript.response_data));
            }
        }
    }
});
