//! The client's side: the state that connections to one server share, and the handshake of each
//! connection.

mod state;

use std::sync::Arc;

use adit_wire::{Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, ProtocolError};

pub use state::{ClientSettings, ClientState};

use crate::quiet::read_answer;
use crate::tls::{Tagger, read_flight};
use crate::{Codecs, ObfsOpen, ObfsSeal};

/// The handshake of one connection: sends a hello, if the kind has one, and waits for the answer,
/// if required.
///
/// Bytes that the client sends afterwards in any case (an HTTP head, the end of a TLS handshake)
/// are left to [`ObfsSeal`], which puts them in front of the first data.
///
/// [`ProtocolError::Unauthentic`] and [`ProtocolError::Refused`] mean a wrong key, another kind or a large clock
/// skew: to such clients the server shows another service.
pub struct ClientHandshake {
    hello: Vec<u8>,
    wait: AwaitedData,
}

/// The data that must arrive before the handshake is done.
enum AwaitedData {
    Nothing(Codecs),
    /// Any bytes.
    Anything,
    Flight {
        tagger: Arc<Tagger>,
        end: Vec<u8>,
    },
    Answer {
        session: [u8; 32],
        end: Vec<u8>,
    },
    Over,
}

impl Handshake for ClientHandshake {
    type Output = Codecs;
    type Error = ProtocolError;

    fn step(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        tx: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<Codecs>, ProtocolError> {
        tx.extend_from_slice(&core::mem::take(&mut self.hello));
        let wait = core::mem::replace(&mut self.wait, AwaitedData::Over);
        let answered = match &wait {
            AwaitedData::Nothing(_) => HandshakeProgress::Done(0),
            AwaitedData::Anything => match rx.bytes().len() {
                0 => HandshakeProgress::NeedMore { total: 1 },
                all => HandshakeProgress::Done(all),
            },
            AwaitedData::Flight { tagger, .. } => read_flight(rx.bytes(), tagger)?,
            AwaitedData::Answer { session, .. } => read_answer(rx.bytes(), session)?,
            AwaitedData::Over => {
                return Err(ProtocolError::Malformed("handshake: already finished"));
            }
        };
        match answered {
            HandshakeProgress::NeedMore { total } => {
                self.wait = wait;
                Ok(HandshakeProgress::NeedMore { total })
            }
            HandshakeProgress::Done(eaten) => {
                rx.consume(eaten);
                Ok(HandshakeProgress::Done(wait.into_codecs()))
            }
        }
    }
}

impl AwaitedData {
    fn into_codecs(self) -> Codecs {
        match self {
            Self::Nothing(codecs) => codecs,
            Self::Anything | Self::Over => Codecs::new_raw(),
            Self::Flight { end, .. } | Self::Answer { end, .. } => Codecs {
                seal: ObfsSeal::records_after(end),
                open: ObfsOpen::new_records(),
            },
        }
    }
}
