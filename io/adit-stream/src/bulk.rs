//! Detection of flows that are fast enough to be worth waking for less often.
//!
//! A socket that is drained as fast as it fills wakes its reader for every few segments. Once a
//! direction has moved `WINDOW` bytes fast enough, its source is given a low-water mark: it becomes
//! readable only with the number of bytes that arrive in `FILL`. The tail of such a flow stays
//! below the mark, so [`Bulk::poll_pause`] removes the mark when nothing has moved for `TAIL`.

use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use crate::Tcp;

/// Size of a measurement window, in bytes.
const WINDOW: u64 = 8 << 20;
/// Maximum duration of a window, 0.4 Gbit/s. Slower flows are left unchanged.
const FAST: Duration = Duration::from_millis(160);
/// Size and maximum duration of a window for flows that only change how they are watched, which
/// costs a slower flow little.
const GLANCE: (u64, Duration) = (1 << 20, Duration::from_millis(10));
/// Time in which a flow is expected to reach its mark.
const FILL: Duration = Duration::from_micros(1500);
/// Minimum low-water mark, in bytes.
const MARK: u64 = 64 << 10;
/// Maximum mark where the bytes are opened or sealed, in bytes. With more, the first would have
/// left the cache.
pub const OPENED: u64 = 512 << 10;
/// Maximum mark where the bytes only pass through the kernel, in bytes.
pub const PASSED: u64 = 1 << 20;
/// Maximum time that the tail of a flow waits, to the timer's granularity.
const TAIL: Duration = Duration::from_millis(2);

/// Measures the rate of a direction.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    /// Start of the current window: bytes and time.
    since: Option<(u64, Instant)>,
}

impl Rate {
    /// Returns the bytes and the duration of a window of `len` bytes, if one ends with `moved`
    /// bytes in total. Reads no clock in between.
    fn window(&mut self, len: u64, moved: u64) -> Option<(u64, Duration)> {
        let ended = match self.since {
            Some((start, _)) if moved - start < len => return None,
            since => since.map(|(start, at)| (moved - start, at.elapsed())),
        };
        self.since = Some((moved, Instant::now()));
        ended
    }

    /// True if a fast window has just ended.
    pub(crate) fn is_fast(&mut self, moved: u64) -> bool {
        let (len, fast) = GLANCE;
        let ended = self.window(len, moved);
        ended.is_some_and(|(_, time)| time <= fast)
    }
}

/// Rate and mark of one direction.
#[derive(Debug, Default)]
pub struct Bulk {
    rate: Rate,
    /// Set while the source has a mark: the timer that looks for a tail, and the bytes that had
    /// been moved before.
    marked: Option<(Pin<Box<Sleep>>, u64)>,
}

impl Bulk {
    /// Handles a source that is empty after `moved` bytes in total. Returns true if the source has
    /// to be polled again.
    ///
    /// Call this every time the source returns pending, from the same task. The mark is at most
    /// `most` bytes: [`OPENED`] or [`PASSED`].
    pub fn poll_pause(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Tcp,
        moved: u64,
        most: u64,
    ) -> bool {
        let Some((timer, before)) = &mut self.marked else {
            return self.measure(cx, source, moved, most);
        };
        if *before != moved {
            *before = moved;
            timer.as_mut().reset(Instant::now() + TAIL);
        }
        if timer.as_mut().poll(cx).is_pending() {
            return false;
        }
        // This call announces the bytes that wait below the mark.
        self.end(source)
    }

    /// Removes the mark, so that all bytes are announced immediately. Returns true if there was a
    /// mark; then the source has to be polled again.
    pub fn end(&mut self, source: &mut Tcp) -> bool {
        self.rate = Rate::default();
        self.marked.take().is_some() && source.set_mark(1).is_ok()
    }

    /// Measures the rate, and sets a mark if the flow is fast.
    fn measure(&mut self, cx: &mut Context<'_>, source: &mut Tcp, moved: u64, most: u64) -> bool {
        let window = self.rate.window(WINDOW, moved);
        let mark = window.and_then(|(bytes, time)| mark_of(bytes, time, most));
        if mark.is_some_and(|mark| source.set_mark(mark).is_ok()) {
            let mut timer = Box::pin(sleep(TAIL));
            // Pending, since it is new. The poll arms it.
            let _ = timer.as_mut().poll(cx);
            self.marked = Some((timer, moved));
        }
        false
    }
}

/// Returns the mark for a flow of `bytes` in `time`, or `None` for a slow one.
fn mark_of(bytes: u64, time: Duration, most: u64) -> Option<u32> {
    if time > FAST {
        return None;
    }
    let share = u128::from(bytes) * FILL.as_micros() / time.as_micros().max(1);
    let mark = u64::try_from(share).unwrap_or(u64::MAX);
    u32::try_from(mark.clamp(MARK, most.max(MARK))).ok()
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_fast_source_gets_a_mark_and_its_tail_takes_it_away() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(at), listener.accept());
        let (mut near, mut source) = (near.unwrap(), Tcp::new(far.unwrap().0));
        let mut bulk = Bulk::default();
        poll_fn(|cx| {
            // A new socket counts as readable until a read has found nothing.
            assert!(
                source
                    .poll_read_into(
                        cx,
                        &mut [std::io::IoSliceMut::new(&mut [0])],
                        crate::Short::Empty
                    )
                    .is_pending()
            );
            assert!(
                !bulk.poll_pause(cx, &mut source, 0, OPENED),
                "a window starts"
            );
            assert!(
                !bulk.poll_pause(cx, &mut source, WINDOW, OPENED),
                "it was fast"
            );
            Poll::Ready(())
        })
        .await;
        assert!(bulk.marked.is_some());
        near.write_all(&[7; 999]).await.unwrap();
        let early = timeout(
            Duration::from_micros(500),
            source.socket().unwrap().readable(),
        );
        assert!(early.await.is_err(), "the mark delays it");
        poll_fn(
            |cx| match bulk.poll_pause(cx, &mut source, WINDOW, OPENED) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            },
        )
        .await;
        assert!(bulk.marked.is_none());
        let came = timeout(Duration::from_secs(5), source.socket().unwrap().readable());
        came.await
            .expect("the waiting bytes are announced")
            .unwrap();
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_mark_can_be_taken_away_before_the_tail() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(at), listener.accept());
        let (_near, mut source) = (near.unwrap(), Tcp::new(far.unwrap().0));
        let mut bulk = Bulk::default();
        poll_fn(|cx| {
            assert!(!bulk.poll_pause(cx, &mut source, 0, OPENED));
            assert!(!bulk.poll_pause(cx, &mut source, WINDOW, OPENED));
            Poll::Ready(())
        })
        .await;
        let mark = |source: &mut Tcp| adit_net::watermark::receive_mark(source.socket().unwrap());
        assert!(mark(&mut source).unwrap() > 1);
        bulk.end(&mut source);
        assert_eq!(mark(&mut source).unwrap(), 1);
        assert!(bulk.marked.is_none() && bulk.rate.since.is_none());
    }

    #[test]
    fn a_glance_tells_a_fast_flow() {
        let mut rate = Rate::default();
        assert!(!rate.is_fast(37), "a window starts");
        assert!(!rate.is_fast(1 << 20), "a window continues");
        assert!(rate.is_fast((1 << 20) + 37));
        assert!(!rate.is_fast(2 << 20));
        rate.since = rate.since.map(|(moved, at)| (moved, at - GLANCE.1));
        assert!(!rate.is_fast(4 << 20), "too slow");
    }

    #[test]
    fn marks_follow_the_rate() {
        let ms = Duration::from_millis;
        assert_eq!(mark_of(WINDOW, ms(161), PASSED), None);
        assert_eq!(mark_of(WINDOW, ms(160), PASSED), Some(78_643));
        assert_eq!(mark_of(WINDOW, ms(80), PASSED), Some(157_286));
        assert_eq!(mark_of(WINDOW, ms(10), PASSED), Some(1 << 20));
        assert_eq!(mark_of(WINDOW, Duration::ZERO, PASSED), Some(1 << 20));
        assert_eq!(mark_of(WINDOW, Duration::ZERO, OPENED), Some(512 << 10));
    }
}
