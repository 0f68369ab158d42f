//! A write of several parts sends the same bytes as a write of one.

use super::link::TestRng;
use super::*;

fn drain(kcp: &mut KcpSession, now: Time) -> Vec<Vec<u8>> {
    let mut out = [0; 1500];
    let datagrams = std::iter::from_fn(|| {
        let len = kcp.poll_output(now, &mut out)?;
        Some(out[..len].to_vec())
    });
    datagrams.collect()
}

#[test]
fn parts_leave_as_one_piece_would() {
    let mut rng = TestRng(5);
    for turn in 0..400 {
        let config = Config {
            stream: turn % 2 == 0,
            compat: [Compat::Go, Compat::C][turn / 2 % 2],
            write_delay: turn % 3 == 0,
            mtu: 100,
            send_window: 40,
            ..Config::fast3()
        };
        let [mut whole, mut parted] = [(); 2].map(|()| KcpSession::new(7, config, Time(0)));
        for at in (0..5).map(|n| Time(n * 20_000)) {
            let parts: Vec<Vec<u8>> = (0..rng.roll() % 6)
                .map(|_| (0..rng.roll() % 300).map(|_| rng.roll() as u8).collect())
                .collect();
            let sent = whole.send(&parts.concat());
            let taken = parted.send_vectored(parts.iter().map(Vec::as_slice));
            assert_eq!(sent, taken, "{turn}");
            assert_eq!(whole.send_capacity(), parted.send_capacity(), "{turn}");
            assert_eq!(drain(&mut whole, at), drain(&mut parted, at), "{turn}");
        }
    }
}

#[test]
fn parts_make_one_message() {
    let config = Config {
        stream: false,
        ..Config::fast3()
    };
    let [mut here, mut there] = [(); 2].map(|()| KcpSession::new(7, config, Time(0)));
    let parts: [&[u8]; 4] = [b"one ", b"", b"mess", b"age"];
    assert_eq!(here.send_vectored(parts.into_iter()), Ok(11));
    for datagram in drain(&mut here, Time(0)) {
        there.handle_input(Time(0), &datagram, false).unwrap();
    }
    let mut out = [0; 100];
    assert_eq!(there.recv(&mut out), Some(11));
    assert_eq!(&out[..11], b"one message");
}
