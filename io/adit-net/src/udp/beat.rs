//! A timer finer than the runtime's, whose steps are of a millisecond.

#[cfg(target_os = "linux")]
pub(super) use linux::Beat;
#[cfg(not(target_os = "linux"))]
pub(super) use nowhere::Beat;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::task::{Context, Poll, ready};
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// Of the system (`timerfd`), once at a time.
    #[derive(Debug)]
    pub(in super::super) struct Beat {
        timer: AsyncFd<OwnedFd>,
        waiting: bool,
    }

    impl Beat {
        #[allow(unsafe_code, reason = "no safe way watches for one direction alone")]
        pub(in super::super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            // SAFETY: the descriptor belongs to the timer, which nobody can take out or replace.
            let timer = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?;
            let waiting = false;
            Ok(Self { timer, waiting })
        }

        /// Whether its time has not come.
        pub(in super::super) const fn is_waiting(&self) -> bool {
            self.waiting
        }

        /// The next is so much later.
        pub(in super::super) fn wait(&mut self, time: Duration) -> io::Result<()> {
            let it_value = Timespec::try_from(time).map_err(io::Error::other)?;
            let once = Itimerspec {
                it_interval: Timespec::default(),
                it_value,
            };
            timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &once)?;
            self.waiting = true;
            Ok(())
        }

        /// Its time has come.
        pub(in super::super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            if self.waiting {
                // What was ready is set again by the next beat, and by nothing else.
                ready!(self.timer.poll_read_ready(cx))?.clear_ready();
                self.waiting = false;
            }
            Poll::Ready(Ok(()))
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod nowhere {
    use std::io;
    use std::task::{Context, Poll};
    use std::time::Duration;

    /// There is none.
    #[derive(Debug)]
    pub(in super::super) enum Beat {}

    impl Beat {
        pub(in super::super) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(in super::super) const fn is_waiting(&self) -> bool {
            match *self {}
        }

        pub(in super::super) fn wait(&mut self, _: Duration) -> io::Result<()> {
            match *self {}
        }

        pub(in super::super) fn poll(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            match *self {}
        }
    }
}
