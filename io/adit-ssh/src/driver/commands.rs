//! Commands of the handles.

use std::sync::Arc;

use adit_ssh_proto::Disconnect;
use adit_ssh_proto::connection::{
    ChannelCallError, ChannelKind, GlobalAnswer, GlobalRequest, SshChannelRequest, WantReply,
};
use adit_wire::Time;
use tokio::sync::oneshot;

use super::{Driver, PendingGlobal};
use crate::channel::ChannelHandle;
use crate::error::{OpenError, RequestError, SessionEnd};
use crate::routes::{Route, RouteKind};
use crate::shared_channel::SharedChannel;
use crate::shared_session::Command;

impl Driver {
    /// Executes the handles' commands as far as the output has space.
    pub(super) fn run_commands(&mut self, now: Time) -> Result<(), SessionEnd> {
        while let Some(command) = self.commands.pop_front() {
            if let Some(later) = self.run_command(command, now)? {
                self.commands.push_front(later);
                break;
            }
        }
        Ok(())
    }

    /// Executes one command; returns it if the output is full.
    fn run_command(&mut self, command: Command, now: Time) -> Result<Option<Command>, SessionEnd> {
        match command {
            Command::Open { kind, reply } => return Ok(self.open_channel(kind, reply)),
            Command::Confirm(pipe) => {
                if self.connection.confirm_open(pipe.id).is_err() {
                    pipe.set_closed(false, &mut self.wake);
                }
                pipe.lock().mark_open();
                self.process_channel(&pipe, now);
            }
            Command::Refuse { pipe, why, text } => {
                // The session may have ended first.
                let _ = self.connection.refuse_open(pipe.id, why, &text);
                pipe.set_closed(false, &mut self.wake);
                self.remove_channel(pipe.id);
            }
            Command::Request {
                pipe,
                request,
                want,
                reply,
            } => return Ok(self.send_request(pipe, request, want, reply)),
            Command::Answer { to, ok } => self.connection.answer_request(to, ok),
            Command::Global {
                request,
                route,
                reply,
            } => return Ok(self.send_global_request(request, route, reply)),
            Command::AnswerGlobal { to, answer } => self.connection.answer_global(to, answer),
            Command::Route(route) => {
                self.routes.retain(|other| other.kind != route.kind);
                self.routes.push(route);
                self.update_custom_types();
            }
            Command::Unroute(asked) => self.remove_route(&asked),
            Command::Ping(reply) => {
                self.alive.add_waiter(reply);
                self.send_keepalive(now)?;
            }
            Command::Rekey => self.line.transport.rekey()?,
            Command::Disconnect { text } => {
                let reason = Disconnect::ByApplication;
                self.line.transport.disconnect(reason, &text);
                return Err(SessionEnd::Closed);
            }
            Command::Leave { reason, text } => {
                self.goodbye.get_or_insert((reason, text));
            }
        }
        Ok(None)
    }

    fn open_channel(
        &mut self,
        kind: ChannelKind,
        reply: oneshot::Sender<Result<ChannelHandle, OpenError>>,
    ) -> Option<Command> {
        if reply.is_closed() {
            return None;
        }
        match self.connection.open_channel(&kind) {
            Ok(id) => {
                self.add_channel(id, &kind, Some(reply));
            }
            Err(ChannelCallError::Full) => return Some(Command::Open { kind, reply }),
            Err(why) => drop(reply.send(Err(why.into()))),
        }
        None
    }

    fn send_request(
        &mut self,
        pipe: Arc<SharedChannel>,
        request: SshChannelRequest,
        want: WantReply,
        reply: oneshot::Sender<Result<(), RequestError>>,
    ) -> Option<Command> {
        let done = self.connection.send_request(pipe.id, &request, want);
        let waits = want == WantReply::Yes && !request.is_statement();
        match (done, self.channels.get_mut(&pipe.id)) {
            (Ok(()), Some(live)) if waits => {
                live.asked.push_back((request.name().to_owned(), reply));
            }
            (Ok(()), _) => drop(reply.send(Ok(()))),
            (Err(ChannelCallError::Full), _) => {
                return Some(Command::Request {
                    pipe,
                    request,
                    want,
                    reply,
                });
            }
            (Err(ChannelCallError::Gone | ChannelCallError::Ended), _) => {
                drop(reply.send(Err(RequestError::Closed)));
            }
            (Err(why), _) => drop(reply.send(Err(why.into()))),
        }
        None
    }

    fn send_global_request(
        &mut self,
        request: GlobalRequest,
        route: Option<Route>,
        reply: oneshot::Sender<Result<GlobalAnswer, RequestError>>,
    ) -> Option<Command> {
        match self.connection.send_global_request(&request) {
            Ok(Some(id)) => {
                let name = String::from_utf8_lossy(request.name()).into_owned();
                let asked = PendingGlobal::Waiting { name, route, reply };
                self.globals.insert(id, asked);
            }
            Ok(None) => {
                let told = GlobalAnswer::Granted { data: Vec::new() };
                drop(reply.send(Ok(told)));
            }
            Err(ChannelCallError::Full) => {
                return Some(Command::Global {
                    request,
                    route,
                    reply,
                });
            }
            Err(why) => drop(reply.send(Err(why.into()))),
        }
        None
    }

    /// Removes a route and asks the server to stop listening for it.
    pub(super) fn remove_route(&mut self, asked: &RouteKind) {
        let before = self.routes.len();
        self.routes.retain(|route| route.kind != *asked);
        if self.routes.len() < before {
            self.cancel_forward(asked);
        }
    }

    /// Asks the server to stop listening.
    pub(super) fn cancel_forward(&mut self, asked: &RouteKind) {
        let request = match asked {
            RouteKind::Tcpip { address, port } => GlobalRequest::CancelTcpipForward {
                address: address.clone(),
                port: *port,
            },
            RouteKind::Streamlocal(path) => {
                GlobalRequest::CancelStreamlocalForward { path: path.clone() }
            }
            RouteKind::Agent
            | RouteKind::X11
            | RouteKind::HostKeys
            | RouteKind::Channels(_)
            | RouteKind::Requests
            | RouteKind::All => return,
        };
        // If the output is full, the server keeps listening, and its channels are refused.
        if let Ok(Some(id)) = self.connection.send_global_request(&request) {
            self.globals.insert(id, PendingGlobal::NoWaiter);
        }
    }
}
