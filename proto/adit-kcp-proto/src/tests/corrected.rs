//! A dialogue over a lossy path, with and without forward error correction, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use adit_fec::{Decoder, Encoder, ErasureCode, HEADER, Packet};

use super::link::TestRng;
use super::*;

/// One-way delay, microseconds.
const DELAY: u64 = 25_000;
/// Maximum random delay on top.
const JITTER: u64 = 2_000;
/// Lost datagrams of 100.
const LOSS: u64 = 5;
/// Bytes of an echo.
const SAID: usize = 72;

/// One end with its codec stages.
struct End {
    kcp: KcpSession,
    correction: Option<(Encoder, Decoder)>,
}

impl End {
    fn new(corrected: bool) -> Self {
        let code = || ErasureCode::vandermonde(10, 3).unwrap();
        let correction = corrected.then(|| {
            let encoder = Encoder::new(code(), 1400).unwrap();
            (encoder, Decoder::new(code(), 1400))
        });
        let kcp = KcpSession::new(7, Config::fast3(), Time(0));
        Self { kcp, correction }
    }

    fn transmit(&mut self, now: Time) -> Option<Vec<u8>> {
        let mut out = [0; 1500];
        let Some((encoder, _)) = &mut self.correction else {
            let len = self.kcp.poll_output(now, &mut out)?;
            return Some(out[..len].to_vec());
        };
        if let Some(len) = encoder.poll_output(&mut out) {
            return Some(out[..len].to_vec());
        }
        let len = HEADER + self.kcp.poll_output(now, &mut out[HEADER..])?;
        encoder.seal(now, &mut out[..len]).unwrap();
        Some(out[..len].to_vec())
    }

    fn receive(&mut self, now: Time, packet: &[u8]) {
        let Some((_, decoder)) = &mut self.correction else {
            return self.kcp.handle_input(now, packet, false).unwrap();
        };
        if let Some(Packet::Data { datagram, .. }) = decoder.handle_input(packet) {
            self.kcp.handle_input(now, datagram, false).unwrap();
        }
        while let Some(datagram) = decoder.poll_recovered() {
            self.kcp.handle_input(now, datagram, true).unwrap();
        }
    }
}

/// Returns the times of consecutive echoes in milliseconds, sorted.
fn echoes(corrected: bool, count: usize, seed: u64) -> Vec<u64> {
    let mut ends = [End::new(corrected), End::new(corrected)];
    let mut rng = TestRng(seed);
    let mut under_way = BinaryHeap::new();
    let (mut now, mut number) = (Time(0), 0u64);
    let (mut times, mut began) = (Vec::new(), Time(0));
    ends[0].kcp.send(&[7; SAID]).unwrap();
    while times.len() < count {
        for (end, machine) in ends.iter_mut().enumerate() {
            while let Some(packet) = machine.transmit(now) {
                if !rng.rng(LOSS) {
                    number += 1;
                    let late = rng.roll() % JITTER;
                    under_way.push(Reverse((now.0 + DELAY + late, number, 1 - end, packet)));
                }
            }
        }
        let timers = ends.iter().filter_map(|end| end.kcp.poll_timeout());
        let arrival = under_way.peek().map(|Reverse((at, ..))| Time(*at));
        now = now.max(timers.chain(arrival).min().unwrap());
        while under_way
            .peek()
            .is_some_and(|Reverse((at, ..))| *at <= now.0)
        {
            let Reverse((_, _, to, packet)) = under_way.pop().unwrap();
            ends[to].receive(now, &packet);
        }
        if ends[1].kcp.readable_len() >= SAID {
            ends[1].kcp.consume(SAID);
            ends[1].kcp.send(&[8; SAID]).unwrap();
        }
        if ends[0].kcp.readable_len() >= SAID {
            ends[0].kcp.consume(SAID);
            times.push(now.duration_since(began).as_millis() as u64);
            began = now;
            ends[0].kcp.send(&[7; SAID]).unwrap();
        }
    }
    times.sort_unstable();
    times
}

#[test]
fn correction_makes_no_answer_later() {
    let all = |corrected| {
        let mut all: Vec<u64> = (0..16)
            .flat_map(|seed| echoes(corrected, 500, seed))
            .collect();
        all.sort_unstable();
        [500, 950, 990, 995].map(|of_1000| all[(all.len() - 1) * of_1000 / 1000])
    };
    let (without, with) = (all(false), all(true));
    println!("without {without:?}, with {with:?}");
    for (without, with) in without.into_iter().zip(with) {
        assert!(with <= without, "{with}, without {without}");
    }
    // A time-out, then a round trip.
    assert!(with[2] <= 120, "{with:?}");
}
