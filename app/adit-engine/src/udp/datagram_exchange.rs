//! Exchange of datagrams between two paths, for one association without a socket of its own.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll};

use adit_net::PacketBuf;
use adit_stream::time_slice::yield_to_others;
use tokio::time::{Instant, sleep};

use super::{AssociationTtl, DatagramPath};

/// Number of checks for idleness within the idle timeout.
const IDLE_CHECKS: u32 = 4;
/// Maximum number of batches moved in one direction before the other direction and other tasks run.
const MAX_BATCHES: usize = 16;

/// Called for each datagram with its payload size, `None` if it was lost, and with true if it comes from
/// the client. Returns false if the datagram must not pass.
pub(crate) type OnDatagram<'a> = dyn Fn(Option<usize>, bool) -> bool + Sync + 'a;

/// Exchanges datagrams until nothing has arrived for `ttl.idle` or one of the paths has failed.
pub(crate) async fn exchange_datagrams(
    near: &dyn DatagramPath,
    far: &dyn DatagramPath,
    ttl: AssociationTtl,
    passed: &OnDatagram<'_>,
) -> io::Result<()> {
    let mut packet = PacketBuf::default();
    let (mut moved, mut seen, mut quiet) = (0u64, 0, 0);
    let part = ttl.idle / IDLE_CHECKS;
    let mut timer = pin!(sleep(part));
    poll_fn(|cx| {
        let up = poll_forward(cx, near, far, &mut packet, &mut |n| {
            moved += 1;
            passed(n, true)
        });
        let down = poll_forward(cx, far, near, &mut packet, &mut |n| {
            moved += 1;
            passed(n, false)
        });
        for end in [up, down] {
            if let Poll::Ready(end) = end {
                return Poll::Ready(end);
            }
        }
        while timer.as_mut().poll(cx).is_ready() {
            quiet = if moved == seen { quiet + 1 } else { 0 };
            seen = moved;
            if quiet >= IDLE_CHECKS {
                return Poll::Ready(Ok(()));
            }
            timer.as_mut().reset(Instant::now() + part);
        }
        Poll::Pending
    })
    .await
}

/// Completes when the path has failed.
fn poll_forward(
    cx: &mut Context<'_>,
    from: &dyn DatagramPath,
    to: &dyn DatagramPath,
    packet: &mut PacketBuf,
    passed: &mut dyn FnMut(Option<usize>) -> bool,
) -> Poll<io::Result<()>> {
    for _ in 0..MAX_BATCHES {
        let received = from.poll_recv(cx, packet, &mut |packet, peer| {
            if !passed(Some(packet.payload().len())) {
                return;
            }
            if let Err(e) = to.send(packet, peer) {
                tracing::trace!("datagram for {peer} was lost: {e}");
                passed(None);
            }
        });
        match received {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
            Poll::Pending => {
                flush_path(to);
                return Poll::Pending;
            }
        }
    }
    yield_to_others(cx);
    flush_path(to);
    Poll::Pending
}

/// Flushes `to`. A path that has failed permanently reports this on receive.
fn flush_path(to: &dyn DatagramPath) {
    if let Err(e) = to.flush() {
        tracing::trace!("datagrams were lost: {e}");
    }
}
