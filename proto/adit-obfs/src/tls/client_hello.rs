//! A server's parser of ClientHello (RFC 5246, section 7.4.1.2), limited to the fields it needs.

use adit_wire::{EndOfInput, HandshakeProgress, ProtocolError, Reader};

use super::record::{RECORD_HEAD, parse_record_head};

/// Maximum length of a ClientHello that a server waits for, including its record head, in bytes.
/// Those of known clients have fewer than 1,000.
const MAX_HELLO: usize = 4096;
/// Length from the front of the record to the end of a session id of 32 bytes.
const LEAST: usize = RECORD_HEAD + 4 + 2 + 32 + 33;

/// The fields of a ClientHello in which these formats hide data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientHello {
    /// Length of the record in bytes, including its head.
    pub(crate) len: usize,
    pub(crate) random: [u8; 32],
    /// All clients send 32 bytes, and a server's answer has no room for another length.
    pub(crate) session: [u8; 32],
}

/// Parses the ClientHello at the front of `wire`. It must be alone in its record; bytes after the
/// session id are ignored.
pub(crate) fn parse_client_hello(
    wire: &[u8],
) -> Result<HandshakeProgress<ClientHello>, ProtocolError> {
    let start = [0x16, 3, 1];
    if wire.iter().zip(start).any(|(a, b)| *a != b) {
        return Err(ProtocolError::Malformed("TLS: not a handshake"));
    }
    let Some((_, body)) = parse_record_head(wire) else {
        let total = RECORD_HEAD;
        return Ok(HandshakeProgress::NeedMore { total });
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
        return Ok(HandshakeProgress::NeedMore { total: len });
    };
    match parse_fields(record) {
        Ok(Some(hello)) => Ok(HandshakeProgress::Done(hello)),
        Ok(None) | Err(EndOfInput) => Err(malformed),
    }
}

/// Returns `None` if a field does not have its required value.
fn parse_fields(record: &[u8]) -> Result<Option<ClientHello>, EndOfInput> {
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
