//! Both ends of an obfuscation, with matching settings.

use std::sync::Arc;

use adit_obfs::{
    Browser, ClientSettings, ClientState, Codecs, ObfsKind, ObfsParam, ServerHandshake,
    ServerSettings, ServerState, UnrecognizedPolicy,
};
use adit_wire::codec_laws::seal_all;
use adit_wire::{Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, ProtocolError};

use crate::{NOW, SeededRng};

const KEY: &[u8] = b"0123456789abcdef";

/// Returns a client's state, the same for the same seed.
///
/// # Panics
/// Never.
#[must_use]
pub fn new_client_state(kind: ObfsKind, seed: u64) -> ClientState {
    let param = ObfsParam::parse("a.com").expect("a host");
    let server = "example.test:8388".parse().expect("a target");
    let mut settings = ClientSettings::new(kind, &param, &server);
    settings.key = KEY;
    settings.password = KEY;
    settings.browser = if seed & 1 == 0 {
        Browser::Chrome
    } else {
        Browser::Firefox
    };
    settings.url_bytes = 46;
    ClientState::new(&settings, &mut SeededRng(seed)).expect("right settings")
}

/// Returns a server's state; `hosts` are those it accepts.
///
/// # Panics
/// Panics if `hosts` is not a valid parameter.
#[must_use]
pub fn new_server_state(kind: ObfsKind, strangers: UnrecognizedPolicy, hosts: &str) -> ServerState {
    let param = ObfsParam::parse(hosts).expect("hosts");
    let mut settings = ServerSettings::new(kind, &param, Arc::new(NOW));
    settings.unrecognized = strangers;
    settings.key = KEY;
    settings.password = KEY;
    ServerState::new(&settings, &mut SeededRng(1)).expect("right settings")
}

/// Returns a server's handshake, the same each time.
pub fn new_server_handshake(state: &ServerState) -> ServerHandshake {
    state.new_handshake(&mut SeededRng(5))
}

/// Everything that the two ends send to each other.
#[derive(Debug)]
pub struct Transcript {
    /// From the client: `hello_len` bytes, then the rest.
    pub request: Vec<u8>,
    /// Number of bytes that the client sends without an answer.
    pub hello_len: usize,
    /// From the server: `flight_len` bytes of its handshake, then `data`, sealed.
    pub response: Vec<u8>,
    /// Number of bytes of the server's handshake.
    pub flight_len: usize,
}

/// Steps a handshake over the bytes it has.
fn step_handshake<H: Handshake<Output = Codecs, Error = ProtocolError>>(
    core: &mut H,
    held: &mut Vec<u8>,
) -> (Option<Codecs>, Vec<u8>) {
    let mut sent = Vec::new();
    let mut rx = HandshakeInput::new(held);
    let step = core.step(&mut rx, &mut HandshakeOutput::new(&mut sent));
    let codecs = match step.expect("the peer's own bytes") {
        HandshakeProgress::Done(codecs) => Some(codecs),
        HandshakeProgress::NeedMore { .. } => None,
    };
    let eaten = rx.consumed();
    held.drain(..eaten);
    (codecs, sent)
}

/// Returns the bytes of a whole connection on which both sides send `data` in pieces.
///
/// # Panics
/// Panics if the two ends reject each other's bytes.
#[must_use]
pub fn record_connection(kind: ObfsKind, seed: u64, data: &[u8], piece: usize) -> Transcript {
    let state = new_client_state(kind, seed);
    let mut here = state.new_handshake(NOW, &mut SeededRng(seed));
    let mut there = new_server_handshake(&new_server_state(kind, UnrecognizedPolicy::Refuse, ""));
    let (mut near, mut far) = (Vec::new(), Vec::new());
    let (mut ours, mut request) = step_handshake(&mut here, &mut near);
    let hello = request.len();
    let (mut theirs, mut response) = (None, Vec::new());
    if hello > 0 {
        far.extend_from_slice(&request);
        (theirs, response) = step_handshake(&mut there, &mut far);
    }
    if ours.is_none() {
        near.extend_from_slice(&response);
        (ours, _) = step_handshake(&mut here, &mut near);
    }
    let mut ours = ours.expect("the client's codecs");
    let sealed = seal_all(&mut ours.seal, data, piece).expect("sealed");
    request.extend_from_slice(&sealed);
    if theirs.is_none() {
        far.extend_from_slice(&sealed);
        let late;
        (theirs, late) = step_handshake(&mut there, &mut far);
        response.extend(late);
    }
    let flight = response.len();
    // With little data, an HTTP request is incomplete and is not answered.
    if let Some(mut theirs) = theirs {
        response.extend(seal_all(&mut theirs.seal, data, piece).expect("sealed"));
    }
    Transcript {
        request,
        hello_len: hello,
        response,
        flight_len: flight,
    }
}
