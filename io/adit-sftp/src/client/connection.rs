//! One SFTP stream, shared by all operations: requests out, replies in.
//!
//! The operation that is polled sends what is pending and receives what is there. Replies to its own
//! requests are lent to it in place; those of others are copied to their mailboxes.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use adit_ssh_proto::SshError;
use adit_ssh_proto::sftp::{
    FrameReader, RequestId, SftpClient, SftpClientEvent, SftpReply, SftpRequest,
};
use adit_wire::{Time, narrow_int};

use super::failure::Failure;
use super::wakers::Wakers;
use super::wire::Wire;
use crate::SftpError;

/// Number of times that an operation receives before others may.
const MAX_FILLS: usize = 4;

/// Number of bytes to send from which on no more are prepared.
const MAX_PREPARED: usize = 512 << 10;

/// The operation that a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag(u64);

impl Tag {
    /// Requests whose reply has no meaning.
    pub(super) const NONE: Self = Self(0);
}

/// Takes the replies to an operation's requests. An error is a violation of the protocol.
pub(super) type Take<'a> = dyn FnMut(RequestId, &SftpReply<'_>) -> Result<(), SshError> + Send + 'a;

/// The stream with the state of the client, and the operations that wait for it.
pub(super) struct Connection {
    state: Mutex<ConnectionState>,
    wakers: Arc<Wakers>,
    /// The waker that the stream stores.
    waker: Waker,
}

pub(super) struct ConnectionState {
    wire: Wire,
    frames: FrameReader,
    pub(super) client: SftpClient<Tag>,
    pub(super) out: Vec<u8>,
    /// Number of bytes of `out` that were sent.
    sent: usize,
    /// The stream has sent all that it took.
    flushed: bool,
    /// Replies to requests of operations that were not polled meanwhile.
    mailboxes: HashMap<u64, VecDeque<(RequestId, Vec<u8>)>>,
    /// Operations that have more to request than there is room for.
    blocked: Vec<u64>,
    last_operation: u64,
    failure: Option<Failure>,
    began: Instant,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Starts the protocol on a stream, and waits until requests can be sent.
    pub(super) async fn start(wire: Wire) -> Result<Arc<Self>, SftpError> {
        let mut out = Vec::new();
        let wakers = Arc::new(Wakers::default());
        let connection = Arc::new(Self {
            state: Mutex::new(ConnectionState {
                wire,
                frames: FrameReader::new(),
                client: SftpClient::new(&mut out),
                out,
                sent: 0,
                flushed: true,
                mailboxes: HashMap::new(),
                blocked: Vec::new(),
                last_operation: 0,
                failure: None,
                began: Instant::now(),
            }),
            waker: Waker::from(Arc::clone(&wakers)),
            wakers,
        });
        let operation = Operation::new(&connection);
        while !operation.lock().client.can_request() {
            operation.turn(&mut |_, _| Ok(())).await?;
        }
        drop(operation);
        Ok(connection)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request whose reply has no meaning, as far as the stream accepts it now.
    pub(super) fn send_unanswered(&self, request: &SftpRequest<'_>) {
        let mut state = self.lock();
        let ConnectionState { client, out, .. } = &mut *state;
        // A session that is over has no handles.
        if client.send_request(request, Tag::NONE, out).is_ok() && state.failure.is_none() {
            let sent = state.poll_send(&mut Context::from_waker(&self.waker));
            if let Poll::Ready(Err(why)) = sent {
                state.failure = Some(why.into());
            }
        }
    }
}

/// One piece of work on a connection, with any number of requests in flight. Dropping it discards their
/// replies; what they open is closed.
#[derive(Debug)]
pub(super) struct Operation {
    connection: Arc<Connection>,
    number: u64,
}

impl Operation {
    pub(super) fn new(connection: &Arc<Connection>) -> Self {
        let mut state = connection.lock();
        state.last_operation += 1;
        let number = state.last_operation;
        state.mailboxes.insert(number, VecDeque::new());
        drop(state);
        Self {
            connection: Arc::clone(connection),
            number,
        }
    }

    pub(super) const fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// The tag of the operation's requests.
    pub(super) const fn tag(&self) -> Tag {
        Tag(self.number)
    }

    /// Borrows the state, to append requests.
    pub(super) fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.connection.lock()
    }

    /// Appends a request whose reply will come through [`Operation::turn`].
    pub(super) async fn send(&self, request: &SftpRequest<'_>) -> Result<RequestId, SftpError> {
        loop {
            {
                let mut state = self.lock();
                if state.has_room(self.tag()) {
                    let ConnectionState { client, out, .. } = &mut *state;
                    return Ok(client.send_request(request, self.tag(), out)?);
                }
            }
            // Others have as many requests in flight as there may be.
            self.turn(&mut |_, _| Ok(())).await?;
        }
    }

    /// Sends a request and waits for its reply, the only one of the operation.
    pub(super) async fn ask<R>(
        &self,
        request: &SftpRequest<'_>,
        mut read: impl FnMut(&SftpReply<'_>) -> Result<R, SftpError> + Send,
    ) -> Result<R, SftpError>
    where
        R: Send,
    {
        self.send(request).await?;
        let mut answer = None;
        loop {
            self.turn(&mut |_, reply| {
                answer = Some(read(reply));
                Ok(())
            })
            .await?;
            if let Some(answer) = answer.take() {
                return answer;
            }
        }
    }

    /// Sends what is pending and passes replies that arrived to `take`, until something of either
    /// happened.
    ///
    /// # Errors
    /// The session is over.
    pub(super) async fn turn(&self, take: &mut Take<'_>) -> Result<(), SftpError> {
        std::future::poll_fn(|cx| self.poll_turn(cx, take)).await
    }

    /// One poll of [`Operation::turn`].
    pub(super) fn poll_turn(
        &self,
        cx: &Context<'_>,
        take: &mut Take<'_>,
    ) -> Poll<Result<(), SftpError>> {
        let Connection { wakers, waker, .. } = &*self.connection;
        // Before the stream is polled, so that no wakeup is lost.
        wakers.register(self.number, cx.waker());
        let mut turn = OperationPoll {
            operation: self.number,
            take,
            progress: false,
            others: Vec::new(),
        };
        let mut state = self.lock();
        let outcome = match &state.failure {
            Some(why) => Err(why.clone()),
            None => state.poll(&mut Context::from_waker(waker), &mut turn),
        };
        if let Err(why) = &outcome {
            state.failure = Some(why.clone());
        }
        drop(state);
        let OperationPoll {
            progress, others, ..
        } = turn;
        let outcome = match outcome {
            Ok(drained) => {
                if progress {
                    wakers.remove(self.number);
                }
                if drained {
                    others.into_iter().for_each(|other| wakers.wake_one(other));
                } else {
                    // The stream may have more, and will not wake for it.
                    wakers.wake_all();
                }
                Ok(())
            }
            Err(why) => {
                wakers.remove(self.number);
                wakers.wake_all();
                Err(why.into())
            }
        };
        match outcome {
            Ok(()) if !progress => Poll::Pending,
            outcome => Poll::Ready(outcome),
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        self.connection.wakers.remove(self.number);
        let mut state = self.lock();
        state.blocked.retain(|other| *other != self.number);
        let missed = state.mailboxes.remove(&self.number);
        drop(state);
        for (_, frame) in missed.into_iter().flatten() {
            if let Ok((_, SftpReply::Handle(handle))) = SftpReply::parse(&frame) {
                self.connection
                    .send_unanswered(&SftpRequest::Close { handle });
            }
        }
    }
}

/// The state of one poll of an operation.
struct OperationPoll<'a, 't> {
    operation: u64,
    take: &'a mut Take<'t>,
    /// Something of the operation happened.
    progress: bool,
    /// Operations with new mail.
    others: Vec<u64>,
}

impl ConnectionState {
    /// Time since the start of the session.
    pub(super) fn now(&self) -> Time {
        Time(narrow_int(self.began.elapsed().as_micros()))
    }

    /// True if another request may be sent now. Otherwise, the next turn of the operation ends when it
    /// may.
    pub(super) fn has_room(&mut self, tag: Tag) -> bool {
        let room = self.is_open();
        if !room && !self.blocked.contains(&tag.0) {
            self.blocked.push(tag.0);
        }
        room
    }

    fn is_open(&self) -> bool {
        self.client.can_request() && self.out.len() < MAX_PREPARED
    }

    /// Moves bytes; true if the stream has no more for now.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        turn: &mut OperationPoll<'_, '_>,
    ) -> Result<bool, Failure> {
        while let Some((id, frame)) = self.next_mail(turn.operation) {
            let (_, reply) = SftpReply::parse(&frame)?;
            (turn.take)(id, &reply)?;
            turn.progress = true;
        }
        if let Poll::Ready(all) = self.poll_send(cx) {
            turn.progress |= all?;
        }
        let mut drained = false;
        for _ in 0..MAX_FILLS {
            match self.wire.poll_fill(cx) {
                Poll::Ready(Ok(0)) => {
                    let why = "the SFTP server exited";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why).into());
                }
                Poll::Ready(filled) => filled?,
                Poll::Pending => {
                    drained = true;
                    break;
                }
            };
            self.receive(turn)?;
        }
        // Handles that were opened for operations that are gone.
        if let Poll::Ready(all) = self.poll_send(cx) {
            all?;
        }
        if !self.blocked.is_empty() && self.is_open() {
            // The others stay in the list until they are polled.
            let before = self.blocked.len();
            self.blocked.retain(|other| *other != turn.operation);
            turn.progress |= self.blocked.len() < before;
            turn.others.extend(&self.blocked);
        }
        Ok(drained)
    }

    fn next_mail(&mut self, operation: u64) -> Option<(RequestId, Vec<u8>)> {
        self.mailboxes.get_mut(&operation)?.pop_front()
    }

    /// Passes on all that was received.
    fn receive(&mut self, turn: &mut OperationPoll<'_, '_>) -> Result<(), Failure> {
        loop {
            let mut data: &[u8] = self.wire.filled();
            let received = data.len();
            if received == 0 {
                return Ok(());
            }
            while let Some(frame) = self.frames.next_frame(&mut data)? {
                match self.client.handle_input(frame, &mut self.out)? {
                    SftpClientEvent::Reply { tag, id, reply } if tag.0 == turn.operation => {
                        (turn.take)(id, &reply)?;
                        turn.progress = true;
                    }
                    SftpClientEvent::Reply { tag, id, reply } => {
                        match (self.mailboxes.get_mut(&tag.0), reply) {
                            (Some(mailbox), _) => {
                                mailbox.push_back((id, frame.to_vec()));
                                turn.others.push(tag.0);
                            }
                            (None, SftpReply::Handle(handle)) => {
                                let request = SftpRequest::Close { handle };
                                self.client
                                    .send_request(&request, Tag::NONE, &mut self.out)?;
                            }
                            (None, _) => {}
                        }
                    }
                    SftpClientEvent::Waiting | SftpClientEvent::Ready => turn.progress = true,
                }
            }
            self.wire.consume(received);
        }
    }

    /// Sends what is pending; true if the stream took the last of it just now.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let pending = !self.out.is_empty();
        while let Some(rest) = self.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            self.sent += ready!(self.wire.poll_write(cx, rest))?;
            self.flushed = false;
        }
        self.out.clear();
        self.sent = 0;
        if !self.flushed {
            self.flushed = self.wire.poll_flush(cx)?.is_ready();
        }
        Poll::Ready(Ok(pending))
    }
}
