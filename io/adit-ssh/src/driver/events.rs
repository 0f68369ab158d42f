//! Events from the peer other than data.

use std::collections::VecDeque;
use std::sync::Arc;

use adit_ssh_proto::connection::{
    ChannelId, ChannelKind, ConnectionEvent, GlobalAnswer, GlobalRequest, GlobalRequestId,
    OpenFailureReason, PendingGlobalReply,
};
use adit_wire::Time;
use tokio::sync::oneshot;

use super::{Driver, OpenChannel, PendingGlobal};
use crate::channel::ChannelHandle;
use crate::error::{OpenError, RequestError};
use crate::incoming_channel::IncomingChannel;
use crate::routes::{GlobalReply, PeerRequest, RouteKind};
use crate::shared_channel::SharedChannel;

/// Fixed cost of a waiting global request besides its contents, in bytes.
const OVERHEAD: usize = 64;

impl Driver {
    /// Passes events to the handles; returns false if there may be more that must wait.
    pub(super) fn process_events(&mut self, now: Time) -> bool {
        while !self.is_stalled() {
            match self.connection.poll_event() {
                Some(event) => self.handle_event(event, now),
                None => return true,
            }
        }
        false
    }

    fn handle_event(&mut self, event: ConnectionEvent, now: Time) {
        let Some(event) = self.forward_event(event) else {
            return;
        };
        match event {
            ConnectionEvent::Open { channel, kind } => self.handle_open(channel, kind),
            ConnectionEvent::Opened(id) => self.handle_opened(id, now),
            ConnectionEvent::OpenFailed {
                channel,
                reason,
                text,
            } => {
                let opening = self.remove_channel(channel).and_then(|live| live.opening);
                if let Some(opening) = opening {
                    let _ = opening.send(Err(OpenError::Refused { reason, text }));
                }
            }
            ConnectionEvent::Request {
                channel,
                request,
                reply,
            } => {
                let kept = match self.channels.get(&channel) {
                    Some(live) => live.pipe.push_request(request, reply, &mut self.wake),
                    None => Err(reply),
                };
                if let Err(Some(reply)) = kept {
                    self.connection.answer_request(reply, false);
                }
            }
            ConnectionEvent::RequestDone { channel, ok } => {
                let live = self.channels.get_mut(&channel);
                if let Some((name, reply)) = live.and_then(|live| live.asked.pop_front()) {
                    let refused = || RequestError::Refused(name);
                    let _ = reply.send(ok.then_some(()).ok_or_else(refused));
                }
            }
            ConnectionEvent::Eof(id) => {
                if let Some(live) = self.channels.get(&id) {
                    live.pipe.end_input(&mut self.wake);
                }
            }
            ConnectionEvent::Closed(id) => {
                if let Some(live) = self.remove_channel(id) {
                    // Some servers reply to the request for a program after it has exited, when the
                    // channel is closed already: output or an exit status counts as success.
                    let ran = live.pipe.lock().has_responded();
                    live.pipe.set_closed(self.resets, &mut self.wake);
                    for (name, reply) in live.asked {
                        let started = ran && matches!(&*name, "exec" | "shell" | "subsystem");
                        let closed = || RequestError::Closed;
                        let _ = reply.send(started.then_some(()).ok_or_else(closed));
                    }
                }
            }
            ConnectionEvent::Writable(id) => self.connection.queue_writer(id),
            ConnectionEvent::GlobalRequest { request, reply } => {
                self.handle_global_request(request, reply);
            }
            ConnectionEvent::GlobalReply { id, answer } => {
                self.handle_global_answer(id, answer, now);
            }
        }
    }

    /// Handles the peer's request for a channel: the route that fits best decides.
    fn handle_open(&mut self, id: ChannelId, kind: ChannelKind) {
        let own = matches!(kind, ChannelKind::Custom(_));
        if own {
            self.update_custom_types();
        }
        let fitting = self
            .routes
            .iter()
            .max_by_key(|route| route.kind.match_score(&kind));
        let Some(route) = fitting.filter(|route| route.kind.match_score(&kind) > 0) else {
            let why = match own {
                true => OpenFailureReason::UnknownType,
                false => OpenFailureReason::Prohibited,
            };
            let _ = self.connection.refuse_open(id, why, "");
            return;
        };
        let to = route.sender.clone();
        let pipe = self.add_channel(id, &kind, None);
        // Dropping what a full route cannot take refuses it.
        let _ = to.try_send(PeerRequest::Open(IncomingChannel::new(kind, pipe)));
    }

    /// Registers a new channel, requested by the peer or by the handle that waits for `opening`.
    pub(super) fn add_channel(
        &mut self,
        id: ChannelId,
        kind: &ChannelKind,
        opening: Option<oneshot::Sender<Result<ChannelHandle, OpenError>>>,
    ) -> Arc<SharedChannel> {
        let mail = Arc::clone(&self.mail);
        let bounds = self.messages.as_ref().map(|teller| teller.bounds);
        let pipe = Arc::new(SharedChannel::new(id, mail, self.window, bounds));
        if self.messages.is_some() {
            self.mail.set_message_channel(id, Some(Arc::clone(&pipe)));
        }
        if matches!(kind, ChannelKind::Custom(_)) {
            pipe.lock().accept_custom_requests();
        }
        let live = OpenChannel {
            pipe: Arc::clone(&pipe),
            opening,
            asked: VecDeque::new(),
        };
        self.channels.insert(id, live);
        pipe
    }

    /// Removes a channel that has closed.
    pub(super) fn remove_channel(&mut self, id: ChannelId) -> Option<OpenChannel> {
        if self.messages.is_some() {
            self.mail.set_message_channel(id, None);
        }
        self.channels.remove(&id)
    }

    /// Accepts channels of application-defined types while a route takes them.
    pub(super) fn update_custom_types(&mut self) {
        self.routes.retain(|route| match route.kind {
            RouteKind::Channels(_) | RouteKind::Requests => !route.sender.is_closed(),
            _ => true,
        });
        let mut asked = self.routes.iter().map(|route| &route.kind);
        let takes = asked.any(|asked| matches!(asked, RouteKind::Channels(_) | RouteKind::All));
        self.connection.set_accept_custom_channels(takes);
    }

    fn handle_opened(&mut self, id: ChannelId, now: Time) {
        let Some(live) = self.channels.get_mut(&id) else {
            return;
        };
        let pipe = Arc::clone(&live.pipe);
        pipe.lock().mark_open();
        let handle = ChannelHandle::new(Arc::clone(&pipe));
        if let Some(opening) = live.opening.take() {
            // If no one waits any more, dropping the handle closes the channel.
            let _ = opening.send(Ok(handle));
        }
        self.process_channel(&pipe, now);
    }

    fn handle_global_request(&self, request: GlobalRequest, reply: Option<PendingGlobalReply>) {
        let mut reply = GlobalReply::new(reply, Arc::clone(&self.mail));
        if let GlobalRequest::Custom { own, .. } = &request
            && !reply.reserve_waiting(own.byte_len() + OVERHEAD)
        {
            return;
        }
        let route = self
            .routes
            .iter()
            .find(|route| takes_request(&route.kind, &request));
        if let Some(route) = route {
            // Dropping what a full route cannot take refuses it.
            let _ = route.sender.try_send(PeerRequest::Global(request, reply));
        }
    }

    fn handle_global_answer(&mut self, id: GlobalRequestId, answer: GlobalAnswer, now: Time) {
        let (name, route, reply) = match self.globals.remove(&id) {
            // Any answer shows that the peer is alive.
            Some(PendingGlobal::Keepalive) => return self.handle_keepalive_answer(now),
            Some(PendingGlobal::Waiting { name, route, reply }) => (name, route, reply),
            Some(PendingGlobal::NoWaiter) | None => return,
        };
        if answer == GlobalAnswer::Refused {
            let _ = reply.send(Err(RequestError::Refused(name)));
            return;
        }
        let asked = route.map(|mut route| {
            if let (RouteKind::Tcpip { port, .. }, GlobalAnswer::Bound { port: bound }) =
                (&mut route.kind, &answer)
            {
                *port = *bound;
            }
            let asked = route.kind.clone();
            self.routes.push(route);
            asked
        });
        if reply.send(Ok(answer)).is_err()
            && let Some(asked) = asked
        {
            // No one waits for the forward: cancel it.
            self.remove_route(&asked);
        }
    }
}

/// Returns true if this route takes the request. Addresses and paths of absurd length are refused.
fn takes_request(asked: &RouteKind, request: &GlobalRequest) -> bool {
    let all = *asked == RouteKind::All;
    match request {
        GlobalRequest::HostKeys(_) => *asked == RouteKind::HostKeys,
        GlobalRequest::HostKeysProve(_) => all,
        GlobalRequest::Custom { .. } => all || *asked == RouteKind::Requests,
        GlobalRequest::TcpipForward { address, .. }
        | GlobalRequest::CancelTcpipForward { address, .. } => all && address.len() <= 255,
        GlobalRequest::StreamlocalForward { path }
        | GlobalRequest::CancelStreamlocalForward { path } => all && path.len() <= 4096,
        _ => false,
    }
}
