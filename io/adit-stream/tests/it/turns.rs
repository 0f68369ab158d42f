//! A relay that always has more to do lets other tasks and events go first.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use adit_stream::{Limits, Meter, Stream, relay};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const LIMITS: Limits = Limits {
    idle: Duration::from_secs(60),
    half_close_idle: Duration::from_secs(60),
};
/// Bytes of a step, and the time it takes: what sealing costs on a slow processor.
const STEP: usize = 64 << 10;
const TIME: Duration = Duration::from_micros(100);
/// Steps of a flow. Should it never give way, it ends all the same.
const STEPS: u32 = 5000;

/// A source that always has more.
struct Source {
    left: u32,
    bytes: Vec<u8>,
    polls: Arc<AtomicU32>,
}

/// A destination that always has room.
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

/// Four flows and an echo share one thread. Steps are counted rather than time: on a busy machine
/// each takes longer.
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
                    relay(&mut source, &mut sink, &LIMITS, &Meter::default()).await
                })
            })
            .collect();
        // What the echo's own task sees: when this one is woken is the kernel's matter.
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
    // A slice has five steps or six, and each of four flows has one at most before an echo; on a
    // busy machine the sender may lose its processor between counting and writing, now and then.
    assert!(
        longest < STEPS,
        "an echo waited for {longest} steps of bulk"
    );
    assert!(most <= 40, "{most} steps of bulk went before an echo");
}
