//! One end of an SSH connection against a peer that sends arbitrary messages, while its application
//! performs arbitrary actions: memory is bounded, and no message is sent that does not fit the
//! preceding ones.

#![no_main]

use std::collections::BTreeSet;

use adit_fuzz::ActionScript;
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

const MAX_CHANNELS: usize = 4;
const QUEUE_LIMIT: usize = 2000;

const CHANNEL_KINDS: [&[u8]; 9] = [
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

const CHANNEL_REQUESTS: [&[u8]; 15] = [
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

const GLOBAL_REQUESTS: [&[u8]; 9] = [
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
fn read_message(script: &mut ActionScript<'_>) -> Vec<u8> {
    let number = 80 + script.read_u8() % 24;
    let mut out = vec![number];
    let small = |script: &mut ActionScript<'_>| u32::from(script.read_u8() % 8);
    match number {
        80 => {
            out.put_string(script.pick_one(&GLOBAL_REQUESTS));
            out.put_bool(script.read_flag());
            out.put_raw(script.read_bytes());
        }
        90 => {
            out.put_string(script.pick_one(&CHANNEL_KINDS));
            out.put_u32(small(script));
            out.put_u32(u32::from(script.read_u16()));
            out.put_u32(u32::from(script.read_u8()));
            out.put_raw(script.read_bytes());
        }
        91 => (0..4).for_each(|_| out.put_u32(small(script))),
        92 => {
            (0..2).for_each(|_| out.put_u32(small(script)));
            out.put_string(script.read_bytes());
        }
        93 => {
            out.put_u32(small(script));
            out.put_u32(script.read_u32());
        }
        94 | 95 => {
            out.put_u32(small(script));
            if number == 95 {
                out.put_u32(small(script));
            }
            out.put_string(script.read_bytes());
        }
        96 | 97 | 99 | 100 => out.put_u32(small(script)),
        98 => {
            out.put_u32(small(script));
            out.put_string(script.pick_one(&CHANNEL_REQUESTS));
            out.put_bool(script.read_flag());
            out.put_raw(script.read_bytes());
        }
        _ => out.put_raw(script.read_bytes()),
    }
    out
}

fn custom_message() -> CustomMessage {
    CustomMessage::new("own@example.com", *b"data").expect("a name")
}

/// One end, and the state of its application.
struct ConnectionEnd {
    connection: Connection,
    channels: Vec<ChannelId>,
    pending_replies: Vec<PendingReply>,
    pending_global_replies: Vec<PendingGlobalReply>,
    /// The peer's numbers of channels that this end has closed: no message may follow.
    closed_by_us: BTreeSet<u32>,
    now: u64,
}

impl ConnectionEnd {
    fn new(flags: u8) -> Self {
        let role = if flags & 1 == 0 {
            Role::Client
        } else {
            Role::Server
        };
        let mut limits = ConnectionLimits::default();
        limits.channels = MAX_CHANNELS;
        limits.pending_opens = 2;
        limits.requests = 3;
        limits.queue = QUEUE_LIMIT;
        limits.buffer = 4000;
        limits.window = 300;
        limits.max_window = 2000;
        limits.max_packet = 200;
        limits.max_send = 100;
        let mut connection = Connection::new(role, limits);
        connection.set_accept_custom_channels(flags & 8 == 0);
        if flags & 2 == 0 {
            connection.set_rtt(Duration::from_micros(500));
        }
        Self {
            connection,
            channels: Vec::new(),
            pending_replies: Vec::new(),
            pending_global_replies: Vec::new(),
            closed_by_us: BTreeSet::new(),
            now: 0,
        }
    }

    /// Returns false after the connection has failed.
    fn handle_payload(&mut self, payload: &[u8]) -> bool {
        if let [91, _, _, _, _, a, b, c, d, ..] = *payload {
            // A number of the peer's that may have had another channel, whose CLOSE comes first.
            self.send_all();
            self.closed_by_us.remove(&u32::from_be_bytes([a, b, c, d]));
        }
        match self.connection.handle_input(Time(self.now), payload) {
            Ok(HandledInput::Data { channel, range, .. }) => {
                assert!(payload.get(range).is_some_and(|data| !data.is_empty()));
                assert!(
                    self.channels.contains(&channel),
                    "data of an unknown channel"
                );
            }
            Ok(HandledInput::Done | HandledInput::Unknown) => {}
            Err(why) => {
                let again = self
                    .connection
                    .handle_input(Time(self.now), &[97, 0, 0, 0, 0]);
                assert_eq!(again, Err(why), "a failed connection works again");
                return false;
            }
        }
        assert!(self.connection.channel_count() <= MAX_CHANNELS);
        true
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            match event {
                ConnectionEvent::Open { channel, .. } => self.channels.push(channel),
                ConnectionEvent::Request { reply, .. } => self.pending_replies.extend(reply),
                ConnectionEvent::GlobalRequest { reply, .. } => {
                    self.pending_global_replies.extend(reply)
                }
                ConnectionEvent::OpenFailed { channel, .. } => {
                    let before = self.channels.len();
                    self.channels.retain(|known| *known != channel);
                    assert!(self.channels.len() < before, "an unknown channel failed");
                }
                _ => {}
            }
        }
    }

    /// Sends everything; the messages must be in a valid order.
    fn send_all(&mut self) {
        let mut payload = Vec::new();
        for _ in 0..QUEUE_LIMIT {
            payload.clear();
            if !self.connection.poll_output(&mut payload) {
                return;
            }
            self.check_sent(&payload);
        }
        panic!("the output has no end");
    }

    fn check_sent(&mut self, payload: &[u8]) {
        let number = payload.first().copied().expect("a number");
        let to = payload.get(1..5).and_then(|b| <[u8; 4]>::try_from(b).ok());
        let to = to.map(u32::from_be_bytes);
        match (number, to) {
            (91, Some(to)) => drop(self.closed_by_us.remove(&to)),
            (97, Some(to)) => assert!(self.closed_by_us.insert(to), "closed twice"),
            (93..=100, Some(to)) => assert!(
                !self.closed_by_us.contains(&to),
                "a message after the CLOSE"
            ),
            (80..=82 | 90 | 92, _) => {}
            other => panic!("{other:?}"),
        }
    }

    fn perform_action(&mut self, script: &mut ActionScript<'_>) {
        let act = script.read_u8();
        let place = usize::from(act >> 5) % self.channels.len().max(1);
        let id = self.channels.get(place).copied();
        match (act % 16, id) {
            (0, _) => {
                let kind = match act >> 6 {
                    0 => ChannelKind::Session,
                    1 => ChannelKind::Agent,
                    2 => ChannelKind::Custom(custom_message()),
                    _ => ChannelKind::DirectTcpip {
                        host: "h".into(),
                        port: 1,
                        originator: Originator::default(),
                    },
                };
                self.channels
                    .extend(self.connection.open_channel(&kind).ok());
            }
            (1, _) => {
                let address = String::new();
                let request = match act >> 6 {
                    0 => GlobalRequest::KeepAlive,
                    1 => GlobalRequest::TcpipForward { address, port: 0 },
                    2 => GlobalRequest::TcpipForward { address, port: 1 },
                    _ => GlobalRequest::CancelTcpipForward { address, port: 1 },
                };
                let _ = self.connection.send_global_request(&request);
            }
            (2, _) if !self.pending_replies.is_empty() => {
                let duty = self.pending_replies.swap_remove(0);
                self.connection.answer_request(duty, act & 128 == 0);
            }
            (3, _) if !self.pending_global_replies.is_empty() => {
                let duty = self.pending_global_replies.swap_remove(0);
                self.connection
                    .answer_global(duty, GlobalAnswer::Bound { port: 9 });
            }
            (4, _) => self.now += u64::from(script.read_u16()),
            (5, _) => self.handle_events(),
            (6, _) => self.send_all(),
            (7 | 8, Some(id)) => drop(self.connection.confirm_open(id)),
            (9, Some(id)) => {
                let refused = self
                    .connection
                    .refuse_open(id, OpenFailureReason::Prohibited, "no");
                if refused.is_ok() {
                    self.channels.retain(|known| *known != id);
                }
            }
            (10, Some(id)) => {
                let len = script.read_u8().into();
                self.connection.consume_data(id, len, Time(self.now));
            }
            (11, Some(id)) => drop(self.connection.send_eof(id)),
            (12, Some(id)) => self.connection.close_channel(id),
            (13, Some(id)) => {
                let request = match act >> 6 {
                    0 => SshChannelRequest::Agent,
                    1 => SshChannelRequest::ExitStatus(1),
                    2 => SshChannelRequest::Custom(custom_message()),
                    _ => SshChannelRequest::Shell,
                };
                let _ = self.connection.send_request(id, &request, WantReply::Yes);
            }
            (14, Some(id)) => self.write_data(id, script.read_u8().into()),
            (15, _) => {
                for id in &self.channels {
                    self.connection.queue_writer(*id);
                }
                if let Some(id) = self.connection.next_writer() {
                    assert!(self.connection.send_capacity(id) > 0, "a turn without room");
                    self.write_data(id, 1);
                }
            }
            _ => {}
        }
        assert!(self.connection.channel_count() <= MAX_CHANNELS);
    }

    fn write_data(&mut self, id: ChannelId, len: usize) {
        let room = self.connection.send_capacity(id);
        assert!(room <= 100);
        let mut payload = Vec::new();
        let done = self
            .connection
            .begin_data(id, DataKind::Stdout, len, &mut payload);
        assert_eq!(done.is_ok(), (1..=room).contains(&len));
        if done.is_ok() {
            assert_eq!(payload.len(), 9);
            self.check_sent(&payload);
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let flags = script.read_u8();
    let mut end = ConnectionEnd::new(flags);
    while !script.is_empty() {
        let alive = match script.read_u8() % 4 {
            0 => {
                let raw = script.read_bytes().to_vec();
                end.handle_payload(&raw)
            }
            1 | 2 => {
                let payload = read_message(&mut script);
                end.handle_payload(&payload)
            }
            _ => {
                end.perform_action(&mut script);
                true
            }
        };
        if flags & 4 == 0 {
            end.handle_events();
        }
        if !alive {
            break;
        }
    }
    end.handle_events();
    end.send_all();
});
