//! Detection of flows that are fast enough to be worth waking for less often.
//!
//! A socket that is drained as fast as it fills wakes its reader for every few segments. Once a
//! direction has moved `WINDOW` bytes fast enough, its source is given a low-water mark: it becomes
//! readable only with the number of bytes that arrive in `FILL_TIME`. The tail of such a flow stays
//! below the mark, so [`BulkDetector::poll_pause`] removes the mark when nothing has moved for `TAIL_WAIT`.

use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use crate::Tcp;

/// Size of a measurement window, in bytes.
const WINDOW: u64 = 8 << 20;
/// Maximum duration of a window, 0.4 Gbit/s. Slower flows are left unchanged.
const MAX_WINDOW_TIME: Duration = Duration::from_millis(160);
/// Size and maximum duration of a window for flows that only change how they are watched, which
/// costs a slower flow little.
const SHORT_WINDOW: (u64, Duration) = (1 << 20, Duration::from_millis(10));
/// Time in which a flow is expected to reach its mark.
const FILL_TIME: Duration = Duration::from_micros(1500);
/// Minimum low-water mark, in bytes.
const MIN_MARK: u64 = 64 << 10;
/// Maximum mark where the bytes are opened or sealed, in bytes. With more, the first would have
/// left the cache.
pub const MAX_MARK_OPENED: u64 = 512 << 10;
/// Maximum mark where the bytes only pass through the kernel, in bytes.
pub const MAX_MARK_PASSED: u64 = 1 << 20;
/// Maximum time that the tail of a flow waits, to the timer's granularity.
const TAIL_WAIT: Duration = Duration::from_millis(2);

/// Measures the rate of a direction.
#[derive(Debug, Default)]
pub(crate) struct RateMeter {
    /// Start of the current window: bytes and time.
    since: Option<(u64, Instant)>,
}

impl RateMeter {
    /// Returns the bytes and the duration of a window of `len` bytes, if one ends with `moved`
    /// bytes in total. Reads no clock in between.
    fn end_window(&mut self, len: u64, moved: u64) -> Option<(u64, Duration)> {
        let ended = match self.since {
            Some((start, _)) if moved - start < len => return None,
            since => since.map(|(start, at)| (moved - start, at.elapsed())),
        };
        self.since = Some((moved, Instant::now()));
        ended
    }

    /// True if a fast window has just ended.
    pub(crate) fn is_fast(&mut self, moved: u64) -> bool {
        let (len, fast) = SHORT_WINDOW;
        let ended = self.end_window(len, moved);
        ended.is_some_and(|(_, time)| time <= fast)
    }
}

/// Rate and mark of one direction.
#[derive(Debug, Default)]
pub struct BulkDetector {
    rate: RateMeter,
    /// Set while the source has a mark: the timer that looks for a tail, and the bytes that had
    /// been moved before.
    marked: Option<(Pin<Box<Sleep>>, u64)>,
}

impl BulkDetector {
    /// Handles a source that is empty after `moved` bytes in total. Returns true if the source has
    /// to be polled again.
    ///
    /// Call this every time the source returns pending, from the same task. The mark is at most
    /// `most` bytes: [`MAX_MARK_OPENED`] or [`MAX_MARK_PASSED`].
    pub fn poll_pause(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Tcp,
        moved: u64,
        most: u64,
    ) -> bool {
        let Some((timer, before)) = &mut self.marked else {
            return self.set_mark_if_fast(cx, source, moved, most);
        };
        if *before != moved {
            *before = moved;
            timer.as_mut().reset(Instant::now() + TAIL_WAIT);
        }
        if timer.as_mut().poll(cx).is_pending() {
            return false;
        }
        // This call announces the bytes that wait below the mark.
        self.remove_mark(source)
    }

    /// Removes the mark, so that all bytes are announced immediately. Returns true if there was a
    /// mark; then the source has to be polled again.
    pub fn remove_mark(&mut self, source: &mut Tcp) -> bool {
        self.rate = RateMeter::default();
        self.marked.take().is_some() && source.set_receive_mark(1).is_ok()
    }

    /// Measures the rate, and sets a mark if the flow is fast.
    fn set_mark_if_fast(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Tcp,
        moved: u64,
        most: u64,
    ) -> bool {
        let window = self.rate.end_window(WINDOW, moved);
        let mark = window.and_then(|(bytes, time)| mark_of(bytes, time, most));
        if mark.is_some_and(|mark| source.set_receive_mark(mark).is_ok()) {
            let mut timer = Box::pin(sleep(TAIL_WAIT));
            // Pending, since it is new. The poll arms it.
            let _ = timer.as_mut().poll(cx);
            self.marked = Some((timer, moved));
        }
        false
    }
}

/// Returns the mark for a flow of `bytes` in `time`, or `None` for a slow one.
fn mark_of(bytes: u64, time: Duration, most: u64) -> Option<u32> {
    if time > MAX_WINDOW_TIME {
        return None;
    }
    let share = u128::from(bytes) * FILL_TIME.as_micros() / time.as_micros().max(1);
    let mark = u64::try_from(share).unwrap_or(u64::MAX);
    u32::try_from(mark.clamp(MIN_MARK, most.max(MIN_MARK))).ok()
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_fast_source_gets_a_mark_and_its_tail_takes_it_away() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(at), listener.accept());
        let (mut near, mut source) = (near.unwrap(), Tcp::new(far.unwrap().0));
        let mut bulk = BulkDetector::default();
        poll_fn(|cx| {
            // A new socket counts as readable until a read has found nothing.
            assert!(
                source
                    .poll_read_into(
                        cx,
                        &mut [std::io::IoSliceMut::new(&mut [0])],
                        crate::ShortRead::Empty
                    )
                    .is_pending()
            );
            assert!(
                !bulk.poll_pause(cx, &mut source, 0, MAX_MARK_OPENED),
                "a window starts"
            );
            assert!(
                !bulk.poll_pause(cx, &mut source, WINDOW, MAX_MARK_OPENED),
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
            |cx| match bulk.poll_pause(cx, &mut source, WINDOW, MAX_MARK_OPENED) {
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

    #[tokio::test]
    async fn a_mark_can_be_taken_away_before_the_tail() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(at), listener.accept());
        let (_near, mut source) = (near.unwrap(), Tcp::new(far.unwrap().0));
        let mut bulk = BulkDetector::default();
        poll_fn(|cx| {
            assert!(!bulk.poll_pause(cx, &mut source, 0, MAX_MARK_OPENED));
            assert!(!bulk.poll_pause(cx, &mut source, WINDOW, MAX_MARK_OPENED));
            Poll::Ready(())
        })
        .await;
        let mark = |source: &mut Tcp| adit_net::watermark::receive_mark(source.socket().unwrap());
        assert!(mark(&mut source).unwrap() > 1);
        bulk.remove_mark(&mut source);
        assert_eq!(mark(&mut source).unwrap(), 1);
        assert!(bulk.marked.is_none() && bulk.rate.since.is_none());
    }

    #[test]
    fn a_glance_tells_a_fast_flow() {
        let mut rate = RateMeter::default();
        assert!(!rate.is_fast(37), "a window starts");
        assert!(!rate.is_fast(1 << 20), "a window continues");
        assert!(rate.is_fast((1 << 20) + 37));
        assert!(!rate.is_fast(2 << 20));
        rate.since = rate.since.map(|(moved, at)| (moved, at - SHORT_WINDOW.1));
        assert!(!rate.is_fast(4 << 20), "too slow");
    }

    #[test]
    fn marks_follow_the_rate() {
        let ms = Duration::from_millis;
        assert_eq!(mark_of(WINDOW, ms(161), MAX_MARK_PASSED), None);
        assert_eq!(mark_of(WINDOW, ms(160), MAX_MARK_PASSED), Some(78_643));
        assert_eq!(mark_of(WINDOW, ms(80), MAX_MARK_PASSED), Some(157_286));
        assert_eq!(mark_of(WINDOW, ms(10), MAX_MARK_PASSED), Some(1 << 20));
        assert_eq!(
            mark_of(WINDOW, Duration::ZERO, MAX_MARK_PASSED),
            Some(1 << 20)
        );
        assert_eq!(
            mark_of(WINDOW, Duration::ZERO, MAX_MARK_OPENED),
            Some(512 << 10)
        );
    }
}
