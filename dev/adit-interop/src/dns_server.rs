//! A DNS server that returns one address for every name, or answers as a test demands.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Result;

use crate::ports::{free_port, loopback_addr};

/// The answer to a query for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsReply {
    /// An address with this time to live, in seconds; the name has no IPv6 address.
    Address(Ipv4Addr, u8),
    /// The name does not exist (NXDOMAIN).
    NoSuchName,
    /// No answer at all.
    NoReply,
}

/// The address of every name.
pub const ANSWER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 7);

/// A running server on 127.0.0.1. It ends with the process.
#[derive(Debug)]
pub struct DnsServer {
    addr: SocketAddr,
    queries: Arc<AtomicUsize>,
}

impl DnsServer {
    /// Starts a server that returns [`ANSWER`] for every name.
    pub fn start() -> Result<Self> {
        Self::start_at(loopback_addr(free_port()), |_| {
            DnsReply::Address(ANSWER, 60)
        })
    }

    /// Starts a server at `addr` that answers each query as `script` says.
    pub fn start_at(
        addr: SocketAddr,
        script: impl Fn(&str) -> DnsReply + Send + 'static,
    ) -> Result<Self> {
        let socket = UdpSocket::bind(addr)?;
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        thread::spawn(move || {
            let mut buf = [0; 4096];
            while let Ok((len, from)) = socket.recv_from(&mut buf) {
                if let Some(answer) = answer_query(&buf[..len], &script) {
                    counter.fetch_add(1, Ordering::Relaxed);
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        Ok(Self {
            addr,
            queries: asked,
        })
    }

    /// Returns its address.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the number of queries it has answered.
    #[must_use]
    pub fn query_count(&self) -> usize {
        self.queries.load(Ordering::Relaxed)
    }
}

/// Encodes a query for the A record of a name, as a client sends it (RFC 1035, section 4.1).
#[must_use]
pub fn encode_query(id: u16, name: &str) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap_or(0));
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.extend_from_slice(&[0, 0, 1, 0, 1]);
    bytes
}

/// Returns the answer to a query with one question; further records are ignored.
fn answer_query(query: &[u8], script: &impl Fn(&str) -> DnsReply) -> Option<Vec<u8>> {
    let id = query.get(..2)?;
    let mut labels = Vec::new();
    let mut end = 12;
    while let Some(&len) = query.get(end).filter(|len| **len != 0) {
        let label = query.get(end + 1..end + 1 + usize::from(len))?;
        labels.push(String::from_utf8_lossy(label).into_owned());
        end += 1 + usize::from(len);
    }
    let question = query.get(12..end + 5)?;
    let wants_v4 = question.get(question.len() - 4..)? == [0, 1, 0, 1];
    let (code, address) = match script(&labels.join(".")) {
        DnsReply::NoReply => return None,
        DnsReply::NoSuchName => (3, None),
        DnsReply::Address(ip, ttl) => (0, Some((ip, ttl)).filter(|_| wants_v4)),
    };
    let mut bytes = id.to_vec();
    let answers = u8::from(address.is_some());
    bytes.extend_from_slice(&[0x81, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0]);
    bytes.extend_from_slice(question);
    if let Some((ip, ttl)) = address {
        // A pointer to the name in the question, type A, class IN, the time to live, four bytes.
        bytes.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, ttl, 0, 4]);
        bytes.extend_from_slice(&ip.octets());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_carries_the_question_and_the_address() {
        let query = encode_query(0x1234, "a.example");
        let says = |name: &str| {
            assert_eq!(name, "a.example");
            DnsReply::Address(ANSWER, 60)
        };
        let given = answer_query(&query, &says).unwrap();
        assert_eq!(given[..2], [0x12, 0x34]);
        assert_eq!(given[12..query.len()], query[12..]);
        assert!(given.ends_with(&ANSWER.octets()));
        assert_eq!(answer_query(&query[..15], &says), None);
        assert_eq!(answer_query(&query, &|_| DnsReply::NoReply), None);
        assert_eq!(
            answer_query(&query, &|_| DnsReply::NoSuchName).unwrap()[3] & 15,
            3
        );
    }
}
