//! Reassembles fragmented datagrams (RFC 1928 section 7).
//!
//! Off by default in the engine: very few clients fragment, and a server without reassembly drops
//! every datagram whose FRAG is not 0.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::time::Duration;

use adit_wire::{Target, Time, subslice};

use super::DatagramHeader;

/// Time for which fragments are kept, counted from the first one.
pub const FRAGMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of a reassembled datagram in bytes: the largest UDP payload over IPv4.
pub const MAX_DATAGRAM: usize = 65_507;

const LAST: u8 = 0x80;

/// The fragments of one association, from at most one datagram.
#[derive(Debug, Default)]
pub struct Reassembly {
    queue: Option<FragmentQueue>,
}

#[derive(Debug)]
struct FragmentQueue {
    target: Target,
    data: Vec<u8>,
    position: u8,
    started: Time,
}

/// The result for a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum ReassemblyResult<'a> {
    /// The data of a complete datagram, to be relayed to the header's target.
    Datagram(Cow<'a, [u8]>),
    /// The packet is a fragment that was stored.
    Kept,
    /// The fragment was out of order, for another target or too large. It was dropped with those
    /// before it.
    Dropped,
}

impl Reassembly {
    /// Creates an empty queue, which does not allocate.
    #[must_use]
    pub const fn new() -> Self {
        Self { queue: None }
    }

    /// Handles a packet with the header `header`. Stores at most [`MAX_DATAGRAM`] bytes.
    pub fn handle_packet<'a>(
        &mut self,
        now: Time,
        header: &DatagramHeader,
        packet: &'a [u8],
    ) -> ReassemblyResult<'a> {
        self.handle_timeout(now);
        let data = subslice(packet, header.payload.clone());
        let queue = self.queue.take();
        match (header.frag & !LAST, header.frag & LAST != 0, queue) {
            (0, false, _) => ReassemblyResult::Datagram(Cow::Borrowed(data)),
            // A single fragment is a complete datagram.
            (1, true, _) => ReassemblyResult::Datagram(Cow::Borrowed(data)),
            (1, false, _) if data.len() <= MAX_DATAGRAM => {
                self.queue = Some(FragmentQueue {
                    target: header.target.clone(),
                    data: data.to_vec(),
                    position: 1,
                    started: now,
                });
                ReassemblyResult::Kept
            }
            (position, last, Some(mut queue))
                if position == queue.position.saturating_add(1)
                    && header.target == queue.target
                    && data.len() <= MAX_DATAGRAM.saturating_sub(queue.data.len()) =>
            {
                queue.data.extend_from_slice(data);
                if last {
                    return ReassemblyResult::Datagram(Cow::Owned(queue.data));
                }
                queue.position = position;
                self.queue = Some(queue);
                ReassemblyResult::Kept
            }
            _ => ReassemblyResult::Dropped,
        }
    }

    /// Frees fragments that have timed out.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.queue = None;
        }
    }

    /// Returns the time at which the stored fragments will be dropped, if there are any.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.queue.as_ref().map(|q| q.started + FRAGMENT_TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const T0: Time = Time(1_000_000);

    fn push(
        r: &mut Reassembly,
        now: Time,
        frag: u8,
        to: &str,
        data: &[u8],
    ) -> ReassemblyResult<'static> {
        let header = DatagramHeader {
            frag,
            target: to.parse().unwrap(),
            payload: 0..data.len(),
        };
        match r.handle_packet(now, &header, data) {
            ReassemblyResult::Datagram(all) => {
                ReassemblyResult::Datagram(Cow::Owned(all.into_owned()))
            }
            ReassemblyResult::Kept => ReassemblyResult::Kept,
            ReassemblyResult::Dropped => ReassemblyResult::Dropped,
        }
    }

    fn whole(data: &[u8]) -> ReassemblyResult<'static> {
        ReassemblyResult::Datagram(Cow::Owned(data.to_vec()))
    }

    #[test]
    fn puts_fragments_together_in_order() {
        let mut r = Reassembly::new();
        assert_eq!(push(&mut r, T0, 1, "a:1", b"ab"), ReassemblyResult::Kept);
        assert_eq!(push(&mut r, T0, 2, "a:1", b""), ReassemblyResult::Kept);
        assert_eq!(push(&mut r, T0, 0x83, "a:1", b"cd"), whole(b"abcd"));
        assert_eq!(r.poll_timeout(), None);
        assert_eq!(push(&mut r, T0, 0x81, "a:1", b"x"), whole(b"x"));
        assert_eq!(
            push(&mut r, T0, 0x82, "a:1", b"y"),
            ReassemblyResult::Dropped
        );
    }

    #[test]
    fn gaps_repeats_strangers_and_plain_datagrams_reset() {
        for (frag, to, want) in [
            (3, "a:1", ReassemblyResult::Dropped),
            (0, "a:1", whole(b"z")),
            (2, "b:1", ReassemblyResult::Dropped),
            (0x80, "a:1", ReassemblyResult::Dropped),
        ] {
            let mut r = Reassembly::new();
            push(&mut r, T0, 1, "a:1", b"ab");
            assert_eq!(push(&mut r, T0, frag, to, b"z"), want, "{frag} {to}");
            assert_eq!(r.poll_timeout(), None, "{frag} {to}");
        }
        let mut r = Reassembly::new();
        push(&mut r, T0, 1, "a:1", b"ab");
        push(&mut r, T0, 2, "a:1", b"cd");
        assert_eq!(push(&mut r, T0, 2, "a:1", b"cd"), ReassemblyResult::Dropped);
        push(&mut r, T0, 1, "a:1", b"ab");
        assert_eq!(push(&mut r, T0, 1, "a:1", b"A"), ReassemblyResult::Kept);
        assert_eq!(push(&mut r, T0, 0x82, "a:1", b"B"), whole(b"AB"));
    }

    #[test]
    fn time_and_size_are_bounded() {
        let mut r = Reassembly::new();
        push(&mut r, T0, 1, "a:1", b"ab");
        assert_eq!(r.poll_timeout(), Some(T0 + FRAGMENT_TIMEOUT));
        push(&mut r, T0 + Duration::from_millis(4_999), 2, "a:1", b"cd");
        let late = T0 + FRAGMENT_TIMEOUT;
        assert_eq!(
            push(&mut r, late, 0x83, "a:1", b"ef"),
            ReassemblyResult::Dropped
        );

        let half = vec![7; MAX_DATAGRAM / 2 + 1];
        push(&mut r, T0, 1, "a:1", &half);
        assert_eq!(
            push(&mut r, T0, 0x82, "a:1", &half),
            ReassemblyResult::Dropped
        );
        push(&mut r, T0, 1, "a:1", &half);
        let rest = MAX_DATAGRAM - half.len();
        let ReassemblyResult::Datagram(all) = push(&mut r, T0, 0x82, "a:1", &half[..rest]) else {
            panic!("the limit itself is allowed");
        };
        assert_eq!(all.len(), MAX_DATAGRAM);
        let mut r = Reassembly::new();
        for position in 1..=126 {
            assert_eq!(
                push(&mut r, T0, position, "a:1", b"x"),
                ReassemblyResult::Kept
            );
        }
        assert_eq!(push(&mut r, T0, 0xff, "a:1", b"x"), whole(&[b'x'; 127]));
    }

    proptest! {
        /// Against a plain list: the delivered datagram is the last run 1, 2, … n.
        #[test]
        fn equals_a_list(moves in proptest::collection::vec((0u8..5, any::<bool>(), 0u8..2, 0u64..3_000), 0..60)) {
            let mut r = Reassembly::new();
            let mut list: Vec<(u8, u64, u8)> = Vec::new();
            let mut now = T0;
            for (i, (position, last, to, wait)) in moves.into_iter().enumerate() {
                now = now + Duration::from_millis(wait);
                let text = format!("host{to}:1");
                let byte = i as u8;
                let got = push(&mut r, now, position | if last { LAST } else { 0 }, &text, &[byte]);
                if list.first().is_some_and(|first| now.0 - first.1 >= 5_000_000) {
                    list.clear();
                }
                let want = if position == 0 && !last {
                    list.clear();
                    whole(&[byte])
                } else {
                    if position == 1 || usize::from(position) != list.len() + 1
                        || list.iter().any(|f| f.2 != to) {
                        list.clear();
                    }
                    if position == 0 || usize::from(position) != list.len() + 1 {
                        ReassemblyResult::Dropped
                    } else {
                        list.push((byte, now.0, to));
                        if last {
                            let all: Vec<u8> = list.drain(..).map(|f| f.0).collect();
                            whole(&all)
                        } else {
                            ReassemblyResult::Kept
                        }
                    }
                };
                prop_assert_eq!(got, want);
            }
        }
    }
}
