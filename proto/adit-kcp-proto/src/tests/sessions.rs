//! Two ends over a bad link: exactly the sent data arrives in order, or the end is reported.

use core::time::Duration;

use proptest::prelude::*;

use super::link::{Path, TestRng, World};
use super::*;

const HOUR: u64 = 3_600_000_000;
/// Small windows, doubled time-outs and much loss take time.
const AGES: u64 = 1000 * HOUR;

fn path(loss: u64) -> Path {
    Path {
        delay: 20_000,
        jitter: 0,
        loss,
        doubled: 0,
        rate: 0,
        queue: 0,
    }
}

fn pair(config: Config, now: Time, first: u32) -> [KcpSession; 2] {
    [(); 2].map(|()| KcpSession::starting_at(0x1122_3344, config, now, first))
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = TestRng(seed);
    (0..len).map(|_| rng.roll() as u8).collect()
}

fn any_config() -> impl Strategy<Value = Config> {
    let congestion = prop_oneof![
        Just(CongestionControl::Off),
        Just(CongestionControl::Reno),
        Just(CongestionControl::Bbr),
        Just(CongestionControl::Auto)
    ];
    let compat = prop_oneof![Just(Compat::C), Just(Compat::Go)];
    let windows = (1u32..200, 1u32..200);
    (
        0u8..3,
        0u16..4,
        congestion,
        compat,
        windows,
        50usize..300,
        any::<[bool; 3]>(),
    )
        .prop_map(
            |(nodelay, resend, congestion, compat, (send_window, recv_window), mtu, flags)| {
                Config {
                    nodelay,
                    resend,
                    congestion,
                    compat,
                    send_window,
                    recv_window,
                    mtu,
                    stream: flags[0],
                    ack_nodelay: flags[1],
                    write_delay: flags[2],
                    dead_link: 0,
                    ..Config::fast3()
                }
            },
        )
}

fn any_path() -> impl Strategy<Value = Path> {
    let rate = prop_oneof![Just(0u64), 50_000u64..1_000_000];
    (0u64..100_000, 0u64..60_000, 0u64..61, 0u64..30, rate).prop_map(
        |(delay, jitter, loss, doubled, rate)| Path {
            delay,
            jitter,
            loss,
            doubled,
            rate,
            queue: 20_000,
        },
    )
}

/// Sends `data` both ways as streams, in parts, with a reader that sometimes pauses.
fn exchange(world: &mut World, data: &[Vec<u8>; 2], seed: u64) -> [Vec<u8>; 2] {
    exchange_under(world, data, seed, &[])
}

/// Like [`exchange`]; now and then an end changes to the next of these settings.
fn exchange_under(
    world: &mut World,
    data: &[Vec<u8>; 2],
    seed: u64,
    changes: &[Config],
) -> [Vec<u8>; 2] {
    let mut changes = changes.iter();
    let mut rng = TestRng(seed);
    let mut sent = [0; 2];
    let mut got = [Vec::new(), Vec::new()];
    let limit = Time(world.now.0 + AGES);
    for _ in 0..2_000_000 {
        if rng.rng(10)
            && let Some(config) = changes.next()
        {
            let kcp = &mut world.ends[rng.roll() as usize % 2];
            let (before, config) = (*kcp.config(), config.clamped());
            match kcp.change_config(world.now, config) {
                Ok(()) => assert_eq!(*kcp.config(), config),
                Err(ChangeError::Busy) => {
                    // All settings except those by which the data in transit was split and counted.
                    let config = Config {
                        mtu: before.mtu,
                        congestion: before.congestion,
                        ..config
                    };
                    kcp.change_config(world.now, config).unwrap();
                }
                Err(why) => panic!("{why}"),
            }
        }
        for end in 0..2 {
            let kcp = &mut world.ends[end];
            let want = (sent[end] + 1 + rng.roll() as usize % 700).min(data[end].len());
            sent[end] += kcp.send(&data[end][sent[end]..want]).unwrap();
            let reads = if rng.rng(60) { 8 } else { 0 };
            for _ in 0..reads {
                match rng.roll() % 2 {
                    0 => {
                        let Some(front) = kcp.front_bytes() else {
                            break;
                        };
                        let n = front.len().min(1 + rng.roll() as usize % 90);
                        got[1 - end].extend_from_slice(&front[..n]);
                        assert_eq!(kcp.consume(n), n);
                    }
                    _ => {
                        let mut out = vec![0; 1 + rng.roll() as usize % 900];
                        let Some(n) = kcp.recv(&mut out) else { break };
                        got[1 - end].extend_from_slice(&out[..n]);
                    }
                }
            }
        }
        let done = (0..2).all(|end| got[end].len() >= data[end].len());
        let rest = world.ends.iter().all(KcpSession::is_drained);
        if done && rest {
            break;
        }
        let unread = world.ends.iter().any(|end| end.front_bytes().is_some());
        if !world.step(limit) && !unread {
            break;
        }
    }
    got
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn streams_arrive_as_sent(
        config in any_config(), path in any_path(), seed in any::<u64>(),
        lens in [0usize..12_000, 0usize..12_000], before_wrap in 0u32..80, at in any::<u32>(),
    ) {
        let config = Config { stream: true, ..config };
        // Both clocks and all numbers wrap on the way.
        let now = Time(u64::from(at));
        let ends = pair(config, now, 0u32.wrapping_sub(before_wrap));
        let data = [noise(lens[0], seed), noise(lens[1], !seed)];
        let mut world = World::new(ends, path, now, seed);
        let got = exchange(&mut world, &data, seed ^ 5);
        prop_assert_eq!(got[0].len(), data[0].len());
        prop_assert!(got[0] == data[0] && got[1] == data[1]);
        prop_assert!(world.ends.iter().all(|end| end.state() == SessionState::Open));
        // Afterwards nothing is due: the last timer frees the memory.
        let limit = Time(world.now.0 + AGES);
        while world.step(limit) {}
        for end in &world.ends {
            prop_assert_eq!(end.poll_timeout(), None);
            prop_assert!(end.memory_size() <= 2048 + size_of::<crate::bbr::BbrModel>());
        }
    }

    #[test]
    fn streams_arrive_under_settings_that_change(
        config in any_config(), path in any_path(), seed in any::<u64>(),
        lens in [0usize..12_000, 0usize..12_000],
        changes in proptest::collection::vec(any_config(), 0..12),
    ) {
        let config = Config { stream: true, ..config };
        let changes: Vec<Config> = changes
            .iter()
            .map(|other| Config { stream: true, compat: config.compat, ..*other })
            .collect();
        let ends = pair(config, Time(0), 0);
        let data = [noise(lens[0], seed), noise(lens[1], !seed)];
        let mut world = World::new(ends, path, Time(0), seed);
        let got = exchange_under(&mut world, &data, seed ^ 5, &changes);
        prop_assert_eq!(got[0].len(), data[0].len());
        prop_assert!(got[0] == data[0] && got[1] == data[1]);
    }

    #[test]
    fn messages_arrive_whole(
        config in any_config(), path in any_path(), seed in any::<u64>(),
        lens in proptest::collection::vec(1usize..2_000, 1..20), before_wrap in 0u32..80,
    ) {
        // A message must fit the receiver's window, in any number of fragments.
        let config = Config { stream: false, recv_window: config.recv_window + 100, ..config };
        let ends = pair(config, Time(7), 0u32.wrapping_sub(before_wrap));
        let mut world = World::new(ends, path, Time(7), seed);
        let messages: Vec<_> = lens.iter().map(|len| noise(*len, *len as u64)).collect();
        let mut got = Vec::new();
        let mut sent = 0;
        let mut steps = 0;
        while got.len() < messages.len() {
            if let Some(message) = messages.get(sent) {
                match world.ends[0].send(message) {
                    Ok(n) => { prop_assert_eq!(n, message.len()); sent += 1; }
                    Err(why) => prop_assert_eq!(why, crate::SendError::Full),
                }
            }
            let mut out = vec![0; 2_000];
            while let Some(n) = world.ends[1].recv(&mut out) {
                got.push(out[..n].to_vec());
            }
            steps += 1;
            prop_assert!(steps < 1_000_000);
            prop_assert!(world.step(Time(AGES)) || got.len() == messages.len());
        }
        prop_assert!(got == messages);
    }
}

#[test]
fn what_data_was_cut_by_stays_while_it_is_under_way() {
    let mut world = World::new(pair(Config::fast3(), Time(0), 0), path(0), Time(0), 1);
    let smaller = Config {
        mtu: 500,
        ..Config::fast3()
    };
    world.ends[0].send(&[7; 3000]).unwrap();
    let change = |world: &mut World, config| world.ends[0].change_config(world.now, config);
    assert_eq!(change(&mut world, smaller), Err(ChangeError::Busy));
    let other = Config {
        compat: Compat::C,
        ..Config::fast3()
    };
    assert_eq!(change(&mut world, other), Err(ChangeError::Compat));
    let wrong = Config {
        nodelay: 9,
        ..Config::fast3()
    };
    assert!(matches!(
        change(&mut world, wrong),
        Err(ChangeError::Config(_))
    ));
    let patient = Config {
        send_window: 4,
        ..Config::normal()
    };
    change(&mut world, patient).unwrap();
    while world.step(Time(HOUR)) {}
    assert!(world.ends[0].is_drained());
    change(&mut world, smaller).unwrap();
    world.ends[0].send(&[7; 3000]).unwrap();
    let mut datagram = [0; 1400];
    let now = world.now;
    while let Some(len) = world.ends[0].poll_output(now, &mut datagram) {
        assert!(len <= 500, "{len}");
    }
}

#[test]
fn a_peer_that_is_gone_is_reported() {
    for compat in [Compat::C, Compat::Go] {
        for congestion in [
            CongestionControl::Off,
            CongestionControl::Reno,
            CongestionControl::Bbr,
            CongestionControl::Auto,
        ] {
            let config = Config {
                compat,
                congestion,
                ..Config::fast3()
            };
            let mut world = World::new(pair(config, Time(0), 0), path(100), Time(0), 1);
            world.ends[0].send(b"anyone?").unwrap();
            while world.step(Time(10 * HOUR)) {}
            assert_eq!(world.ends[0].state(), SessionState::Dead);
            assert_eq!(world.ends[0].poll_timeout(), None);
            assert_eq!(world.ends[0].send(b"x"), Err(crate::SendError::Dead));
            // Not before the peer was silent for long, although the hasty mode was done sooner.
            assert!(world.ends[0].stats().lost >= 19);
            assert!(world.now >= Time(30_000_000), "{:?}", world.now);
            assert_eq!(world.ends[1].state(), SessionState::Open);
        }
    }
}

#[test]
fn a_peer_that_began_anew_is_noticed() {
    for compat in [Compat::C, Compat::Go] {
        let config = Config {
            compat,
            ..Config::fast3()
        };
        let mut world = World::new(pair(config, Time(0), 0), path(0), Time(0), 1);
        world.ends[0].send(b"one").unwrap();
        while world.step(Time(HOUR)) {}
        assert!(world.ends[0].is_drained());
        let now = world.now;
        let [fresh, _] = pair(config, now, 0);
        world.ends[1] = fresh;
        world.ends[0].send(b"two").unwrap();
        while world.step(Time(HOUR)) {}
        assert_eq!(world.ends[0].state(), SessionState::Dead, "{compat:?}");
        assert!(world.ends[0].is_lost_by_peer());
        assert_eq!(world.ends[0].send(b"x"), Err(crate::SendError::Dead));
        let took = world.now.duration_since(now);
        assert!(took.as_secs() < 5, "with its first answer: {took:?}");
    }
}

#[test]
fn a_peer_that_falls_silent_is_given_up() {
    let config = Config {
        dead_link: 8,
        silence_ms: 2_000,
        ..Config::fast3()
    };
    let mut world = World::new(pair(config, Time(0), 0), path(0), Time(0), 1);
    world.ends[0].send(b"one").unwrap();
    while world.step(Time(HOUR)) {}
    assert_eq!(world.ends[0].state(), SessionState::Open);
    let silent = world.now;
    world.ends[0].send(b"two").unwrap();
    // Nothing gets through from here on.
    let mut out = [0; 1500];
    while let Some(at) = world.ends[0].poll_timeout() {
        assert!(at < silent + Duration::from_secs(60), "it never gives up");
        while world.ends[0].poll_output(at, &mut out).is_some() {}
    }
    assert_eq!(world.ends[0].state(), SessionState::Dead);
    assert!(!world.ends[0].is_lost_by_peer());
}

#[test]
fn a_closed_window_is_asked_for_and_told() {
    for compat in [Compat::C, Compat::Go] {
        let config = Config {
            recv_window: 40,
            send_window: 2000,
            mtu: 100,
            compat,
            ..Config::fast3()
        };
        let mut world = World::new(pair(config, Time(0), 0), path(0), Time(0), 1);
        let data = noise(100_000, 3);
        let taken = world.ends[0].send(&data).unwrap();
        assert_eq!(taken, data.len());
        let minute = 60_000_000;
        while world.step(Time(minute)) {}
        // Nothing is read: the sender probes at growing intervals.
        assert_eq!(world.ends[0].stats().peer_window, 0);
        assert!(world.ends[0].stats().queued > 0);
        assert!(world.ends[0].poll_timeout().unwrap() > Time(minute));
        assert!(world.ends[0].stats().datagrams_out < 200);
        let mut got = Vec::new();
        let mut out = [0; 3000];
        for _ in 0..100_000 {
            while let Some(n) = world.ends[1].recv(&mut out) {
                got.extend_from_slice(&out[..n]);
            }
            if got.len() == data.len() {
                break;
            }
            world.step(Time(HOUR));
        }
        assert!(got == data);
        // Reading reopened it immediately: no probe was needed.
        assert!(
            world.now.0 < minute + 60_000_000,
            "{compat:?} {:?}",
            world.now
        );
    }
}

#[test]
fn a_session_at_rest_has_no_timer_and_little_memory() {
    let mut world = World::new(pair(Config::fast3(), Time(0), 0), path(0), Time(0), 1);
    assert_eq!(world.ends[0].poll_timeout(), None);
    assert!(world.ends[0].memory_size() < 1500);
    // A dialogue is over within milliseconds, and its memory freed half a second later.
    world.ends[0].send(b"ping").unwrap();
    while world.ends[1].front_bytes().is_none() {
        assert!(world.step(Time(HOUR)));
    }
    assert_eq!(world.ends[1].consume(4), 4);
    while world.step(Time(HOUR)) {}
    assert!(world.now < Time(700_000), "{:?}", world.now);
    for end in &world.ends {
        assert_eq!(end.heap_size(), 0);
    }

    world.ends[0].send(&noise(150_000, 1)).unwrap();
    while world.step(Time(HOUR)) {
        while let Some(n) = world.ends[1].front_bytes().map(<[u8]>::len) {
            world.ends[1].consume(n);
        }
    }
    for end in &world.ends {
        assert_eq!(end.poll_timeout(), None);
        assert!(end.memory_size() < 1500, "{}", end.memory_size());
    }
}

#[test]
fn recovered_datagrams_move_neither_window_nor_clock() {
    let [mut here, mut there] = pair(Config::fast3(), Time(0), 0);
    here.send(b"x").unwrap();
    let mut out = [0; 1400];
    let len = here.poll_output(Time(0), &mut out).unwrap();
    there.handle_input(Time(0), &out[..len], true).unwrap();
    assert_eq!(there.stats().peer_window, 32);
    assert_eq!(there.front_bytes(), Some(&b"x"[..]));
    let len = there.poll_output(Time(0), &mut out).unwrap();
    here.handle_input(Time(9_000_000), &out[..len], true)
        .unwrap();
    assert!(here.is_drained(), "its acknowledgements count");
    assert_eq!((here.stats().rtt_ms, here.stats().peer_window), (0, 32));
}

#[test]
fn a_hole_is_sent_again_as_soon_as_it_is_overtaken() {
    let [mut here, mut there] = pair(Config::fast3(), Time(0), 0);
    let mut out = [0; 1400];
    for n in 0..4 {
        here.send(&[n; 1376]).unwrap();
        let len = here.poll_output(Time(0), &mut out).unwrap();
        if n != 1 {
            there.handle_input(Time(0), &out[..len], false).unwrap();
        }
    }
    let now = Time(30_000);
    while let Some(len) = there.poll_output(now, &mut out) {
        here.handle_input(now, &out[..len], false).unwrap();
    }
    // The answers show it immediately, long before the time-out of 200 ms.
    let len = here.poll_output(now, &mut out).unwrap();
    there.handle_input(now, &out[..len], false).unwrap();
    assert_eq!(there.readable_len(), 4 * 1376);
    let stats = here.stats();
    assert_eq!((stats.fast, stats.retransmitted), (1, 1));
}

#[test]
fn what_correction_brings_late_is_not_echoed_with_its_old_time() {
    let mut end = KcpSession::new(7, Config::fast3(), Time(0));
    let push = |sn, ts| {
        let header = crate::SegmentHeader {
            conv: 7,
            cmd: crate::Command::Push,
            frg: 0,
            wnd: 32,
            ts,
            sn,
            una: 0,
            len: 1,
        };
        [&header.encode()[..], b"x"].concat()
    };
    let mut now = Time(0);
    let mut echoed = |sn, ts, recovered| {
        now = now + Duration::from_millis(10);
        end.handle_input(now, &push(sn, ts), recovered).unwrap();
        end.flush_now(now);
        let mut out = [0; 1400];
        let len = end.poll_output(now, &mut out).unwrap();
        let ack = crate::SegmentHeader::parse(&out[..len]).unwrap();
        assert_eq!((ack.cmd, ack.sn), (crate::Command::Ack, sn));
        ack.ts
    };
    // At first no newer time stamp is known.
    assert_eq!(echoed(5, 50, true), 50);
    assert_eq!(echoed(1, 1000, false), 1000);
    // Then as much later as it arrived.
    assert_eq!(echoed(0, 100, true), 1010);
    // Data that arrives directly is echoed unchanged, however late.
    assert_eq!(echoed(2, 200, false), 200);
    assert_eq!(echoed(3, 1100, true), 1100);
}

#[test]
fn talk_that_times_out_goes_twice() {
    let [mut here, mut there] = pair(Config::fast3(), Time(0), 0);
    let mut out = [0; 1400];
    here.send(b"first").unwrap();
    while here.poll_output(Time(0), &mut out).is_some() {}
    let late = here.poll_timeout().unwrap();
    let mut copies = Vec::new();
    while let Some(len) = here.poll_output(late, &mut out) {
        copies.push(out[..len].to_vec());
    }
    assert_eq!(copies.len(), 2, "each in a separate datagram");
    assert_eq!(copies[0], copies[1]);
    // The second one is sufficient, and the first adds nothing.
    for copy in copies.iter().rev() {
        there.handle_input(late, copy, false).unwrap();
    }
    assert_eq!(there.front_bytes(), Some(&b"first"[..]));
    assert_eq!(there.stats().repeated, 1);

    // A window of data is not a dialogue.
    here.send(&noise(100_000, 1)).unwrap();
    let sent = |here: &mut KcpSession, now: Time| {
        let mut out = [0; 1400];
        std::iter::from_fn(|| here.poll_output(now, &mut out)).count()
    };
    let first = sent(&mut here, late);
    assert!(first > 20, "{first}");
    let late = here.poll_timeout().unwrap() + Duration::from_millis(100);
    assert!(sent(&mut here, late) <= first + 1);
}

#[test]
fn a_farewell_comes_behind_all_data_however_bad_the_path() {
    for (compat, loss, seed) in [(Compat::C, 0, 1), (Compat::Go, 0, 2), (Compat::Go, 30, 3)] {
        let config = Config {
            compat,
            ..Config::fast3()
        };
        let mut world = World::new(pair(config, Time(0), 0), path(loss), Time(0), seed);
        let data = noise(60_000, seed);
        world.ends[1].send(b"hello").unwrap();
        while world.ends[0].consume(5) == 0 {
            assert!(world.step(Time(HOUR)));
        }
        assert_eq!(world.ends[0].send(&data), Ok(data.len()));
        let now = world.now;
        world.ends[0].finish(now);
        assert_eq!(world.ends[0].send(b"x"), Err(crate::SendError::Finished));
        let mut got = Vec::new();
        let mut out = [0; 3000];
        while !world.ends[1].is_finished() {
            while let Some(n) = world.ends[1].recv(&mut out) {
                got.extend_from_slice(&out[..n]);
            }
            assert!(world.step(Time(HOUR)), "the end never arrived");
        }
        assert!(got == data, "nothing is missing before the end");
        // The other direction is open.
        world.ends[1].send(b"answer").unwrap();
        while world.ends[0].consume(6) == 0 {
            assert!(world.step(Time(HOUR)));
        }
        let now = world.now;
        world.ends[1].close_gracefully(now);
        while world.step(Time(HOUR)) {}
        assert!(world.ends[0].is_finished() && world.ends[0].is_unread_by_peer());
        assert!(world.ends.iter().all(|end| end.is_fully_closed()));
        assert!(
            world
                .ends
                .iter()
                .all(|end| end.state() == SessionState::Open)
        );
    }
}

#[test]
fn a_session_that_is_aborted_looks_like_no_end() {
    let mut world = World::new(pair(Config::fast3(), Time(0), 0), path(0), Time(0), 1);
    world.ends[1].send(b"hello").unwrap();
    while world.ends[0].consume(5) == 0 {
        assert!(world.step(Time(HOUR)));
    }
    world.ends[0].send(&noise(60_000, 1)).unwrap();
    let now = world.now;
    world.ends[0].abort(now);
    while world.step(Time(HOUR)) {}
    assert!(world.ends[1].is_aborted() && !world.ends[1].is_finished());
    assert_eq!(world.ends[1].state(), SessionState::Dead);
    assert!(world.ends[0].is_fully_closed());
}
