//! Queries to servers.

use adit_wire::narrow_int;

use crate::answer::{Answer, AnswerError};
use crate::client_query::UDP_LIMIT;
use crate::message::{CLASS_IN, Header, OPT_LEN, flag};
use crate::name::{HEADER_LEN, NameError, encode_name};
use crate::record_type::RecordType;

/// Multiple of the length of padded queries, in bytes (RFC 8467 section 4.1).
const PADDING_BLOCK: usize = 128;
/// The option of EDNS for padding (RFC 7830).
const PADDING_OPTION: u16 = 12;
/// Length of an option's code and length, in bytes.
const OPTION_HEAD: usize = 4;

/// A query to a server: recursion is desired, and EDNS allows answers of 1,232 bytes in a datagram.
///
/// It has no client subnet and nothing else of the client. The name is in lower case: names of random case
/// ("0x20") would add bits to guess for an attacker, but some servers do not repeat them. Against
/// forged datagrams there are the random number and the port, 32 bits together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamQuery {
    id: u16,
    record_type: RecordType,
    /// Name, type and class.
    question: Vec<u8>,
    edns: bool,
    padding: bool,
}

impl UpstreamQuery {
    /// Creates a query with this number, which has to be unpredictable in datagrams and 0 in DNS over HTTPS
    /// (RFC 8484 section 4.1).
    ///
    /// # Errors
    /// The name is not a name of DNS in ASCII.
    pub fn new(name: &str, record_type: RecordType, id: u16) -> Result<Self, NameError> {
        let mut question = Vec::with_capacity(name.len() + 6);
        encode_name(name, &mut question)?;
        question.extend_from_slice(&record_type.0.to_be_bytes());
        question.extend_from_slice(&CLASS_IN.to_be_bytes());
        Ok(Self {
            id,
            record_type,
            question,
            edns: true,
            padding: false,
        })
    }

    /// Pads the query to a multiple of 128 bytes, so that its length does not show that of the name; for
    /// encrypted transports (RFC 8467).
    #[must_use]
    pub const fn with_padding(mut self) -> Self {
        self.padding = true;
        self
    }

    /// Omits EDNS, for old servers and the machines before them that drop such queries: answers in datagrams have up to
    /// 512 bytes then, and there is no padding.
    #[must_use]
    pub const fn without_edns(mut self) -> Self {
        self.edns = false;
        self
    }

    /// Sets the number; a connection with several queries needs one for each.
    #[must_use]
    pub const fn with_id(mut self, id: u16) -> Self {
        self.id = id;
        self
    }

    /// Returns the number.
    #[must_use]
    pub const fn id(&self) -> u16 {
        self.id
    }

    /// Returns the requested type.
    #[must_use]
    pub const fn record_type(&self) -> RecordType {
        self.record_type
    }

    /// Returns the message.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = Header {
            id: self.id,
            flags: flag::RECURSION_DESIRED,
            questions: 1,
            answers: 0,
            authorities: 0,
            additionals: self.edns.into(),
        };
        let plain = HEADER_LEN + self.question.len() + OPT_LEN;
        let mut out = Vec::with_capacity((plain + OPTION_HEAD).next_multiple_of(PADDING_BLOCK));
        out.extend_from_slice(&header.to_bytes());
        out.extend_from_slice(&self.question);
        if !self.edns {
            return out;
        }
        out.push(0);
        out.extend_from_slice(&RecordType::OPT.0.to_be_bytes());
        out.extend_from_slice(&UDP_LIMIT.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        if self.padding {
            let with_head = plain + OPTION_HEAD;
            let padding = with_head.next_multiple_of(PADDING_BLOCK) - with_head;
            out.extend_from_slice(&narrow_int::<u16>(OPTION_HEAD + padding).to_be_bytes());
            out.extend_from_slice(&PADDING_OPTION.to_be_bytes());
            out.extend_from_slice(&narrow_int::<u16>(padding).to_be_bytes());
            out.resize(with_head + padding, 0);
        } else {
            out.extend_from_slice(&[0; 2]);
        }
        out
    }

    /// Checks that a message is the answer to this query, and reads it.
    ///
    /// # Errors
    /// [`AnswerError::Unrelated`] if it answers another query: datagrams of this kind may be forged, and the
    /// caller waits for the right one. The others are errors of the server.
    pub fn check_answer(&self, message: &[u8]) -> Result<Answer, AnswerError> {
        // First, since it costs least: an attacker has to guess it.
        if message.first_chunk() != Some(&self.id.to_be_bytes()) {
            return Err(AnswerError::Unrelated);
        }
        Answer::read(&self.question, self.record_type, message)
    }
}
