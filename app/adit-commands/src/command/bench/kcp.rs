//! `adit bench kcp`: the work of the ARQ, and the sealing of packets.

use std::hint::black_box;
use std::time::Duration;

use adit_cli::CommandResult;
use adit_kcp_proto::{Command, Config, HEADER_LEN, KcpSession, SegmentHeader};
use adit_wire::{Time, narrow_int};

use super::packet;
use super::rows::{RowPrinter, time_operation, time_prepared_operations};
use crate::args;

const NOW: Time = Time(1_000_000);
const CONV: u32 = 7;

/// Segments in flight: a full window except for one.
const IN_FLIGHT: u32 = 1023;

pub(super) fn bench_kcp(typed: &args::bench::BenchOptions) -> CommandResult {
    let rows = RowPrinter::new("bench kcp", typed);
    let mss = narrow_int(session_config().mtu - HEADER_LEN);
    rows.print_row("flush-1023-in-flight", 0, time_flush(rows.time_per_row()));
    rows.print_row("input-ack", 24, time_input_ack(rows.time_per_row()));
    rows.print_row("input-data", mss, time_input_data(rows.time_per_row()));
    rows.print_row("send-and-flush", mss, time_send(rows.time_per_row()));
    packet::print_rows(&rows)?;
    let sessions = |name: &str| name.starts_with("open-adit-");
    let advice = rows.fastest(sessions).map(|(name, speed)| {
        let cipher = name.trim_start_matches("open-adit-");
        format!(
            "Between two adit, use {cipher}: {speed:.1} GB/s of packets are opened on one processor"
        )
    });
    rows.finish(advice.as_deref());
    Ok(())
}

fn session_config() -> Config {
    Config {
        send_window: 1024,
        recv_window: 1024,
        ..Config::fast3()
    }
}

fn encode_segment(cmd: Command, sn: u32, una: u32, data: &[u8]) -> Vec<u8> {
    let header = SegmentHeader {
        conv: CONV,
        cmd,
        frg: 0,
        wnd: 1024,
        ts: 0,
        sn,
        una,
        len: narrow_int(data.len()),
    };
    [&header.encode(), data].concat()
}

/// Returns a session whose peer has a window of 1,024 segments.
fn new_session() -> KcpSession {
    let mut kcp = KcpSession::new(CONV, session_config(), NOW);
    let window = encode_segment(Command::WindowReport, 0, 0, &[]);
    let taken = kcp.handle_input(NOW, &window, false);
    debug_assert_eq!(taken, Ok(()));
    kcp
}

/// Sends segments, and returns the number of datagrams that were sent.
fn fill_window(kcp: &mut KcpSession, segments: u32, out: &mut [u8]) -> u32 {
    let data = vec![7; kcp.config().mtu - HEADER_LEN];
    let mut sent = 0;
    for _ in 0..segments {
        let taken = kcp.send(&data);
        debug_assert_eq!(taken, Ok(data.len()));
        while kcp.poll_output(NOW, out).is_some() {
            sent += 1;
        }
    }
    sent
}

/// Times a flush with 1,023 segments in flight, none of which is due.
fn time_flush(spend: Duration) -> f64 {
    let mut kcp = new_session();
    let mut out = vec![0; session_config().mtu];
    let sent = fill_window(&mut kcp, IN_FLIGHT, &mut out);
    debug_assert_eq!((sent, kcp.stats().in_flight), (IN_FLIGHT, IN_FLIGHT));
    time_operation(spend, || {
        kcp.flush_now(black_box(NOW));
        let none = kcp.poll_output(black_box(NOW), black_box(&mut out));
        debug_assert_eq!(none, None);
    })
}

/// Times datagrams of one acknowledgement each, until 1,023 segments are acknowledged.
fn time_input_ack(spend: Duration) -> f64 {
    let mut out = vec![0; session_config().mtu];
    let acks: Vec<_> = (0..IN_FLIGHT)
        .map(|sn| encode_segment(Command::Ack, sn, sn, &[]))
        .collect();
    time_prepared_operations(
        spend,
        IN_FLIGHT,
        &mut new_session(),
        |kcp| {
            *kcp = new_session();
            fill_window(kcp, IN_FLIGHT, &mut out);
        },
        |kcp| {
            for ack in &acks {
                let taken = kcp.handle_input(NOW, black_box(ack), false);
                debug_assert_eq!(taken, Ok(()));
            }
            debug_assert!(kcp.is_drained());
        },
    )
}

/// Times full segments in order, and the reading of their bytes.
fn time_input_data(spend: Duration) -> f64 {
    let data = vec![7; session_config().mtu - HEADER_LEN];
    let segments: Vec<_> = (0..IN_FLIGHT)
        .map(|sn| encode_segment(Command::Push, sn, 0, &data))
        .collect();
    let prepare = |kcp: &mut KcpSession| *kcp = new_session();
    time_prepared_operations(spend, IN_FLIGHT, &mut new_session(), prepare, |kcp| {
        for segment in &segments {
            let taken = kcp.handle_input(NOW, black_box(segment), false);
            debug_assert_eq!(taken, Ok(()));
            let read = kcp.consume(data.len());
            debug_assert_eq!(read, data.len());
        }
    })
}

/// Times a segment from the application to a datagram.
fn time_send(spend: Duration) -> f64 {
    let mut out = vec![0; session_config().mtu];
    let data = vec![7; session_config().mtu - HEADER_LEN];
    let mut una = 0u32;
    let confirm = |kcp: &mut KcpSession| {
        // The peer acknowledges everything, so that the window is empty again.
        let confirm = encode_segment(Command::WindowReport, 0, una, &[]);
        let taken = kcp.handle_input(NOW, &confirm, false);
        debug_assert_eq!((taken, kcp.is_drained()), (Ok(()), true));
        una = una.wrapping_add(IN_FLIGHT);
    };
    time_prepared_operations(spend, IN_FLIGHT, &mut new_session(), confirm, |kcp| {
        for _ in 0..IN_FLIGHT {
            let taken = kcp.send(black_box(&data));
            debug_assert_eq!(taken, Ok(data.len()));
            let sent = kcp.poll_output(NOW, black_box(&mut out));
            debug_assert_eq!(sent, Some(out.len()));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The benchmarks assert the counts of datagrams, the windows, and that nothing is due.
    #[test]
    fn everything_is_timed() {
        for measure in [time_flush, time_input_ack, time_input_data, time_send] {
            let ns = measure(Duration::from_millis(15));
            assert!(ns > 0.0 && ns < 1e6, "{ns}");
        }
    }
}
