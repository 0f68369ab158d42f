//! The stream with the transport over it: what a session's task waits for.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use adit_net::ambient;
use adit_ssh::computations::{Computations, Whose};
use adit_ssh_proto::SshError;
use adit_ssh_proto::auth::Outgoing;
use adit_ssh_proto::connection::{GlobalRequest, Handled};
use adit_ssh_proto::transport::{Event, Step, Transport};
use adit_wire::Time;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::rx::Rx;
use super::{Arrived, Core, Idle, Patience};
use crate::{Disconnect, Error};

/// Sealed octets that wait to be written; one packet may go beyond.
const BATCH: usize = 256 << 10;
/// How long the last words may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The stream with the transport over it.
pub(crate) struct Wire<IO> {
    io: IO,
    pub(crate) transport: Transport,
    /// What is computed for it in another thread.
    pub(crate) computations: Computations,
    rx: Rx,
    /// Octets of the transport's output that have left.
    sent: usize,
    idle: Idle,
    sleep: Pin<Box<Sleep>>,
    until: Option<Time>,
    /// The session ends when nobody holds it.
    leaves: bool,
    /// The reason code and the words that the peer has ended it with.
    pub(crate) last_words: Option<(u32, String)>,
}

/// What came before the user is in.
#[derive(Debug)]
pub(crate) enum Came {
    /// Something of the transport.
    Event(Event),
    /// A payload for the layer above.
    Payload(Vec<u8>),
}

impl<IO: AsyncRead + AsyncWrite + Unpin> Wire<IO> {
    pub(crate) fn new(io: IO, transport: Transport, patience: Patience, leaves: bool) -> Self {
        Self {
            io,
            transport,
            computations: Computations::default(),
            rx: Rx::default(),
            sent: 0,
            idle: Idle::new(patience, ambient::now()),
            sleep: Box::pin(sleep(Duration::ZERO)),
            until: None,
            leaves,
            last_words: None,
        }
    }

    /// Opens what is at the front.
    fn open_next(&mut self) -> Result<Step, Error> {
        self.transport.open_next(self.rx.filled()).map_err(|why| {
            if let SshError::Disconnected { reason, text } = &why {
                self.last_words = Some((*reason, text.clone()));
            }
            why.into()
        })
    }

    /// The next event or payload before the user is in, after everything sealed was sent.
    /// Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Came, Error> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Came, Error>> {
        loop {
            let computed = self.poll_compute(cx, Whose::Stranger)?;
            if let Some(event) = self.transport.poll_event() {
                return Poll::Ready(Ok(Came::Event(event)));
            }
            // A peer that has left may have said why: what it has sent is read nevertheless.
            let flushed = self.poll_flush(cx);
            // The transport reads nothing until a computation is back.
            if computed.is_ready() {
                match self.open_next()? {
                    Step::NeedMore { total } => match self.poll_fill(cx, total) {
                        Poll::Ready(Err(why)) => return Poll::Ready(Err(first(flushed, why))),
                        Poll::Ready(Ok(())) => continue,
                        Poll::Pending => {}
                    },
                    Step::Consumed { consumed } => {
                        self.rx.consume(consumed);
                        continue;
                    }
                    Step::Payload { consumed, payload } => {
                        let bytes = self.transport.payload(self.rx.filled(), &payload).to_vec();
                        self.rx.consume(consumed);
                        self.idle.moved(ambient::now());
                        return Poll::Ready(Ok(Came::Payload(bytes)));
                    }
                    Step::Blocked => return Poll::Ready(Err(Error::Inconsistent)),
                }
            }
            // Nobody who is not in is asked for signs of life.
            self.idle.heard(ambient::now());
            if !self.poll_time(cx, None)? {
                return Poll::Pending;
            }
        }
    }

    /// Goes on with what the transport has to compute, until there is nothing.
    fn poll_compute(&mut self, cx: &mut Context<'_>, whose: Whose) -> Poll<Result<(), Error>> {
        let computed = ready!(self.computations.poll(cx, &mut self.transport, whose));
        Poll::Ready(computed.map_err(Error::from))
    }

    /// Sends what authentication wants to say.
    pub(crate) fn say(&mut self, message: &Outgoing) -> Result<(), Error> {
        if message.hide_length {
            let mut cover = Vec::new();
            message.put_cover(&mut cover);
            self.transport.send(&cover)?;
        }
        Ok(self.transport.send(message.payload.expose())?)
    }

    /// The next thing that happens once the user is in. Cancel-safe.
    pub(crate) async fn turn(&mut self, core: &Core) -> Result<Arrived, Error> {
        poll_fn(|cx| self.poll_turn(cx, core)).await
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>, core: &Core) -> Poll<Result<Arrived, Error>> {
        // First, so that nothing is missed in the meantime.
        core.sleep(cx);
        loop {
            if let Some(arrived) = core.arrived() {
                self.idle.moved(ambient::now());
                return Poll::Ready(Ok(arrived));
            }
            let computed = self.poll_compute(cx, Whose::User)?;
            // Of the transport's events none is for the handler.
            while self.transport.poll_event().is_some() {}
            let given = self.poll_give_out(cx, core);
            if let Poll::Ready(Ok(())) = given
                && self.transport.writable()
                && self.leave(core)
            {
                return Poll::Ready(Ok(Arrived::Left));
            }
            // While keys are made nothing can be answered, but the exchange has to go on.
            let takes = core.lock().connection.wants_input() || !self.transport.writable();
            if takes && computed.is_ready() {
                match self.take_in(cx, core) {
                    Poll::Ready(Ok(Some(arrived))) => return Poll::Ready(Ok(arrived)),
                    Poll::Ready(Ok(None)) => continue,
                    Poll::Ready(Err(why)) => return Poll::Ready(Err(first(given, why))),
                    Poll::Pending => {}
                }
            }
            if !self.poll_time(cx, Some(core))? {
                return Poll::Pending;
            }
        }
    }

    /// Opens the next packet.
    fn take_in(
        &mut self,
        cx: &mut Context<'_>,
        core: &Core,
    ) -> Poll<Result<Option<Arrived>, Error>> {
        match self.open_next()? {
            Step::NeedMore { total } => {
                ready!(self.poll_fill(cx, total))?;
            }
            Step::Consumed { consumed } => self.rx.consume(consumed),
            Step::Payload { consumed, payload } => {
                let now = ambient::now();
                let payload = self.transport.payload(self.rx.filled(), &payload);
                let handled = core.lock().connection.handle(now, payload)?;
                let arrived = match handled {
                    Handled::Data {
                        channel,
                        kind,
                        range,
                    } => {
                        self.idle.moved(now);
                        let bytes = payload.get(range).unwrap_or_default();
                        Some(core.data(channel, kind, bytes))
                    }
                    Handled::Done => None,
                    Handled::Unknown => {
                        self.transport.unimplemented()?;
                        None
                    }
                };
                self.rx.consume(consumed);
                return Poll::Ready(Ok(arrived));
            }
            Step::Blocked => return Poll::Ready(Err(Error::Inconsistent)),
        }
        Poll::Ready(Ok(None))
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>, total: usize) -> Poll<Result<(), Error>> {
        if !ready!(self.rx.poll_read(cx, Pin::new(&mut self.io), total))? {
            return Poll::Ready(Err(Error::HUP));
        }
        self.idle.heard(ambient::now());
        Poll::Ready(Ok(()))
    }

    /// Ends the session if that is wanted, or nobody is left who could want something.
    fn leave(&mut self, core: &Core) -> bool {
        let mut state = core.lock();
        let left = || (Disconnect::ByApplication, String::new());
        let left = (self.leaves && state.holds == 0).then(left);
        let Some((reason, words)) = state.goodbye.take().or(left) else {
            return false;
        };
        self.transport.disconnect(reason.reason(), &words);
        true
    }

    /// Seals and writes all that may be sent.
    fn poll_give_out(&mut self, cx: &mut Context<'_>, core: &Core) -> Poll<Result<(), Error>> {
        if std::mem::take(&mut core.lock().rekey) {
            self.transport.rekey()?;
        }
        while self.seal(core)? {
            ready!(self.poll_flush(cx))?;
        }
        self.poll_flush(cx)
    }

    /// Seals what may be sent, up to a batch; whether there was anything.
    fn seal(&mut self, core: &Core) -> Result<bool, Error> {
        let mut any = false;
        while self.transport.take_output().len() - self.sent < BATCH {
            let Some(mut writer) = self.transport.begin_payload() else {
                break;
            };
            if !core.lock().poll_output(writer.buf()) {
                break;
            }
            writer.finish()?;
            any = true;
        }
        if std::mem::take(&mut core.lock().sent_data) {
            self.idle.moved(ambient::now());
        }
        Ok(any)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let out = self.transport.take_output();
        while self.sent < out.len() {
            let rest = out.get(self.sent..).unwrap_or_default();
            let n = ready!(Pin::new(&mut self.io).poll_write(cx, rest))?;
            if n == 0 {
                return Poll::Ready(Err(io::Error::from(io::ErrorKind::WriteZero).into()));
            }
            self.sent += n;
        }
        if self.sent > 0 {
            out.clear();
            out.shrink_to(2 * BATCH);
            self.sent = 0;
        }
        Pin::new(&mut self.io).poll_flush(cx).map_err(Error::from)
    }

    /// Does what is due; false if nothing is, and the task is woken when something will be.
    fn poll_time(&mut self, cx: &mut Context<'_>, core: Option<&Core>) -> Result<bool, Error> {
        let now = ambient::now();
        let due = [self.transport.poll_timeout(now), self.idle.due()];
        let Some(until) = due.into_iter().flatten().min() else {
            return Ok(false);
        };
        if self.until != Some(until) {
            self.until = Some(until);
            let at = Instant::now() + until.since(now);
            self.sleep.as_mut().reset(at);
        }
        if until > now && self.sleep.as_mut().poll(cx).is_pending() {
            return Ok(false);
        }
        self.until = None;
        let now = ambient::now();
        self.transport.handle_timeout(now)?;
        if self.idle.tick(now)?
            && let Some(core) = core
        {
            let mut state = core.lock();
            // With a full output the peer is alive, or found out by the next question.
            if let Ok(Some(id)) = state.connection.global_request(&GlobalRequest::KeepAlive) {
                state.globals.insert(id, None);
            }
        }
        Ok(true)
    }

    /// Waits for the handler, and sends meanwhile what is to be sent.
    pub(crate) async fn beside<T>(&mut self, core: &Core, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|cx| {
            core.sleep(cx);
            let done = work.as_mut().poll(cx);
            if done.is_pending() {
                // An error comes again when the task looks itself.
                let _ = self.poll_give_out(cx, core);
            }
            done
        })
        .await
    }

    /// The session is over: the peer is told why, within bounds.
    pub(crate) async fn part(mut self, why: Option<&Error>) {
        if let Some(why) = why {
            let (reason, words) = match why {
                Error::UnknownKey => (
                    Disconnect::HostKeyNotVerifiable,
                    "the host key is not known",
                ),
                Error::InactivityTimeout | Error::KeepaliveTimeout => {
                    (Disconnect::ConnectionLost, "nothing came for too long")
                }
                _ => (Disconnect::ByApplication, ""),
            };
            self.transport.disconnect(reason.reason(), words);
        }
        let last = poll_fn(|cx| {
            ready!(self.poll_flush(cx))?;
            Pin::new(&mut self.io)
                .poll_shutdown(cx)
                .map_err(Error::from)
        });
        // What comes now is read, or a socket would take back what it has sent.
        if let Ok(Ok(())) = timeout(LAST_WORDS, last).await {
            let rest = poll_fn(|cx| {
                loop {
                    let n = self.rx.len();
                    self.rx.consume(n);
                    let io = Pin::new(&mut self.io);
                    if !matches!(ready!(self.rx.poll_read(cx, io, 1)), Ok(true)) {
                        return Poll::Ready(());
                    }
                }
            });
            // Over or not, this was the time for it.
            let _ = timeout(LAST_WORDS, rest).await;
        }
    }
}

/// What went wrong first: writing, if it did.
fn first(written: Poll<Result<(), Error>>, read: Error) -> Error {
    match written {
        Poll::Ready(Err(why)) if !matches!(read, Error::Disconnect) => why,
        _ => read,
    }
}
