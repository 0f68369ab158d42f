//! Prints the costs of a session: a flush with nothing due, a segment sent and acknowledged,
//! memory.
//!
//! `cargo run --release -p adit-kcp-proto --example flush`
//!
//! Each figure is the best of 16 batches, by the thread's CPU time.

use std::hint::black_box;

use adit_kcp_proto::{Command, Compat, Config, CongestionControl, KcpSession, SegmentHeader};
use adit_wire::Time;
use rustix::time::{ClockId, clock_gettime};

const BATCHES: usize = 16;
const WINDOW: u32 = 1024;
const CONV: u32 = 1;

fn main() {
    let config = Config {
        send_window: WINDOW,
        recv_window: WINDOW,
        ..Config::fast3()
    };
    for compat in [Compat::Go, Compat::C] {
        let config = Config { compat, ..config };
        println!("{compat:?}, window {WINDOW}, MTU {}", config.mtu);
        idle_flush(config);
        cycle(config, "send + acknowledge, in order", |_| true);
        cycle(config, "the same, every 20th acknowledged late", |n| {
            n % 20 != 0
        });
    }
    let paced = Config {
        congestion: CongestionControl::Bbr,
        ..config
    };
    println!("paced");
    cycle(paced, "send + acknowledge, in order", |_| true);
    memory(config);
}

/// A session at 1 ms whose peer's window is known to be open.
fn open(config: Config) -> KcpSession {
    let mut kcp = KcpSession::new(CONV, config, Time(0));
    let wins = header(Command::WindowReport, 0, 0, 0);
    kcp.handle_input(Time(1000), &wins.encode(), false)
        .expect("a segment");
    kcp
}

const fn header(cmd: Command, ts: u32, sn: u32, una: u32) -> SegmentHeader {
    SegmentHeader {
        conv: CONV,
        cmd,
        frg: 0,
        wnd: 1024,
        ts,
        sn,
        una,
        len: 0,
    }
}

fn idle_flush(config: Config) {
    let mut kcp = open(config);
    let mut out = [0; 1400];
    let data = vec![7; 1376 * 1023];
    kcp.send(&data).expect("open");
    kcp.flush_now(Time(1000));
    let mut sent = 0;
    while kcp.poll_output(Time(1000), &mut out).is_some() {
        sent += 1;
    }
    let stats = kcp.stats();
    assert_eq!((sent, stats.in_flight), (1023, 1023));
    let ns = best(10_000, |_| {
        kcp.flush_now(Time(2000));
        assert!(black_box(kcp.poll_output(Time(2000), &mut out)).is_none());
    });
    println!("  flush, 1,023 in flight, nothing due   {ns:7.1} ns");
}

/// Per segment: 1,376 bytes in, a datagram out, its acknowledgement in.
fn cycle(config: Config, name: &str, prompt: fn(u32) -> bool) {
    let mut kcp = open(config);
    let mut out = [0; 1400];
    let data = [7; 1376];
    let mut una = 0;
    let mut now = 1000;
    let mut late = None;
    let ns = best(20_000, |_| {
        now += 50;
        let time = Time(now);
        assert_eq!(kcp.send(&data), Ok(data.len()));
        kcp.flush_now(time);
        while let Some(len) = kcp.poll_output(time, &mut out) {
            let sent = SegmentHeader::parse(black_box(&out[..len])).expect("our own");
            if prompt(sent.sn) {
                let low = late.map_or(sent.sn + 1, |sn: u32| sn);
                una = una.max(low);
                let ack = header(Command::Ack, sent.ts, sent.sn, una);
                kcp.handle_input(time, &ack.encode(), false)
                    .expect("an acknowledgement");
                late = late.filter(|sn| sent.sn - sn < 10 && sent.sn != *sn);
            } else {
                late = Some(sent.sn);
            }
        }
    });
    println!("  {name:38}{ns:7.1} ns");
    assert!(kcp.stats().in_flight < 20, "{:?}", kcp.stats());
}

fn memory(config: Config) {
    let fresh = KcpSession::new(CONV, config, Time(0));
    println!("memory");
    println!(
        "  new                                   {:7} bytes",
        fresh.memory_size()
    );
    let mut kcp = open(config);
    let mut out = [0; 1400];
    kcp.send(&vec![7; 1376 * 1000]).expect("open");
    let mut acks = Vec::new();
    while let Some(len) = kcp.poll_output(Time(2000), &mut out) {
        let sent = SegmentHeader::parse(&out[..len]).expect("our own");
        acks.push(header(Command::Ack, sent.ts, sent.sn, sent.sn + 1));
    }
    println!(
        "  1,000 segments in flight              {:7} bytes",
        kcp.memory_size()
    );
    for ack in acks {
        kcp.handle_input(Time(3000), &ack.encode(), false)
            .expect("an acknowledgement");
    }
    while let Some(at) = kcp.poll_timeout() {
        kcp.handle_timeout(at);
        assert!(kcp.poll_output(at, &mut out).is_none());
    }
    println!(
        "  idle again                            {:7} bytes",
        kcp.memory_size()
    );
}

/// Nanoseconds of CPU time per turn in the best batch.
fn best(turns: u32, mut turn: impl FnMut(u32)) -> f64 {
    let batches = (0..BATCHES).map(|_| {
        let start = cpu();
        for n in 0..turns {
            turn(n);
        }
        (cpu() - start) / f64::from(turns)
    });
    batches.fold(f64::INFINITY, f64::min)
}

fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
