//! A relay that always has more to do lets other tasks and events run first.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use adit_stream::{CountBytes, RelayTimeouts, Stream, Tcp, TrafficMeter, lane, relay};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const LIMITS: RelayTimeouts = RelayTimeouts::NEVER
    .with_idle(Duration::from_secs(60))
    .with_half_close_idle(Duration::from_secs(60));
/// Bytes of a step, and its duration: the cost of sealing on a slow processor.
const STEP: usize = 64 << 10;
const TIME: Duration = Duration::from_micros(100);
/// Steps of a flow, which ends even if it never yields.
const STEPS: u32 = 5000;

/// A source that always has more bytes.
struct Source {
    left: u32,
    bytes: Vec<u8>,
    polls: Arc<AtomicU32>,
}

/// A destination that always has space.
struct Sink(Vec<u8>);

fn work() {
    let began = Instant::now();
    while began.elapsed() < TIME {}
}

impl Stream for Source {
    fn poll_fill(&mut self, _: &mut Context<'_>, _: usize) -> Poll<io::Result<usize>> {
        if self.left == 0 {
            return Poll::Ready(Ok(0));
        }
        Poll::Ready(Ok(self.bytes.len()))
    }
    fn filled(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
    fn runs<'a>(&'a mut self, _: &mut [io::IoSlice<'a>]) -> usize {
        0
    }
    fn consume(&mut self, _: usize) {
        work();
        self.left -= 1;
        self.polls.fetch_add(1, Ordering::Relaxed);
    }
    fn poll_slot(&mut self, _: &mut Context<'_>, _: usize) -> Poll<io::Result<usize>> {
        Poll::Pending
    }
    fn slot(&mut self) -> &mut [u8] {
        &mut []
    }
    fn commit(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn abort(&mut self) {}
}

impl Stream for Sink {
    fn poll_fill(&mut self, _: &mut Context<'_>, _: usize) -> Poll<io::Result<usize>> {
        Poll::Pending
    }
    fn filled(&mut self) -> &mut [u8] {
        &mut []
    }
    fn runs<'a>(&'a mut self, _: &mut [io::IoSlice<'a>]) -> usize {
        0
    }
    fn consume(&mut self, _: usize) {}
    fn poll_slot(&mut self, _: &mut Context<'_>, _: usize) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(self.0.len()))
    }
    fn slot(&mut self) -> &mut [u8] {
        &mut self.0
    }
    fn commit(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn abort(&mut self) {}
}

/// Four flows and an echo share one thread. The test counts steps rather than time: on a busy
/// machine each takes longer.
#[test]
fn an_echo_goes_before_bulk() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let steps = Arc::new(AtomicU32::new(0));
    let (most, longest) = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let mut far = listener.accept().await.unwrap().0;
        let flows: Vec<_> = (0..4)
            .map(|_| {
                let mut source = Source {
                    left: STEPS,
                    bytes: vec![7; STEP],
                    polls: steps.clone(),
                };
                tokio::spawn(async move {
                    let mut sink = Sink(vec![0; STEP]);
                    relay(&mut source, &mut sink, &LIMITS, &TrafficMeter::default()).await
                })
            })
            .collect();
        // Measured in the echo's own task: the wake-up of this one depends on the kernel.
        let arrived = Arc::new(AtomicU32::new(0));
        let seen = (steps.clone(), arrived.clone());
        let echo = tokio::spawn(async move {
            let mut byte = [0];
            while far.read_exact(&mut byte).await.is_ok() {
                seen.1
                    .store(seen.0.load(Ordering::Relaxed), Ordering::Relaxed);
                far.write_all(&byte).await.unwrap();
            }
        });
        let mut all = Vec::new();
        for _ in 0..50 {
            let before = steps.load(Ordering::Relaxed);
            near.write_all(b"x").await.unwrap();
            near.read_exact(&mut [0]).await.unwrap();
            all.push(arrived.load(Ordering::Relaxed) - before);
        }
        for flow in &flows {
            flow.abort();
        }
        echo.abort();
        all.sort_unstable();
        (all[25], all[49])
    });
    // A slice has five or six steps, and each of four flows has at most one slice before an echo;
    // on a busy machine the sender may lose its processor between counting and writing.
    assert!(
        longest < STEPS,
        "an echo waited for {longest} steps of bulk"
    );
    assert!(most <= 40, "{most} steps of bulk went before an echo");
}

/// Records on which threads bytes are counted, and works for them.
#[derive(Default)]
struct Threads(Mutex<Vec<(bool, u64)>>);

impl Threads {
    fn note(&self, n: usize) {
        // As much as a slow processor needs to seal them. Splicing alone needs so little that it
        // depends on the machine whether a relay is bulk.
        let until = Instant::now() + Duration::from_nanos(n as u64);
        while Instant::now() < until {}
        let bulk = thread::current().name() == Some("bulk");
        let mut seen = self.0.lock().unwrap();
        match seen.last_mut() {
            Some((last, sum)) if *last == bulk => *sum += n as u64,
            _ => seen.push((bulk, n as u64)),
        }
    }
}

impl CountBytes for Threads {
    fn add_up(&self, n: usize) {
        self.note(n);
    }
    fn add_down(&self, n: usize) {
        self.note(n);
    }
}

const BULK: usize = 256 << 20;
const SMALL: usize = 20;

/// Few bytes, then many, then few again, through real sockets.
#[test]
fn a_flow_is_in_the_bulk_lane_while_it_is_bulk() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let threads = Arc::new(Threads::default());
    let counted = threads.clone();
    runtime.block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (near, accepted) = tokio::join!(TcpStream::connect(at), listener.accept());
        let at = origin.local_addr().unwrap();
        let (far, accepted_far) = tokio::join!(TcpStream::connect(at), origin.accept());
        let (mut client, mut server) = (near.unwrap(), accepted_far.unwrap().0);
        lane::spawn_movable(async move {
            let (mut near, mut far) = (Tcp::new(accepted.unwrap().0), Tcp::new(far.unwrap()));
            relay(&mut near, &mut far, &LIMITS, &*counted).await;
        });
        let server = tokio::spawn(async move {
            let mut all = vec![0; 1 << 20];
            for round in 0..=SMALL {
                server.read_exact(&mut all[..9]).await.unwrap();
                server.write_all(&all[..9]).await.unwrap();
                let mut left = if round == 0 { BULK } else { 0 };
                while left > 0 {
                    let most = left.min(all.len());
                    left -= server.read(&mut all[..most]).await.unwrap();
                }
            }
        });
        let mut answer = [0; 9];
        client.write_all(&[1; 9]).await.unwrap();
        client.read_exact(&mut answer).await.unwrap();
        let chunk = vec![1; 1 << 20];
        for _ in 0..BULK / chunk.len() {
            client.write_all(&chunk).await.unwrap();
        }
        for _ in 0..SMALL {
            tokio::time::sleep(Duration::from_millis(30)).await;
            client.write_all(&[1; 9]).await.unwrap();
            client.read_exact(&mut answer).await.unwrap();
        }
        server.await.unwrap();
    });
    let seen = threads.0.lock().unwrap();
    let (small, bulk): (Vec<_>, Vec<_>) = seen.iter().partition(|(bulk, _)| !bulk);
    let in_bulk: u64 = bulk.iter().map(|(_, n)| n).sum();
    assert!(in_bulk > BULK as u64 / 2, "{seen:?}");
    assert!(
        small.len() >= 2 && !seen.last().unwrap().0,
        "it comes back: {seen:?}"
    );
}
