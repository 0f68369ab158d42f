//! A program that runs: its streams, its signals, its end.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::unix::process::ExitStatusExt;
use std::pin::{Pin, pin};
use std::process::ExitStatus;
use std::thread;
use std::time::Duration;

use adit_net::child::ChildGuard;
use adit_net::child::login::PipedChild;
use adit_net::child::terminal::{self, PseudoTerminal};
use adit_ssh::server::{ServerSession, SessionControl};
use adit_ssh::{ChannelReader, ChannelWriter};
use adit_ssh_proto::connection::{self, SshChannelRequest};
use adit_wire::subslice;
use rustix::process::Signal;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::signals;
use crate::channel_pipes::{GATHER, channel_to_pipe, file_to_channel};
use crate::pipe_pace::Pace;

/// How long a program may take to end whose user has gone.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long a program may take to end that has closed its output, before the client is told that
/// there is no more.
const AFTER_OUTPUT: Duration = Duration::from_millis(100);

/// A program that was started.
pub(super) enum Program {
    /// Between pipes.
    Piped(PipedChild),
    /// In a terminal.
    Terminal(ChildGuard, PseudoTerminal),
}

impl Program {
    /// Stays with it until it has ended and all of its output is on its way, or until its user has
    /// gone. `signals`: the user may signal it.
    pub(super) async fn attend(self, session: ServerSession, signals: bool) {
        let (control, channel, stderr) = session.into_parts();
        let (reader, writer) = channel.into_split();
        let running = match self {
            Self::Piped(piped) => {
                let outputs = async {
                    tokio::join!(
                        drain_much(piped.stdout, writer),
                        drain(piped.stderr, stderr)
                    )
                };
                let watch = Watch {
                    leash: piped.guard,
                    control,
                    terminal: None,
                    signals,
                };
                let input = feed_much(reader, piped.stdin);
                watch.attend(input, outputs).await
            }
            Self::Terminal(leash, terminal) => {
                // All of its output is one stream.
                drop(stderr);
                let watch = Watch {
                    leash,
                    control,
                    terminal: Some(&terminal),
                    signals,
                };
                let outputs = drain(&terminal, writer);
                watch.attend(feed(reader, &terminal), outputs).await
            }
        };
        // Its streams are closed by now, or will be within a second; its terminal has hung up.
        if let Some(leash) = running {
            hang_up(leash).await;
        }
    }
}

/// What the client may do to a program, and is told of it.
struct Watch<'a> {
    leash: ChildGuard,
    control: SessionControl,
    terminal: Option<&'a PseudoTerminal>,
    signals: bool,
}

impl Watch<'_> {
    /// `outputs` gives what has to be dropped to end the channel's output. Gives the hold on a
    /// program that still runs.
    async fn attend<W>(
        mut self,
        input: impl Future<Output = ()>,
        outputs: impl Future<Output = W>,
    ) -> Option<ChildGuard> {
        let (mut input, mut outputs) = (pin!(input), pin!(outputs));
        let (mut fed, mut drained, mut ended) = (false, false, false);
        let mut open = None;
        while !(ended && drained) {
            tokio::select! {
                status = self.leash.wait_for_exit(), if !ended => {
                    ended = true;
                    self.tell(status);
                }
                writers = &mut outputs, if !drained => (drained, open) = (true, Some(writers)),
                // Most programs that have closed their output end at once, and how is to be told
                // first: there are clients that listen no more behind the end of the output.
                () = sleep(AFTER_OUTPUT), if open.is_some() => open = None,
                () = &mut input, if !fed => fed = true,
                next = self.control.next_request() => match next {
                    Some(next) => match self.grants(next.request) {
                        true => next.reply.grant(),
                        false => next.reply.refuse(),
                    },
                    None => break,
                },
            }
        }
        (!ended).then_some(self.leash)
    }

    /// Told at once; it is sent behind the last byte of the output.
    fn tell(&self, status: io::Result<ExitStatus>) {
        match status {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => self
                    .control
                    .send_exit_status(u32::try_from(code).unwrap_or(255)),
                (None, signal) => {
                    let name = signal.map_or(signals::OTHER, signals::name);
                    self.control
                        .send_exit_signal(name, status.core_dumped(), "");
                }
            },
            Err(why) => debug!("cannot read the exit status of a program: {why}"),
        }
    }

    fn grants(&self, request: SshChannelRequest) -> bool {
        match (request, self.terminal) {
            (SshChannelRequest::WindowChange(to), Some(terminal)) => {
                terminal.resize(size(to)).is_ok()
            }
            (SshChannelRequest::Break(_), Some(terminal)) => terminal.send_break().is_ok(),
            (SshChannelRequest::Signal(name), _) if self.signals => match signals::by_name(&name) {
                Some(signal) => {
                    self.leash.signal_group(signal);
                    true
                }
                None => false,
            },
            _ => false,
        }
    }
}

/// Its user has gone: it is told, given a moment, and ended with its group.
async fn hang_up(mut leash: ChildGuard) {
    leash.signal_group(Signal::HUP);
    // Who was stopped cannot listen.
    leash.signal_group(Signal::CONT);
    let _ = timeout(LAST_WORDS, leash.wait_for_exit()).await;
}

/// Carries what the client sends to a program, until either has ended.
async fn feed(mut from: ChannelReader, mut to: impl AsyncWrite + Unpin) {
    while let Some(1..) = step(&mut from, &mut to).await {}
}

/// The same of what may be much: once it comes fast, a thread goes on with it.
async fn feed_much(mut from: ChannelReader, mut to: pipe::Sender) {
    let mut pace = Pace::default();
    while !pace.is_fast() {
        let Some(n @ 1..) = step(&mut from, &mut to).await else {
            return;
        };
        pace.after(n, &to);
    }
    let Ok(to) = to.into_nonblocking_fd() else {
        return;
    };
    let runtime = Handle::current();
    let (mut done, end) = oneshot::channel::<()>();
    thread::spawn(move || {
        if let Err(why) = channel_to_pipe(&runtime, &mut from, to.into(), &mut done) {
            debug!("cannot pass on the input of a program: {why}");
        }
    });
    // There is nothing to be told: that it has ended is the news.
    let _ = end.await;
}

/// Carries what is there; gives how much was taken, nothing when either has ended.
async fn step(from: &mut ChannelReader, to: &mut (impl AsyncWrite + Unpin)) -> Option<usize> {
    let Ok(1..) = poll_fn(|cx| from.poll_fill(cx, 1)).await else {
        return None;
    };
    let mut runs = [IoSlice::new(&[]); GATHER];
    let count = from.runs(&mut runs);
    let written = to.write_vectored(subslice(&runs, ..count));
    // A program that reads no more is none of the client's errors.
    let n = written.await.ok()?;
    from.consume(n);
    Some(n)
}

/// Carries a program's output to the client, until either has ended; gives the client's end.
async fn drain(mut from: impl AsyncRead + Unpin, mut to: ChannelWriter) -> ChannelWriter {
    while let Ok(1..) = poll_fn(|cx| to.poll_write_from(cx, Pin::new(&mut from))).await {}
    to
}

/// The same of what may be much: once it comes fast, a thread goes on with it.
async fn drain_much(mut from: pipe::Receiver, mut to: ChannelWriter) -> Option<ChannelWriter> {
    let mut pace = Pace::default();
    while !pace.is_fast() {
        let read = poll_fn(|cx| to.poll_write_from(cx, Pin::new(&mut from)));
        let Ok(n @ 1..) = read.await else {
            return Some(to);
        };
        pace.after(n, &from);
    }
    let from = from.into_nonblocking_fd().ok()?;
    let runtime = Handle::current();
    let (done, end) = oneshot::channel();
    thread::spawn(move || {
        if let Err(why) = file_to_channel(&runtime, from.into(), &mut to, || !done.is_closed()) {
            debug!("cannot pass on the output of a program: {why}");
        }
        let _ = done.send(to);
    });
    end.await.ok()
}

/// A size as terminals have it.
pub(super) fn size(of: connection::TerminalSize) -> terminal::TerminalSize {
    let short = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
    terminal::TerminalSize {
        columns: short(of.columns),
        rows: short(of.rows),
        width: short(of.width),
        height: short(of.height),
    }
}
