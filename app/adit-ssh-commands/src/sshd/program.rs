//! A running program: its streams, signals and exit.

use std::fs::File;
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
use crate::channel_pipes::{MAX_SLICES, channel_to_pipe, file_to_channel};
use crate::pipe_pace::PipePacer;

/// Time that a program has to exit after its user has disconnected.
const EXIT_GRACE: Duration = Duration::from_secs(5);
/// Time that a program has to exit after closing its output, before the end of the output is sent.
const EXIT_AFTER_OUTPUT: Duration = Duration::from_millis(100);

/// A started program.
pub(super) enum RunningProgram {
    /// Connected by pipes.
    Piped(PipedChild),
    /// Connected to a pseudo-terminal.
    Terminal(ChildGuard, PseudoTerminal),
}

impl RunningProgram {
    /// Serves the program until it has exited and all of its output is queued, or until its user has
    /// disconnected. `signals` is true if the user may send signals to it.
    pub(super) async fn run_to_end(self, session: ServerSession, signals: bool) {
        let (control, channel, stderr) = session.into_parts();
        let (reader, writer) = channel.into_split();
        let running = match self {
            Self::Piped(piped) => {
                let outputs = async {
                    tokio::join!(
                        copy_output_adaptively(piped.stdout, writer),
                        copy_output(piped.stderr, stderr)
                    )
                };
                let watch = ProgramMonitor {
                    guard: piped.guard,
                    control,
                    terminal: None,
                    signals,
                };
                let input = copy_input_adaptively(reader, piped.stdin);
                watch.run_to_end(input, outputs).await
            }
            Self::Terminal(leash, terminal) => {
                // A terminal has a single output stream.
                drop(stderr);
                let watch = ProgramMonitor {
                    guard: leash,
                    control,
                    terminal: Some(&terminal),
                    signals,
                };
                let outputs = copy_output(&terminal, writer);
                watch
                    .run_to_end(copy_input(reader, &terminal), outputs)
                    .await
            }
        };
        // The streams are closed by now or within a second; the terminal has hung up.
        if let Some(leash) = running {
            hang_up(leash).await;
        }
    }
}

/// The connection between a program and the client's requests.
struct ProgramMonitor<'a> {
    guard: ChildGuard,
    control: SessionControl,
    terminal: Option<&'a PseudoTerminal>,
    signals: bool,
}

impl ProgramMonitor<'_> {
    /// Serves requests until the program has exited and its output has ended, or the client has disconnected.
    /// `outputs` resolves to the writers, which end the channel's output when dropped. Returns the guard of a
    /// program that is still running.
    async fn run_to_end<W>(
        mut self,
        input: impl Future<Output = ()>,
        outputs: impl Future<Output = W>,
    ) -> Option<ChildGuard> {
        let (mut input, mut outputs) = (pin!(input), pin!(outputs));
        let (mut fed, mut drained, mut ended) = (false, false, false);
        let mut open = None;
        while !(ended && drained) {
            tokio::select! {
                status = self.guard.wait_for_exit(), if !ended => {
                    ended = true;
                    self.send_exit(status);
                }
                writers = &mut outputs, if !drained => (drained, open) = (true, Some(writers)),
                // Most programs exit right after closing their output. The exit status is sent first: some
                // clients ignore messages after the end of the output.
                () = sleep(EXIT_AFTER_OUTPUT), if open.is_some() => open = None,
                () = &mut input, if !fed => fed = true,
                next = self.control.next_request() => match next {
                    Some(next) => match self.handle_request(next.request) {
                        true => next.reply.grant(),
                        false => next.reply.refuse(),
                    },
                    None => break,
                },
            }
        }
        (!ended).then_some(self.guard)
    }

    /// Queues the exit status, which is sent after the last byte of the output.
    fn send_exit(&self, status: io::Result<ExitStatus>) {
        match status {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => self
                    .control
                    .send_exit_status(u32::try_from(code).unwrap_or(255)),
                (None, signal) => {
                    let name = signal.map_or(signals::UNNAMED_SIGNAL, signals::signal_name);
                    self.control
                        .send_exit_signal(name, status.core_dumped(), "");
                }
            },
            Err(why) => debug!("cannot read the exit status of a program: {why}"),
        }
    }

    /// Carries out a request; returns true if it succeeds.
    fn handle_request(&self, request: SshChannelRequest) -> bool {
        match (request, self.terminal) {
            (SshChannelRequest::WindowChange(to), Some(terminal)) => {
                terminal.resize(to_terminal_size(to)).is_ok()
            }
            (SshChannelRequest::Break(_), Some(terminal)) => terminal.send_break().is_ok(),
            (SshChannelRequest::Signal(name), _) if self.signals => {
                match signals::signal_by_name(&name) {
                    Some(signal) => {
                        self.guard.signal_group(signal);
                        true
                    }
                    None => false,
                }
            }
            _ => false,
        }
    }
}

/// Hangs up a program whose user has disconnected: sends SIGHUP, waits a moment, and kills its group.
async fn hang_up(mut leash: ChildGuard) {
    leash.signal_group(Signal::HUP);
    // A stopped program would not receive the signal.
    leash.signal_group(Signal::CONT);
    let _ = timeout(EXIT_GRACE, leash.wait_for_exit()).await;
}

/// Copies input of the client to a program, until either ends.
async fn copy_input(mut from: ChannelReader, mut to: impl AsyncWrite + Unpin) {
    while let Some(1..) = copy_available(&mut from, &mut to).await {}
}

/// Does the same as [`copy_input`], but hands over to a thread once the flow is fast.
async fn copy_input_adaptively(mut from: ChannelReader, mut to: pipe::Sender) {
    let mut pace = PipePacer::default();
    while !pace.is_fast() {
        let Some(n @ 1..) = copy_available(&mut from, &mut to).await else {
            return;
        };
        pace.pause_after_read(n, &to);
    }
    let Ok(to) = to.into_nonblocking_fd() else {
        return;
    };
    let runtime = Handle::current();
    let (mut done, end) = oneshot::channel::<()>();
    thread::spawn(move || {
        if let Err(why) = channel_to_pipe(&runtime, &mut from, File::from(to), &mut done) {
            debug!("cannot pass on the input of a program: {why}");
        }
    });
    // The end of the thread is signaled by the dropped sender.
    let _ = end.await;
}

/// Copies the available input. Returns the number of bytes, or `None` when either side has ended.
async fn copy_available(
    from: &mut ChannelReader,
    to: &mut (impl AsyncWrite + Unpin),
) -> Option<usize> {
    let Ok(1..) = poll_fn(|cx| from.poll_fill(cx, 1)).await else {
        return None;
    };
    let mut runs = [IoSlice::new(&[]); MAX_SLICES];
    let count = from.runs(&mut runs);
    let written = to.write_vectored(subslice(&runs, ..count));
    // A program that has closed its input is not an error of the client.
    let n = written.await.ok()?;
    from.consume(n);
    Some(n)
}

/// Copies a program's output to the client, until either ends. Returns the writer.
async fn copy_output(mut from: impl AsyncRead + Unpin, mut to: ChannelWriter) -> ChannelWriter {
    while let Ok(1..) = poll_fn(|cx| to.poll_write_from(cx, Pin::new(&mut from))).await {}
    to
}

/// Like [`copy_output`], but hands over to a thread once the flow is fast.
async fn copy_output_adaptively(
    mut from: pipe::Receiver,
    mut to: ChannelWriter,
) -> Option<ChannelWriter> {
    let mut pace = PipePacer::default();
    while !pace.is_fast() {
        let read = poll_fn(|cx| to.poll_write_from(cx, Pin::new(&mut from)));
        let Ok(n @ 1..) = read.await else {
            return Some(to);
        };
        pace.pause_after_read(n, &from);
    }
    let from = from.into_nonblocking_fd().ok()?;
    let runtime = Handle::current();
    let (done, end) = oneshot::channel();
    thread::spawn(move || {
        if let Err(why) = file_to_channel(&runtime, File::from(from), &mut to, || !done.is_closed())
        {
            debug!("cannot pass on the output of a program: {why}");
        }
        let _ = done.send(to);
    });
    end.await.ok()
}

/// Converts a terminal size of SSH to that of the system, limited to 16 bits.
pub(super) fn to_terminal_size(of: connection::TerminalSize) -> terminal::TerminalSize {
    let short = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
    terminal::TerminalSize {
        columns: short(of.columns),
        rows: short(of.rows),
        width: short(of.width),
        height: short(of.height),
    }
}
