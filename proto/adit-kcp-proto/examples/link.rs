//! Prints the throughput of sessions over simulated links, in virtual time.
//!
//! `cargo run --release -p adit-kcp-proto --example link`

use adit_kcp_proto::{Config, CongestionControl, KcpSession};
use adit_wire::Time;

#[path = "../src/tests/link.rs"]
mod link;

use link::{Path, World};

const SECOND: u64 = 1_000_000;

fn main() {
    println!("one way, 100 Mbit/s, 50 ms round trip, fast3, windows 2048, 20 s");
    println!("  control  loss  queue      Mbit/s   sent again   rtt");
    for queue in [625_000, 62_500] {
        for loss in [0, 1, 5, 20, 30] {
            for congestion in [
                CongestionControl::Off,
                CongestionControl::Reno,
                CongestionControl::Bbr,
                CongestionControl::Auto,
            ] {
                bulk(loss, queue, congestion);
            }
        }
    }
    println!("64-byte echo, 50 ms round trip, fast3, one at a time, 4,000 of them");
    for loss in [0, 5] {
        for congestion in [
            CongestionControl::Off,
            CongestionControl::Bbr,
            CongestionControl::Auto,
        ] {
            echo(loss, congestion);
        }
    }
}

fn world(loss: u64, queue: u64, congestion: CongestionControl) -> World {
    let config = Config {
        send_window: 2048,
        recv_window: 2048,
        congestion,
        ..Config::fast3()
    };
    let path = Path {
        delay: 25_000,
        jitter: 0,
        loss,
        doubled: 0,
        rate: 12_500_000,
        queue,
    };
    let ends = [(); 2].map(|()| KcpSession::new(1, config, Time(0)));
    World::new(ends, path, Time(0), 42)
}

fn bulk(loss: u64, queue: u64, congestion: CongestionControl) {
    let mut world = world(loss, queue, congestion);
    let data = [7; 65_536];
    let mut received = 0;
    let until = Time(20 * SECOND);
    loop {
        while world.ends[0].send(&data).expect("a living peer") > 0 {}
        while let Some(len) = world.ends[1].front_bytes().map(<[u8]>::len) {
            received += world.ends[1].consume(len);
        }
        if !world.step(until) {
            break;
        }
    }
    let stats = world.ends[0].stats();
    let control = format!("{congestion:?}");
    let again = 100.0 * stats.retransmitted as f64 / stats.segments_out as f64;
    let mbit = received as f64 * 8.0 / 20e6;
    println!(
        "  {control:7} {loss:3} % {queue:7} B  {mbit:7.1}     {again:5.1} %   {:4} ms",
        stats.rtt_ms
    );
}

fn echo(loss: u64, congestion: CongestionControl) {
    let mut world = world(loss, 625_000, congestion);
    let mut times = Vec::new();
    while times.len() < 4000 {
        let began = world.now;
        world.ends[0].send(&[7; 64]).expect("a living peer");
        while world.ends[0].readable_len() < 64 {
            if !world.step(Time(u64::MAX)) {
                println!("  stuck");
                return;
            }
            let mut bytes = [0; 64];
            if world.ends[1].readable_len() >= 64 && world.ends[1].recv(&mut bytes) == Some(64) {
                world.ends[1].send(&bytes).expect("a living peer");
            }
        }
        world.ends[0].consume(64);
        times.push(world.now.duration_since(began).as_micros());
    }
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 1000] as f64 / 1000.0;
    println!(
        "  {congestion:4?} {loss} %: p50 {:.1} ms, p90 {:.1} ms, p99 {:.1} ms, p99.9 {:.1} ms",
        at(500),
        at(900),
        at(990),
        at(999)
    );
}
