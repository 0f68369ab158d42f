//! One of the two ends: its state machine, and an application that checks what it receives.

use std::collections::{BTreeMap, VecDeque};

use super::super::*;
use super::Act;

/// A channel as seen by one end's application.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Identifies the channel at both ends: the end that opened it, and its number there.
    name: Option<(bool, u32)>,
    pub(super) open: bool,
    written: [u32; 2],
    read: [u32; 2],
    unread: usize,
    ended: bool,
    closed: bool,
    asked: usize,
}

pub(super) struct End {
    client: bool,
    pub(super) machine: Connection,
    pub(super) wire: VecDeque<Vec<u8>>,
    pub(super) lines: BTreeMap<ChannelId, Line>,
    /// Requested channels, and pending answers.
    pub(super) wanted: Vec<ChannelId>,
    pub(super) duties: Vec<PendingReply>,
    pub(super) expected: VecDeque<GlobalRequestId>,
    opened: u32,
}

/// Returns the byte at `at` of the data that the client or the server writes to a stream.
fn octet(client: bool, name: (bool, u32), kind: usize, at: u32) -> u8 {
    let seed = name.1 * 7 + u32::from(name.0) * 3 + u32::from(client) * 101;
    (at * 31 + at / 256 + seed + u32::try_from(kind).unwrap() * 57).to_le_bytes()[0]
}

const KINDS: [DataKind; 2] = [DataKind::Stdout, DataKind::Stderr];

impl End {
    pub(super) fn new(client: bool, window: u32) -> Self {
        let role = if client { Role::Client } else { Role::Server };
        let limits = ConnectionLimits {
            channels: 5,
            pending_opens: 3,
            requests: 4,
            window,
            max_window: window * 4,
            max_packet: 64,
            max_send: 50,
            ..ConnectionLimits::default()
        };
        let mut machine = Connection::new(role, limits);
        machine.set_rtt(Duration::from_micros(50));
        Self {
            client,
            machine,
            wire: VecDeque::new(),
            lines: BTreeMap::new(),
            wanted: Vec::new(),
            duties: Vec::new(),
            expected: VecDeque::new(),
            opened: 0,
        }
    }

    fn nth(&self, n: usize) -> Option<ChannelId> {
        self.lines.keys().nth(n).copied()
    }

    pub(super) fn act(&mut self, act: &Act, now: Time, peer: &mut VecDeque<Vec<u8>>) {
        match *act {
            Act::Open => self.open(),
            Act::Answer { channel, yes } if channel < self.wanted.len() => {
                let id = self.wanted.remove(channel);
                if yes {
                    self.machine.confirm_open(id).unwrap();
                    self.lines.get_mut(&id).unwrap().open = true;
                } else {
                    self.machine
                        .refuse_open(id, OpenFailureReason::ConnectFailed, "no")
                        .unwrap();
                    self.lines.remove(&id);
                }
            }
            Act::Write {
                channel,
                stderr,
                len,
            } => self.write(channel, usize::from(stderr), len, peer),
            Act::Read { channel, len } => {
                if let Some(id) = self.nth(channel) {
                    self.read(id, len, now);
                }
            }
            Act::Eof(channel) => {
                if let Some(id) = self.nth(channel) {
                    let fine = self.machine.send_eof(id).is_ok();
                    let line = self.lines.get_mut(&id).unwrap();
                    assert_eq!(fine, line.open && !line.ended && !line.closed);
                    line.ended |= fine;
                }
            }
            Act::Close(channel) => {
                let id = self.nth(channel).filter(|id| !self.wanted.contains(id));
                if let Some(id) = id {
                    self.close(id);
                }
            }
            Act::Ask { channel, want } => self.ask(channel, want),
            Act::Reply { first, ok } if !self.duties.is_empty() => {
                let last = self.duties.len() - 1;
                let duty = self.duties.remove(if first { 0 } else { last });
                self.machine.answer_request(duty, ok);
            }
            Act::AskGlobal => {
                let id = self.machine.send_global_request(&GlobalRequest::KeepAlive);
                self.expected.extend(id.ok().flatten());
            }
            Act::Turn => {
                for id in self.lines.keys() {
                    self.machine.queue_writer(*id);
                }
                self.flush(peer);
                if let Some(id) = self.machine.next_writer() {
                    assert!(self.machine.send_capacity(id) > 0);
                }
            }
            Act::Carry(count) => {
                self.flush(peer);
                for _ in 0..count {
                    self.take_one(now);
                }
            }
            Act::Answer { .. } | Act::Reply { .. } => {}
        }
    }

    fn open(&mut self) {
        if !self.client {
            return;
        }
        let kind = ChannelKind::Tun {
            mode: 1,
            unit: self.opened,
        };
        let full = self.machine.channel_count() >= 5;
        let id = self.machine.open_channel(&kind);
        assert_eq!(id.is_err(), full);
        if let Ok(id) = id {
            let name = Some((self.client, self.opened));
            let line = Line {
                name,
                ..Line::default()
            };
            assert!(self.lines.insert(id, line).is_none(), "an id twice");
            self.opened += 1;
        }
    }

    fn write(&mut self, channel: usize, kind: usize, len: usize, peer: &mut VecDeque<Vec<u8>>) {
        self.flush(peer);
        let Some(id) = self.nth(channel) else { return };
        let len = len.min(self.machine.send_capacity(id));
        let line = self.lines.get_mut(&id).unwrap();
        let mut payload = Vec::new();
        let fine = self
            .machine
            .begin_data(id, KINDS[kind], len, &mut payload)
            .is_ok();
        assert_eq!(fine, len > 0);
        if !fine {
            return;
        }
        assert!(line.open && !line.ended && !line.closed);
        let at = line.written[kind];
        let till = at + u32::try_from(len).unwrap();
        payload.extend((at..till).map(|at| octet(self.client, line.name.unwrap(), kind, at)));
        line.written[kind] = till;
        peer.push_back(payload);
    }

    pub(super) fn read(&mut self, id: ChannelId, len: usize, now: Time) {
        let line = self.lines.get_mut(&id).unwrap();
        let len = len.min(line.unread);
        line.unread -= len;
        let over = line.closed && line.unread == 0;
        if len > 0 {
            self.machine.consume_data(id, len, now);
        }
        if over {
            self.lines.remove(&id);
        }
    }

    /// Closed channels are removed immediately, unless they wait for the peer.
    pub(super) fn close(&mut self, id: ChannelId) {
        self.machine.close_channel(id);
        if self.lines.get(&id).is_some_and(|line| line.closed) {
            self.lines.remove(&id);
        } else if let Some(line) = self.lines.get_mut(&id) {
            (line.unread, line.ended, line.open) = (0, true, false);
        }
    }

    fn ask(&mut self, channel: usize, want: bool) {
        let Some(id) = self.nth(channel) else { return };
        let want = if want { WantReply::Yes } else { WantReply::No };
        let fine = self
            .machine
            .send_request(id, &SshChannelRequest::Shell, want)
            .is_ok();
        let line = self.lines.get_mut(&id).unwrap();
        let too_many = want == WantReply::Yes && line.asked >= 4;
        assert_eq!(fine, line.open && !line.closed && !too_many);
        line.asked += usize::from(fine && want == WantReply::Yes);
    }

    pub(super) fn flush(&mut self, peer: &mut VecDeque<Vec<u8>>) {
        peer.extend(output(&mut self.machine));
    }

    pub(super) fn take_one(&mut self, now: Time) -> bool {
        let Some(payload) = self.wire.pop_front() else {
            return false;
        };
        match self.machine.handle_input(now, &payload).unwrap() {
            HandledInput::Data {
                channel,
                kind,
                range,
            } => {
                let line = self.lines.get_mut(&channel).expect("data of nothing");
                let kind = usize::from(kind == DataKind::Stderr);
                for byte in &payload[range] {
                    let at = line.read[kind];
                    let right = octet(!self.client, line.name.unwrap(), kind, at);
                    assert_eq!(*byte, right, "another octet");
                    line.read[kind] += 1;
                    line.unread += 1;
                }
            }
            HandledInput::Done => {}
            HandledInput::Unknown => panic!("unknown message"),
        }
        while let Some(event) = self.machine.poll_event() {
            self.note(event);
        }
        true
    }

    fn note(&mut self, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Open { channel, kind } => {
                let ChannelKind::Tun { unit, .. } = kind else {
                    panic!("{kind:?}");
                };
                let line = Line {
                    name: Some((!self.client, unit)),
                    ..Line::default()
                };
                assert!(self.lines.insert(channel, line).is_none(), "an id twice");
                self.wanted.push(channel);
            }
            ConnectionEvent::Opened(id) => self.lines.get_mut(&id).unwrap().open = true,
            ConnectionEvent::OpenFailed { channel, .. } => {
                assert!(self.lines.remove(&channel).is_some());
            }
            ConnectionEvent::Request { reply, .. } => self.duties.extend(reply),
            ConnectionEvent::RequestDone { channel, .. } => {
                self.lines.get_mut(&channel).unwrap().asked -= 1;
            }
            ConnectionEvent::Eof(id) => assert!(!self.lines[&id].closed),
            ConnectionEvent::Closed(id) => {
                let line = self.lines.get_mut(&id).unwrap();
                assert!(!core::mem::replace(&mut line.closed, true));
                if line.unread == 0 {
                    self.lines.remove(&id);
                }
            }
            ConnectionEvent::GlobalReply { id, .. } => {
                assert_eq!(self.expected.pop_front(), Some(id));
            }
            ConnectionEvent::Writable(_) => {}
            other @ ConnectionEvent::GlobalRequest { .. } => panic!("{other:?}"),
        }
    }
}
