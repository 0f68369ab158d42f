//! A DNS server that gives one address for every name.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Result;

use crate::port::{free_port, loopback};

/// The address that every name has.
pub const ANSWER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 7);

/// A running server on 127.0.0.1. It ends with the process.
#[derive(Debug)]
pub struct Dns {
    addr: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Dns {
    /// Starts it.
    pub fn start() -> Result<Self> {
        let addr = loopback(free_port());
        let socket = UdpSocket::bind(addr)?;
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        thread::spawn(move || {
            let mut buf = [0; 4096];
            while let Ok((len, from)) = socket.recv_from(&mut buf) {
                if let Some(answer) = answer(&buf[..len]) {
                    counter.fetch_add(1, Ordering::Relaxed);
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        Ok(Self { addr, asked })
    }

    /// Where it is.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// How many questions it has answered.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

/// A query for the A record of a name, as a client sends it (RFC 1035 section 4.1).
#[must_use]
pub fn query(id: u16, name: &str) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap_or(0));
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.extend_from_slice(&[0, 0, 1, 0, 1]);
    bytes
}

/// The answer to a query with one question; further records are left out.
fn answer(query: &[u8]) -> Option<Vec<u8>> {
    let id = query.get(..2)?;
    let mut end = 12;
    while let Some(&label) = query.get(end).filter(|len| **len != 0) {
        end += 1 + usize::from(label);
    }
    let question = query.get(12..end + 5)?;
    let mut bytes = id.to_vec();
    bytes.extend_from_slice(&[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    bytes.extend_from_slice(question);
    // A pointer to the question's name, type A, class IN, 60 s, four bytes.
    bytes.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
    bytes.extend_from_slice(&ANSWER.octets());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_carries_the_question_and_the_address() {
        let query = query(0x1234, "a.example");
        let answer = answer(&query).unwrap();
        assert_eq!(answer[..2], [0x12, 0x34]);
        assert_eq!(answer[12..query.len()], query[12..]);
        assert!(answer.ends_with(&ANSWER.octets()));
        assert_eq!(super::answer(&query[..15]), None);
    }
}
