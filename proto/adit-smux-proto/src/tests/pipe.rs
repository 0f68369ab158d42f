//! Two sessions on a pipe: in any splitting, every stream's bytes arrive in order and unmixed.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::START;
use crate::{Config, Event, FRAME_HEADER, ReadFront, Role, Session, StreamId, Version};

/// A small generator (SplitMix64), so that a failure is reproducible.
struct TestRng(u64);

impl TestRng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ z >> 31) % bound as u64).unwrap()
    }
}

/// Returns the bytes of a stream in one direction.
fn text(id: StreamId, role: Role, len: usize) -> Vec<u8> {
    let seed = id.get() as usize * 7 + usize::from(role == Role::Client) * 101;
    (0..len)
        .map(|i| u8::try_from((i * 31 + i / 256 + seed) % 256).unwrap())
        .collect()
}

/// One end, its application, and the bytes in transit to it.
struct End {
    session: Session,
    role: Role,
    wire: VecDeque<u8>,
    /// Bytes still to be written.
    to_write: BTreeMap<StreamId, Vec<u8>>,
    /// Received bytes, and true at the end.
    found: BTreeMap<StreamId, (Vec<u8>, bool)>,
    len: usize,
}

impl End {
    fn begin(&mut self, id: StreamId) {
        self.to_write.insert(id, text(id, self.role, self.len));
        self.found.insert(id, (Vec::new(), false));
    }

    /// Does some of the possible steps. Returns true if there were any.
    fn act(&mut self, rng: &mut TestRng, peer: &mut VecDeque<u8>) -> bool {
        let mut busy = self.take_in(rng);
        while let Some(id) = self.session.accept() {
            self.begin(id);
            busy = true;
        }
        while let Some(event) = self.session.poll_event() {
            assert!(!matches!(event, Event::Failed(_)));
            busy = true;
        }
        let ids: Vec<StreamId> = self.found.keys().copied().collect();
        for id in ids {
            busy |= self.read(rng, id) | self.write(rng, id, peer);
        }
        let mut out = vec![0; 16 + rng.below(3000)];
        let len = self.session.poll_output(&mut out);
        peer.extend(&out[..len]);
        busy | (len > 0)
    }

    fn take_in(&mut self, rng: &mut TestRng) -> bool {
        let count = rng.below(2000).min(self.wire.len());
        let bytes: Vec<u8> = self.wire.iter().take(count).copied().collect();
        let used = self.session.handle_input(START, &bytes).unwrap();
        self.wire.drain(..used);
        used > 0 || count == 0 && !self.wire.is_empty()
    }

    fn read(&mut self, rng: &mut TestRng, id: StreamId) -> bool {
        let (found, ended) = self.found.get_mut(&id).unwrap();
        match self.session.front_bytes(id).unwrap() {
            ReadFront::Bytes(bytes) => {
                let count = (1 + rng.below(5000)).min(bytes.len());
                found.extend_from_slice(&bytes[..count]);
                self.session.consume(id, count).unwrap();
                true
            }
            ReadFront::End => !core::mem::replace(ended, true),
            ReadFront::Nothing => false,
        }
    }

    fn write(&mut self, rng: &mut TestRng, id: StreamId, peer: &mut VecDeque<u8>) -> bool {
        let Some(left) = self.to_write.get_mut(&id) else {
            return false;
        };
        let count = rng.below(4000).min(left.len());
        let direct = self.session.direct_capacity(id).unwrap().min(count);
        let done = if direct > 0 && rng.below(2) == 0 {
            let mut frame = vec![0; FRAME_HEADER];
            frame.extend_from_slice(&left[..direct]);
            self.session.seal_frame(id, &mut frame).unwrap();
            peer.extend(&frame);
            direct
        } else {
            self.session.write(id, &left[..count]).unwrap()
        };
        left.drain(..done);
        if left.is_empty() {
            self.session.close_write(id).unwrap();
            self.to_write.remove(&id);
        }
        done > 0 || count == 0
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_byte_of_every_stream(
        seed in any::<u64>(), v2 in any::<bool>(), streams in 1usize..6, len in 0usize..30_000,
        max_frame in 1u16..9000, stream_buffer in 2u32..40_000, small in any::<bool>(),
    ) {
        let mut rng = TestRng(seed);
        let version = if v2 { Version::V2 } else { Version::V1 };
        let max_frame = if len > 5000 { max_frame.max(100) } else { max_frame };
        let mut make = |role| {
            let mut config = Config::new(version, role);
            (config.max_frame, config.stream_buffer, config.backlog) = (max_frame, stream_buffer, 2);
            config.session_buffer = stream_buffer + if small { 0 } else { 1 << 20 };
            config.send_buffer = 1 + rng.below(10_000);
            let session = Session::new(config, START).unwrap();
            End { session, role, wire: VecDeque::new(), to_write: BTreeMap::new(), found: BTreeMap::new(), len }
        };
        let (mut client, mut server) = (make(Role::Client), make(Role::Server));
        for n in 0..streams {
            let end = if n % 3 == 2 { &mut server } else { &mut client };
            let id = end.session.open().unwrap();
            end.begin(id);
        }
        let mut idle = 0;
        for _ in 0..2_000_000 {
            let busy = client.act(&mut rng, &mut server.wire) | server.act(&mut rng, &mut client.wire);
            idle = if busy { 0 } else { idle + 1 };
            if idle > 20 { break; }
        }
        prop_assert_eq!(client.found.len(), streams);
        for end in [&mut client, &mut server] {
            let from = end.role.peer();
            let found = core::mem::take(&mut end.found);
            prop_assert_eq!(found.len(), streams);
            for (id, (bytes, ended)) in found {
                prop_assert!(ended && bytes == text(id, from, len), "stream {}: {} of {}", id.get(), bytes.len(), len);
                end.session.close(id);
            }
            prop_assert_eq!((end.session.stream_count(), end.session.unread_bytes), (0, 0));
        }
    }
}
