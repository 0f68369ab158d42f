//! What a server needs of a ClientHello (RFC 5246, section 7.4.1.2).

use adit_wire::{EndOfInput, ProtocolError, Reader, Step};

use super::record::{RECORD_HEAD, head_of};

/// The longest ClientHello that is waited for, with its record head, in bytes. Those of the
/// clients we know have less than 1,000.
const MAX_HELLO: usize = 4096;
/// From the front of the record to the end of a session id of 32 bytes.
const LEAST: usize = RECORD_HEAD + 4 + 2 + 32 + 33;

/// The parts of a ClientHello in which these formats hide something.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientHello {
    /// Bytes of the record with its head.
    pub(crate) len: usize,
    pub(crate) random: [u8; 32],
    /// All clients send 32 bytes, and a server's answer has room for no others.
    pub(crate) session: [u8; 32],
}

/// Reads the ClientHello at the front of `wire`. It must be alone in its record; what stands
/// behind the session id is not looked at.
pub(crate) fn parse_client_hello(wire: &[u8]) -> Result<Step<ClientHello>, ProtocolError> {
    let start = [0x16, 3, 1];
    if wire.iter().zip(start).any(|(a, b)| *a != b) {
        return Err(ProtocolError::Malformed("TLS: not a handshake"));
    }
    let Some((_, body)) = head_of(wire) else {
        let total = RECORD_HEAD;
        return Ok(Step::NeedMore { total });
    };
    let len = RECORD_HEAD + body;
    if len > MAX_HELLO {
        let what = "the ClientHello";
        let limit = MAX_HELLO;
        return Err(ProtocolError::TooLong { what, limit });
    }
    let malformed = ProtocolError::Malformed("ClientHello");
    if len < LEAST {
        return Err(malformed);
    }
    let Some(record) = wire.get(..len) else {
        return Ok(Step::NeedMore { total: len });
    };
    match fields(record) {
        Ok(Some(hello)) => Ok(Step::Done(hello)),
        Ok(None) | Err(EndOfInput) => Err(malformed),
    }
}

/// `None` if a field has another value than it must have.
fn fields(record: &[u8]) -> Result<Option<ClientHello>, EndOfInput> {
    let mut reader = Reader::new(record);
    reader.take(RECORD_HEAD)?;
    let [kind, high, mid, low] = reader.array()?;
    let length = u32::from_be_bytes([0, high, mid, low]);
    let whole = usize::try_from(length).is_ok_and(|length| length == reader.rest().len());
    let version = reader.u16()?;
    let random = reader.array()?;
    let session_len = reader.u8()?;
    let session = reader.array()?;
    let good = kind == 1 && whole && version == 0x0303 && session_len == 32;
    let len = record.len();
    Ok(good.then_some(ClientHello {
        len,
        random,
        session,
    }))
}
