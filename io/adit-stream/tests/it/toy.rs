//! A record codec for tests: `len(2) ‖ payload ‖ check(1)`, and connected pairs.

use std::ops::Range;

use adit_stream::Tcp;
use adit_wire::{Open, Opened, Overhead, ProtocolError, Seal};
use tokio::net::{TcpListener, TcpStream};

/// Seals records of at most `max` bytes; owes a head byte until the first record.
pub(crate) struct ToySeal {
    pub(crate) max: usize,
    pub(crate) head: bool,
}

impl Seal for ToySeal {
    fn overhead(&self) -> Overhead {
        Overhead {
            head: 2 + usize::from(self.head),
            tail: 1,
            max_payload: self.max,
        }
    }
    fn has_steady_overhead(&self) -> bool {
        true
    }
    fn seal(&mut self, record: &mut [u8], p: Range<usize>) -> Result<Range<usize>, ProtocolError> {
        let mut start = p.start - 2;
        record[start..p.start].copy_from_slice(&u16::try_from(p.len()).unwrap().to_be_bytes());
        if self.head {
            start -= 1;
            record[start] = b'H';
            self.head = false;
        }
        let check = record[p.clone()].iter().fold(0x5a, |a, b| a ^ b);
        record[p.end] = check;
        record[p.clone()].iter_mut().for_each(|b| *b ^= 0xff);
        Ok(start..p.end + 1)
    }
    fn must_send_head(&self) -> bool {
        self.head
    }
}

#[derive(Default)]
pub(crate) struct ToyOpen {
    pub(crate) head: bool,
}

impl Open for ToyOpen {
    fn open(&mut self, wire: &mut [u8]) -> Result<Opened, ProtocolError> {
        if self.head {
            if wire.is_empty() {
                return Ok(Opened::NeedMore { total: 1 });
            }
            if wire[0] != b'H' {
                return Err(ProtocolError::Malformed("head"));
            }
            self.head = false;
            return Ok(Opened::Record {
                consumed: 1,
                payload: 1..1,
            });
        }
        let Some(len) = wire.first_chunk::<2>() else {
            return Ok(Opened::NeedMore { total: 2 });
        };
        let end = 2 + usize::from(u16::from_be_bytes(*len));
        if wire.len() <= end {
            return Ok(Opened::NeedMore { total: end + 1 });
        }
        wire[2..end].iter_mut().for_each(|b| *b ^= 0xff);
        if wire[2..end].iter().fold(0x5a, |a, b| a ^ b) != wire[end] {
            return Err(ProtocolError::Unauthentic);
        }
        Ok(Opened::Record {
            consumed: end + 1,
            payload: 2..end,
        })
    }
}

/// Two ends of a loopback connection.
pub(crate) async fn pair() -> (Tcp, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (a, b) = tokio::join!(
        TcpStream::connect(listener.local_addr().unwrap()),
        listener.accept()
    );
    (Tcp::new(a.unwrap()), b.unwrap().0)
}

/// Returns bytes that reveal a wrong position.
pub(crate) fn pattern(n: usize) -> Vec<u8> {
    (0..n)
        .map(|i| (i.wrapping_mul(31) ^ (i >> 8)) as u8)
        .collect()
}
