//! Hostile peers cause no panic and no growth beyond the windows, and no impossible claim of theirs
//! is believed.

use adit_wire::ProtocolError;
use proptest::prelude::*;

use super::*;
use crate::{Command, HEADER_LEN, SegmentHeader};

const CONV: u32 = 9;

fn header(cmd: Command, sn: u32) -> SegmentHeader {
    SegmentHeader {
        conv: CONV,
        cmd,
        frg: 0,
        wnd: 128,
        ts: 0,
        sn,
        una: 0,
        len: 0,
    }
}

fn datagram(header: SegmentHeader, data: &[u8]) -> Vec<u8> {
    let header = SegmentHeader {
        len: data.len().try_into().unwrap(),
        ..header
    };
    [&header.encode()[..], data].concat()
}

fn session() -> KcpSession {
    KcpSession::new(CONV, Config::fast3(), Time(0))
}

fn input(kcp: &mut KcpSession, bytes: &[u8]) -> Result<(), ProtocolError> {
    kcp.handle_input(Time(1000), bytes, false)
}

#[test]
fn what_is_no_segment_of_ours_is_refused() {
    let mut kcp = session();
    let good = datagram(header(Command::Push, 0), b"data");
    let mut foreign = good.clone();
    foreign[0] ^= 1;
    assert_eq!(
        input(&mut kcp, &foreign),
        Err(ProtocolError::Malformed("conversation id"))
    );
    for cut in 0..good.len() {
        assert!(matches!(
            input(&mut kcp, &good[..cut]),
            Err(ProtocolError::Truncated(_))
        ));
    }
    let long = datagram(header(Command::Push, 0), &[0; 1477]);
    assert!(matches!(
        input(&mut kcp, &long),
        Err(ProtocolError::TooLong { limit: 1476, .. })
    ));
    assert_eq!(kcp.stats().errors_in, 2 + good.len() as u64);
    assert_eq!((kcp.front_bytes(), kcp.poll_timeout()), (None, None));

    // Segments before an invalid one count.
    assert!(input(&mut kcp, &[&good[..], &foreign].concat()).is_err());
    assert_eq!(kcp.front_bytes(), Some(&b"data"[..]));
}

#[test]
fn nobody_acknowledges_what_was_not_sent() {
    let mut kcp = session();
    kcp.send(&[1; 3000]).unwrap();
    let mut out = [0; 1400];
    assert!(kcp.poll_output(Time(0), &mut out).is_some());
    // One segment is sent, two are numbered.
    for una in [2, 3, 1000, 1 << 30] {
        let claim = SegmentHeader {
            una,
            ..header(Command::WindowReport, 0)
        };
        assert_eq!(
            input(&mut kcp, &claim.encode()),
            Err(ProtocolError::Malformed("KCP una"))
        );
    }
    for sn in [1, 2, 3, 1 << 31, u32::MAX] {
        assert_eq!(input(&mut kcp, &header(Command::Ack, sn).encode()), Ok(()));
    }
    assert_eq!(kcp.stats().in_flight, 1);
    assert_eq!(input(&mut kcp, &header(Command::Ack, 0).encode()), Ok(()));
    assert_eq!(kcp.stats().in_flight, 0);
}

#[test]
fn numbers_beyond_the_window_take_no_memory() {
    let mut kcp = session();
    let before = kcp.memory_size();
    for sn in [512, 1000, 1 << 20, 1 << 31, u32::MAX, u32::MAX - 600] {
        input(&mut kcp, &datagram(header(Command::Push, sn), &[7; 1000])).unwrap();
    }
    assert_eq!(kcp.stats().overrun + kcp.stats().repeated, 6);
    assert!(
        kcp.memory_size() - before < 512,
        "only acknowledgements are owed"
    );
    // The end of the window costs slots, not payload.
    input(&mut kcp, &datagram(header(Command::Push, 511), &[7; 100])).unwrap();
    assert!(kcp.memory_size() < 32 * 1024);
    assert_eq!(kcp.front_bytes(), None);
}

#[test]
fn a_message_that_can_never_be_whole_is_refused() {
    let config = Config {
        stream: false,
        recv_window: 32,
        ..Config::fast3()
    };
    let mut kcp = KcpSession::new(CONV, config, Time(0));
    let push = |frg, sn| {
        let header = SegmentHeader {
            frg,
            ..header(Command::Push, sn)
        };
        datagram(header, b"part")
    };
    assert!(input(&mut kcp, &push(32, 0)).is_err());
    // False fragment numbers are read as messages of that many parts.
    for sn in 0..32 {
        input(&mut kcp, &push(31, sn)).unwrap();
    }
    assert_eq!(kcp.readable_len(), 32 * 4);
}

#[test]
fn a_flood_of_repetitions_is_bounded() {
    let mut kcp = session();
    let once = datagram(header(Command::Push, 0), b"");
    let full: Vec<u8> = once.repeat(60);
    for _ in 0..10_000 {
        input(&mut kcp, &full).unwrap();
    }
    assert!(kcp.memory_size() < 256 * 1024, "{}", kcp.memory_size());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A peer that uses KCP correctly, with false contents.
    #[test]
    fn nothing_a_peer_says_breaks_the_session(
        lies in proptest::collection::vec(
            (81u8..85, any::<u8>(), any::<u16>(), any::<u32>(), -300i32..300, -300i32..300, 0usize..90, any::<bool>()),
            1..200,
        ),
        compat in prop_oneof![Just(Compat::C), Just(Compat::Go)],
        congestion in prop_oneof![Just(CongestionControl::Off), Just(CongestionControl::Reno), Just(CongestionControl::Bbr), Just(CongestionControl::Auto)],
        stream in any::<bool>(),
        first in any::<u32>(),
    ) {
        let config = Config {
            mtu: 100, send_window: 64, recv_window: 64, dead_link: 0,
            compat, congestion, stream, ..Config::fast3()
        };
        let mut kcp = KcpSession::starting_at(CONV, config, Time(0), first);
        let mut now = 0;
        let mut out = [0; 100];
        for (cmd, frg, wnd, ts, sn, una, len, roll) in lies {
            now += u64::from(wnd);
            let _ = kcp.send(&[3; 90]);
            let cmd = [Command::Push, Command::Ack, Command::WindowProbe, Command::WindowReport][usize::from(cmd - 81)];
            let lie = SegmentHeader {
                conv: CONV, cmd, frg, wnd, ts: if roll { ts } else { (now / 1000) as u32 },
                sn: first.wrapping_add_signed(sn), una: first.wrapping_add_signed(una), len: 0,
            };
            let lie = datagram(lie, &vec![5; len]);
            let _ = kcp.handle_input(Time(now), &lie, roll);
            let mut sent = 0;
            while let Some(len) = kcp.poll_output(Time(now), &mut out) {
                prop_assert!((HEADER_LEN..=100).contains(&len));
                sent += 1;
                prop_assert!(sent < 300);
            }
            if roll {
                let mut data = [0; 50];
                let _ = kcp.recv(&mut data);
            }
            // No timer is due without end: after a turn the next one lies ahead.
            kcp.handle_timeout(Time(now));
            while kcp.poll_output(Time(now), &mut out).is_some() {}
            prop_assert!(kcp.poll_timeout().is_none_or(|at| at > Time(now)));
            prop_assert!(kcp.memory_size() < 256 * 1024);
        }
    }

    #[test]
    fn any_bytes_are_handled(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut kcp = session();
        let _ = input(&mut kcp, &bytes);
        let ours = [&CONV.to_le_bytes()[..], &bytes].concat();
        let _ = input(&mut kcp, &ours);
    }
}

#[test]
fn an_overtaken_datagram_tells_no_window() {
    let mut kcp = session();
    kcp.send(&[1; 3000]).unwrap();
    let mut out = [0; 1400];
    while kcp.poll_output(Time(0), &mut out).is_some() {}
    let told = |una, wnd| SegmentHeader {
        una,
        wnd,
        ..header(Command::WindowReport, 0)
    };
    for (una, wnd, window) in [(2, 10, 10), (1, 500, 10), (2, 20, 20)] {
        input(&mut kcp, &told(una, wnd).encode()).unwrap();
        assert_eq!(kcp.stats().peer_window, window, "una {una}, wnd {wnd}");
    }
}
