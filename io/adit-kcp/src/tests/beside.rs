//! Out-of-band datagrams, and datagrams that are sent several times.

use adit_crypto::packet::session::SessionKey;
use adit_fec::encode_oob;

use super::memory::{Net, pair_over};
use super::*;

/// A network in which both ends use FEC, and their counters.
async fn corrected(client: Settings) -> (Arc<Net>, KcpListener, KcpStream, KcpStream) {
    let net = Net::new(FaultRates::default());
    let server = Settings {
        counters: Arc::default(),
        ..client.clone()
    };
    let (listener, near, far) = pair_over(&net, server, client).await;
    (net, listener, near, far)
}

async fn next(from: &mut OobReceiver) -> Option<Box<[u8]>> {
    timeout(PATIENCE, from.recv()).await.unwrap()
}

/// Waits until everything was acknowledged.
async fn drained(stream: &KcpStream) {
    let drained = async {
        while !stream.session_probe().is_drained() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(PATIENCE, drained).await.unwrap();
}

#[tokio::test]
async fn datagrams_go_beside_the_stream_both_ways() {
    let sealed = Settings {
        session: Some(SessionKey::new(&[7; 32]).unwrap()),
        fec: Some(FEC),
        ..plain()
    };
    for client in [
        settings(PacketKind::Aes, Some(FEC)),
        settings(PacketKind::Null, Some(FEC)),
        sealed,
    ] {
        let counters = Arc::clone(&client.counters);
        let (_net, _listener, near, far) = corrected(client).await;
        let (mut to_near, mut to_far) = (near.oob_receiver(), far.oob_receiver());
        let longest = near.oob_max_size();
        assert!((1_300..1_400).contains(&longest), "{longest}");
        for len in [0, 1, 2, 24, 500, longest] {
            let datagram = BytePattern::new(6).next_bytes(len);
            near.send_oob(&datagram).unwrap();
            assert_eq!(&*next(&mut to_far).await.unwrap(), datagram);
            far.send_oob(&datagram).unwrap();
            assert_eq!(&*next(&mut to_near).await.unwrap(), datagram);
        }
        let limit = longest;
        let refused = near.send_oob(&vec![0; limit + 1]);
        assert_eq!(refused, Err(OobError::TooLong { limit }));
        assert_eq!(counters.counts().oob_packets, 6);
        // A smaller MTU limits them too.
        let mtu = 500;
        let small = Config {
            mtu,
            ..far.config()
        };
        timeout(PATIENCE, async {
            while far.set_config(small).is_err() {
                sleep(Duration::from_millis(5)).await;
            }
        })
        .await
        .unwrap();
        assert_eq!(far.oob_max_size(), mtu - 4);
        let (_, writer) = near.into_split();
        writer.send_oob(b"of a half").unwrap();
        assert_eq!(&*next(&mut to_far).await.unwrap(), b"of a half");
    }
}

#[tokio::test]
async fn they_need_correction_to_be_sent_and_not_to_be_received() {
    let net = Net::new(FaultRates::default());
    let with = settings(PacketKind::Null, Some(FEC));
    let (_listener, mut near, mut far) = pair_over(&net, with, plain()).await;
    assert_eq!(near.send_oob(b"x"), Err(OobError::NoCorrection));
    assert_eq!(near.oob_max_size(), 0);
    let mut to_near = near.oob_receiver();
    // A peer that has acknowledged nothing yet is sent little.
    far.write_all(b"?").await.unwrap();
    near.read_u8().await.unwrap();
    drained(&far).await;
    far.send_oob(b"x").unwrap();
    assert_eq!(&*next(&mut to_near).await.unwrap(), b"x");
}

#[tokio::test]
async fn nobody_who_takes_none_is_kept_from_the_stream() {
    let (_net, _listener, near, far) = corrected(settings(PacketKind::Aes, Some(FEC))).await;
    let mut to_far = far.oob_receiver();
    for n in 0..200_u8 {
        near.send_oob(&[n]).unwrap();
    }
    let probe = near.session_probe();
    echo(near, far, 300_000, 5).await;
    assert!(probe.stats().bytes_sent > 300_000);
    // As many as can wait, the first ones; then the session ends.
    for n in 0..64 {
        assert_eq!(to_far.recv().await.as_deref(), Some(&[n][..]));
    }
    assert_eq!(next(&mut to_far).await, None);
}

#[tokio::test]
async fn a_receiver_ends_with_the_session_or_for_another() {
    let (_net, _listener, near, mut far) = corrected(settings(PacketKind::Aes, Some(FEC))).await;
    let mut first = far.oob_receiver();
    assert_eq!(first.try_recv(), None);
    let mut second = far.oob_receiver();
    assert_eq!(next(&mut first).await, None);
    near.send_oob(b"last").unwrap();
    drop(near);
    assert_eq!(next(&mut second).await.as_deref(), Some(&b"last"[..]));
    assert_eq!(next(&mut second).await, None, "the peer is gone");
    assert_eq!(far.send_oob(b"x"), Err(OobError::Ended));
    assert_eq!(next(&mut far.oob_receiver()).await, None);
    let mut end = [0];
    let read = timeout(PATIENCE, far.read(&mut end)).await.unwrap();
    assert_eq!(read.unwrap(), 0);
}

#[tokio::test]
async fn they_come_to_their_own_conversation_and_begin_none() {
    let net = Net::new(FaultRates::default());
    let server = settings(PacketKind::Null, Some(FEC));
    let counters = Arc::clone(&server.counters);
    let (mut listener, near, far) = pair_over(&net, server, plain()).await;
    let mut to_far = far.oob_receiver();
    let packet = |conv: u32, payload: &[u8]| {
        let mut out = [0; 100];
        let len = encode_oob(conv, payload, &mut out).unwrap();
        out[..len].to_vec()
    };
    let conv = near.conv();
    net.forge(2, 1, &packet(conv ^ 1, b"another conversation"));
    net.forge(9, 1, &packet(conv, b"another address"));
    net.forge(2, 1, &packet(conv, b"cut")[..14]);
    net.forge(2, 1, &packet(conv, b"right"));
    assert_eq!(next(&mut to_far).await.as_deref(), Some(&b"right"[..]));
    assert_eq!(to_far.try_recv(), None);
    let more = timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(more.is_err(), "{more:?}");
    let counts = counters.counts();
    assert_eq!((counts.oob_packets, counts.passive_opens), (3, 1));
}

#[tokio::test]
async fn neither_they_nor_copies_are_of_use_against_strangers() {
    let net = Net::new(FaultRates::default());
    let server = settings(PacketKind::Null, Some(FEC));
    let mut listener = KcpListener::bind_over(net.end(1), server).unwrap();
    let _victim = net.end(2);
    let header = SegmentHeader {
        conv: 7,
        cmd: Command::Push,
        frg: 0,
        wnd: 32,
        ts: 0,
        sn: 0,
        una: 0,
        len: 100,
    };
    let opening = [&header.encode()[..], &[1; 100]].concat();
    net.forge(2, 1, &opening);
    let (far, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    far.set_copies(3).unwrap();
    for _ in 0..50 {
        far.send_oob(b"of 50 many").unwrap();
    }
    sleep(Duration::from_millis(300)).await;
    let sent = net.sent_to(2);
    let bytes: usize = sent.iter().map(Vec::len).sum();
    assert!(bytes <= 3 * opening.len(), "{bytes}");
    // The first acknowledgement, the out-of-band datagrams, and later a probe.
    assert!((2..=3).contains(&sent.len()), "{}", sent.len());
    assert!(sent.iter().any(|one| one.ends_with(b"of 50 many")));
}

#[tokio::test]
async fn the_rate_bounds_what_goes_beside_the_stream() {
    for copies in [0, 1] {
        let (net, _listener, near, _far) = corrected(settings(PacketKind::Null, Some(FEC))).await;
        near.set_rate(1_000);
        near.set_copies(copies).unwrap();
        let longest = vec![1; near.oob_max_size()];
        for _ in 0..300 {
            near.send_oob(&longest).unwrap();
        }
        let sent = net.sent_to(1);
        let sent = sent.iter().filter(|one| one.len() == 1_400).count();
        // The size of a burst.
        assert!((60..80).contains(&sent), "{sent}");
    }
}

#[tokio::test]
async fn each_datagram_is_sent_as_often_as_is_wished() {
    let sealed = || Settings {
        session: Some(SessionKey::new(&[7; 32]).unwrap()),
        ..plain()
    };
    for client in [plain(), settings(PacketKind::Aes, Some(FEC)), sealed()] {
        let counters = Arc::clone(&client.counters);
        let (net, _listener, mut near, mut far) = corrected(client).await;
        let mut got = vec![0; 30_000];
        for copies in [0, 2, 3, 0] {
            near.set_copies(copies).unwrap();
            assert!(near.set_copies(4).is_err(), "more than 3 copies must fail");
            let (packets, before) = (counters.counts().out_pkts, net.sent_to(1).len());
            near.write_all(&got.clone()).await.unwrap();
            timeout(PATIENCE, far.read_exact(&mut got))
                .await
                .unwrap()
                .unwrap();
            drained(&near).await;
            let mut sent = net.sent_to(1).split_off(before);
            let count = sent.len();
            assert_eq!(counters.counts().out_pkts - packets, count as u64);
            // Each is sealed separately, so equal ones are copies.
            sent.sort();
            for same in sent.chunk_by(PartialEq::eq) {
                let times = 1 + usize::from(copies);
                assert_eq!(same.len() % times, 0, "{copies}: {} of {count}", same.len());
            }
            assert!(count > 20 * (1 + usize::from(copies)));
        }
    }
}

#[tokio::test]
async fn copies_save_what_a_bad_path_loses() {
    let bad = FaultRates {
        lost: 200,
        ..FaultRates::default()
    };
    let lost = async |copies| {
        let net = Net::new(bad);
        let (_listener, near, far) = pair_over(&net, plain(), plain()).await;
        near.set_copies(copies).unwrap();
        far.set_copies(copies).unwrap();
        let probe = near.session_probe();
        echo(near, far, 400_000, 1).await;
        probe.stats().retransmitted
    };
    // On a busy machine, acknowledgements are late too, and segments are sent again that were not lost.
    let mut seen = Vec::new();
    for _ in 0..5 {
        let (alone, thrice) = (lost(0).await, lost(2).await);
        if thrice * 2 < alone {
            return;
        }
        seen.push((alone, thrice));
    }
    panic!("sent again without and with copies: {seen:?}");
}
