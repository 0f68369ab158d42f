//! The parts of a message that queries and answers share.

use adit_wire::{EndOfInput, Reader};

use crate::name::{HEADER_LEN, Labels};
use crate::record_type::RecordType;

/// The class of the Internet.
pub(crate) const CLASS_IN: u16 = 1;
/// Length of an OPT record without options, in bytes.
pub(crate) const OPT_LEN: usize = 11;

/// Bits of the second word of a header (RFC 1035 section 4.1.1).
pub(crate) mod flag {
    /// A response.
    pub(crate) const RESPONSE: u16 = 0x8000;
    /// The kind of query.
    pub(crate) const OPCODE: u16 = 0x7800;
    /// Truncated.
    pub(crate) const TRUNCATED: u16 = 0x0200;
    /// Recursion is desired.
    pub(crate) const RECURSION_DESIRED: u16 = 0x0100;
    /// Recursion is available.
    pub(crate) const RECURSION_AVAILABLE: u16 = 0x0080;
    /// Checking is disabled (RFC 4035).
    pub(crate) const CHECKING_DISABLED: u16 = 0x0010;
    /// The response code.
    pub(crate) const CODE: u16 = 0x000f;
}

/// The header of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    pub(crate) id: u16,
    pub(crate) flags: u16,
    pub(crate) questions: u16,
    pub(crate) answers: u16,
    pub(crate) authorities: u16,
    pub(crate) additionals: u16,
}

impl Header {
    pub(crate) fn read(message: &[u8]) -> Result<Self, EndOfInput> {
        let mut reader = Reader::new(message);
        Ok(Self {
            id: reader.u16()?,
            flags: reader.u16()?,
            questions: reader.u16()?,
            answers: reader.u16()?,
            authorities: reader.u16()?,
            additionals: reader.u16()?,
        })
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER_LEN] {
        let [a, b] = self.id.to_be_bytes();
        let [c, d] = self.flags.to_be_bytes();
        let [e, f] = self.questions.to_be_bytes();
        let [g, h] = self.answers.to_be_bytes();
        let [i, j] = self.authorities.to_be_bytes();
        let [k, l] = self.additionals.to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l]
    }
}

/// A record within a message: the positions of its parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordAt {
    pub(crate) name: usize,
    pub(crate) kind: RecordType,
    pub(crate) class: u16,
    /// Position of the time to live, 4 bytes.
    pub(crate) ttl_at: usize,
    pub(crate) ttl: u32,
    pub(crate) data: usize,
    pub(crate) end: usize,
}

impl RecordAt {
    /// Reads the record at `at`. Its name is checked, its data only for its length.
    pub(crate) fn read(message: &[u8], at: usize) -> Result<Self, EndOfInput> {
        let ttl_at = Labels::new(message, at).skip()? + 4;
        let mut reader = Reader::new(message.get(ttl_at - 4..).ok_or(EndOfInput)?);
        let kind = RecordType(reader.u16()?);
        let class = reader.u16()?;
        let ttl = u32::from_be_bytes(reader.array()?);
        let len = usize::from(reader.u16()?);
        reader.take(len)?;
        let data = ttl_at + 6;
        Ok(Self {
            name: at,
            kind,
            class,
            ttl_at,
            ttl,
            data,
            end: data + len,
        })
    }

    /// Returns the time to live in seconds; numbers with the upper bit are 0 (RFC 2181 section 8).
    pub(crate) fn seconds(&self) -> u32 {
        match i32::try_from(self.ttl) {
            Ok(_) => self.ttl,
            Err(_) => 0,
        }
    }
}

/// Appends an OPT record without options (RFC 6891 section 6.1.2).
pub(crate) fn push_opt(out: &mut Vec<u8>, payload: u16, upper_code: u8) {
    out.push(0);
    out.extend_from_slice(&RecordType::OPT.0.to_be_bytes());
    out.extend_from_slice(&payload.to_be_bytes());
    out.extend_from_slice(&[upper_code, 0, 0, 0, 0, 0]);
}
