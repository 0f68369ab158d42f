//! A link with high bandwidth and delay in virtual time, and readers of different speed.

use core::time::Duration;
use std::collections::VecDeque;

use super::*;

/// One direction of a link: packets in transit with their time of arrival.
struct Wire {
    octets_per_ms: u64,
    delay: u64,
    /// Time at which the last byte has left the sender, in microseconds.
    busy: u64,
    flight: VecDeque<(u64, Vec<u8>, usize)>,
}

impl Wire {
    const fn new(octets_per_ms: u64, delay: u64) -> Self {
        Self {
            octets_per_ms,
            delay,
            busy: 0,
            flight: VecDeque::new(),
        }
    }

    /// True if it accepts more now: a sender with a buffer of 2 ms.
    const fn is_free(&self, now: u64) -> bool {
        self.busy < now + 2000
    }

    /// Sends `payload` and `len` bytes of data, whose contents are omitted.
    fn send(&mut self, now: u64, payload: Vec<u8>, len: usize) {
        let octets = u64::try_from(payload.len() + len + 32).unwrap();
        self.busy = self.busy.max(now) + octets * 1000 / self.octets_per_ms;
        self.flight
            .push_back((self.busy + self.delay, payload, len));
    }

    fn arrived(&mut self, now: u64) -> Option<(Vec<u8>, usize)> {
        self.flight
            .pop_front_if(|(at, ..)| *at <= now)
            .map(|(_, payload, len)| (payload, len))
    }
}

/// Sends as much as possible for `until` microseconds; returns the bytes that arrived after `from`.
fn octets_of(rtt: u64, limits: ConnectionLimits, reader: u64, from: u64, until: u64) -> (u64, u32) {
    let mut client = Connection::new(Role::Client, limits);
    let mut server = server();
    let (here, there) = session(&mut client, &mut server);
    client.set_rtt(Duration::from_micros(rtt));
    let (mut down, mut up) = (Wire::new(125_000, rtt / 2), Wire::new(125_000, rtt / 2));
    let (mut got, mut unread, mut now) = (0, 0, 0);
    let mut payload = Vec::new();
    while now < until {
        while down.is_free(now) && server.send_capacity(there) > 0 {
            let len = server.send_capacity(there);
            let mut header = Vec::new();
            server
                .begin_data(there, DataKind::Stdout, len, &mut header)
                .unwrap();
            down.send(now, header, len);
        }
        while let Some((header, len)) = down.arrived(now) {
            payload.clear();
            payload.extend_from_slice(&header);
            payload.resize(header.len() + len, 0);
            let handled = client.handle_input(Time(now), &payload).unwrap();
            assert!(matches!(handled, HandledInput::Data { .. }));
            unread += len;
            got += if now >= from { len as u64 } else { 0 };
        }
        // The reader consumes this number of bytes per millisecond, in chunks of one message.
        let mut may = usize::try_from(reader).unwrap().min(unread);
        unread -= may;
        while may > 0 {
            let piece = may.min(32768);
            client.consume_data(here, piece, Time(now));
            may -= piece;
        }
        for control in output(&mut client) {
            assert!(control.len() < 100);
            up.send(now, control, 0);
        }
        while let Some((control, _)) = up.arrived(now) {
            let _ = server.handle_input(Time(now), &control).unwrap();
        }
        now += 1000;
    }
    (got, client.slots.get(here).unwrap().intake.target())
}

/// 1 Gbit/s and 100 ms: windows of 2 MiB would limit the throughput to 20 MB/s.
#[test]
fn a_long_fat_link_is_filled() {
    let (got, window) = octets_of(
        100_000,
        ConnectionLimits::default(),
        1 << 30,
        2_000_000,
        4_000_000,
    );
    assert!(got >= 200_000_000, "{got} bytes in two seconds");
    assert!((16 << 20..=64 << 20).contains(&window), "{window}");
    let fixed = ConnectionLimits {
        max_window: 2 << 20,
        ..ConnectionLimits::default()
    };
    let (slow, window) = octets_of(100_000, fixed, 1 << 30, 2_000_000, 4_000_000);
    assert!(slow < 60_000_000, "{slow} bytes: the test proves nothing");
    assert_eq!(window, 2 << 20);
}

/// A short link needs no large window, and a slow reader gets none.
#[test]
fn windows_grow_only_where_it_helps() {
    let (got, window) = octets_of(
        2000,
        ConnectionLimits::default(),
        1 << 30,
        500_000,
        1_000_000,
    );
    assert!(got >= 60_000_000, "{got} bytes in half a second");
    assert_eq!(window, 2 << 20);
    let (_, window) = octets_of(100_000, ConnectionLimits::default(), 5000, 0, 4_000_000);
    assert_eq!(window, 2 << 20, "5 MB/s");
}

#[test]
fn tiny_windows_never_stick() {
    for window in [1, 2, 3, 100, 32_769] {
        let limits = ConnectionLimits {
            window,
            max_window: window,
            max_packet: 50,
            ..ConnectionLimits::default()
        };
        let (got, _) = octets_of(2000, limits, 1 << 30, 0, 1_000_000);
        let least = u64::from(window) * 200;
        assert!(got >= least.min(1_000_000), "{window}: {got}");
    }
}

#[test]
fn a_slow_reader_freezes_its_channel_alone() {
    let (mut client, mut server) = (client(), server());
    let (slow, slow_there) = session(&mut client, &mut server);
    let (quick, quick_there) = session(&mut client, &mut server);
    let bytes = vec![0; 32768];
    let (mut held, mut passed) = (0, 0);
    for _ in 0..1000 {
        if let Some(payload) = send(&mut server, slow_there, DataKind::Stdout, &bytes) {
            let _ = client.handle_input(NOW, &payload).unwrap();
            held += bytes.len();
        }
        let payload =
            send(&mut server, quick_there, DataKind::Stdout, &bytes).expect("it is stuck");
        let _ = client.handle_input(NOW, &payload).unwrap();
        client.consume_data(quick, bytes.len(), NOW);
        passed += bytes.len();
        settle(&mut client, &mut server);
    }
    assert_eq!((held, passed), (2 << 20, 1000 * bytes.len()));
    assert_eq!(server.send_capacity(slow_there), 0);
    events(&mut server);
    client.consume_data(slow, 600 << 10, NOW);
    settle(&mut client, &mut server);
    assert_eq!(events(&mut server), [ConnectionEvent::Writable(slow_there)]);
    assert_eq!(server.send_capacity(slow_there), 32768);
}
