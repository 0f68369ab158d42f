//! Two ends of KCP over a path that loses, duplicates and delays as the input says: the data that
//! is read is the data that was sent, in order; once the path is clean, all of it arrives.

#![no_main]

use std::collections::VecDeque;

use adit_fuzz::ActionScript;
use adit_kcp_proto::{Compat, Config, CongestionControl, KcpSession};
use adit_wire::Time;
use libfuzzer_sys::fuzz_target;

const CONV: u32 = 0x0102_0304;
/// Turns within which a clean path must have delivered everything.
const MAX_TURNS: usize = 20_000;

/// One end and its application.
struct KcpEnd {
    kcp: KcpSession,
    /// Data that the peer must still read: messages, or pieces of a stream.
    unread_by_peer: VecDeque<Vec<u8>>,
    sent: u64,
    /// Datagrams on their way to this end, and those that are held back.
    inbox: VecDeque<Vec<u8>>,
    delayed: VecDeque<Vec<u8>>,
}

impl KcpEnd {
    fn new(script: &mut ActionScript<'_>, stream: bool) -> Self {
        let flags = script.read_u8();
        let config = Config {
            nodelay: flags % 3,
            interval_ms: u32::from(script.read_u8()),
            resend: u16::from(script.read_u8()) % 8,
            congestion: script.pick_one(&[
                CongestionControl::Off,
                CongestionControl::Reno,
                CongestionControl::Bbr,
            ]),
            send_window: u32::from(script.read_u8()) % 65,
            recv_window: u32::from(script.read_u8()) % 65,
            mtu: 50 + usize::from(script.read_u8()),
            stream,
            dead_link: 0,
            silence_ms: 0,
            ack_nodelay: flags & 4 != 0,
            write_delay: flags & 8 != 0,
            compat: match flags & 16 {
                0 => Compat::Go,
                _ => Compat::C,
            },
        };
        Self {
            kcp: KcpSession::new(CONV, config, Time(0)),
            unread_by_peer: VecDeque::new(),
            sent: 0,
            inbox: VecDeque::new(),
            delayed: VecDeque::new(),
        }
    }

    fn send_data(&mut self, len: usize) {
        let next = |n: usize| ((self.sent + n as u64) % 251).to_le_bytes()[0];
        let data: Vec<u8> = (0..len).map(next).collect();
        if let Ok(taken) = self.kcp.send(&data) {
            self.sent += taken as u64;
            if taken > 0 || !self.kcp.config().stream {
                self.unread_by_peer.push_back(data[..taken].to_vec());
            }
        }
    }

    /// Reads all available data, which must be the data that `peer` has sent.
    fn check_received(&mut self, peer: &mut VecDeque<Vec<u8>>) {
        let stream = self.kcp.config().stream;
        loop {
            let len = self.kcp.readable_len();
            let mut out = vec![0; len + 1];
            let Some(read) = self.kcp.recv(&mut out) else {
                return;
            };
            // Reading releases space for out-of-order data, so more of a stream may follow.
            assert!(read == len || (stream && read > len));
            if stream {
                let mut rest = &out[..read];
                while !rest.is_empty() {
                    let front = peer.front_mut().expect("bytes that were never sent");
                    let n = front.len().min(rest.len());
                    assert!(front[..n] == rest[..n], "other bytes than were sent");
                    rest = &rest[n..];
                    front.drain(..n);
                    if front.is_empty() {
                        peer.pop_front();
                    }
                }
            } else {
                let message = peer.pop_front().expect("a message that was never sent");
                assert!(message == out[..read], "another message than was sent");
            }
        }
    }

    fn handle_next_datagram(&mut self, now: Time) -> bool {
        let Some(datagram) = self.inbox.pop_front() else {
            return false;
        };
        assert_eq!(self.kcp.handle_input(now, &datagram, false), Ok(()));
        true
    }
}

struct KcpPair {
    ends: [KcpEnd; 2],
    now: Time,
}

impl KcpPair {
    /// Puts everything that is due on the path; `fate` determines the fate of each datagram.
    fn transmit_due(&mut self, mut fate: impl FnMut() -> u8) -> bool {
        let mut out = [0; 400];
        let mut busy = false;
        for from in 0..2 {
            while let Some(len) = self.ends[from].kcp.poll_output(self.now, &mut out) {
                busy = true;
                let (to, datagram) = (&mut self.ends[1 - from], out[..len].to_vec());
                match fate() % 8 {
                    1 | 2 => {}
                    3 => to.delayed.push_back(datagram),
                    4 => to.inbox.push_front(datagram),
                    5 => {
                        to.delayed.push_back(datagram.clone());
                        to.inbox.push_back(datagram);
                    }
                    _ => to.inbox.push_back(datagram),
                }
            }
        }
        busy
    }

    fn check_received(&mut self, end: usize) {
        let [a, b] = &mut self.ends;
        let (reader, writer) = if end == 0 { (a, b) } else { (b, a) };
        reader.check_received(&mut writer.unread_by_peer);
    }

    fn next_timer(&self) -> Option<Time> {
        self.ends
            .iter()
            .filter_map(|end| end.kcp.poll_timeout())
            .min()
    }

    fn is_done(&self) -> bool {
        let done = |end: &KcpEnd| end.unread_by_peer.is_empty() && end.kcp.is_drained();
        self.ends.iter().all(done)
    }

    /// Returns the longest message that the peer of `from` can hold.
    fn max_message_len(&self, from: usize) -> usize {
        let mss = self.ends[from].kcp.config().mtu - 24;
        mss * self.ends[1 - from].kcp.config().recv_window as usize
    }

    fn perform_action(&mut self, script: &mut ActionScript<'_>) {
        let act = script.read_u8();
        let end = usize::from(act >> 7);
        match act % 8 {
            0 | 1 => {
                let mut len = usize::from(script.read_u16()) % 6000;
                if !self.ends[end].kcp.config().stream {
                    len = len.min(self.max_message_len(end));
                }
                self.ends[end].send_data(len);
            }
            2 => self.now = Time(self.now.0 + u64::from(script.read_u16())),
            3 => {
                let next = self.next_timer().unwrap_or(self.now);
                self.now = self.now.max(next);
            }
            4 => self.check_received(end),
            5 => {
                let mut late = core::mem::take(&mut self.ends[end].delayed);
                self.ends[end].inbox.append(&mut late);
            }
            6 => while self.ends[end].handle_next_datagram(self.now) {},
            _ => {
                // A datagram of another conversation is refused, and changes nothing.
                let mut foreign = CONV.to_be_bytes().to_vec();
                foreign.resize(24, 0);
                assert!(
                    self.ends[end]
                        .kcp
                        .handle_input(self.now, &foreign, false)
                        .is_err()
                );
            }
        }
        for end in &mut self.ends {
            end.kcp.handle_timeout(self.now);
        }
        self.transmit_due(|| script.read_u8());
    }

    /// Delivers the rest over a clean path.
    fn deliver_rest(&mut self) {
        for end in &mut self.ends {
            end.inbox.append(&mut end.delayed);
        }
        for _ in 0..MAX_TURNS {
            let mut busy = self.transmit_due(|| 0);
            for end in 0..2 {
                while self.ends[end].handle_next_datagram(self.now) {
                    busy = true;
                }
                self.check_received(end);
            }
            if self.is_done() {
                return;
            }
            if !busy {
                let next = self
                    .next_timer()
                    .expect("nothing is due, but something is owed");
                self.now = self.now.max(next);
                for end in &mut self.ends {
                    end.kcp.handle_timeout(self.now);
                }
            }
        }
        panic!("not all arrived over a clean path");
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let stream = script.read_flag();
    let ends = [
        KcpEnd::new(&mut script, stream),
        KcpEnd::new(&mut script, stream),
    ];
    let mut pair = KcpPair { ends, now: Time(0) };
    while !script.is_empty() {
        pair.perform_action(&mut script);
    }
    pair.deliver_rest();
});
