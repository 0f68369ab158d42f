//! One end of an SSH connection against a peer that sends arbitrary messages, while its application
//! performs arbitrary actions: memory is bounded, and no message is sent that does not fit the
//! preceding ones.

#![no_main]

use std::collections::BTreeSet;

use adit_fuzz::Script;
use adit_ssh_proto::Role;
use adit_ssh_proto::connection::{
    ChannelId, ChannelKind, Connection, ConnectionEvent, ConnectionLimits, CustomMessage, DataKind,
    GlobalAnswer, GlobalRequest, HandledInput, OpenFailureReason, Originator, PendingGlobalReply,
    PendingReply, SshChannelRequest, WantReply,
};
use adit_ssh_proto::wire::SshBufMut;
use adit_wire::Time;
use core::time::Duration;
use libfuzzer_sys::fuzz_target;

const CHANNELS: usize = 4;
const QUEUE: usize = 2000;

const KINDS: [&[u8]; 9] = [
    b"session",
    b"direct-tcpip",
    b"forwarded-tcpip",
    b"direct-streamlocal@openssh.com",
    b"forwarded-streamlocal@openssh.com",
    b"x11",
    b"auth-agent@openssh.com",
    b"tun@openssh.com",
    b"?",
];

const REQUESTS: [&[u8]; 15] = [
    b"pty-req",
    b"env",
    b"shell",
    b"exec",
    b"subsystem",
    b"window-change",
    b"signal",
    b"exit-status",
    b"exit-signal",
    b"eow@openssh.com",
    b"break",
    b"x11-req",
    b"auth-agent-req@openssh.com",
    b"xon-xoff",
    b"?",
];

const GLOBALS: [&[u8]; 9] = [
    b"tcpip-forward",
    b"cancel-tcpip-forward",
    b"streamlocal-forward@openssh.com",
    b"cancel-streamlocal-forward@openssh.com",
    b"keepalive@openssh.com",
    b"hostkeys-00@openssh.com",
    b"hostkeys-prove-00@openssh.com",
    b"no-more-sessions@openssh.com",
    b"?",
];

/// Returns a message that is correct except for its fields, or not.
fn message(script: &mut Script<'_>) -> Vec<u8> {
    let number = 80 + script.byte() % 24;
    let mut out = vec![number];
    let small = |script: &mut Script<'_>| u32::from(script.byte() % 8);
    match number {
        80 => {
            out.put_string(script.pick(&GLOBALS));
            out.put_bool(script.flag());
            out.put_raw(script.bytes());
        }
        90 => {
            out.put_string(script.pick(&KINDS));
            out.put_u32(small(script));
            out.put_u32(u32::from(script.short()));
            out.put_u32(u32::from(script.byte()));
            out.put_raw(script.bytes());
        }
        91 => (0..4).for_each(|_| out.put_u32(small(script))),
        92 => {
            (0..2).for_each(|_| out.put_u32(small(script)));
            out.put_string(script.bytes());
        }
        93 => {
            out.put_u32(small(script));
            out.put_u32(script.word());
        }
        94 | 95 => {
            out.put_u32(small(script));
            if number == 95 {
                out.put_u32(small(script));
            }
            out.put_string(script.bytes());
        }
        96 | 97 | 99 | 100 => out.put_u32(small(script)),
        98 => {
            out.put_u32(small(script));
            out.put_string(script.pick(&REQUESTS));
            out.put_bool(script.flag());
            out.put_raw(script.bytes());
        }
        _ => out.put_raw(script.bytes()),
    }
    out
}

fn own() -> CustomMessage {
    CustomMessage::new("own@example.com", *b"data").expect("a name")
}

/// One end, and the state of its application.
struct End {
    machine: Connection,
    known: Vec<ChannelId>,
    duties: Vec<PendingReply>,
    global_duties: Vec<PendingGlobalReply>,
    /// The peer's numbers of channels that this end has closed: no message may follow.
    shut: BTreeSet<u32>,
    now: u64,
}

impl End {
    fn new(flags: u8) -> Self {
        let role = if flags & 1 == 0 {
            Role::Client
        } else {
            Role::Server
        };
        let mut limits = ConnectionLimits::default();
        limits.channels = CHANNELS;
        limits.pending_opens = 2;
        limits.requests = 3;
        limits.queue = QUEUE;
        limits.buffer = 4000;
        limits.window = 300;
        limits.max_window = 2000;
        limits.max_packet = 200;
        limits.max_send = 100;
        let mut machine = Connection::new(role, limits);
        machine.set_accept_custom_channels(flags & 8 == 0);
        if flags & 2 == 0 {
            machine.set_rtt(Duration::from_micros(500));
        }
        Self {
            machine,
            known: Vec::new(),
            duties: Vec::new(),
            global_duties: Vec::new(),
            shut: BTreeSet::new(),
            now: 0,
        }
    }

    /// Returns false after the connection has failed.
    fn hear(&mut self, payload: &[u8]) -> bool {
        if let [91, _, _, _, _, a, b, c, d, ..] = *payload {
            // A number of the peer's that may have had another channel, whose CLOSE comes first.
            self.speak();
            self.shut.remove(&u32::from_be_bytes([a, b, c, d]));
        }
        match self.machine.handle_input(Time(self.now), payload) {
            Ok(HandledInput::Data { channel, range, .. }) => {
                assert!(payload.get(range).is_some_and(|data| !data.is_empty()));
                assert!(self.known.contains(&channel), "data of an unknown channel");
            }
            Ok(HandledInput::Done | HandledInput::Unknown) => {}
            Err(why) => {
                let again = self.machine.handle_input(Time(self.now), &[97, 0, 0, 0, 0]);
                assert_eq!(again, Err(why), "a failed connection works again");
                return false;
            }
        }
        assert!(self.machine.channel_count() <= CHANNELS);
        true
    }

    fn poll(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                ConnectionEvent::Open { channel, .. } => self.known.push(channel),
                ConnectionEvent::Request { reply, .. } => self.duties.extend(reply),
                ConnectionEvent::GlobalRequest { reply, .. } => self.global_duties.extend(reply),
                ConnectionEvent::OpenFailed { channel, .. } => {
                    let before = self.known.len();
                    self.known.retain(|known| *known != channel);
                    assert!(self.known.len() < before, "an unknown channel failed");
                }
                _ => {}
            }
        }
    }

    /// Sends everything; the messages must be in a valid order.
    fn speak(&mut self) {
        let mut payload = Vec::new();
        for _ in 0..QUEUE {
            payload.clear();
            if !self.machine.poll_output(&mut payload) {
                return;
            }
            self.check(&payload);
        }
        panic!("the output has no end");
    }

    fn check(&mut self, payload: &[u8]) {
        let number = payload.first().copied().expect("a number");
        let to = payload.get(1..5).and_then(|b| <[u8; 4]>::try_from(b).ok());
        let to = to.map(u32::from_be_bytes);
        match (number, to) {
            (91, Some(to)) => drop(self.shut.remove(&to)),
            (97, Some(to)) => assert!(self.shut.insert(to), "closed twice"),
            (93..=100, Some(to)) => assert!(!self.shut.contains(&to), "a message after the CLOSE"),
            (80..=82 | 90 | 92, _) => {}
            other => panic!("{other:?}"),
        }
    }

    fn act(&mut self, script: &mut Script<'_>) {
        let act = script.byte();
        let place = usize::from(act >> 5) % self.known.len().max(1);
        let id = self.known.get(place).copied();
        match (act % 16, id) {
            (0, _) => {
                let kind = match act >> 6 {
                    0 => ChannelKind::Session,
                    1 => ChannelKind::Agent,
                    2 => ChannelKind::Custom(own()),
                    _ => ChannelKind::DirectTcpip {
                        host: "h".into(),
                        port: 1,
                        originator: Originator::default(),
                    },
                };
                self.known.extend(self.machine.open_channel(&kind).ok());
            }
            (1, _) => {
                let address = String::new();
                let request = match act >> 6 {
                    0 => GlobalRequest::KeepAlive,
                    1 => GlobalRequest::TcpipForward { address, port: 0 },
                    2 => GlobalRequest::TcpipForward { address, port: 1 },
                    _ => GlobalRequest::CancelTcpipForward { address, port: 1 },
                };
                let _ = self.machine.send_global_request(&request);
            }
            (2, _) if !self.duties.is_empty() => {
                let duty = self.duties.swap_remove(0);
                self.machine.answer_request(duty, act & 128 == 0);
            }
            (3, _) if !self.global_duties.is_empty() => {
                let duty = self.global_duties.swap_remove(0);
                self.machine
                    .answer_global(duty, GlobalAnswer::Bound { port: 9 });
            }
            (4, _) => self.now += u64::from(script.short()),
            (5, _) => self.poll(),
            (6, _) => self.speak(),
            (7 | 8, Some(id)) => drop(self.machine.confirm_open(id)),
            (9, Some(id)) => {
                let refused = self
                    .machine
                    .refuse_open(id, OpenFailureReason::Prohibited, "no");
                if refused.is_ok() {
                    self.known.retain(|known| *known != id);
                }
            }
            (10, Some(id)) => {
                let len = script.byte().into();
                self.machine.consume_data(id, len, Time(self.now));
            }
            (11, Some(id)) => drop(self.machine.send_eof(id)),
            (12, Some(id)) => self.machine.close_channel(id),
            (13, Some(id)) => {
                let request = match act >> 6 {
                    0 => SshChannelRequest::Agent,
                    1 => SshChannelRequest::ExitStatus(1),
                    2 => SshChannelRequest::Custom(own()),
                    _ => SshChannelRequest::Shell,
                };
                let _ = self.machine.send_request(id, &request, WantReply::Yes);
            }
            (14, Some(id)) => self.write(id, script.byte().into()),
            (15, _) => {
                for id in &self.known {
                    self.machine.queue_writer(*id);
                }
                if let Some(id) = self.machine.next_writer() {
                    assert!(self.machine.send_capacity(id) > 0, "a turn without room");
                    self.write(id, 1);
                }
            }
            _ => {}
        }
        assert!(self.machine.channel_count() <= CHANNELS);
    }

    fn write(&mut self, id: ChannelId, len: usize) {
        let room = self.machine.send_capacity(id);
        assert!(room <= 100);
        let mut payload = Vec::new();
        let done = self
            .machine
            .begin_data(id, DataKind::Stdout, len, &mut payload);
        assert_eq!(done.is_ok(), (1..=room).contains(&len));
        if done.is_ok() {
            assert_eq!(payload.len(), 9);
            self.check(&payload);
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = Script::new(input);
    let flags = script.byte();
    let mut end = End::new(flags);
    while !script.is_over() {
        let alive = match script.byte() % 4 {
            0 => {
                let raw = script.bytes().to_vec();
                end.hear(&raw)
            }
            1 | 2 => {
                let payload = message(&mut script);
                end.hear(&payload)
            }
            _ => {
                end.act(&mut script);
                true
            }
        };
        if flags & 4 == 0 {
            end.poll();
        }
        if !alive {
            break;
        }
    }
    end.poll();
    end.speak();
});
