//! A KCP segment: 24 bytes of header, little-endian, then the data.
//!
//! `conv(4) ‖ cmd(1) ‖ frg(1) ‖ wnd(2) ‖ ts(4) ‖ sn(4) ‖ una(4) ‖ len(4) ‖ data`; a datagram
//! consists of whole segments of one conversation.

use adit_wire::{EndOfInput, ProtocolError, Reader};

/// Length of a segment's header, in bytes.
pub const HEADER_LEN: usize = 24;

/// The command of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Command {
    /// Data.
    Push = 81,
    /// Acknowledges one data segment.
    Ack = 82,
    /// Requests the peer's window (a window probe).
    WindowProbe = 83,
    /// Reports the window, as every segment does.
    WindowReport = 84,
}

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The conversation number, equal at both ends.
    pub conv: u32,
    /// The command.
    pub cmd: Command,
    /// Number of segments of the message that follow this one; 0 in stream mode.
    pub frg: u8,
    /// The sender's free receive window in segments.
    pub wnd: u16,
    /// In data segments the sender's clock in milliseconds; in acknowledgements that of the data.
    pub ts: u32,
    /// Sequence number of the data, or of the acknowledged data.
    pub sn: u32,
    /// All numbers before this one have been received.
    pub una: u32,
    /// Length of the data that follows, in bytes.
    pub len: u32,
}

impl SegmentHeader {
    /// Parses the first header of a datagram, as a listener does to find the session.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::Truncated`] for fewer than 24 bytes, [`ProtocolError::Malformed`] for an unknown command.
    pub fn parse(bytes: &[u8]) -> Result<Self, ProtocolError> {
        let fields = RawHeader::read(&mut Reader::new(bytes))
            .map_err(|EndOfInput| ProtocolError::Truncated("a KCP header"))?;
        fields.to_header()
    }

    /// Returns the encoded header.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        let [cv0, cv1, cv2, cv3] = self.conv.to_le_bytes();
        let [w0, w1] = self.wnd.to_le_bytes();
        let words = [self.ts, self.sn, self.una, self.len];
        let (front, back) = bytes.split_at_mut(8);
        front.copy_from_slice(&[cv0, cv1, cv2, cv3, self.cmd as u8, self.frg, w0, w1]);
        for (to, word) in back.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// Takes the next segment off `datagram`. Returns `None` when fewer than 24 bytes are left, which
/// all implementations treat as padding.
pub(crate) fn next_segment<'a>(
    datagram: &mut &'a [u8],
    conv: u32,
) -> Result<Option<(SegmentHeader, &'a [u8])>, ProtocolError> {
    let mut reader = Reader::new(datagram);
    let Ok(fields) = RawHeader::read(&mut reader) else {
        return Ok(None);
    };
    if fields.conv != conv {
        return Err(ProtocolError::Malformed("conversation id"));
    }
    let data = usize::try_from(fields.len)
        .ok()
        .and_then(|len| reader.take(len).ok())
        .ok_or(ProtocolError::Truncated("a KCP segment"))?;
    *datagram = reader.rest();
    Ok(Some((fields.to_header()?, data)))
}

/// A header whose command is not checked yet.
struct RawHeader {
    conv: u32,
    cmd: u8,
    frg: u8,
    wnd: u16,
    ts: u32,
    sn: u32,
    una: u32,
    len: u32,
}

impl RawHeader {
    fn read(r: &mut Reader<'_>) -> Result<Self, EndOfInput> {
        let bytes: [u8; HEADER_LEN] = r.array()?;
        let mut r = Reader::new(&bytes);
        Ok(Self {
            conv: u32::from_le_bytes(r.array()?),
            cmd: r.u8()?,
            frg: r.u8()?,
            wnd: u16::from_le_bytes(r.array()?),
            ts: u32::from_le_bytes(r.array()?),
            sn: u32::from_le_bytes(r.array()?),
            una: u32::from_le_bytes(r.array()?),
            len: u32::from_le_bytes(r.array()?),
        })
    }

    const fn to_header(&self) -> Result<SegmentHeader, ProtocolError> {
        Ok(SegmentHeader {
            conv: self.conv,
            cmd: match self.cmd {
                81 => Command::Push,
                82 => Command::Ack,
                83 => Command::WindowProbe,
                84 => Command::WindowReport,
                _ => return Err(ProtocolError::Malformed("KCP command")),
            },
            frg: self.frg,
            wnd: self.wnd,
            ts: self.ts,
            sn: self.sn,
            una: self.una,
            len: self.len,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{hex, number, vectors};

    #[test]
    fn golden_segments() {
        let cases = &vectors()["kcp_segments"];
        for case in cases.as_array().unwrap() {
            let bytes = hex(&case["bytes"]);
            let conv = number(&case["conv"]);
            let mut rest = &bytes[..];
            let (header, data) = next_segment(&mut rest, conv).unwrap().unwrap();
            assert_eq!(
                [header.cmd as u32, header.frg.into(), header.wnd.into()],
                ["cmd", "frg", "wnd"].map(|name| number(&case[name]))
            );
            assert_eq!(
                [header.ts, header.sn, header.una],
                ["ts", "sn", "una"].map(|name| number(&case[name]))
            );
            assert_eq!(data, hex(&case["data"]));
            assert!(rest.is_empty());
            assert_eq!([&header.encode()[..], data].concat(), bytes);
            assert_eq!(SegmentHeader::parse(&bytes), Ok(header));

            for cut in HEADER_LEN..bytes.len() {
                assert_eq!(
                    next_segment(&mut &bytes[..cut], conv),
                    Err(ProtocolError::Truncated("a KCP segment"))
                );
            }
            assert_eq!(next_segment(&mut &bytes[..HEADER_LEN - 1], conv), Ok(None));
            assert!(next_segment(&mut &bytes[..], conv ^ 1).is_err());
        }
    }

    #[test]
    fn unknown_commands_and_huge_lengths_are_refused() {
        let mut bytes = [0; HEADER_LEN];
        for cmd in (0..81).chain(85..=255) {
            bytes[4] = cmd;
            assert_eq!(
                next_segment(&mut &bytes[..], 0),
                Err(ProtocolError::Malformed("KCP command"))
            );
        }
        bytes[4] = 81;
        bytes[20..].fill(0xff);
        assert_eq!(
            next_segment(&mut &bytes[..], 0),
            Err(ProtocolError::Truncated("a KCP segment"))
        );
    }
}
