//! The server's side: the state that connections of one listener share, and the handshake of each
//! connection.

mod state;

use std::sync::Arc;

use adit_wire::{Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, ProtocolError};

pub use state::{HelloRestoreError, ServerSettings, ServerState};
use state::{Recognition, SharedState};

use crate::http::{RequestReader, response_head};
use crate::obfs_kind::UnrecognizedPolicy;
use crate::quiet::ServerAnswer;
use crate::random_head;
use crate::tls::{ServerFlight, Tagger, parse_client_hello, parse_end, read_end, read_hello};
use crate::{Codecs, ObfsOpen, ObfsSeal};

/// The handshake of one connection, from the first byte to the codecs.
///
/// Until the client has proved itself, nothing is sent, consumed or changed. After an error for
/// which [`is_answered`](Self::is_answered) is false, the caller still has every received byte, and may
/// relay them to a decoy ([`crate::RedirectRule`]) or drain the connection. It must treat all causes
/// alike. After an answer it can only close the connection.
///
/// With [`UnrecognizedPolicy::PassOn`] a client that uses another protocol is not an error: the codecs
/// change nothing, and the received bytes are the first data.
pub struct ServerHandshake {
    shared: Arc<SharedState>,
    state: State,
    answered: bool,
}

enum State {
    Plain,
    Request(RequestReader),
    RandomHead(Vec<u8>),
    TlsHello(Box<ServerFlight>),
    TlsEnd(Tagger),
    GoQuietHello(Box<ServerAnswer>),
    QuietEnd,
    Over,
}

impl ServerHandshake {
    /// True if the client was recognized and answered.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        self.answered
    }

    /// Ends a handshake that still waits for more bytes, after the time of
    /// [`ServerState::hello_timeout`] or because the client has finished. An unrecognized client may
    /// still be passed on.
    ///
    /// # Errors
    ///
    /// Returns `ProtocolError::Truncated` unless the client is passed on.
    pub fn handle_timeout(&mut self) -> Result<Codecs, ProtocolError> {
        self.state = State::Over;
        self.handle_unrecognized(ProtocolError::Truncated("the client's hello"))
    }

    fn handle_unrecognized(&self, why: ProtocolError) -> Result<Codecs, ProtocolError> {
        match self.shared.unrecognized {
            UnrecognizedPolicy::PassOn if !self.answered => Ok(Codecs::new_raw()),
            _ => Err(why),
        }
    }

    /// Reads one message; returns `None` if another follows.
    fn advance_state(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        tx: &mut HandshakeOutput<'_>,
    ) -> Result<Option<HandshakeProgress<Codecs>>, ProtocolError> {
        let now = self.shared.clock.unix_time();
        let judge = &self.shared.recognition;
        // Unwraps a step, or returns its `HandshakeProgress::NeedMore`.
        macro_rules! done {
            ($step:expr) => {
                match $step? {
                    HandshakeProgress::NeedMore { total } => {
                        return Ok(Some(HandshakeProgress::NeedMore { total }))
                    }
                    HandshakeProgress::Done(found) => found,
                }
            };
        }
        let (codecs, next) = match (&mut self.state, judge) {
            (State::Plain, _) => (Some(Codecs::new_raw()), State::Over),
            (State::Request(reader), Recognition::Hosts(hosts)) => {
                done!(reader.read_head(rx, hosts));
                let codecs = Codecs {
                    seal: ObfsSeal::with_response_head(response_head(now)),
                    open: ObfsOpen::new_raw(),
                };
                (Some(codecs), State::Over)
            }
            (State::RandomHead(answer), _) => {
                done!(random_head::read_client_head(rx));
                tx.extend_from_slice(answer);
                (Some(Codecs::new_raw()), State::Over)
            }
            (State::TlsHello(flight), Recognition::Tag { key, window, seen }) => {
                let (len, tagger) = done!(read_hello(rx.bytes(), key.expose(), *window, seen, now));
                rx.consume(len);
                tx.extend_from_slice(&flight.encode(&tagger, now));
                (None, State::TlsEnd(tagger))
            }
            (State::TlsEnd(tagger), _) => {
                rx.consume(done!(read_end(rx.bytes(), tagger)));
                (Some(record_codecs()), State::Over)
            }
            (State::GoQuietHello(answer), Recognition::Proof { key, seen }) => {
                let hello = done!(parse_client_hello(rx.bytes()));
                key.check_proof(&hello.random, now)?;
                seen.insert_hello(&hello.random, now)?;
                rx.consume(hello.len);
                tx.extend_from_slice(&answer.encode(&hello.session));
                (None, State::QuietEnd)
            }
            (State::QuietEnd, _) => {
                rx.consume(done!(parse_end(rx.bytes())));
                (Some(record_codecs()), State::Over)
            }
            _ => return Err(ProtocolError::Malformed("handshake: already finished")),
        };
        self.state = next;
        self.answered = true;
        Ok(codecs.map(HandshakeProgress::Done))
    }
}

fn record_codecs() -> Codecs {
    Codecs {
        seal: ObfsSeal::new_records(),
        open: ObfsOpen::new_records(),
    }
}

impl Handshake for ServerHandshake {
    type Output = Codecs;
    type Error = ProtocolError;

    fn step(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        tx: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<Codecs>, ProtocolError> {
        loop {
            match self.advance_state(rx, tx) {
                Ok(Some(step)) => return Ok(step),
                Ok(None) => {}
                Err(why) => {
                    let over = matches!(self.state, State::Over);
                    self.state = State::Over;
                    return match over {
                        true => Err(why),
                        false => self.handle_unrecognized(why).map(HandshakeProgress::Done),
                    };
                }
            }
        }
    }
}
