//! The request header of the 2022 edition (SIP022 section 3.1.3), encoded and parsed.

use core::ops::Range;

use adit_crypto::TAG_LEN;
use adit_wire::{EndOfInput, ProtocolError, Reader, Target, UnixTime, parse_addr, subslice};

use super::chunk::ChunkSeal;
use super::{FIXED_LEN, REQUEST};
use crate::header_writer::HeaderWriter;

/// Sealed length of the fixed header in bytes.
pub(crate) const FIXED_SEALED: usize = FIXED_LEN + TAG_LEN;

/// All parts of a request before the first payload.
pub(super) struct RequestHead<'a> {
    pub(super) salt: &'a [u8],
    /// The identity headers, sealed.
    pub(super) identities: &'a [u8],
    pub(super) stamp: UnixTime,
    pub(super) address: &'a [u8],
    pub(super) padding: &'a [u8],
}

impl RequestHead<'_> {
    /// Returns the number of bytes in front of the payload.
    pub(super) const fn head_len(&self) -> usize {
        self.salt.len() + self.identities.len() + FIXED_SEALED + self.variable_len()
    }

    const fn variable_len(&self) -> usize {
        self.address.len() + 2 + self.padding.len()
    }

    /// Writes and seals the header in front of `record[payload]` together with the payload, and
    /// returns the range to send.
    pub(super) fn seal_request(
        &self,
        chunks: &mut ChunkSeal,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, ProtocolError> {
        let no_room = ProtocolError::NoRoom("a request header");
        let start = payload.start.checked_sub(self.head_len()).ok_or(no_room)?;
        let fixed = start + self.salt.len() + self.identities.len();
        let variable = fixed + FIXED_SEALED;
        let mut w = HeaderWriter::new(record, start..variable)?;
        w.put_bytes(self.salt)?;
        w.put_bytes(self.identities)?;
        w.put_bytes(&[REQUEST])?;
        w.put_bytes(&self.stamp.0.to_be_bytes())?;
        w.put_len(self.variable_len() + payload.len())?;
        let mut w = HeaderWriter::new(record, variable..payload.start)?;
        w.put_bytes(self.address)?;
        w.put_len(self.padding.len())?;
        w.put_bytes(self.padding)?;
        chunks.seal_block(record, fixed..fixed + FIXED_LEN)?;
        chunks.seal_block(record, variable..payload.end)?;
        Ok(start..payload.end + TAG_LEN)
    }
}

/// Parses the opened fixed header: the time and the length of the variable header.
pub(super) fn parse_fixed(header: &[u8]) -> Result<(UnixTime, usize), ProtocolError> {
    let mut r = Reader::new(header);
    let fields = |r: &mut Reader<'_>| Ok((r.u8()?, UnixTime(r.u64()?), usize::from(r.u16()?)));
    let (kind, stamp, n) =
        fields(&mut r).map_err(|EndOfInput| ProtocolError::Malformed("request header"))?;
    if kind != REQUEST {
        return Err(ProtocolError::Malformed("request type"));
    }
    Ok((stamp, n))
}

/// Parses the opened variable header: the target and the range of the first payload.
pub(super) fn parse_variable(header: &[u8]) -> Result<(Target, Range<usize>), ProtocolError> {
    let (target, used) = parse_addr(header).map_err(|_| ProtocolError::Malformed("address"))?;
    let short = |EndOfInput| ProtocolError::Malformed("padding length");
    let mut r = Reader::new(subslice(header, used..));
    let padding = usize::from(r.u16().map_err(short)?);
    r.take(padding).map_err(short)?;
    let start = used + r.consumed();
    // SIP022 section 3.1.3: "The request header MUST carry initial payload or padding".
    if padding == 0 && start == header.len() {
        return Err(ProtocolError::Malformed(
            "request: neither payload nor padding",
        ));
    }
    Ok((target, start..header.len()))
}
