//! A server's side: what the connections of one listener share, and the handshake of each.

mod state;

use std::sync::Arc;

use adit_wire::{Handshake, ProtocolError, Rx, Step, Tx};

use state::{Inner, Judge};
pub use state::{ServerSettings, ServerState};

use crate::http::{RequestReader, response_head};
use crate::kind::Strangers;
use crate::quiet::Answer;
use crate::random_head;
use crate::tls::{Flight, Tagger, parse_client_hello, parse_end, read_end, read_hello};
use crate::{Codecs, ObfsOpen, ObfsSeal};

/// The handshake of one connection, from the first byte to the codecs.
///
/// Until the client has proven itself nothing is sent, nothing is eaten and nothing is altered:
/// after an error for which [`answered`](Self::answered) is false, the driver still holds every
/// byte that was received, and may relay them to a decoy ([`crate::Redirect`]) or drain the
/// connection. It treats all causes alike. After an answer there is only the end.
///
/// With [`Strangers::PassOn`] a client that speaks something else is no error: the codecs change
/// nothing and the bytes received are the first data.
pub struct ServerHandshake {
    shared: Arc<Inner>,
    state: State,
    answered: bool,
}

enum State {
    Plain,
    Request(RequestReader),
    RandomHead(Vec<u8>),
    TlsHello(Box<Flight>),
    TlsEnd(Tagger),
    QuietHello(Box<Answer>),
    QuietEnd,
    Over,
}

impl ServerHandshake {
    /// Whether the client was recognised and answered.
    #[must_use]
    pub const fn answered(&self) -> bool {
        self.answered
    }

    /// The time for [`ServerState::patience`] is over, or the client has finished, while the
    /// handshake still asks for more: a stranger may be passed on even so.
    pub fn expire(&mut self) -> Result<Codecs, ProtocolError> {
        self.state = State::Over;
        self.stranger(ProtocolError::Truncated("the client's hello"))
    }

    fn stranger(&self, why: ProtocolError) -> Result<Codecs, ProtocolError> {
        match self.shared.strangers {
            Strangers::PassOn if !self.answered => Ok(Codecs::raw()),
            _ => Err(why),
        }
    }

    /// Reads one message; `None` when another is to follow.
    fn advance(
        &mut self,
        rx: &mut Rx<'_>,
        tx: &mut Tx<'_>,
    ) -> Result<Option<Step<Codecs>>, ProtocolError> {
        let now = self.shared.clock.unix_time();
        let judge = &self.shared.judge;
        // What `Step::NeedMore` becomes, whatever was waited for.
        macro_rules! done {
            ($step:expr) => {
                match $step? {
                    Step::NeedMore { total } => return Ok(Some(Step::NeedMore { total })),
                    Step::Done(found) => found,
                }
            };
        }
        let (codecs, next) = match (&mut self.state, judge) {
            (State::Plain, _) => (Some(Codecs::raw()), State::Over),
            (State::Request(reader), Judge::Hosts(hosts)) => {
                done!(reader.read(rx, hosts));
                let codecs = Codecs {
                    seal: ObfsSeal::response(response_head(now)),
                    open: ObfsOpen::raw(),
                };
                (Some(codecs), State::Over)
            }
            (State::RandomHead(answer), _) => {
                done!(random_head::read(rx));
                tx.extend_from_slice(answer);
                (Some(Codecs::raw()), State::Over)
            }
            (State::TlsHello(flight), Judge::Tag { key, window, seen }) => {
                let (len, tagger) = done!(read_hello(rx.bytes(), key.expose(), *window, seen, now));
                rx.consume(len);
                tx.extend_from_slice(&flight.encode(&tagger, now));
                (None, State::TlsEnd(tagger))
            }
            (State::TlsEnd(tagger), _) => {
                rx.consume(done!(read_end(rx.bytes(), tagger)));
                (Some(records()), State::Over)
            }
            (State::QuietHello(answer), Judge::Proof { key, seen }) => {
                let hello = done!(parse_client_hello(rx.bytes()));
                key.check(&hello.random, now)?;
                seen.insert(&hello.random, now)?;
                rx.consume(hello.len);
                tx.extend_from_slice(&answer.encode(&hello.session));
                (None, State::QuietEnd)
            }
            (State::QuietEnd, _) => {
                rx.consume(done!(parse_end(rx.bytes())));
                (Some(records()), State::Over)
            }
            _ => return Err(ProtocolError::Malformed("handshake: it is over")),
        };
        self.state = next;
        self.answered = true;
        Ok(codecs.map(Step::Done))
    }
}

fn records() -> Codecs {
    Codecs {
        seal: ObfsSeal::records(),
        open: ObfsOpen::records(),
    }
}

impl Handshake for ServerHandshake {
    type Output = Codecs;
    type Error = ProtocolError;

    fn step(&mut self, rx: &mut Rx<'_>, tx: &mut Tx<'_>) -> Result<Step<Codecs>, ProtocolError> {
        loop {
            match self.advance(rx, tx) {
                Ok(Some(step)) => return Ok(step),
                Ok(None) => {}
                Err(why) => {
                    let over = matches!(self.state, State::Over);
                    self.state = State::Over;
                    return match over {
                        true => Err(why),
                        false => self.stranger(why).map(Step::Done),
                    };
                }
            }
        }
    }
}
