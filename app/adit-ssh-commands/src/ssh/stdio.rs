//! The standard streams, each copied by its own thread.
//!
//! A thread can block in a system call without delaying anything else, for any kind of stream: a terminal, a
//! pipe, a file. Bytes of the session are written directly from its buffers.

use std::future::pending;
use std::io::{self, Read, Write};
use std::thread;

use adit_ssh::{ChannelReader, ChannelWriter};
use adit_wire::subslice;
use tokio::io::AsyncWriteExt;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::escape::{EscapeCommand, EscapeParser};
use super::platform;
use crate::channel_pipes::{AsStream, BlockingSource, channel_to_pipe, file_to_channel};

/// Size of a read while escapes are recognized, in bytes.
const READ_SIZE: usize = 16 << 10;

/// The escapes typed on standard input.
#[derive(Debug)]
pub(super) struct StdinForwarder {
    commands: Option<mpsc::Receiver<EscapeCommand>>,
    escape: Option<char>,
}

impl StdinForwarder {
    /// Returns an input that never has an escape.
    pub(super) const fn unused() -> Self {
        Self {
            commands: None,
            escape: None,
        }
    }

    /// Waits for the next escape; pending forever if escapes are off.
    ///
    /// # Cancel safety
    /// Cancel-safe: no escape is lost.
    pub(super) async fn next_escape(&mut self) -> EscapeCommand {
        match &mut self.commands {
            Some(wishes) => match wishes.recv().await {
                Some(wish) => wish,
                None => pending().await,
            },
            None => pending().await,
        }
    }

    /// Returns the help text of the escapes.
    pub(super) fn escape_help(&self) -> String {
        EscapeParser::new(self.escape).help_text()
    }
}

/// Starts a thread that copies standard input to the program until either ends, except for escapes. Nothing
/// waits for the thread: an idle terminal must not delay the exit.
pub(super) fn forward_stdin(mut writer: ChannelWriter, escape: Option<char>) -> StdinForwarder {
    let runtime = Handle::current();
    let (to, wishes) = mpsc::channel(1);
    thread::spawn(move || {
        let done = platform::open_stdin().and_then(|stdin| {
            let Some(character) = escape else {
                file_to_channel(&runtime, stdin, &mut writer, || true)?;
                return runtime.block_on(writer.shutdown());
            };
            let mut stdin = BlockingSource {
                from: stdin,
                is_wanted: || true,
            };
            let (mut piece, mut out) = (vec![0; READ_SIZE], Vec::new());
            let mut escapes = EscapeParser::new(Some(character));
            loop {
                let n = stdin.read(&mut piece)?;
                if n == 0 {
                    return runtime.block_on(writer.shutdown());
                }
                let mut typed = subslice(&piece, ..n);
                while !typed.is_empty() {
                    out.clear();
                    let (done, wish) = escapes.filter_input(typed, &mut out);
                    send_all(&runtime, &mut writer, &out)?;
                    typed = subslice(typed, done..);
                    if let Some(wish) = wish {
                        // Without a receiver the program has ended.
                        let _ = to.blocking_send(wish);
                    }
                }
            }
        });
        // An error means that the program takes no more input or is gone, which its exit status shows.
        drop(done);
    });
    StdinForwarder {
        commands: Some(wishes),
        escape,
    }
}

/// Writes all bytes to the channel and flushes it.
fn send_all(runtime: &Handle, writer: &mut ChannelWriter, bytes: &[u8]) -> io::Result<()> {
    runtime.block_on(async {
        writer.write_all(bytes).await?;
        writer.flush().await
    })
}

/// Copies the output of the program to standard output, until its end.
pub(super) async fn forward_to_stdout(reader: ChannelReader) -> io::Result<()> {
    forward_to_file(platform::open_stdout()?, reader).await
}

/// Copies the standard error of the program to the local one, until its end.
pub(super) async fn forward_to_stderr(reader: ChannelReader) -> io::Result<()> {
    forward_to_file(platform::open_stderr()?, reader).await
}

/// Copies a channel to a file on a new thread, and waits for its end.
async fn forward_to_file(
    to: impl Write + AsStream + Send + 'static,
    mut from: ChannelReader,
) -> io::Result<()> {
    let runtime = Handle::current();
    let (mut done, end) = oneshot::channel();
    thread::spawn(move || {
        let outcome = channel_to_pipe(&runtime, &mut from, to, &mut done);
        let _ = done.send(outcome);
    });
    end.await.unwrap_or(Ok(()))
}
