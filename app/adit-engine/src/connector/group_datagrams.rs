//! The datagrams of an association through a group.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use adit_net::PacketBuf;
use adit_wire::Target;

use super::group_member::{GroupMember, OpenCount};
use crate::udp::{BoxDatagramPath, DatagramPath};

/// Number of datagrams without an answer after which a member may be at fault.
const MAX_UNANSWERED: u32 = 3;
/// Minimum time without an answer for that. Answers to datagrams take as long as their targets need.
const MIN_SILENCE: Duration = Duration::from_secs(1);

/// A path through a member of a group.
///
/// When no datagram comes back, new associations avoid the member, and this association ends if another member is
/// better: the next datagram of its client starts one through that.
pub(super) struct GroupDatagrams {
    path: BoxDatagramPath,
    member: Arc<GroupMember>,
    /// True once a datagram has come back.
    is_answered: AtomicBool,
    unanswered: Mutex<Unanswered>,
    _count: OpenCount,
}

#[derive(Default)]
struct Unanswered {
    sent: u32,
    since: Option<Instant>,
    /// True once the association has to end.
    is_over: bool,
    /// The task that receives.
    receiver: Option<Waker>,
}

impl GroupDatagrams {
    pub(super) fn new(path: BoxDatagramPath, member: Arc<GroupMember>) -> Self {
        Self {
            path,
            _count: member.count_open(),
            member,
            is_answered: AtomicBool::new(false),
            unanswered: Mutex::default(),
        }
    }

    fn lock_unanswered(&self) -> MutexGuard<'_, Unanswered> {
        self.unanswered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a datagram that was sent before any has come back.
    fn count_unanswered(&self) {
        let mut unanswered = self.lock_unanswered();
        unanswered.sent = unanswered.sent.saturating_add(1);
        let waited = unanswered.since.get_or_insert_with(Instant::now).elapsed();
        let usual = self.member.usual_time().max(MIN_SILENCE);
        if unanswered.sent <= MAX_UNANSWERED || waited < usual || unanswered.is_over {
            return;
        }
        let what = format!(
            "none of {} datagrams was answered in {:.1} s",
            unanswered.sent,
            waited.as_secs_f32()
        );
        self.member.record_lost_datagrams(&what);
        if self
            .member
            .group
            .has_better_for_datagrams(self.member.position())
        {
            unanswered.is_over = true;
            if let Some(receiver) = unanswered.receiver.take() {
                receiver.wake();
            }
        }
    }

    fn record_answer(&self) {
        if !self.is_answered.swap(true, Ordering::Relaxed)
            && let Some(health) = self.member.health()
        {
            health.record_datagram();
        }
    }
}

impl DatagramPath for GroupDatagrams {
    fn send(&self, packet: &mut PacketBuf, to: &Target) -> io::Result<()> {
        self.path.send(packet, to)?;
        if !self.is_answered.load(Ordering::Relaxed) {
            self.count_unanswered();
        }
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        self.path.flush()
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        packet: &mut PacketBuf,
        each: &mut dyn FnMut(&mut PacketBuf, &Target),
    ) -> Poll<io::Result<()>> {
        if !self.is_answered.load(Ordering::Relaxed) {
            let mut unanswered = self.lock_unanswered();
            if unanswered.is_over {
                let why =
                    "no datagram has come back, and another member of the group may do better";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)));
            }
            unanswered.receiver = Some(cx.waker().clone());
        }
        let received = self.path.poll_recv(cx, packet, &mut |packet, from| {
            self.record_answer();
            each(packet, from);
        });
        if let Poll::Ready(Err(why)) = &received
            && !self.is_answered.load(Ordering::Relaxed)
        {
            self.member.record_lost_datagrams(&why.to_string());
        }
        received
    }
}
