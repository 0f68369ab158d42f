//! Commands of the handles.

use std::sync::Arc;

use adit_ssh_proto::Disconnect;
use adit_ssh_proto::connection::{
    CallError, ChannelKind, GlobalAnswer, GlobalRequest, Request, WantReply,
};
use adit_wire::Time;
use tokio::sync::oneshot;

use super::{Driver, Global};
use crate::channel::Handle;
use crate::error::{End, OpenError, RequestError};
use crate::forwards::{Asked, Route};
use crate::mail::Command;
use crate::pipe::Pipe;

impl Driver {
    /// Executes the handles' commands as far as the output has space.
    pub(super) fn obey(&mut self, now: Time) -> Result<(), End> {
        while let Some(command) = self.commands.pop_front() {
            if let Some(later) = self.command(command, now)? {
                self.commands.push_front(later);
                break;
            }
        }
        Ok(())
    }

    /// Executes one command; returns it if the output is full.
    fn command(&mut self, command: Command, now: Time) -> Result<Option<Command>, End> {
        match command {
            Command::Open { kind, reply } => return Ok(self.open(kind, reply)),
            Command::Confirm(pipe) => {
                if self.connection.confirm(pipe.id).is_err() {
                    pipe.close(false, &mut self.wake);
                }
                pipe.lock().open();
                self.attend(&pipe, now);
            }
            Command::Refuse { pipe, why, text } => {
                // The session may have ended first.
                let _ = self.connection.refuse(pipe.id, why, &text);
                pipe.close(false, &mut self.wake);
                self.forget(pipe.id);
            }
            Command::Request {
                pipe,
                request,
                want,
                reply,
            } => return Ok(self.request(pipe, request, want, reply)),
            Command::Answer { to, ok } => self.connection.answer(to, ok),
            Command::Global {
                request,
                route,
                reply,
            } => return Ok(self.global(request, route, reply)),
            Command::AnswerGlobal { to, answer } => self.connection.answer_global(to, answer),
            Command::Route(route) => {
                self.routes.retain(|other| other.asked != route.asked);
                self.routes.push(route);
                self.see_own_types();
            }
            Command::Unroute(asked) => self.unroute(&asked),
            Command::Ping(reply) => {
                self.alive.want(reply);
                self.probe(now)?;
            }
            Command::Rekey => self.line.transport.rekey()?,
            Command::Disconnect { text } => {
                let reason = Disconnect::ByApplication;
                self.line.transport.disconnect(reason, &text);
                return Err(End::Closed);
            }
            Command::Leave { reason, text } => {
                self.goodbye.get_or_insert((reason, text));
            }
        }
        Ok(None)
    }

    fn open(
        &mut self,
        kind: ChannelKind,
        reply: oneshot::Sender<Result<Handle, OpenError>>,
    ) -> Option<Command> {
        if reply.is_closed() {
            return None;
        }
        match self.connection.open(&kind) {
            Ok(id) => {
                self.live(id, &kind, Some(reply));
            }
            Err(CallError::Full) => return Some(Command::Open { kind, reply }),
            Err(why) => drop(reply.send(Err(why.into()))),
        }
        None
    }

    fn request(
        &mut self,
        pipe: Arc<Pipe>,
        request: Request,
        want: WantReply,
        reply: oneshot::Sender<Result<(), RequestError>>,
    ) -> Option<Command> {
        let done = self.connection.request(pipe.id, &request, want);
        let waits = want == WantReply::Yes && !request.is_statement();
        match (done, self.lives.get_mut(&pipe.id)) {
            (Ok(()), Some(live)) if waits => {
                live.asked.push_back((request.name().to_owned(), reply));
            }
            (Ok(()), _) => drop(reply.send(Ok(()))),
            (Err(CallError::Full), _) => {
                return Some(Command::Request {
                    pipe,
                    request,
                    want,
                    reply,
                });
            }
            (Err(CallError::Gone | CallError::Ended), _) => {
                drop(reply.send(Err(RequestError::Closed)));
            }
            (Err(why), _) => drop(reply.send(Err(why.into()))),
        }
        None
    }

    fn global(
        &mut self,
        request: GlobalRequest,
        route: Option<Route>,
        reply: oneshot::Sender<Result<GlobalAnswer, RequestError>>,
    ) -> Option<Command> {
        match self.connection.global_request(&request) {
            Ok(Some(id)) => {
                let name = String::from_utf8_lossy(request.name()).into_owned();
                let asked = Global::Asked { name, route, reply };
                self.globals.insert(id, asked);
            }
            Ok(None) => {
                let told = GlobalAnswer::Granted { data: Vec::new() };
                drop(reply.send(Ok(told)));
            }
            Err(CallError::Full) => {
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
    pub(super) fn unroute(&mut self, asked: &Asked) {
        let before = self.routes.len();
        self.routes.retain(|route| route.asked != *asked);
        if self.routes.len() < before {
            self.cancel(asked);
        }
    }

    /// Asks the server to stop listening.
    pub(super) fn cancel(&mut self, asked: &Asked) {
        let request = match asked {
            Asked::Tcpip { address, port } => GlobalRequest::CancelTcpipForward {
                address: address.clone(),
                port: *port,
            },
            Asked::Streamlocal(path) => {
                GlobalRequest::CancelStreamlocalForward { path: path.clone() }
            }
            Asked::Agent
            | Asked::X11
            | Asked::HostKeys
            | Asked::Channels(_)
            | Asked::Requests
            | Asked::All => return,
        };
        // If the output is full, the server keeps listening, and its channels are refused.
        if let Ok(Some(id)) = self.connection.global_request(&request) {
            self.globals.insert(id, Global::Told);
        }
    }
}
