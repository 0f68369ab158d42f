//! A child that another process has started, and supervised until now.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;

use super::guarded::{GuardedChild, GuardedGroup};

/// A child on the way from one supervisor to the next. Dropping it has no effect on the child, unless it has the last
/// lifeline.
#[derive(Debug)]
pub struct HandedOverChild {
    id: Pid,
    /// The process, its lifeline, and its outputs.
    fds: [OwnedFd; Self::DESCRIPTORS],
}

impl HandedOverChild {
    /// Number of descriptors of a child.
    pub const DESCRIPTORS: usize = 4;

    pub(super) const fn new(id: Pid, fds: [OwnedFd; Self::DESCRIPTORS]) -> Self {
        Self { id, fds }
    }

    /// Returns the process ID and the descriptors, to be sent to the next supervisor.
    #[must_use]
    pub fn into_parts(self) -> (u32, [OwnedFd; Self::DESCRIPTORS]) {
        (self.id.as_raw_nonzero().get().unsigned_abs(), self.fds)
    }

    /// Creates the child from the parts that its supervisor has sent.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if they are not the parts of a child.
    pub fn from_parts(id: u32, fds: Vec<OwnedFd>) -> io::Result<Self> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "not the parts of a child");
        let id = i32::try_from(id).ok().filter(|id| *id > 1);
        let id = id.and_then(Pid::from_raw).ok_or_else(invalid)?;
        let fds = fds.try_into().map_err(|_| invalid())?;
        Ok(Self { id, fds })
    }

    /// Continues to supervise the child. Requires a tokio runtime.
    ///
    /// # Errors
    /// Descriptors of another kind, and errors of the system.
    pub fn supervise(self) -> io::Result<GuardedChild> {
        let [process, lifeline, stdout, stderr] = self.fds;
        let stdout = pipe::Receiver::from_owned_fd(stdout)?;
        let stderr = pipe::Receiver::from_owned_fd(stderr)?;
        let leader = InheritedLeader {
            id: self.id,
            process: register_process(process)?,
            is_released: false,
        };
        Ok(GuardedChild {
            guard: GuardedGroup::inherited(leader, lifeline),
            stdout,
            stderr,
        })
    }
}

/// Registers a descriptor of a process with the runtime: it becomes readable when the process ends.
#[allow(
    deprecated,
    reason = "an `OwnedFd` keeps its descriptor as long as it lives, which is all that is required"
)]
pub(super) fn register_process(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(process, Interest::READABLE)
}

/// The leader of a process group that was handed over. Dropping it kills the group, unless it was released.
#[derive(Debug)]
pub(super) struct InheritedLeader {
    id: Pid,
    process: AsyncFd<OwnedFd>,
    is_released: bool,
}

impl InheritedLeader {
    /// Sends a signal to the group; does nothing if its leader has ended. The lifeline kills the rest then.
    pub(super) fn signal_group(&self, signal: Signal) {
        // The ID is only valid until the leader's parent reaps it: there is no call that signals the group of a
        // descriptor before Linux 6.9.
        if !self.has_ended() {
            let _ = kill_process_group(self.id, signal);
        }
    }

    pub(super) fn id(&self) -> Option<Pid> {
        (!self.has_ended()).then_some(self.id)
    }

    fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(self.process.get_ref(), PollFlags::IN)];
        !matches!(poll(&mut fds, Some(&Timespec::default())), Ok(0))
    }

    pub(super) async fn wait_for_exit(&self) -> io::Result<()> {
        self.process.readable().await.map(drop)
    }

    pub(super) fn open_process(&self) -> io::Result<(Pid, OwnedFd)> {
        if self.has_ended() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok((self.id, self.process.as_fd().try_clone_to_owned()?))
    }

    pub(super) const fn release(&mut self) {
        self.is_released = true;
    }
}

impl Drop for InheritedLeader {
    fn drop(&mut self) {
        if !self.is_released {
            self.signal_group(Signal::KILL);
        }
    }
}
