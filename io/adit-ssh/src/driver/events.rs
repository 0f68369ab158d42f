//! Events from the peer other than data.

use std::collections::VecDeque;
use std::sync::Arc;

use adit_ssh_proto::connection::{
    ChannelId, ChannelKind, Event, GlobalAnswer, GlobalId, GlobalReplyTo, GlobalRequest,
    OpenFailure,
};
use adit_wire::Time;
use tokio::sync::oneshot;

use super::{Driver, Global, Live};
use crate::channel::Handle;
use crate::error::{OpenError, RequestError};
use crate::forwards::{Arrival, Asked, GlobalReply};
use crate::opening::Opening;
use crate::pipe::Pipe;

/// Fixed cost of a waiting global request besides its contents, in bytes.
const OVERHEAD: usize = 64;

impl Driver {
    /// Passes events to the handles; returns false if there may be more that must wait.
    pub(super) fn happened(&mut self, now: Time) -> bool {
        while !self.is_stalled() {
            match self.connection.poll_event() {
                Some(event) => self.event(event, now),
                None => return true,
            }
        }
        false
    }

    fn event(&mut self, event: Event, now: Time) {
        let Some(event) = self.message(event) else {
            return;
        };
        match event {
            Event::Open { channel, kind } => self.wanted(channel, kind),
            Event::Opened(id) => self.opened(id, now),
            Event::OpenFailed {
                channel,
                reason,
                text,
            } => {
                let opening = self.forget(channel).and_then(|live| live.opening);
                if let Some(opening) = opening {
                    let _ = opening.send(Err(OpenError::Refused { reason, text }));
                }
            }
            Event::Request {
                channel,
                request,
                reply,
            } => {
                let kept = match self.lives.get(&channel) {
                    Some(live) => live.pipe.request(request, reply, &mut self.wake),
                    None => Err(reply),
                };
                if let Err(Some(reply)) = kept {
                    self.connection.answer(reply, false);
                }
            }
            Event::RequestDone { channel, ok } => {
                let live = self.lives.get_mut(&channel);
                if let Some((name, reply)) = live.and_then(|live| live.asked.pop_front()) {
                    let refused = || RequestError::Refused(name);
                    let _ = reply.send(ok.then_some(()).ok_or_else(refused));
                }
            }
            Event::Eof(id) => {
                if let Some(live) = self.lives.get(&id) {
                    live.pipe.end_input(&mut self.wake);
                }
            }
            Event::Closed(id) => {
                if let Some(live) = self.forget(id) {
                    // Some servers reply to the request for a program after it has exited, when the
                    // channel is closed already: output or an exit status counts as success.
                    let ran = live.pipe.lock().has_spoken();
                    live.pipe.close(self.resets, &mut self.wake);
                    for (name, reply) in live.asked {
                        let started = ran && matches!(&*name, "exec" | "shell" | "subsystem");
                        let closed = || RequestError::Closed;
                        let _ = reply.send(started.then_some(()).ok_or_else(closed));
                    }
                }
            }
            Event::Writable(id) => self.connection.want_write(id),
            Event::GlobalRequest { request, reply } => self.asked(request, reply),
            Event::GlobalReply { id, answer } => self.global_answer(id, answer, now),
        }
    }

    /// Handles the peer's request for a channel: the route that fits best decides.
    fn wanted(&mut self, id: ChannelId, kind: ChannelKind) {
        let own = matches!(kind, ChannelKind::Own(_));
        if own {
            self.see_own_types();
        }
        let fitting = self
            .routes
            .iter()
            .max_by_key(|route| route.asked.fits(&kind));
        let Some(route) = fitting.filter(|route| route.asked.fits(&kind) > 0) else {
            let why = match own {
                true => OpenFailure::UnknownType,
                false => OpenFailure::Prohibited,
            };
            let _ = self.connection.refuse(id, why, "");
            return;
        };
        let to = route.to.clone();
        let pipe = self.live(id, &kind, None);
        // Dropping what a full route cannot take refuses it.
        let _ = to.try_send(Arrival::Open(Opening::new(kind, pipe)));
    }

    /// Registers a new channel, requested by the peer or by the handle that waits for `opening`.
    pub(super) fn live(
        &mut self,
        id: ChannelId,
        kind: &ChannelKind,
        opening: Option<oneshot::Sender<Result<Handle, OpenError>>>,
    ) -> Arc<Pipe> {
        let mail = Arc::clone(&self.mail);
        let bounds = self.messages.as_ref().map(|teller| teller.bounds);
        let pipe = Arc::new(Pipe::new(id, mail, self.window, bounds));
        if self.messages.is_some() {
            self.mail.enter(id, Some(Arc::clone(&pipe)));
        }
        if matches!(kind, ChannelKind::Own(_)) {
            pipe.lock().serve_own();
        }
        let live = Live {
            pipe: Arc::clone(&pipe),
            opening,
            asked: VecDeque::new(),
        };
        self.lives.insert(id, live);
        pipe
    }

    /// Removes a channel that has closed.
    pub(super) fn forget(&mut self, id: ChannelId) -> Option<Live> {
        if self.messages.is_some() {
            self.mail.enter(id, None);
        }
        self.lives.remove(&id)
    }

    /// Accepts channels of application-defined types while a route takes them.
    pub(super) fn see_own_types(&mut self) {
        self.routes.retain(|route| match route.asked {
            Asked::Channels(_) | Asked::Requests => !route.to.is_closed(),
            _ => true,
        });
        let mut asked = self.routes.iter().map(|route| &route.asked);
        let takes = asked.any(|asked| matches!(asked, Asked::Channels(_) | Asked::All));
        self.connection.set_takes_own(takes);
    }

    fn opened(&mut self, id: ChannelId, now: Time) {
        let Some(live) = self.lives.get_mut(&id) else {
            return;
        };
        let pipe = Arc::clone(&live.pipe);
        pipe.lock().open();
        let handle = Handle::new(Arc::clone(&pipe));
        if let Some(opening) = live.opening.take() {
            // If nobody waits any more, dropping the handle closes the channel.
            let _ = opening.send(Ok(handle));
        }
        self.attend(&pipe, now);
    }

    fn asked(&self, request: GlobalRequest, reply: Option<GlobalReplyTo>) {
        let mut reply = GlobalReply::new(reply, Arc::clone(&self.mail));
        if let GlobalRequest::Own { own, .. } = &request
            && !reply.wait(own.octets() + OVERHEAD)
        {
            return;
        }
        let route = self
            .routes
            .iter()
            .find(|route| takes(&route.asked, &request));
        if let Some(route) = route {
            // Dropping what a full route cannot take refuses it.
            let _ = route.to.try_send(Arrival::Global(request, reply));
        }
    }

    fn global_answer(&mut self, id: GlobalId, answer: GlobalAnswer, now: Time) {
        let (name, route, reply) = match self.globals.remove(&id) {
            // Any answer shows that the peer is alive.
            Some(Global::Alive) => return self.answered_probe(now),
            Some(Global::Asked { name, route, reply }) => (name, route, reply),
            Some(Global::Told) | None => return,
        };
        if answer == GlobalAnswer::Refused {
            let _ = reply.send(Err(RequestError::Refused(name)));
            return;
        }
        let asked = route.map(|mut route| {
            if let (Asked::Tcpip { port, .. }, GlobalAnswer::Bound { port: bound }) =
                (&mut route.asked, &answer)
            {
                *port = *bound;
            }
            let asked = route.asked.clone();
            self.routes.push(route);
            asked
        });
        if reply.send(Ok(answer)).is_err()
            && let Some(asked) = asked
        {
            // Nobody waits for the forward: cancel it.
            self.unroute(&asked);
        }
    }
}

/// Returns true if this route takes the request. Addresses and paths of absurd length are refused.
fn takes(asked: &Asked, request: &GlobalRequest) -> bool {
    let all = *asked == Asked::All;
    match request {
        GlobalRequest::HostKeys(_) => *asked == Asked::HostKeys,
        GlobalRequest::HostKeysProve(_) => all,
        GlobalRequest::Own { .. } => all || *asked == Asked::Requests,
        GlobalRequest::TcpipForward { address, .. }
        | GlobalRequest::CancelTcpipForward { address, .. } => all && address.len() <= 255,
        GlobalRequest::StreamlocalForward { path }
        | GlobalRequest::CancelStreamlocalForward { path } => all && path.len() <= 4096,
        _ => false,
    }
}
