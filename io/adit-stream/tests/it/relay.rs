//! The relay over real sockets, plain and sealed.

use std::future::poll_fn;
use std::io::Write;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use adit_stream::{
    BoxStream, CountBytes, EndReason, Layered, RelayOutcome, RelayTimeouts, Stream, Tcp,
    TrafficMeter, relay,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::toy::{ToyOpen, ToySeal, pair, pattern};

const LIMITS: RelayTimeouts = RelayTimeouts::NEVER
    .with_idle(Duration::from_secs(20))
    .with_half_close_idle(Duration::from_secs(20));

fn sealed(below: Tcp) -> Layered<Tcp, ToySeal, ToyOpen> {
    Layered::new(
        below,
        ToySeal {
            max: 60_000,
            head: false,
        },
        ToyOpen::default(),
    )
}

/// client ⇄ relay(plain, sealed) ⇄ relay(sealed, plain) ⇄ target
async fn tunnel(limits: RelayTimeouts) -> (TcpStream, TcpStream, [JoinHandle<RelayOutcome>; 2]) {
    let (mut near, client) = pair().await;
    let (mid_a, mid_b) = pair().await;
    let (mut far, target) = pair().await;
    let first = tokio::spawn(async move {
        relay(
            &mut near,
            &mut sealed(mid_a),
            &limits,
            &TrafficMeter::default(),
        )
        .await
    });
    let second = tokio::spawn(async move {
        relay(
            &mut sealed(Tcp::new(mid_b)),
            &mut far,
            &limits,
            &TrafficMeter::default(),
        )
        .await
    });
    (client, target, [first, second])
}

#[tokio::test]
async fn bulk_passes_both_ways_at_once() {
    let (client, target, tasks) = tunnel(LIMITS).await;
    let sent = pattern(5_000_000);
    let ((mut cr, mut cw), (mut tr, mut tw)) = (client.into_split(), target.into_split());
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let (a, b, c, d) = tokio::join!(
        async {
            cw.write_all(&sent).await.unwrap();
            cw.shutdown().await
        },
        async {
            tw.write_all(&sent).await.unwrap();
            tw.shutdown().await
        },
        tr.read_to_end(&mut up),
        cr.read_to_end(&mut down)
    );
    a.and(b).unwrap();
    c.and(d).unwrap();
    assert!(up == sent && down == sent);
    for task in tasks {
        let outcome = task.await.unwrap();
        assert!(matches!(outcome.end, EndReason::Finished), "{outcome:?}");
        assert_eq!((outcome.up, outcome.down), (5_000_000, 5_000_000));
    }
}

#[tokio::test]
async fn a_half_close_leaves_the_other_direction_open() {
    let (mut client, mut target, _tasks) = tunnel(LIMITS).await;
    client.write_all(b"ask").await.unwrap();
    client.shutdown().await.unwrap();
    let mut got = Vec::new();
    target.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"ask");
    target.write_all(&pattern(1 << 20)).await.unwrap();
    target.shutdown().await.unwrap();
    let mut got = Vec::new();
    client.read_to_end(&mut got).await.unwrap();
    assert!(got == pattern(1 << 20));
}

#[tokio::test]
async fn a_reset_is_passed_on_as_a_reset() {
    let (mut client, target, _tasks) = tunnel(LIMITS).await;
    adit_net::tcp::reset_on_close(&target);
    drop(target);
    let e = client.read_to_end(&mut Vec::new()).await.unwrap_err();
    assert_eq!(e.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn small_messages_do_not_wait() {
    let (mut client, mut target, _tasks) = tunnel(LIMITS).await;
    let start = std::time::Instant::now();
    let mut byte = [0];
    for i in 0..200u8 {
        client.write_all(&[i]).await.unwrap();
        target.read_exact(&mut byte).await.unwrap();
        target.write_all(&byte).await.unwrap();
        client.read_exact(&mut byte).await.unwrap();
        assert_eq!(byte, [i]);
    }
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn silence_ends_a_session_and_traffic_keeps_it() {
    let limits = LIMITS.with_idle(Duration::from_millis(400));
    let (mut client, mut target, [first, _]) = tunnel(limits).await;
    for _ in 0..8 {
        client.write_all(b"x").await.unwrap();
        target.read_exact(&mut [0]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    assert!(!first.is_finished(), "traffic prevents the time-out");
    let outcome = tokio::time::timeout(Duration::from_secs(3), first)
        .await
        .unwrap()
        .unwrap();
    assert!(matches!(outcome.end, EndReason::Idle), "{outcome:?}");
}

#[tokio::test]
async fn a_half_closed_session_has_its_own_deadline() {
    let limits = LIMITS.with_half_close_idle(Duration::from_millis(200));
    let (mut client, _target, [first, _]) = tunnel(limits).await;
    client.shutdown().await.unwrap();
    let outcome = tokio::time::timeout(Duration::from_secs(3), first)
        .await
        .unwrap()
        .unwrap();
    assert!(matches!(outcome.end, EndReason::Idle), "{outcome:?}");
}

#[tokio::test]
async fn a_slow_reader_stops_the_writer() {
    let (mut client, target, _tasks) = tunnel(LIMITS).await;
    let chunk = vec![0; 1 << 20];
    let mut sent = 0;
    while let Ok(n) = tokio::time::timeout(Duration::from_millis(500), client.write(&chunk)).await {
        sent += n.unwrap();
        assert!(sent < 64 << 20, "memory must not grow with unread data");
    }
    drop(target);
}

#[tokio::test]
async fn an_idle_stream_owns_no_buffer() {
    let (mut near, mut client) = pair().await;
    client.write_all(b"x").await.unwrap();
    assert_eq!(adit_stream::fill_to(&mut near, 1).await.unwrap(), 1);
    near.consume(1);
    assert_eq!(near.slot().len(), 0);
    assert_eq!(near.buffered_len(), 0);
    assert!(
        !format!("{near:?}").contains("bytes: [0"),
        "the stream must not keep a buffer"
    );
}

#[tokio::test]
async fn bare_streams_are_spliced_and_nothing_is_lost() {
    let (mut near, client) = pair().await;
    let (mut far, target) = pair().await;
    let task =
        tokio::spawn(
            async move { relay(&mut near, &mut far, &LIMITS, &TrafficMeter::default()).await },
        );
    let sent = pattern(6_000_001);
    let ((mut cr, mut cw), (mut tr, mut tw)) = (client.into_split(), target.into_split());
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let slowly = async {
        // A slow reader leaves the pipe full for a while.
        let mut chunk = vec![0; 100_000];
        loop {
            let n = tr.read(&mut chunk).await.unwrap();
            if n == 0 {
                break;
            }
            up.extend_from_slice(&chunk[..n]);
            tokio::task::yield_now().await;
        }
    };
    let (a, b, (), d) = tokio::join!(
        async {
            cw.write_all(&sent).await.unwrap();
            cw.shutdown().await
        },
        async {
            tw.write_all(&sent).await.unwrap();
            tw.shutdown().await
        },
        slowly,
        cr.read_to_end(&mut down)
    );
    a.and(b).unwrap();
    d.unwrap();
    assert!(up == sent && down == sent);
    let outcome = task.await.unwrap();
    assert!(matches!(outcome.end, EndReason::Finished), "{outcome:?}");
    assert_eq!((outcome.up, outcome.down), (6_000_001, 6_000_001));
}

/// The target accepts nothing while its first bytes, read with the handshake, are unsent.
#[tokio::test]
async fn nothing_is_copied_behind_what_came_with_the_handshake() {
    let (mut near, mut client) = pair().await;
    let (mut far, target) = pair().await;
    let full = vec![0; 1 << 20];
    while far.socket().unwrap().try_write(&full).is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    poll_fn(|cx| far.poll_slot(cx, 1)).await.unwrap();
    far.commit(1000).unwrap();
    client.write_all(&pattern(10_000)).await.unwrap();
    let meter = TrafficMeter::default();
    let relayed = relay(&mut near, &mut far, &LIMITS, &meter);
    let ended = tokio::time::timeout(Duration::from_millis(200), relayed).await;
    assert!(ended.is_err(), "{ended:?}");
    assert_eq!((far.unsent_len(), near.buffered_len()), (1000, 0));
    drop(target);
}

#[tokio::test]
async fn a_hundred_bare_sessions_share_the_pipes() {
    let mut sessions = Vec::new();
    for _ in 0..100 {
        let (mut near, client) = pair().await;
        let (mut far, target) = pair().await;
        tokio::spawn(
            async move { relay(&mut near, &mut far, &LIMITS, &TrafficMeter::default()).await },
        );
        sessions.push((client, target));
    }
    for round in 0..3u8 {
        for (client, target) in &mut sessions {
            client.write_all(&[round; 500]).await.unwrap();
            let mut got = [0; 500];
            target.read_exact(&mut got).await.unwrap();
            assert_eq!(got, [round; 500]);
        }
    }
}

/// A fast flow wakes its reader in large steps; the rest at its end, and the trickle afterwards,
/// must arrive nevertheless.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fast_flow_does_not_hold_back_its_tail() {
    let (mut near, mut client) = pair().await;
    let (mut far, mut target) = pair().await;
    tokio::spawn(
        async move { relay(&mut near, &mut far, &LIMITS, &TrafficMeter::default()).await },
    );
    let chunk = vec![7; 1 << 20];
    let mut got = vec![0; 1 << 20];
    for round in 0..4 {
        let (sent, received) = tokio::join!(
            async {
                for _ in 0..48 {
                    client.write_all(&chunk).await.unwrap();
                }
                // Far below any mark, and then nothing.
                client.write_all(&[round; 1000]).await
            },
            async {
                for _ in 0..48 {
                    target.read_exact(&mut got).await.unwrap();
                }
                target.read_exact(&mut got[..1000]).await
            }
        );
        sent.unwrap();
        received.unwrap();
        assert_eq!(got[..1000], [round; 1000]);
        for byte in 0..20 {
            client.write_all(&[byte]).await.unwrap();
            let came = target.read_exact(&mut got[..1]);
            let came = tokio::time::timeout(Duration::from_secs(5), came).await;
            came.expect("a byte below the mark").unwrap();
            assert_eq!(got[0], byte);
        }
    }
}

/// A source that is slower than the relay, as a network is, does not wake it for each burst.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fast_flow_wakes_its_relay_seldom() {
    const BURST: usize = 64 << 10;
    const BURSTS: usize = 1536;
    let mut seen = Vec::new();
    // A busy machine may starve the source: then it is tried again.
    for _ in 0..5 {
        let (mut near, client) = pair().await;
        let (mut far, mut target) = pair().await;
        let mut polls = 0;
        let meter = TrafficMeter::default();
        let relayed = async {
            let mut relayed = pin!(relay(&mut near, &mut far, &LIMITS, &meter));
            poll_fn(|cx| {
                polls += 1;
                relayed.as_mut().poll(cx)
            })
            .await
        };
        let client = client.into_std().unwrap();
        client.set_nonblocking(false).unwrap();
        let source = std::thread::spawn(move || {
            let mut to = &client;
            for _ in 0..BURSTS {
                let began = std::time::Instant::now();
                to.write_all(&[7; BURST]).unwrap();
                while began.elapsed() < Duration::from_micros(150) {
                    std::hint::spin_loop();
                }
            }
        });
        let sink = tokio::spawn(async move {
            let mut got = vec![0; 1 << 20];
            while target.read(&mut got).await.unwrap() > 0 {}
            target.shutdown().await.unwrap();
        });
        let outcome = relayed.await;
        sink.await.unwrap();
        source.join().unwrap();
        assert_eq!(outcome.up, (BURST * BURSTS) as u64);
        if polls <= BURSTS / 3 {
            return;
        }
        seen.push(polls);
    }
    panic!("{BURSTS} bursts woke the relay {seen:?} times");
}

/// `splice(2)` stops at TCP's urgent data, and must not stop the relay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn urgent_data_stops_nothing() {
    for before in [0, 5, 24 << 20] {
        let (mut near, mut client) = pair().await;
        let (mut far, mut target) = pair().await;
        tokio::spawn(
            async move { relay(&mut near, &mut far, &LIMITS, &TrafficMeter::default()).await },
        );
        let sent = tokio::spawn(async move {
            client.write_all(&vec![7; before]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(30)).await;
            socket2::SockRef::from(&client)
                .send_out_of_band(b"!")
                .unwrap();
            client.write_all(b"more").await.unwrap();
            client
        });
        let mut got = vec![0; before];
        target.read_exact(&mut got).await.unwrap();
        let mut client = sent.await.unwrap();
        let mut got = [0; 4];
        let more = tokio::time::timeout(Duration::from_secs(3), target.read_exact(&mut got)).await;
        more.expect("the bytes after the urgent byte").unwrap();
        assert_eq!(&got, b"more");
        target.write_all(b"back").await.unwrap();
        client.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"back");
    }
}

/// Fast in both directions: each socket is a source, and a destination that fills up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fast_flows_pass_both_ways_at_once() {
    const CHUNKS: usize = 64;
    let (mut near, client) = pair().await;
    let (mut far, target) = pair().await;
    let task =
        tokio::spawn(
            async move { relay(&mut near, &mut far, &LIMITS, &TrafficMeter::default()).await },
        );
    let chunk = pattern(1 << 20);
    let write = async |mut to: tokio::net::tcp::OwnedWriteHalf| {
        for _ in 0..CHUNKS {
            to.write_all(&chunk).await.unwrap();
        }
    };
    let read = async |mut from: tokio::net::tcp::OwnedReadHalf| {
        let mut got = vec![0; 1 << 20];
        for n in 0..CHUNKS {
            from.read_exact(&mut got).await.unwrap();
            assert!(got == chunk, "chunk {n}");
            if n % 16 == 0 {
                // The flow stops for a while, and starts again.
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
        }
        assert_eq!(from.read(&mut got).await.unwrap(), 0);
    };
    let ((cr, cw), (tr, tw)) = (client.into_split(), target.into_split());
    let all = async { tokio::join!(write(cw), write(tw), read(cr), read(tr)) };
    tokio::time::timeout(Duration::from_secs(60), all)
        .await
        .expect("no direction may stall");
    let outcome = task.await.unwrap();
    assert!(matches!(outcome.end, EndReason::Finished), "{outcome:?}");
    let bytes = (CHUNKS as u64) << 20;
    assert_eq!((outcome.up, outcome.down), (bytes, bytes));
}

/// Changes of how a socket is watched lose no wake-up.
#[tokio::test]
async fn who_waits_is_woken_however_the_socket_is_watched() {
    let (mut near, echo) = pair().await;
    tokio::spawn(async move {
        let (mut from, mut to) = echo.into_split();
        tokio::io::copy(&mut from, &mut to).await.unwrap();
    });
    let sent = pattern(12 << 20);
    let (mut out, mut back, mut polls) = (0, 0, 0);
    let all = poll_fn(|cx| {
        polls += 1;
        if polls % 3 == 0 {
            near.watch_on_demand(cx).unwrap();
        }
        while out < sent.len() {
            let Poll::Ready(room) = near.poll_slot(cx, 1) else {
                break;
            };
            let n = room.unwrap().min(sent.len() - out);
            near.slot()[..n].copy_from_slice(&sent[out..out + n]);
            near.commit(n).unwrap();
            out += n;
        }
        if let Poll::Ready(done) = near.poll_flush(cx) {
            done.unwrap();
        }
        while let Poll::Ready(n) = near.poll_fill(cx, 1) {
            let n = n.unwrap();
            assert!(near.filled()[..n] == sent[back..back + n]);
            near.consume(n);
            back += n;
            if back == sent.len() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    });
    tokio::time::timeout(Duration::from_secs(60), all)
        .await
        .expect("a wake-up was lost");
}

/// A socket after a short read is not read again, and its end is not missed.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_socket_that_gave_little_is_known_to_be_empty() {
    let (mut near, mut far) = pair().await;
    for last in [false, true] {
        far.write_all(b"little").await.unwrap();
        if last {
            far.shutdown().await.unwrap();
            // Both have arrived before the first read.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let Some(mut pipe) = adit_net::splice::lease_pipe() else {
            return assert_eq!(std::env::var("ADIT_IO").unwrap(), "portable");
        };
        let n = poll_fn(|cx| near.poll_fill_pipe(cx, &mut pipe)).await;
        assert_eq!(n.unwrap(), 6);
        let again = poll_fn(|cx| Poll::Ready(near.poll_readable(cx).is_ready())).await;
        assert_eq!(again, last, "it is read again only for an end");
    }
    let mut pipe = adit_net::splice::lease_pipe().unwrap();
    let end = poll_fn(|cx| near.poll_fill_pipe(cx, &mut pipe)).await;
    assert_eq!(end.unwrap(), 0);
}

/// Allows a few bytes, many bytes or none in turn, and checks that no more are moved.
#[derive(Default)]
struct Stingy {
    turn: AtomicUsize,
    allowed: AtomicUsize,
    moved: AtomicUsize,
}

impl CountBytes for Stingy {
    fn add_up(&self, n: usize) {
        let allowed = self.allowed.swap(0, Ordering::Relaxed);
        assert!(n <= allowed, "{n} bytes instead of {allowed}");
        self.moved.fetch_add(n, Ordering::Relaxed);
    }

    fn add_down(&self, n: usize) {
        assert_eq!(n, 0, "the target sends nothing");
    }

    fn poll_allowance_up(&self, cx: &Context<'_>) -> Poll<usize> {
        const TURNS: [usize; 7] = [1, 100, 0, 5000, 70_000, usize::MAX, 0];
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % TURNS.len();
        let allowed = TURNS[turn];
        self.allowed.store(allowed, Ordering::Relaxed);
        if allowed == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(allowed)
    }
}

/// Wherever the bytes pass: through a pipe, into slots, from runs, or from buffer to buffer.
#[tokio::test]
async fn no_more_bytes_are_moved_than_are_allowed() {
    const LEN: usize = 3_000_000;
    for (near_sealed, far_sealed) in [(false, false), (false, true), (true, false), (true, true)] {
        let wrap = |tcp: Tcp, seal: bool| -> BoxStream {
            match seal {
                true => Box::new(sealed(tcp)),
                false => Box::new(tcp),
            }
        };
        let (near, client) = pair().await;
        let (far, target) = pair().await;
        let (mut near, mut far) = (wrap(near, near_sealed), wrap(far, far_sealed));
        let work = tokio::spawn(async move {
            let stingy = Stingy::default();
            let outcome = relay(&mut *near, &mut *far, &LIMITS, &stingy).await;
            (outcome, stingy.moved.into_inner())
        });
        // Sealed ends are relays of their own.
        let (client, a) = unseal(client, near_sealed).await;
        let (target, b) = unseal(target, far_sealed).await;
        let (mut client, mut target) = (client, target);
        let sending = tokio::spawn(async move {
            client.write_all(&pattern(LEN)).await.unwrap();
            client.shutdown().await.unwrap();
            client
        });
        let mut received = Vec::new();
        target.read_to_end(&mut received).await.unwrap();
        assert!(received == pattern(LEN), "other bytes");
        target.shutdown().await.unwrap();
        let client = sending.await.unwrap();
        let (outcome, moved) = work.await.unwrap();
        assert!(matches!(outcome.end, EndReason::Finished), "{outcome:?}");
        assert_eq!((outcome.up, moved), (LEN as u64, LEN));
        drop((client, a, b));
    }
}

/// Returns a plain stream for one whose other end is sealed, with the relay between them.
async fn unseal(stream: TcpStream, is_sealed: bool) -> (TcpStream, Option<JoinHandle<()>>) {
    if !is_sealed {
        return (stream, None);
    }
    let (mut inner, outer) = pair().await;
    let relaying = tokio::spawn(async move {
        let mut sealed = sealed(Tcp::new(stream));
        let meter = TrafficMeter::default();
        relay(&mut inner, &mut sealed, &LIMITS, &meter).await;
    });
    (outer, Some(relaying))
}
