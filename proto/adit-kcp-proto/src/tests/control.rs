//! Tests of congestion control: the share of a path that it uses, in virtual time.

use super::link::{Path, World};
use super::*;

struct Carried {
    /// Share of the path's rate.
    percent: u64,
    again_percent: u64,
    rtt_ms: u32,
}

/// Ten seconds of bulk over 20 Mbit/s and 40 ms, after two that do not count.
fn bulk(congestion: CongestionControl, compat: Compat, loss: u64, queue: u64) -> Carried {
    stalled(congestion, compat, loss, queue, 0)
}

/// Like [`bulk`], with ends that run only at intervals of some microseconds.
fn stalled(
    congestion: CongestionControl,
    compat: Compat,
    loss: u64,
    queue: u64,
    stall: u64,
) -> Carried {
    let config = Config {
        send_window: 512,
        recv_window: 512,
        congestion,
        compat,
        ..Config::fast3()
    };
    let path = Path {
        delay: 20_000,
        jitter: 0,
        loss,
        doubled: 0,
        rate: 2_500_000,
        queue,
    };
    let ends = [(); 2].map(|()| KcpSession::new(1, config, Time(0)));
    let mut world = World::new(ends, path, Time(0), 7);
    world.stall = stall;
    let data = [7; 65_536];
    let [mut received, mut before] = [0; 2];
    loop {
        while world.ends[0].send(&data).unwrap() > 0 {}
        while let Some(len) = world.ends[1].front_bytes().map(<[u8]>::len) {
            received += world.ends[1].consume(len) as u64;
        }
        if world.now < Time(2_000_000) {
            before = received;
        }
        if !world.step(Time(12_000_000)) {
            break;
        }
    }
    let stats = world.ends[0].stats();
    Carried {
        percent: (received - before) * 100 / 25_000_000,
        again_percent: stats.retransmitted * 100 / stats.segments_out,
        rtt_ms: stats.rtt_ms,
    }
}

#[test]
fn the_pace_fills_a_clean_path_and_loses_little() {
    for compat in [Compat::Go, Compat::C] {
        for queue in [100_000, 20_000] {
            let got = bulk(CongestionControl::Bbr, compat, 0, queue);
            assert!(got.percent >= 80, "{compat:?} {queue}: {} %", got.percent);
            assert!(got.again_percent <= 8, "{} % again", got.again_percent);
            assert!(got.rtt_ms < 80, "{} ms", got.rtt_ms);
        }
    }
}

#[test]
fn loss_does_not_halve_the_pace() {
    let paced = bulk(CongestionControl::Bbr, Compat::Go, 5, 100_000);
    let reno = bulk(CongestionControl::Reno, Compat::Go, 5, 100_000);
    assert!(paced.percent >= 70, "{} %", paced.percent);
    assert!(reno.percent < 20, "{} %", reno.percent);
    let worse = bulk(CongestionControl::Bbr, Compat::Go, 20, 100_000);
    assert!(worse.percent >= 35, "{} %", worse.percent);
}

#[test]
fn a_busy_machine_does_not_wear_the_pace_down() {
    for (stall, least) in [(5_000, 75), (12_000, 60)] {
        for congestion in [CongestionControl::Bbr, CongestionControl::Auto] {
            let got = stalled(congestion, Compat::Go, 5, 100_000, stall);
            assert!(
                got.percent >= least,
                "{congestion:?}, {stall} µs: {} %",
                got.percent
            );
        }
    }
}

#[test]
fn a_queue_that_fills_faster_than_the_estimate_is_not_loss() {
    // 512 segments at once need 280 ms of this path: longer than any time-out at the start.
    let got = bulk(CongestionControl::Off, Compat::Go, 0, 10_000_000);
    assert!(got.percent >= 90, "{} %", got.percent);
    assert_eq!(got.again_percent, 0);
}

#[test]
fn talk_is_not_paced_down_by_its_own_silence() {
    let config = Config {
        congestion: CongestionControl::Bbr,
        ..Config::fast3()
    };
    let path = Path {
        delay: 20_000,
        jitter: 0,
        loss: 0,
        doubled: 0,
        rate: 0,
        queue: 0,
    };
    let ends = [(); 2].map(|()| KcpSession::new(1, config, Time(0)));
    let mut world = World::new(ends, path, Time(0), 7);
    for _ in 0..300 {
        let began = world.now;
        world.ends[0].send(&[7; 64]).unwrap();
        while world.ends[1].consume(64) == 0 {
            assert!(world.step(Time(u64::MAX)));
        }
        assert_eq!(world.now.duration_since(began).as_millis(), 20);
        while world.step(Time(began.0 + 100_000)) {}
    }
    // The data after all the dialogue is sent immediately.
    world.ends[0].send(&[7; 20_000]).unwrap();
    let began = world.now;
    let mut read = 0;
    while read < 20_000 {
        assert!(world.step(Time(u64::MAX)));
        read += world.ends[1].consume(20_000);
    }
    assert!(
        world.now.duration_since(began).as_millis() < 150,
        "{:?}",
        world.now.duration_since(began)
    );
}
