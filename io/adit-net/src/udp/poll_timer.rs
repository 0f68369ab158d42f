//! A timer finer than the runtime's, which has a resolution of a millisecond.

#[cfg(target_os = "linux")]
pub(super) use linux::PollTimer;
#[cfg(not(target_os = "linux"))]
pub(super) use unsupported::PollTimer;

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

    /// A one-shot timer of the system (`timerfd`).
    #[derive(Debug)]
    pub(in super::super) struct PollTimer {
        timer: AsyncFd<OwnedFd>,
        armed: bool,
    }

    impl PollTimer {
        #[allow(unsafe_code, reason = "no safe API registers for one direction alone")]
        pub(in super::super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            // SAFETY: the descriptor is owned by the timer and cannot be moved out or replaced.
            let timer = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?;
            let waiting = false;
            Ok(Self {
                timer,
                armed: waiting,
            })
        }

        /// Returns true if the timer is armed and has not expired.
        pub(in super::super) const fn is_armed(&self) -> bool {
            self.armed
        }

        /// Arms the timer to expire after `time`.
        pub(in super::super) fn arm(&mut self, time: Duration) -> io::Result<()> {
            let it_value = Timespec::try_from(time).map_err(io::Error::other)?;
            let once = Itimerspec {
                it_interval: Timespec::default(),
                it_value,
            };
            timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &once)?;
            self.armed = true;
            Ok(())
        }

        /// Waits until the timer expires; ready immediately if it is not armed.
        pub(in super::super) fn poll_expired(
            &mut self,
            cx: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            if self.armed {
                // Readiness is set again by the next expiry and by nothing else.
                ready!(self.timer.poll_read_ready(cx))?.clear_ready();
                self.armed = false;
            }
            Poll::Ready(Ok(()))
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod unsupported {
    use std::io;
    use std::task::{Context, Poll};
    use std::time::Duration;

    /// An uninhabited type: this system has no such timer.
    #[derive(Debug)]
    pub(in super::super) enum PollTimer {}

    impl PollTimer {
        pub(in super::super) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(in super::super) const fn is_armed(&self) -> bool {
            match *self {}
        }

        pub(in super::super) fn arm(&mut self, _: Duration) -> io::Result<()> {
            match *self {}
        }

        pub(in super::super) fn poll_expired(
            &mut self,
            _: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            match *self {}
        }
    }
}
