//! Two sessions of smux on a pipe, whose applications act as the input says: the data that is read
//! from a stream is the data that was written; once both are left alone, all of it arrives, and its
//! end.

#![no_main]

use std::collections::{BTreeMap, VecDeque};

use adit_fuzz::Script;
use adit_smux_proto::{Config, Event, FRAME_HEADER, ReadFront, Role, Session, StreamId, Version};
use adit_wire::Time;
use libfuzzer_sys::fuzz_target;

const NOW: Time = Time(0);
/// Turns within which everything must have arrived.
const PATIENCE: usize = 20_000;

/// A stream from the point of view of one end's application.
#[derive(Default)]
struct Line {
    written: usize,
    read: usize,
    /// `ended`: this end has ended its own side; `finished`: it has read the peer's end.
    ended: bool,
    finished: bool,
}

struct End {
    session: Session,
    role: Role,
    wire: VecDeque<u8>,
    lines: BTreeMap<StreamId, Line>,
}

/// Returns the byte at `at` of the data that this end writes to a stream.
fn text(role: Role, id: StreamId, at: usize) -> u8 {
    let from = usize::from(role == Role::Client) * 101;
    ((at * 31 + at / 256 + id.get() as usize * 7 + from) % 256).to_le_bytes()[0]
}

impl End {
    fn new(script: &mut Script<'_>, version: Version, role: Role) -> Self {
        let mut config = Config::new(version, role);
        config.max_frame = u16::from(script.byte()).max(1) * 8;
        config.stream_buffer = (u32::from(script.byte()) * 16).max(2);
        config.session_buffer = config.stream_buffer + u32::from(script.byte()) * 16;
        config.send_buffer = usize::from(script.byte()) * 8 + 1;
        config.backlog = 2;
        Self {
            session: Session::new(config, NOW).expect("right settings"),
            role,
            wire: VecDeque::new(),
            lines: BTreeMap::new(),
        }
    }

    fn open(&mut self) {
        if self.lines.len() < 8
            && let Ok(id) = self.session.open()
        {
            self.lines.insert(id, Line::default());
        }
    }

    fn accept(&mut self) -> bool {
        let accepted = self.session.accept();
        accepted.is_some_and(|id| self.lines.insert(id, Line::default()).is_none())
    }

    fn nth(&self, n: usize) -> Option<StreamId> {
        self.lines.keys().nth(n % self.lines.len().max(1)).copied()
    }

    /// Writes through the session's queue, or seals a frame in place.
    fn write(&mut self, id: StreamId, len: usize, direct: bool, peer: &mut VecDeque<u8>) {
        let Some(line) = self.lines.get_mut(&id).filter(|line| !line.ended) else {
            return;
        };
        let at = line.written;
        let bytes: Vec<u8> = (at..at + len).map(|at| text(self.role, id, at)).collect();
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
            line.written += most;
        } else {
            line.written += self.session.write(id, &bytes).expect("an open stream");
        }
    }

    fn end(&mut self, id: StreamId) {
        self.session.close_write(id).expect("an open stream");
        if let Some(line) = self.lines.get_mut(&id) {
            line.ended = true;
        }
    }

    fn read(&mut self, id: StreamId, most: usize) -> bool {
        let Some(line) = self.lines.get_mut(&id) else {
            return false;
        };
        let writer = self.role.peer();
        match self.session.front_bytes(id).expect("an open stream") {
            ReadFront::Bytes(bytes) => {
                let bytes = &bytes[..bytes.len().min(most)];
                for (n, byte) in bytes.iter().enumerate() {
                    assert_eq!(*byte, text(writer, id, line.read + n), "a different byte");
                }
                let len = bytes.len();
                line.read += len;
                self.session.consume(id, len).expect("an open stream");
                len > 0
            }
            ReadFront::End => !core::mem::replace(&mut line.finished, true),
            ReadFront::Nothing => false,
        }
    }

    fn take_in(&mut self, most: usize) -> bool {
        let count = most.min(self.wire.len());
        let bytes: Vec<u8> = self.wire.iter().take(count).copied().collect();
        let used = self
            .session
            .handle_input(NOW, &bytes)
            .expect("the peer's own bytes");
        assert!(used == count || !self.session.wants_input());
        self.wire.drain(..used);
        used > 0
    }

    fn send(&mut self, room: usize, peer: &mut VecDeque<u8>) -> bool {
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

fn act(script: &mut Script<'_>, ends: &mut [End; 2]) {
    let act = script.byte();
    let [a, b] = ends;
    let (end, peer) = if act & 128 == 0 { (a, b) } else { (b, a) };
    let id = end.nth(usize::from(act >> 4));
    match (act % 8, id) {
        (0, _) => end.open(),
        (1, _) => drop(end.accept()),
        (2, Some(id)) => {
            let len = usize::from(script.short()) % 3000;
            end.write(id, len, len % 2 == 0, &mut peer.wire);
        }
        (3, Some(id)) => drop(end.read(id, script.byte().into())),
        (4, Some(id)) => end.end(id),
        (5, _) => drop(end.take_in(script.byte().into())),
        _ => drop(end.send(16 + usize::from(script.byte()) * 8, &mut peer.wire)),
    }
}

/// Each end closes its streams; all data arrives.
fn finish(ends: &mut [End; 2]) {
    for _ in 0..PATIENCE {
        let mut busy = false;
        for n in 0..2 {
            let [a, b] = &mut *ends;
            let (end, peer) = if n == 0 { (a, b) } else { (b, a) };
            busy |= end.take_in(usize::MAX);
            while end.accept() {
                busy = true;
            }
            let ids: Vec<StreamId> = end.lines.keys().copied().collect();
            for id in ids {
                if !end.lines.get(&id).is_some_and(|line| line.ended) {
                    end.end(id);
                    busy = true;
                }
                while end.read(id, usize::MAX) {
                    busy = true;
                }
            }
            busy |= end.send(4096, &mut peer.wire);
        }
        if !busy {
            break;
        }
    }
    let [a, b] = &mut *ends;
    assert_eq!(a.lines.len(), b.lines.len());
    for (id, line) in &a.lines {
        let other = b.lines.get(id).expect("the same stream");
        assert_eq!((line.read, other.read), (other.written, line.written));
        assert!(line.finished && other.finished, "an end was lost");
    }
    for end in [a, b] {
        for id in end.lines.keys() {
            end.session.close(*id);
        }
        assert_eq!(end.session.stream_count(), 0, "a stream is left behind");
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = Script::new(input);
    let version = if script.flag() {
        Version::V2
    } else {
        Version::V1
    };
    let client = End::new(&mut script, version, Role::Client);
    let server = End::new(&mut script, version, Role::Server);
    let mut ends = [client, server];
    while !script.is_over() {
        act(&mut script, &mut ends);
    }
    finish(&mut ends);
});
