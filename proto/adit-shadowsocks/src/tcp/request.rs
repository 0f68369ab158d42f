//! The request header of the 2022 edition (SIP022 section 3.1.3), encoded and parsed.

use core::ops::Range;

use adit_crypto::TAG_LEN;
use adit_wire::{Broken, Reader, Short, Target, Unix, held, parse_addr};

use super::chunk::ChunkSeal;
use super::{FIXED_LEN, REQUEST};
use crate::writer::Writer;

/// Sealed length of the fixed header in bytes.
pub(crate) const FIXED_SEALED: usize = FIXED_LEN + TAG_LEN;

/// All parts of a request before the first payload.
pub(super) struct RequestHead<'a> {
    pub(super) salt: &'a [u8],
    /// The identity headers, sealed.
    pub(super) identities: &'a [u8],
    pub(super) stamp: Unix,
    pub(super) address: &'a [u8],
    pub(super) padding: &'a [u8],
}

impl RequestHead<'_> {
    /// Returns the number of bytes in front of the payload.
    pub(super) const fn len(&self) -> usize {
        self.salt.len() + self.identities.len() + FIXED_SEALED + self.variable_len()
    }

    const fn variable_len(&self) -> usize {
        self.address.len() + 2 + self.padding.len()
    }

    /// Writes and seals the header in front of `record[payload]` together with the payload, and
    /// returns the range to send.
    pub(super) fn seal(
        &self,
        chunks: &mut ChunkSeal,
        record: &mut [u8],
        payload: Range<usize>,
    ) -> Result<Range<usize>, Broken> {
        let no_room = Broken::NoRoom("a request header");
        let start = payload.start.checked_sub(self.len()).ok_or(no_room)?;
        let fixed = start + self.salt.len() + self.identities.len();
        let variable = fixed + FIXED_SEALED;
        let mut w = Writer::new(record, start..variable)?;
        w.put(self.salt)?;
        w.put(self.identities)?;
        w.put(&[REQUEST])?;
        w.put(&self.stamp.0.to_be_bytes())?;
        w.put_len(self.variable_len() + payload.len())?;
        let mut w = Writer::new(record, variable..payload.start)?;
        w.put(self.address)?;
        w.put_len(self.padding.len())?;
        w.put(self.padding)?;
        chunks.block(record, fixed..fixed + FIXED_LEN)?;
        chunks.block(record, variable..payload.end)?;
        Ok(start..payload.end + TAG_LEN)
    }
}

/// Parses the opened fixed header: the time and the length of the variable header.
pub(super) fn parse_fixed(header: &[u8]) -> Result<(Unix, usize), Broken> {
    let mut r = Reader::new(header);
    let fields = |r: &mut Reader<'_>| Ok((r.u8()?, Unix(r.u64()?), usize::from(r.u16()?)));
    let (kind, stamp, n) = fields(&mut r).map_err(|Short| Broken::Malformed("request header"))?;
    if kind != REQUEST {
        return Err(Broken::Malformed("request type"));
    }
    Ok((stamp, n))
}

/// Parses the opened variable header: the target and the range of the first payload.
pub(super) fn parse_variable(header: &[u8]) -> Result<(Target, Range<usize>), Broken> {
    let (target, used) = parse_addr(header).map_err(|_| Broken::Malformed("address"))?;
    let short = |Short| Broken::Malformed("padding length");
    let mut r = Reader::new(held(header, used..));
    let padding = usize::from(r.u16().map_err(short)?);
    r.take(padding).map_err(short)?;
    let start = used + r.consumed();
    // SIP022 section 3.1.3: "The request header MUST carry initial payload or padding".
    if padding == 0 && start == header.len() {
        return Err(Broken::Malformed("request: neither payload nor padding"));
    }
    Ok((target, start..header.len()))
}
