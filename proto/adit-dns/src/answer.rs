//! Answers of servers.

use core::net::IpAddr;
use core::time::Duration;
use std::fmt;

use adit_wire::{EndOfInput, narrow_int, subslice, subslice_mut};

use crate::client_query::{ClientQuery, are_same_question};
use crate::message::{CLASS_IN, Header, RecordAt, flag};
use crate::name::{HEADER_LEN, Labels, are_equal};
use crate::record_type::RecordType;
use crate::response_code::ResponseCode;

/// Maximum number of records of an answer.
const MAX_RECORDS: usize = 1024;
/// Maximum number of aliases between a name and its records.
const MAX_ALIASES: usize = 16;
/// Maximum number of addresses of a name.
const MAX_ADDRESSES: usize = 64;
/// Time to live of a negative answer without one, in seconds.
const NO_TTL: u32 = 5;

/// The reason why a message is not an answer to a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The number or the question is another, or the message is not a response.
    #[error("the message does not answer this query")]
    Unrelated,
    /// A record is cut off or invalid.
    #[error("the answer is malformed")]
    Malformed,
    /// More than 1,024 records.
    #[error("the answer has more than {MAX_RECORDS} records")]
    TooManyRecords,
    /// The aliases of the name form a loop, or are more than 16.
    #[error("the aliases of the name form a loop, or are more than {MAX_ALIASES}")]
    Aliases,
}

impl From<EndOfInput> for AnswerError {
    fn from(EndOfInput: EndOfInput) -> Self {
        Self::Malformed
    }
}

/// A checked answer, with the bytes of its records.
///
/// It has the records of the answer and the authority sections. The additional section is dropped: clients
/// look up what they need of it, and it is the easiest place for records of other names.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// Question, answers and authorities; compressed names point into it as if a header preceded it.
    body: Box<[u8]>,
    question_len: usize,
    /// Positions in `body` of the times to live.
    ttls: Box<[u16]>,
    answers: u16,
    authorities: u16,
    code: ResponseCode,
    truncated: bool,
    negative: bool,
    ttl: u32,
    addresses: Box<[IpAddr]>,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("code", &self.code)
            .field("answers", &self.answers)
            .field("authorities", &self.authorities)
            .field("truncated", &self.truncated)
            .field("ttl", &self.ttl)
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

impl Answer {
    /// Reads the answer to this question.
    pub(crate) fn read(
        question: &[u8],
        record_type: RecordType,
        message: &[u8],
    ) -> Result<Self, AnswerError> {
        let header = Header::read(message)?;
        let end = HEADER_LEN + question.len();
        let own = message.get(HEADER_LEN..end).ok_or(AnswerError::Unrelated)?;
        if header.flags & flag::RESPONSE == 0
            || header.flags & flag::OPCODE != 0
            || header.questions != 1
            || !are_same_question(own, question)
        {
            return Err(AnswerError::Unrelated);
        }
        let mut answer = Self {
            body: question.into(),
            question_len: question.len(),
            ttls: Box::default(),
            answers: 0,
            authorities: 0,
            code: (header.flags & flag::CODE).into(),
            truncated: header.flags & flag::TRUNCATED != 0,
            negative: true,
            ttl: 0,
            addresses: Box::default(),
        };
        // Its records may be incomplete; the whole answer comes over a stream.
        if answer.truncated {
            return Ok(answer);
        }
        let counts = [header.answers, header.authorities, header.additionals];
        if counts.into_iter().map(usize::from).sum::<usize>() > MAX_RECORDS {
            return Err(AnswerError::TooManyRecords);
        }
        let (answers, at) = read_records(message, end, header.answers)?;
        let (authorities, body_end) = read_records(message, at, header.authorities)?;
        let (additionals, _) = read_records(message, body_end, header.additionals)?;
        if let Some(opt) = additionals
            .iter()
            .find(|record| record.kind == RecordType::OPT)
        {
            let [upper, ..] = opt.ttl.to_be_bytes();
            answer.code = (u16::from(upper) << 4 | answer.code.number()).into();
        }
        if !answer.is_about_the_name() {
            return Ok(answer);
        }
        let (found, alias_ttl) = follow_aliases(message, record_type, &answers)?;
        answer.negative = found.is_empty() || answer.code == ResponseCode::NXDomain;
        answer.ttl = match answer.negative {
            true => alias_ttl.min(negative_ttl(message, &authorities)?),
            false => found
                .iter()
                .map(|record| record.seconds())
                .fold(alias_ttl, u32::min),
        };
        answer.addresses = found
            .iter()
            .filter_map(|record| address_of(message, record))
            .take(MAX_ADDRESSES)
            .collect();
        let mut body = subslice(message, HEADER_LEN..body_end).to_vec();
        // The letters' case of the question is that of the query, not of the server.
        subslice_mut(&mut body, ..question.len()).copy_from_slice(question);
        answer.body = body.into();
        answer.ttls = answers
            .iter()
            .chain(&authorities)
            .map(|record| narrow_int(record.ttl_at - HEADER_LEN))
            .collect();
        (answer.answers, answer.authorities) = (header.answers, header.authorities);
        Ok(answer)
    }

    /// Returns the response code.
    #[must_use]
    pub const fn code(&self) -> ResponseCode {
        self.code
    }

    /// True if the answer did not fit into the datagram: it has no records here, and the query has to be
    /// repeated over a stream.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// True if the answer says something about the name: its records, that it has none of the type, or that it
    /// does not exist. Otherwise the server failed or refused.
    #[must_use]
    pub const fn is_about_the_name(&self) -> bool {
        matches!(self.code, ResponseCode::NoError | ResponseCode::NXDomain)
    }

    /// True if there is no record of the requested type.
    #[must_use]
    pub const fn is_negative(&self) -> bool {
        self.negative
    }

    /// Returns the addresses at the end of the aliases, at most 64; empty if the type is not one of
    /// addresses.
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Returns the smallest time to live of the requested records and their aliases; of a negative answer, that
    /// of RFC 2308.
    #[must_use]
    pub const fn ttl(&self) -> Duration {
        Duration::from_secs(self.ttl as u64)
    }

    /// Returns the memory that this answer occupies, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.body.len()
            + size_of_val::<[u16]>(&self.ttls)
            + size_of_val::<[IpAddr]>(&self.addresses)
    }

    /// Returns the reply to a client that asks the same question, with the times to live lowered by `age`. A
    /// reply above the client's limit has no records, and the flag TC.
    ///
    /// The reply to another question is SERVFAIL.
    #[must_use]
    pub fn reply_to(&self, query: &ClientQuery, age: Duration) -> Vec<u8> {
        if !query.has_question(subslice(&self.body, ..self.question_len)) {
            debug_assert!(false, "the answer to another question");
            return query.error_reply(ResponseCode::ServFail);
        }
        let len = HEADER_LEN + self.body.len() + query.end_len();
        if self.truncated || len > query.udp_limit() {
            let mut out = query.start_reply(self.code, flag::TRUNCATED);
            query.finish_reply(&mut out, self.code);
            return out;
        }
        let mut header = query.reply_header(self.code, 0);
        (header.answers, header.authorities) = (self.answers, self.authorities);
        let mut out = Vec::with_capacity(len);
        out.extend_from_slice(&header.to_bytes());
        out.extend_from_slice(query.question());
        out.extend_from_slice(subslice(&self.body, self.question_len..));
        let age = u32::try_from(age.as_secs()).unwrap_or(u32::MAX);
        let records = out.get_mut(HEADER_LEN..).unwrap_or_default();
        for at in &self.ttls {
            let ttl = records
                .get_mut(usize::from(*at)..)
                .and_then(<[u8]>::first_chunk_mut);
            if let Some(ttl) = ttl {
                let left = u32::from_be_bytes(*ttl).saturating_sub(age);
                *ttl = left.to_be_bytes();
            }
        }
        query.finish_reply(&mut out, self.code);
        out
    }
}

/// Reads `number` records, and returns the position after them.
fn read_records(
    message: &[u8],
    mut at: usize,
    number: u16,
) -> Result<(Vec<RecordAt>, usize), EndOfInput> {
    let mut records = Vec::with_capacity(number.into());
    for _ in 0..number {
        let record = RecordAt::read(message, at)?;
        at = record.end;
        records.push(record);
    }
    Ok((records, at))
}

/// Returns the records of the type at the end of the aliases, and the smallest time to live of the aliases in
/// seconds.
fn follow_aliases(
    message: &[u8],
    record_type: RecordType,
    answers: &[RecordAt],
) -> Result<(Vec<RecordAt>, u32), AnswerError> {
    let mut name = HEADER_LEN;
    let mut ttl = u32::MAX;
    for _ in 0..=MAX_ALIASES {
        let (mut found, mut alias) = (Vec::new(), None);
        for record in answers.iter().filter(|record| record.class == CLASS_IN) {
            let wanted = record.kind == record_type;
            if (wanted || record.kind == RecordType::CNAME)
                && are_equal(message, record.name, name)?
            {
                match wanted {
                    true => found.push(*record),
                    false => alias = alias.or(Some(*record)),
                }
            }
        }
        let Some(alias) = alias.filter(|_| found.is_empty()) else {
            return Ok((found, ttl));
        };
        if Labels::new(message, alias.data).skip()? != alias.end {
            return Err(AnswerError::Malformed);
        }
        (name, ttl) = (alias.data, ttl.min(alias.seconds()));
    }
    Err(AnswerError::Aliases)
}

/// Returns the time to live of a negative answer, in seconds (RFC 2308 section 5).
fn negative_ttl(message: &[u8], authorities: &[RecordAt]) -> Result<u32, EndOfInput> {
    let soa = authorities
        .iter()
        .find(|record| record.kind == RecordType::SOA && record.class == CLASS_IN);
    let Some(soa) = soa else {
        return Ok(NO_TTL);
    };
    let data = message.get(soa.data..soa.end).ok_or(EndOfInput)?;
    let minimum = u32::from_be_bytes(*data.last_chunk().ok_or(EndOfInput)?);
    Ok(soa.seconds().min(minimum))
}

/// Returns the address of a record, if it is one.
fn address_of(message: &[u8], record: &RecordAt) -> Option<IpAddr> {
    let data = message.get(record.data..record.end)?;
    match record.kind {
        RecordType::A => <[u8; 4]>::try_from(data).ok().map(IpAddr::from),
        RecordType::AAAA => <[u8; 16]>::try_from(data).ok().map(IpAddr::from),
        _ => None,
    }
}
