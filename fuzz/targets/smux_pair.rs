//! Two sessions of smux on a pipe, whose applications act as the input says: the data that is read
//! from a stream is the data that was written; once both are left alone, all of it arrives, and its
//! end.

#![no_main]

use std::collections::{BTreeMap, VecDeque};

use adit_fuzz::ActionScript;
use adit_smux_proto::{Config, Event, FRAME_HEADER, ReadFront, Role, Session, StreamId, Version};
use adit_wire::Time;
use libfuzzer_sys::fuzz_target;

const NOW: Time = Time(0);
/// Turns within which everything must have arrived.
const MAX_TURNS: usize = 20_000;

/// A stream from the point of view of one end's application.
#[derive(Default)]
struct StreamProgress {
    written: usize,
    read: usize,
    /// `ended`: this end has ended its own side; `finished`: it has read the peer's end.
    ended: bool,
    finished: bool,
}

struct SmuxEnd {
    session: Session,
    role: Role,
    inbox: VecDeque<u8>,
    streams: BTreeMap<StreamId, StreamProgress>,
}

/// Returns the byte at `at` of the data that this end writes to a stream.
fn expected_byte(role: Role, id: StreamId, at: usize) -> u8 {
    let from = usize::from(role == Role::Client) * 101;
    ((at * 31 + at / 256 + id.get() as usize * 7 + from) % 256).to_le_bytes()[0]
}

impl SmuxEnd {
    fn new(script: &mut ActionScript<'_>, version: Version, role: Role) -> Self {
        let mut config = Config::new(version, role);
        config.max_frame = u16::from(script.read_u8()).max(1) * 8;
        config.stream_buffer = (u32::from(script.read_u8()) * 16).max(2);
        config.session_buffer = config.stream_buffer + u32::from(script.read_u8()) * 16;
        config.send_buffer = usize::from(script.read_u8()) * 8 + 1;
        config.backlog = 2;
        Self {
            session: Session::new(config, NOW).expect("right settings"),
            role,
            inbox: VecDeque::new(),
            streams: BTreeMap::new(),
        }
    }

    fn open_stream(&mut self) {
        if self.streams.len() < 8
            && let Ok(id) = self.session.open()
        {
            self.streams.insert(id, StreamProgress::default());
        }
    }

    fn accept_stream(&mut self) -> bool {
        let accepted = self.session.accept();
        accepted.is_some_and(|id| self.streams.insert(id, StreamProgress::default()).is_none())
    }

    fn nth_stream(&self, n: usize) -> Option<StreamId> {
        self.streams
            .keys()
            .nth(n % self.streams.len().max(1))
            .copied()
    }

    /// Writes through the session's queue, or seals a frame in place.
    fn write_stream(&mut self, id: StreamId, len: usize, direct: bool, peer: &mut VecDeque<u8>) {
        let Some(progress) = self.streams.get_mut(&id).filter(|progress| !progress.ended) else {
            return;
        };
        let at = progress.written;
        let bytes: Vec<u8> = (at..at + len)
            .map(|at| expected_byte(self.role, id, at))
            .collect();
        let most = self
            .session
            .direct_capacity(id)
            .expect("an open stream")
            .min(len);
        if direct && most > 0 {
            let mut frame = vec![0; FRAME_HEADER];
            frame.extend_from_slice(&bytes[..most]);
            self.session
                .seal_frame(id, &mut frame)
                .expect("a frame that fits");
            peer.extend(&frame);
            progress.written += most;
        } else {
            progress.written += self.session.write(id, &bytes).expect("an open stream");
        }
    }

    fn end_stream(&mut self, id: StreamId) {
        self.session.close_write(id).expect("an open stream");
        if let Some(progress) = self.streams.get_mut(&id) {
            progress.ended = true;
        }
    }

    fn read_stream(&mut self, id: StreamId, most: usize) -> bool {
        let Some(progress) = self.streams.get_mut(&id) else {
            return false;
        };
        let writer = self.role.peer();
        match self.session.front_bytes(id).expect("an open stream") {
            ReadFront::Bytes(bytes) => {
                let bytes = &bytes[..bytes.len().min(most)];
                for (n, byte) in bytes.iter().enumerate() {
                    assert_eq!(
                        *byte,
                        expected_byte(writer, id, progress.read + n),
                        "a different byte"
                    );
                }
                let len = bytes.len();
                progress.read += len;
                self.session.consume(id, len).expect("an open stream");
                len > 0
            }
            ReadFront::End => !core::mem::replace(&mut progress.finished, true),
            ReadFront::Nothing => false,
        }
    }

    fn handle_inbox(&mut self, most: usize) -> bool {
        let count = most.min(self.inbox.len());
        let bytes: Vec<u8> = self.inbox.iter().take(count).copied().collect();
        let used = self
            .session
            .handle_input(NOW, &bytes)
            .expect("the peer's own bytes");
        assert!(used == count || !self.session.wants_input());
        self.inbox.drain(..used);
        used > 0
    }

    fn send_output(&mut self, room: usize, peer: &mut VecDeque<u8>) -> bool {
        while let Some(event) = self.session.poll_event() {
            assert!(
                !matches!(event, Event::Failed(_)),
                "the peer broke flow control"
            );
        }
        let mut out = vec![0; room];
        let len = self.session.poll_output(&mut out);
        peer.extend(&out[..len]);
        len > 0
    }
}

fn perform_action(script: &mut ActionScript<'_>, ends: &mut [SmuxEnd; 2]) {
    let act = script.read_u8();
    let [a, b] = ends;
    let (end, peer) = if act & 128 == 0 { (a, b) } else { (b, a) };
    let id = end.nth_stream(usize::from(act >> 4));
    match (act % 8, id) {
        (0, _) => end.open_stream(),
        (1, _) => drop(end.accept_stream()),
        (2, Some(id)) => {
            let len = usize::from(script.read_u16()) % 3000;
            end.write_stream(id, len, len % 2 == 0, &mut peer.inbox);
        }
        (3, Some(id)) => drop(end.read_stream(id, script.read_u8().into())),
        (4, Some(id)) => end.end_stream(id),
        (5, _) => drop(end.handle_inbox(script.read_u8().into())),
        _ => drop(end.send_output(16 + usize::from(script.read_u8()) * 8, &mut peer.inbox)),
    }
}

/// Each end closes its streams; all data arrives.
fn finish_streams(ends: &mut [SmuxEnd; 2]) {
    for _ in 0..MAX_TURNS {
        let mut busy = false;
        for n in 0..2 {
            let [a, b] = &mut *ends;
            let (end, peer) = if n == 0 { (a, b) } else { (b, a) };
            busy |= end.handle_inbox(usize::MAX);
            while end.accept_stream() {
                busy = true;
            }
            let ids: Vec<StreamId> = end.streams.keys().copied().collect();
            for id in ids {
                if !end.streams.get(&id).is_some_and(|progress| progress.ended) {
                    end.end_stream(id);
                    busy = true;
                }
                while end.read_stream(id, usize::MAX) {
                    busy = true;
                }
            }
            busy |= end.send_output(4096, &mut peer.inbox);
        }
        if !busy {
            break;
        }
    }
    let [a, b] = &mut *ends;
    assert_eq!(a.streams.len(), b.streams.len());
    for (id, progress) in &a.streams {
        let other = b.streams.get(id).expect("the same stream");
        assert_eq!(
            (progress.read, other.read),
            (other.written, progress.written)
        );
        assert!(progress.finished && other.finished, "an end was lost");
    }
    for end in [a, b] {
        for id in end.streams.keys() {
            end.session.close(*id);
        }
        assert_eq!(end.session.stream_count(), 0, "a stream is left behind");
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let version = if script.read_flag() {
        Version::V2
    } else {
        Version::V1
    };
    let client = SmuxEnd::new(&mut script, version, Role::Client);
    let server = SmuxEnd::new(&mut script, version, Role::Server);
    let mut ends = [client, server];
    while !script.is_empty() {
        perform_action(&mut script, &mut ends);
    }
    finish_streams(&mut ends);
});
