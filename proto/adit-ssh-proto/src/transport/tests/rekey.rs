//! Re-keys while data flows in both directions simultaneously.

use core::time::Duration;

use adit_wire::Time;

use super::super::{Event, StrictKex, TransportConfig};
use super::{Link, data, pair, pair_in, settings};
use crate::SshError;
use crate::algorithm::{Cipher, Compression, Mac};

const MESSAGES: usize = 300;

/// Sends in both directions simultaneously in short turns; returns the number of re-keys.
fn bulk(client: TransportConfig, server: TransportConfig) -> usize {
    let mut link = pair_in(client, server);
    let session = link.client.transport.session_id().unwrap().to_vec();
    for n in 0..MESSAGES {
        link.client.transport.send(&data(n, 1000)).unwrap();
        link.server.transport.send(&data(n + 7, 900)).unwrap();
        // Only a part of the queued bytes is delivered, so that packets cross the exchanges.
        let up = crossing(link.client.transport.take_output(), n);
        link.server.hear(&up).unwrap();
        let down = crossing(link.server.transport.take_output(), n + 1);
        link.client.hear(&down).unwrap();
    }
    link.settle_in(1500).unwrap();
    let expected = |from: usize, len| (from..from + MESSAGES).map(|n| data(n, len)).collect();
    let (up, down): (Vec<_>, Vec<_>) = (expected(0, 1000), expected(7, 900));
    assert!(link.server.payloads == up && link.client.payloads == down);
    assert_eq!(link.client.keys(), link.server.keys());
    assert_eq!(link.client.transport.session_id(), Some(&*session));
    assert!(link.client.transport.is_writable() && link.server.transport.is_writable());
    let asked = |e: &&Event| matches!(e, Event::HostKey { .. });
    assert_eq!(link.client.events.iter().filter(asked).count(), 1);
    link.client.keys()
}

fn crossing(out: &mut Vec<u8>, n: usize) -> Vec<u8> {
    let some = out.len().min(n * 331 % 2900);
    out.drain(..some).collect()
}

/// Suites of each kind of packet protection, with and without compression.
fn suites() -> Vec<TransportConfig> {
    let suites = [
        (Cipher::Aes128Gcm, Mac::Umac64Etm),
        (Cipher::ChaCha20Poly1305, Mac::Umac64Etm),
        (Cipher::Aes128Ctr, Mac::Umac64Etm),
        (Cipher::Aes256Ctr, Mac::HmacSha256),
    ];
    let compressions = [Compression::None, Compression::Zlib];
    let mut out = Vec::new();
    for (cipher, mac) in suites {
        for compression in compressions {
            let mut config = settings();
            config.preferred.cipher = vec![cipher];
            config.preferred.mac = vec![mac];
            config.preferred.compression = vec![compression];
            out.push(config);
        }
    }
    out
}

#[test]
fn by_bytes_from_either_side_or_both() {
    for config in suites() {
        let mut eager = config.clone();
        // The minimum: 16 KiB.
        eager.rekey_bytes = Some(1);
        let least = match config.preferred.compression[0] {
            Compression::None => 10,
            _ => 2,
        };
        for (client, server) in [
            (eager.clone(), config.clone()),
            (config.clone(), eager.clone()),
            (eager.clone(), eager.clone()),
        ] {
            let made = bulk(client, server);
            assert!(made > least, "{made}: {:?}", config.preferred);
        }
    }
}

/// Received bytes count like sent ones: a side that only receives starts re-keys, too.
#[test]
fn by_what_is_received_alone() {
    let (mut bytes, mut packets) = (settings(), settings());
    bytes.rekey_bytes = Some(1);
    packets.rekey_packets = 20;
    for eager in [bytes, packets] {
        for from_client in [true, false] {
            let (client, server) = match from_client {
                true => (settings(), eager.clone()),
                false => (eager.clone(), settings()),
            };
            let mut link = pair_in(client, server);
            for n in 0..60 {
                let speaker = match from_client {
                    true => &mut link.client,
                    false => &mut link.server,
                };
                speaker.transport.send(&data(n, 1000)).unwrap();
                link.settle().unwrap();
            }
            assert!(link.client.keys() >= 3, "{}", link.client.keys());
        }
    }
}

#[test]
fn by_packets() {
    let mut eager = settings();
    eager.rekey_packets = 20;
    assert!(bulk(eager.clone(), settings()) > 8);
    assert!(bulk(settings(), eager.clone()) > 8);
    assert!(bulk(eager.clone(), eager) > 8);
    assert_eq!(bulk(settings(), settings()), 1);
}

#[test]
fn by_time() {
    let mut hourly = settings();
    hourly.rekey_after = Some(Duration::from_secs(3600));
    let mut link = pair_in(hourly.clone(), settings());
    let at = |minutes: u64| Time(minutes * 60 * 1_000_000);
    assert_eq!(link.client.transport.poll_timeout(at(0)), Some(at(60)));
    assert_eq!(link.server.transport.poll_timeout(at(0)), None);
    link.client.transport.handle_timeout(at(59)).unwrap();
    link.settle().unwrap();
    assert_eq!(link.client.keys(), 1);
    link.client.transport.handle_timeout(at(60)).unwrap();
    assert!(!link.client.transport.is_writable());
    link.client.transport.send(b"\x5ewaits").unwrap();
    assert!(link.client.transport.begin_payload().is_none());
    link.settle().unwrap();
    assert_eq!((link.client.keys(), link.server.keys()), (2, 2));
    assert_eq!(link.server.payloads, [b"\x5ewaits"]);
    assert_eq!(link.client.transport.poll_timeout(at(61)), Some(at(121)));
}

/// Before authentication, a server computes only one exchange, and neither side starts another one,
/// even if it is due.
#[test]
fn not_before_the_user_is_in() {
    let mut eager = settings();
    eager.rekey_bytes = Some(1);
    eager.rekey_packets = 3;
    eager.rekey_after = Some(Duration::from_secs(1));
    let mut link = pair(eager.clone(), eager);
    for n in 0..30 {
        link.client.transport.send(&data(n, 1000)).unwrap();
        link.server.transport.send(&data(n, 1000)).unwrap();
    }
    for end in [&mut link.client, &mut link.server] {
        end.transport.rekey().unwrap();
        assert_eq!(end.transport.poll_timeout(Time(1)), None);
        end.transport.handle_timeout(Time(1_000_000_000)).unwrap();
    }
    link.settle().unwrap();
    assert_eq!((link.client.keys(), link.server.keys()), (1, 1));
    // A due re-key follows after authentication.
    link.let_in();
    link.client.transport.send(&data(0, 10)).unwrap();
    link.settle().unwrap();
    assert!(link.client.keys() > 1 && link.client.keys() == link.server.keys());

    let mut link = pair(settings(), settings());
    link.client.transport.start_exchange().unwrap();
    let refused = link.settle();
    assert!(matches!(refused, Err(SshError::Policy(_))), "{refused:?}");
    let said = link.server.said();
    let told = link.client.hear(&said);
    assert!(
        matches!(&told, Err(SshError::Disconnected { reason: 2, .. })),
        "{told:?}"
    );
}

/// Both sides start at the same moment: there is a single exchange.
#[test]
fn both_at_once() {
    let mut link = pair_in(settings(), settings());
    link.client.transport.rekey().unwrap();
    link.client.transport.rekey().unwrap();
    link.server.transport.rekey().unwrap();
    link.settle().unwrap();
    assert_eq!((link.client.keys(), link.server.keys()), (2, 2));
}

/// Messages that the peer sent before its KEXINIT are still accepted; after it, none are.
#[test]
fn data_may_come_until_the_peers_kexinit() {
    let mut link = pair_in(settings(), settings());
    link.client.transport.rekey().unwrap();
    link.server.transport.send(&data(1, 10)).unwrap();
    let down = link.server.said();
    link.client.hear(&down).unwrap();
    assert_eq!(link.client.payloads, [data(1, 10)]);

    // A server that seals under its old keys after its KEXINIT, by bypassing its state.
    let mut link = pair_in(settings(), settings());
    link.server.transport.rekey().unwrap();
    let transport = &mut link.server.transport;
    transport
        .sealer
        .seal(&data(2, 10), &mut transport.out)
        .unwrap();
    let down = link.server.said();
    assert_eq!(link.client.hear(&down), Err(SshError::Unexpected(94)));
    assert!(link.client.payloads.is_empty());
}

/// A peer that starts an exchange and never completes it holds a bounded queue, for a limited time.
#[test]
fn an_exchange_without_end() {
    let mut config = settings();
    config.max_queue = 10_000;
    let mut link = pair_in(config, settings());
    link.client.transport.rekey().unwrap();
    let sent = (0..100).take_while(|n| link.client.transport.send(&data(*n, 936)).is_ok());
    assert_eq!(sent.count(), 9);
    assert!(matches!(
        link.client.transport.send(&data(0, 936)),
        Err(SshError::TooMuch { .. })
    ));
    let now = Time(5);
    let due = link.client.transport.poll_timeout(now).unwrap();
    assert_eq!(due, now + Duration::from_secs(120));
    let late = link.client.transport.handle_timeout(due);
    assert!(matches!(late, Err(SshError::Kex(_))), "{late:?}");
    // The queue was the only effect: completed in time, all of it is delivered.
    let mut link = pair_in(settings(), settings());
    link.client.transport.rekey().unwrap();
    for n in 0..9 {
        link.client.transport.send(&data(n, 936)).unwrap();
    }
    link.settle().unwrap();
    assert_eq!(link.server.payloads.len(), 9);
}

/// With strict key exchange, sequence numbers restart; otherwise, they continue.
#[test]
fn sequence_numbers() {
    // Messages sent by client and server: EXT_INFO under the first keys, and the client's data.
    for (strict, first, second) in [
        (StrictKex::WhenExposed, [4, 1], [1, 0]),
        (StrictKex::Never, [7, 4], [11, 7]),
    ] {
        let mut config = settings();
        config.strict = strict;
        config.preferred.cipher = vec![Cipher::Aes128Ctr];
        let mut link = pair_in(config.clone(), config);
        for n in 0..3 {
            link.client.transport.send(&data(n, 5)).unwrap();
        }
        link.settle().unwrap();
        let sent = |link: &Link| {
            let (one, other) = (&link.client.transport, &link.server.transport);
            assert_eq!(one.sealer.sequence(), other.opener.sequence());
            assert_eq!(other.sealer.sequence(), one.opener.sequence());
            [one.sealer.sequence(), other.sealer.sequence()]
        };
        assert_eq!(sent(&link), first, "{strict:?}");
        link.server.transport.rekey().unwrap();
        link.settle().unwrap();
        link.client.transport.send(&data(9, 5)).unwrap();
        link.settle().unwrap();
        assert_eq!(sent(&link), second, "{strict:?}");
    }
}

/// Payloads are written in place; an unfinished one leaves no trace.
#[test]
fn payloads_in_place() {
    let mut link = pair_in(settings(), settings());
    let mut writer = link.client.transport.begin_payload().unwrap();
    writer.buf_mut().extend_from_slice(b"\x5egone");
    drop(writer);
    let mut writer = link.client.transport.begin_payload().unwrap();
    let at = writer.payload_at();
    writer.buf_mut().extend_from_slice(b"\x5estays");
    assert_eq!(&writer.buf_mut()[at..], b"\x5estays");
    writer.seal_payload().unwrap();
    let empty = link.client.transport.begin_payload().unwrap();
    assert!(matches!(empty.seal_payload(), Err(SshError::Malformed(_))));
    link.settle().unwrap();
    assert_eq!(link.server.payloads, [b"\x5estays"]);
}
