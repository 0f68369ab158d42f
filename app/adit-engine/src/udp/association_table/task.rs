//! The task of one association.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use adit_net::system;
use adit_stream::CountBytes;
use adit_stream::time_slice::yield_to_others;
use tokio::time::{Instant, Sleep, sleep};
use tracing::{debug, trace};

use super::{AssociationState, MAX_BATCHES, SCRATCH, SlotHold, TableState};
use crate::DialError;
use crate::session_span::record_end;
use crate::session_table::SessionEntry;
use crate::udp::client_side::ClientSender;
use crate::udp::{AssociationKey, BoxDatagramPath};
use crate::user_account::EndNotice;

/// A path that is being opened.
pub(super) type OpeningPath =
    Pin<Box<dyn Future<Output = Result<BoxDatagramPath, DialError>> + Send>>;

/// The task of one association, which returns its replies. Kept small because there are many.
pub(super) struct AssociationTask {
    pub(super) entry: Arc<AssociationState>,
    /// Lists the association, and can end it.
    pub(super) session: SessionEntry,
    pub(super) mouth: ClientSender,
    pub(super) common: Arc<TableState>,
    pub(super) stage: AssociationStage,
    /// Completes when the sessions of the user end. The end of all users is the end of the table.
    pub(super) removed: Option<EndNotice>,
    pub(super) key: AssociationKey,
}

pub(super) enum AssociationStage {
    Opening(OpeningPath),
    /// With the timer of the next check for idleness.
    Open(Pin<Box<Sleep>>),
}

impl Drop for AssociationTask {
    fn drop(&mut self) {
        record_end(&self.session, "closed");
        self.common.mark_ended(self.key);
    }
}

impl Future for AssociationTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        // A borrowed slot is managed by its owner.
        if let SlotHold::Own(place) = &this.entry.place
            && place.is_needed(cx)
        {
            debug!("the association ends: its slot is needed");
            return Poll::Ready(());
        }
        if this.session.poll_end(cx) {
            debug!("the association ends: this was requested");
            return Poll::Ready(());
        }
        let permit = this.entry.permit.as_ref();
        if let (Some(removed), Some(account)) = (&mut this.removed, &this.entry.account)
            && removed.poll_ended(cx, account, permit).is_ready()
        {
            let why = account.end_text(permit);
            debug!("the association ends: {why}");
            return Poll::Ready(());
        }
        if let AssociationStage::Opening(opening) = &mut this.stage {
            match ready!(opening.as_mut().poll(cx)) {
                Ok(way) => {
                    let common = &this.common;
                    this.entry.set_path(way, |why| common.report_loss(why));
                    this.stage = AssociationStage::Open(Box::pin(sleep(this.idle_timeout())));
                }
                Err(why) => {
                    debug!("cannot open a path for datagrams: {why}");
                    return Poll::Ready(());
                }
            }
        }
        if this.poll_replies(cx).is_ready() {
            return Poll::Ready(());
        }
        this.poll_idle(cx)
    }
}

impl AssociationTask {
    /// Completes when the association has been idle for its timeout.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let idle = self.idle_timeout();
        let AssociationStage::Open(timer) = &mut self.stage else {
            return Poll::Pending;
        };
        loop {
            ready!(timer.as_mut().poll(cx));
            let quiet = system::monotonic_now().duration_since(self.entry.place.last_activity());
            match idle.checked_sub(quiet) {
                Some(left) if !left.is_zero() => timer.as_mut().reset(Instant::now() + left),
                _ => return Poll::Ready(()),
            }
        }
    }

    fn idle_timeout(&self) -> Duration {
        let ttl = self.common.ttl();
        if self.entry.dns_only.load(Ordering::Relaxed) {
            ttl.dns
        } else {
            ttl.idle
        }
    }

    /// Returns the replies that have arrived; completes when the path has failed.
    fn poll_replies(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self {
            entry,
            mouth,
            session,
            ..
        } = self;
        let Some(way) = entry.path.get() else {
            return Poll::Ready(());
        };
        SCRATCH.with_borrow_mut(|packet| {
            for _ in 0..MAX_BATCHES {
                let back = *AssociationState::lock_ignoring_poison(&entry.reply_addr);
                let mut came = false;
                let received = way.poll_recv(cx, packet, &mut |packet, source| {
                    came = true;
                    let (n, account) = (packet.payload().len(), entry.account.as_ref());
                    if account.is_some_and(|account| !account.pass_datagram(n, false)) {
                        return trace!("datagram to {back} dropped: the limits of the user");
                    }
                    session.add_down(n);
                    if let Err(e) = mouth.queue_reply(packet, source, back) {
                        trace!("datagram to {back} was lost: {e}");
                    }
                });
                if came {
                    entry.place.record_activity(system::monotonic_now());
                }
                if let Err(e) = mouth.flush_replies() {
                    trace!("datagrams to {back} were lost: {e}");
                }
                match received {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(e)) => {
                        debug!("association ends: {e}");
                        return Poll::Ready(());
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
            yield_to_others(cx);
            Poll::Pending
        })
    }
}
