//! One end of KCP against a peer that sends anything at any time: no panic, no growth beyond the
//! windows, no datagram that is longer than the MTU or is not KCP, no timer that fires without end.

#![no_main]

use adit_fuzz::Script;
use adit_kcp_proto::{
    Command, Compat, Config, CongestionControl, HEADER_LEN, KcpSession, SegmentHeader, SessionState,
};
use adit_wire::Time;
use libfuzzer_sys::fuzz_target;

const CONV: u32 = 9;
/// Maximum memory of a session besides segments, in bytes.
const OWN: usize = 64 * 1024;

fn config(script: &mut Script<'_>) -> Config {
    let flags = script.byte();
    Config {
        nodelay: flags % 3,
        interval_ms: u32::from(script.byte()),
        resend: script.byte().into(),
        congestion: script.pick(&[
            CongestionControl::Off,
            CongestionControl::Reno,
            CongestionControl::Bbr,
            CongestionControl::Auto,
        ]),
        send_window: u32::from(script.byte()) % 65,
        recv_window: u32::from(script.byte()) % 65,
        mtu: 50 + usize::from(script.byte()),
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

struct Scene {
    kcp: KcpSession,
    now: u64,
    /// Maximum number of bytes that the session may use.
    bound: usize,
}

impl Scene {
    fn new(config: Config) -> Self {
        let kcp = KcpSession::new(CONV, config, Time(0));
        let held = kcp.config();
        let longest = held.mtu.max(1500);
        // Twice the window, in order and out of order; a ring grows by doubling, and is copied
        // then.
        let segments = 2 * held.recv_window as usize + held.send_window as usize;
        let bound = OWN + 4 * segments * (longest + 64);
        Self { kcp, now: 0, bound }
    }

    /// Returns segments whose header is nearly correct, or not.
    fn lie(&mut self, script: &mut Script<'_>) -> Vec<u8> {
        let mut datagram = Vec::new();
        for _ in 0..=script.below(4) {
            let shape = script.byte();
            let near = |script: &mut Script<'_>| match shape & 16 {
                0 => u32::from(script.byte()),
                _ => script.word(),
            };
            let (sn, una) = (near(script), near(script));
            let len = match shape & 32 {
                0 => script.byte().into(),
                _ => script.short() % 1600,
            };
            let header = SegmentHeader {
                conv: CONV,
                cmd: [
                    Command::Push,
                    Command::Ack,
                    Command::WindowProbe,
                    Command::WindowReport,
                ][usize::from(shape % 4)],
                frg: if shape & 4 == 0 { 0 } else { script.byte() },
                wnd: if shape & 8 == 0 { 64 } else { script.short() },
                ts: match shape & 64 {
                    0 => u32::try_from(self.now / 1000 % (1 << 32)).unwrap_or(0),
                    _ => script.word(),
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

    fn act(&mut self, script: &mut Script<'_>) {
        let act = script.byte();
        let now = Time(self.now);
        match act % 8 {
            0 => {
                let _ = self.kcp.handle_input(now, script.bytes(), act & 128 != 0);
            }
            1 | 2 => {
                let lie = self.lie(script);
                let _ = self.kcp.handle_input(now, &lie, act & 128 != 0);
            }
            3 => {
                // From a microsecond to the maximum.
                let step = u64::from(script.short()) << (act >> 3);
                self.now = self.now.saturating_add(step);
            }
            4 => {
                let len = usize::from(script.short()) % 2000;
                let room = self.kcp.send_capacity();
                let sent = self.kcp.send(&vec![3; len]);
                assert!(
                    sent.is_err() || sent.is_ok_and(|sent| sent == len.min(room)),
                    "{sent:?}"
                );
            }
            5 => {
                let mut out = vec![0; usize::from(script.byte()) * 8];
                let (readable, front) = (self.kcp.readable_len(), self.kcp.front_bytes().is_some());
                let read = self.kcp.recv(&mut out);
                assert_eq!(read.is_some(), front);
                // Reading releases space for out-of-order data, so more may follow.
                let least = readable.min(out.len());
                assert!(read.is_none_or(|read| (least..=out.len()).contains(&read)));
            }
            6 => {
                let most = self.kcp.front_bytes().map_or(0, <[u8]>::len);
                let wanted = usize::from(script.byte());
                let passed = self.kcp.consume(wanted);
                assert!(passed <= wanted && passed >= wanted.min(most));
            }
            _ => self.kcp.flush_now(now),
        }
    }

    /// Performs a driver's actions after every call.
    fn drive(&mut self) {
        let now = Time(self.now);
        self.transmit(now);
        self.kcp.handle_timeout(now);
        self.transmit(now);
        let next = self.kcp.poll_timeout();
        assert!(next.is_none_or(|at| at > now), "a timer that is always due");
        let memory = self.kcp.memory_size();
        assert!(memory <= self.bound, "{memory} of {} bytes", self.bound);
    }

    fn transmit(&mut self, now: Time) {
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
    let mut script = Script::new(input);
    let mut scene = Scene::new(config(&mut script));
    while !script.is_over() {
        scene.act(&mut script);
        scene.drive();
    }
});
