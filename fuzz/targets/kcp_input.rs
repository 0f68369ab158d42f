//! One end of KCP against a peer that sends anything at any time: no panic, no growth beyond the
//! windows, no datagram that is longer than the MTU or is not KCP, no timer that fires without end.

#![no_main]

use adit_fuzz::ActionScript;
use adit_kcp_proto::{
    Command, Compat, Config, CongestionControl, HEADER_LEN, KcpSession, SegmentHeader, SessionState,
};
use adit_wire::Time;
use libfuzzer_sys::fuzz_target;

const CONV: u32 = 9;
/// Maximum memory of a session besides segments, in bytes.
const BASE_MEMORY: usize = 64 * 1024;

fn read_config(script: &mut ActionScript<'_>) -> Config {
    let flags = script.read_u8();
    Config {
        nodelay: flags % 3,
        interval_ms: u32::from(script.read_u8()),
        resend: script.read_u8().into(),
        congestion: script.pick_one(&[
            CongestionControl::Off,
            CongestionControl::Reno,
            CongestionControl::Bbr,
            CongestionControl::Auto,
        ]),
        send_window: u32::from(script.read_u8()) % 65,
        recv_window: u32::from(script.read_u8()) % 65,
        mtu: 50 + usize::from(script.read_u8()),
        stream: flags & 4 != 0,
        dead_link: u16::from(flags >> 6) * 7,
        silence_ms: 0,
        ack_nodelay: flags & 8 != 0,
        write_delay: flags & 16 != 0,
        compat: match flags & 32 {
            0 => Compat::Go,
            _ => Compat::C,
        },
    }
}

struct HostileSession {
    kcp: KcpSession,
    now: u64,
    /// Maximum number of bytes that the session may use.
    memory_limit: usize,
}

impl HostileSession {
    fn new(config: Config) -> Self {
        let kcp = KcpSession::new(CONV, config, Time(0));
        let held = kcp.config();
        let longest = held.mtu.max(1500);
        // Twice the window, in order and out of order; a ring grows by doubling, and is copied
        // then.
        let segments = 2 * held.recv_window as usize + held.send_window as usize;
        let memory_limit = BASE_MEMORY + 4 * segments * (longest + 64);
        Self {
            kcp,
            now: 0,
            memory_limit,
        }
    }

    /// Returns segments whose header is nearly correct, or not.
    fn forge_datagram(&mut self, script: &mut ActionScript<'_>) -> Vec<u8> {
        let mut datagram = Vec::new();
        for _ in 0..=script.read_below(4) {
            let shape = script.read_u8();
            let near = |script: &mut ActionScript<'_>| match shape & 16 {
                0 => u32::from(script.read_u8()),
                _ => script.read_u32(),
            };
            let (sn, una) = (near(script), near(script));
            let len = match shape & 32 {
                0 => script.read_u8().into(),
                _ => script.read_u16() % 1600,
            };
            let header = SegmentHeader {
                conv: CONV,
                cmd: [
                    Command::Push,
                    Command::Ack,
                    Command::WindowProbe,
                    Command::WindowReport,
                ][usize::from(shape % 4)],
                frg: if shape & 4 == 0 { 0 } else { script.read_u8() },
                wnd: if shape & 8 == 0 {
                    64
                } else {
                    script.read_u16()
                },
                ts: match shape & 64 {
                    0 => u32::try_from(self.now / 1000 % (1 << 32)).unwrap_or(0),
                    _ => script.read_u32(),
                },
                sn,
                una: if shape & 128 == 0 { 0 } else { una },
                len: len.into(),
            };
            datagram.extend_from_slice(&header.encode());
            datagram.resize(datagram.len() + usize::from(len), shape);
        }
        datagram
    }

    fn perform_action(&mut self, script: &mut ActionScript<'_>) {
        let act = script.read_u8();
        let now = Time(self.now);
        match act % 8 {
            0 => {
                let _ = self
                    .kcp
                    .handle_input(now, script.read_bytes(), act & 128 != 0);
            }
            1 | 2 => {
                let lie = self.forge_datagram(script);
                let _ = self.kcp.handle_input(now, &lie, act & 128 != 0);
            }
            3 => {
                // From a microsecond to the maximum.
                let step = u64::from(script.read_u16()) << (act >> 3);
                self.now = self.now.saturating_add(step);
            }
            4 => {
                let len = usize::from(script.read_u16()) % 2000;
                let room = self.kcp.send_capacity();
                let sent = self.kcp.send(&vec![3; len]);
                assert!(
                    sent.is_err() || sent.is_ok_and(|sent| sent == len.min(room)),
                    "{sent:?}"
                );
            }
            5 => {
                let mut out = vec![0; usize::from(script.read_u8()) * 8];
                let (readable, front) = (self.kcp.readable_len(), self.kcp.front_bytes().is_some());
                let read = self.kcp.recv(&mut out);
                assert_eq!(read.is_some(), front);
                // Reading releases space for out-of-order data, so more may follow.
                let least = readable.min(out.len());
                assert!(read.is_none_or(|read| (least..=out.len()).contains(&read)));
            }
            6 => {
                let most = self.kcp.front_bytes().map_or(0, <[u8]>::len);
                let wanted = usize::from(script.read_u8());
                let passed = self.kcp.consume(wanted);
                assert!(passed <= wanted && passed >= wanted.min(most));
            }
            _ => self.kcp.flush_now(now),
        }
    }

    /// Performs a driver's actions after every call.
    fn drive_session(&mut self) {
        let now = Time(self.now);
        self.check_output(now);
        self.kcp.handle_timeout(now);
        self.check_output(now);
        let next = self.kcp.poll_timeout();
        assert!(next.is_none_or(|at| at > now), "a timer that is always due");
        let memory = self.kcp.memory_size();
        assert!(
            memory <= self.memory_limit,
            "{memory} of {} bytes",
            self.memory_limit
        );
    }

    fn check_output(&mut self, now: Time) {
        let mtu = self.kcp.config().mtu;
        let mut out = [0; 400];
        let was = self.kcp.state();
        let mut sent = 0;
        while let Some(len) = self.kcp.poll_output(now, &mut out) {
            assert!((HEADER_LEN..=mtu).contains(&len));
            let mut rest = &out[..len];
            while !rest.is_empty() {
                let header = SegmentHeader::parse(rest).expect("a header");
                assert_eq!(header.conv, CONV);
                rest = &rest[HEADER_LEN + header.len as usize..];
            }
            sent += 1;
            assert!(sent < 2000, "the session sends datagrams without end");
        }
        assert!(
            sent == 0 || was == SessionState::Open,
            "a closed session sent a datagram"
        );
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let mut session = HostileSession::new(read_config(&mut script));
    while !script.is_empty() {
        session.perform_action(&mut script);
        session.drive_session();
    }
});
