//! Whole timed exchanges of two C endpoints, byte for byte.

use std::collections::VecDeque;

use serde_json::Value;

use super::*;

const TICK: u64 = 10;

struct Side {
    kcp: KcpSession,
    name: &'static str,
    sent: u64,
    /// Datagrams in transit to this side, with the millisecond of arrival.
    inbox: VecDeque<(u64, Vec<u8>)>,
}

fn config(case: &Value) -> Config {
    let [nodelay, interval, resend, nc] = [0, 1, 2, 3].map(|at| number(&case["nodelay"][at]));
    Config {
        nodelay: nodelay.try_into().unwrap(),
        interval_ms: interval,
        resend: resend.try_into().unwrap(),
        congestion: [CongestionControl::Reno, CongestionControl::Off][nc as usize],
        send_window: number(&case["snd_wnd"]),
        recv_window: number(&case["rcv_wnd"]),
        mtu: number(&case["mtu"]) as usize,
        stream: number(&case["stream"]) != 0,
        compat: Compat::C,
        ..Config::fast()
    }
}

/// Runs a scenario and returns its events in the form of the file, without the data of reads.
fn run(case: &Value, until: u64) -> (Vec<(u64, String)>, KcpSession, KcpSession) {
    let conv = number(&case["conv"]);
    let delay = u64::from(number(&case["one_way_delay_ms"]));
    let drop_mask = u64::from(number(&case["drop_mask_A"]));
    let mut sides = ["A", "B"].map(|name| Side {
        kcp: KcpSession::new(conv, config(case), Time(0)),
        name,
        sent: 0,
        inbox: VecDeque::new(),
    });
    for (m, len) in case["sends_at_t0"].as_array().unwrap().iter().enumerate() {
        let message: Vec<u8> = (0..number(len) as usize)
            .map(|j| (j * 3 + m) as u8)
            .collect();
        assert_eq!(sides[0].kcp.send(&message), Ok(message.len()));
    }
    let mut events = Vec::new();
    for t in (0..=until).step_by(TICK as usize) {
        let now = Time(t * 1000);
        for side in &mut sides {
            while side.inbox.front().is_some_and(|(due, _)| *due <= t) {
                let (_, datagram) = side.inbox.pop_front().unwrap();
                side.kcp.handle_input(now, &datagram, false).unwrap();
            }
        }
        for at in [0, 1] {
            let mut out = [0; 1500];
            // Nothing is sent that the timer did not announce.
            while sides[at].kcp.poll_timeout().is_some_and(|due| due <= now) {
                let Some(len) = sides[at].kcp.poll_output(now, &mut out) else {
                    continue;
                };
                let bytes: String = out[..len].iter().map(|b| format!("{b:02x}")).collect();
                events.push((t, format!("{} {bytes}", sides[at].name)));
                let lost = at == 0 && drop_mask >> sides[0].sent & 1 == 1;
                sides[at].sent += 1;
                if !lost {
                    sides[1 - at]
                        .inbox
                        .push_back((t + delay, out[..len].to_vec()));
                }
            }
        }
        while let Some(piece) = sides[1].kcp.front_bytes() {
            // C passes on segments of a stream, and whole messages.
            let wanted = match sides[1].kcp.config().stream {
                true => piece.len(),
                false => sides[1].kcp.readable_len(),
            };
            let mut data = vec![0; wanted];
            assert_eq!(sides[1].kcp.recv(&mut data), Some(wanted));
            events.push((t, format!("read {wanted}")));
        }
    }
    let [a, b] = sides.map(|side| side.kcp);
    (events, a, b)
}

fn wanted(case: &Value) -> Vec<(u64, String)> {
    let event = |e: &Value| match e.get("B_recv") {
        Some(len) => format!("read {len}"),
        None => format!(
            "{} {}",
            e["from"].as_str().unwrap(),
            e["datagram"].as_str().unwrap()
        ),
    };
    let events = case["events"].as_array().unwrap().iter();
    events
        .map(|e| (u64::from(number(&e["t"])), event(e)))
        .collect()
}

#[test]
fn golden_exchanges_of_c() {
    for case in vectors()["kcp_trace_c"]["scenarios"].as_array().unwrap() {
        let wanted = wanted(case);
        let name = case["name"].as_str().unwrap();
        // Until the last answer has arrived.
        let delay = u64::from(number(&case["one_way_delay_ms"]));
        let (events, a, b) = run(case, wanted.last().unwrap().0 + delay + TICK);
        for (at, (got, wanted)) in events.iter().zip(&wanted).enumerate() {
            assert_eq!(got, wanted, "{name}, event {at}");
        }
        assert_eq!(events.len(), wanted.len(), "{name}");

        let end = &case["end"];
        let stats = a.stats();
        let got = [
            stats.rtt_ms,
            stats.rtt_var_ms,
            stats.rto_ms,
            stats.cwnd,
            stats.ssthresh,
        ];
        let names = ["A_srtt", "A_rttvar", "A_rto", "A_cwnd", "A_ssthresh"];
        assert_eq!(got, names.map(|name| number(&end[name])), "{name}");
        assert_eq!(
            a.send.first_unacked().0,
            number(&end["A_snd_una"]),
            "{name}"
        );
        assert_eq!(
            a.send
                .first_unacked()
                .wrapping_add(a.send.numbered_span())
                .0,
            number(&end["A_snd_nxt"]),
            "{name}"
        );
        assert_eq!(
            b.recv.next_expected().0,
            number(&end["B_rcv_nxt"]),
            "{name}"
        );
        assert_eq!(stats.lost, u64::from(number(&end["A_xmit"])), "{name}");
    }
}
