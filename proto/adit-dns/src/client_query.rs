//! Queries of clients, and the replies that need no server.

use core::net::IpAddr;
use core::time::Duration;

use adit_wire::{EndOfInput, narrow_int, subslice};

use crate::message::{CLASS_IN, Header, OPT_LEN, RecordAt, flag, push_opt};
use crate::name::{HEADER_LEN, read_text};
use crate::record_type::RecordType;
use crate::response_code::ResponseCode;

/// Maximum size of a reply to a client without EDNS, in bytes (RFC 1035 section 4.2.1).
const PLAIN_LIMIT: usize = 512;
/// Maximum size of a reply in a datagram, in bytes: larger datagrams are fragmented, and fragments can be
/// forged.
pub(crate) const UDP_LIMIT: u16 = 1232;
/// Maximum size of a message over a stream, in bytes.
const STREAM_LIMIT: usize = 65_535;
/// Maximum number of additional records of a query.
const MAX_ADDITIONALS: u16 = 8;
/// Length of the type and the class of a question, in bytes.
pub(crate) const QUESTION_TAIL: usize = 4;

/// The reason why a message is not a query that can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// Shorter than a header, or a response. No reply may be sent.
    #[error("not a query of DNS")]
    NotAQuery,
    /// The question or a record is cut off or invalid, or there is not exactly one question.
    #[error("a malformed query")]
    Malformed {
        /// Number of the query.
        id: u16,
        /// Flags that the reply repeats.
        flags: u16,
    },
    /// Another operation or class than queries of the Internet, or a type that is not forwarded: transfers and
    /// `ANY` (RFC 8482).
    #[error("a kind of query that is not supported")]
    Unsupported {
        /// Number of the query.
        id: u16,
        /// Flags that the reply repeats.
        flags: u16,
    },
    /// Another version of EDNS than 0.
    #[error("a version of EDNS that is not supported")]
    EdnsVersion {
        /// Number of the query.
        id: u16,
        /// Flags that the reply repeats.
        flags: u16,
    },
}

impl QueryError {
    /// Returns the reply to the client: a header, without the question. `None` if none may be sent.
    #[must_use]
    pub fn reply(&self) -> Option<Vec<u8>> {
        let (id, flags, code) = match *self {
            Self::NotAQuery => return None,
            Self::Malformed { id, flags } => (id, flags, ResponseCode::FormErr),
            Self::Unsupported { id, flags } => (id, flags, ResponseCode::NotImp),
            Self::EdnsVersion { id, flags } => (id, flags, ResponseCode::BadVers),
        };
        let edns = code == ResponseCode::BadVers;
        let kept = flag::OPCODE | flag::RECURSION_DESIRED;
        let header = Header {
            id,
            flags: flag::RESPONSE | (flags & kept) | (code.number() & flag::CODE),
            questions: 0,
            answers: 0,
            authorities: 0,
            additionals: edns.into(),
        };
        let mut out = header.to_bytes().to_vec();
        if edns {
            push_opt(&mut out, UDP_LIMIT, narrow_int(code.number() >> 4));
        }
        Some(out)
    }
}

/// A checked query of a client: one question of the class of the Internet.
///
/// Replies repeat its number, its question (with the case of the client's letters) and whether it uses
/// EDNS. DNSSEC is not forwarded: replies have no signatures, and never the flag AD.
///
/// # Examples
///
/// ```
/// use adit_dns::{ClientQuery, RecordType, ResponseCode, UpstreamQuery};
///
/// let bytes = UpstreamQuery::new("Example.Test", RecordType::AAAA, 7)?.to_bytes();
/// let query = ClientQuery::parse(&bytes)?;
/// assert_eq!((query.name(), query.record_type()), ("example.test", RecordType::AAAA));
/// let reply = query.error_reply(ResponseCode::NXDomain);
/// assert_eq!(reply[..2], 7_u16.to_be_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientQuery {
    id: u16,
    flags: u16,
    name: String,
    record_type: RecordType,
    /// Name, type and class as sent.
    question: Box<[u8]>,
    edns: bool,
    limit: usize,
}

impl ClientQuery {
    /// Parses a query that arrived in a datagram. For one from a stream, call
    /// [`with_stream_limit`](Self::with_stream_limit), too.
    ///
    /// # Errors
    /// The message is not a query, or not one that can be answered; see [`QueryError::reply`].
    pub fn parse(message: &[u8]) -> Result<Self, QueryError> {
        let header = Header::read(message).map_err(|_| QueryError::NotAQuery)?;
        let Header { id, flags, .. } = header;
        if flags & flag::RESPONSE != 0 {
            return Err(QueryError::NotAQuery);
        }
        if flags & flag::OPCODE != 0 {
            return Err(QueryError::Unsupported { id, flags });
        }
        let malformed = |EndOfInput| QueryError::Malformed { id, flags };
        if header.questions != 1
            || header.answers != 0
            || header.authorities != 0
            || header.additionals > MAX_ADDITIONALS
        {
            return Err(QueryError::Malformed { id, flags });
        }
        let (name, end) = read_text(message, HEADER_LEN).map_err(malformed)?;
        let question = message.get(HEADER_LEN..end + QUESTION_TAIL);
        let question = question.ok_or(EndOfInput).map_err(malformed)?;
        let Some(&[a, b, c, d]) = question.last_chunk() else {
            return Err(QueryError::Malformed { id, flags });
        };
        let record_type = RecordType(u16::from_be_bytes([a, b]));
        if u16::from_be_bytes([c, d]) != CLASS_IN || record_type.is_meta() {
            return Err(QueryError::Unsupported { id, flags });
        }
        let mut at = end + QUESTION_TAIL;
        let mut payload = None;
        for _ in 0..header.additionals {
            let record = RecordAt::read(message, at).map_err(malformed)?;
            at = record.end;
            if record.kind != RecordType::OPT {
                continue;
            }
            if payload.is_some() {
                return Err(QueryError::Malformed { id, flags });
            }
            let [_, version, _, _] = record.ttl.to_be_bytes();
            if version != 0 {
                return Err(QueryError::EdnsVersion { id, flags });
            }
            payload = Some(record.class);
        }
        let limit = payload.map_or(PLAIN_LIMIT, |payload| {
            usize::from(payload.min(UDP_LIMIT)).max(PLAIN_LIMIT)
        });
        Ok(Self {
            id,
            flags,
            name,
            record_type,
            question: question.into(),
            edns: payload.is_some(),
            limit,
        })
    }

    /// Sets the maximum size of replies to that of a stream, 65,535 bytes.
    #[must_use]
    pub const fn with_stream_limit(mut self) -> Self {
        self.limit = STREAM_LIMIT;
        self
    }

    /// Returns the name in lower-case ASCII without the dot at its end; the root is empty.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the type of the records that are requested.
    #[must_use]
    pub const fn record_type(&self) -> RecordType {
        self.record_type
    }

    /// Returns the maximum size of a reply, in bytes: 512 to 1,232 in a datagram.
    #[must_use]
    pub const fn udp_limit(&self) -> usize {
        self.limit
    }

    /// Returns a reply without records.
    #[must_use]
    pub fn error_reply(&self, code: ResponseCode) -> Vec<u8> {
        let mut out = self.start_reply(code, 0);
        self.finish_reply(&mut out, code);
        out
    }

    /// Returns a reply with those of the addresses that are of the requested type, as many as fit; without any,
    /// the name exists and has no record of the type.
    #[must_use]
    pub fn address_reply(&self, addresses: &[IpAddr], ttl: Duration) -> Vec<u8> {
        let ttl = u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX) & (u32::MAX >> 1);
        let mut out = self.start_reply(ResponseCode::NoError, 0);
        let mut number = 0_u16;
        for address in addresses {
            let (v4, v6);
            let data: &[u8] = match (address, self.record_type) {
                (IpAddr::V4(address), RecordType::A) => {
                    v4 = address.octets();
                    &v4
                }
                (IpAddr::V6(address), RecordType::AAAA) => {
                    v6 = address.octets();
                    &v6
                }
                _ => continue,
            };
            // A pointer to the question, type, class, time to live and length.
            let record = 12 + data.len();
            if out.len() + record + OPT_LEN > self.limit {
                break;
            }
            out.extend_from_slice(&[0xc0, narrow_int(HEADER_LEN)]);
            out.extend_from_slice(&self.record_type.0.to_be_bytes());
            out.extend_from_slice(&CLASS_IN.to_be_bytes());
            out.extend_from_slice(&ttl.to_be_bytes());
            out.extend_from_slice(&[0, narrow_int(data.len())]);
            out.extend_from_slice(data);
            number += 1;
        }
        if let Some(count) = out.get_mut(6..8) {
            count.copy_from_slice(&number.to_be_bytes());
        }
        self.finish_reply(&mut out, ResponseCode::NoError);
        out
    }

    /// Returns the question as the client sent it.
    pub(crate) fn question(&self) -> &[u8] {
        &self.question
    }

    /// Returns the header of a reply without its counts of records.
    pub(crate) fn reply_header(&self, code: ResponseCode, flags: u16) -> Header {
        let kept = flag::RECURSION_DESIRED | flag::CHECKING_DISABLED;
        let own = flag::RESPONSE | flag::RECURSION_AVAILABLE | flags;
        Header {
            id: self.id,
            flags: own | (self.flags & kept) | (code.number() & flag::CODE),
            questions: 1,
            answers: 0,
            authorities: 0,
            additionals: self.edns.into(),
        }
    }

    /// Returns the header and the question of a reply.
    pub(crate) fn start_reply(&self, code: ResponseCode, flags: u16) -> Vec<u8> {
        let header = self.reply_header(code, flags).to_bytes();
        let mut out = Vec::with_capacity(HEADER_LEN + self.question.len() + 2 * 28 + OPT_LEN);
        out.extend_from_slice(&header);
        out.extend_from_slice(&self.question);
        out
    }

    /// Appends the end of a reply: the OPT record, if the client sent one (RFC 6891 section 6.1.1).
    pub(crate) fn finish_reply(&self, out: &mut Vec<u8>, code: ResponseCode) {
        if self.edns {
            push_opt(out, UDP_LIMIT, narrow_int(code.number() >> 4 & 0xff));
        }
    }

    /// Returns the length that [`finish_reply`](Self::finish_reply) adds, in bytes.
    pub(crate) const fn end_len(&self) -> usize {
        if self.edns { OPT_LEN } else { 0 }
    }

    /// True if `question` is this question, regardless of the case of its name.
    pub(crate) fn has_question(&self, question: &[u8]) -> bool {
        are_same_question(&self.question, question)
    }
}

/// True if two questions are equal regardless of the case of their names, which are not compressed: their
/// lengths are below the bytes of letters.
pub(crate) fn are_same_question(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() || one.len() < QUESTION_TAIL {
        return false;
    }
    let name = one.len() - QUESTION_TAIL;
    subslice(one, ..name).eq_ignore_ascii_case(subslice(other, ..name))
        && subslice(one, name..) == subslice(other, name..)
}
