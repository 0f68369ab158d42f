//! The standard streams, each copied by its own thread.
//!
//! A thread can block in a system call without delaying anything else, for any kind of stream: a terminal, a
//! pipe, a file. Bytes of the session are written directly from its buffers.

use std::fs::File;
use std::future::pending;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::thread;

use adit_ssh::{ChannelReader, ChannelWriter};
use adit_wire::subslice;
use tokio::io::AsyncWriteExt;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::escape::{Escapes, Wish};
use crate::channel_pipes::{Source, channel_to_pipe, file_to_channel};

/// Size of a read while escapes are recognized, in bytes.
const PIECE: usize = 16 << 10;

/// The escapes typed on standard input.
#[derive(Debug)]
pub(super) struct Input {
    wishes: Option<mpsc::Receiver<Wish>>,
    escape: Option<char>,
}

impl Input {
    /// Returns an input that never has an escape.
    pub(super) const fn idle() -> Self {
        Self {
            wishes: None,
            escape: None,
        }
    }

    /// Waits for the next escape; pending forever if escapes are off.
    ///
    /// # Cancel safety
    /// Cancel-safe: no escape is lost.
    pub(super) async fn wish(&mut self) -> Wish {
        match &mut self.wishes {
            Some(wishes) => match wishes.recv().await {
                Some(wish) => wish,
                None => pending().await,
            },
            None => pending().await,
        }
    }

    /// Returns the help text of the escapes.
    pub(super) fn help(&self) -> String {
        Escapes::new(self.escape).help()
    }
}

/// Starts a thread that copies standard input to the program until either ends, except for escapes. Nothing
/// waits for the thread: an idle terminal must not delay the exit.
pub(super) fn input(mut writer: ChannelWriter, escape: Option<char>) -> Input {
    let runtime = Handle::current();
    let (to, wishes) = mpsc::channel(1);
    thread::spawn(move || {
        let done = own(io::stdin()).and_then(|stdin| {
            let Some(character) = escape else {
                file_to_channel(&runtime, stdin, &mut writer, || true)?;
                return runtime.block_on(writer.shutdown());
            };
            let mut stdin = Source {
                from: stdin,
                is_wanted: || true,
            };
            let (mut piece, mut out) = (vec![0; PIECE], Vec::new());
            let mut escapes = Escapes::new(Some(character));
            loop {
                let n = stdin.read(&mut piece)?;
                if n == 0 {
                    return runtime.block_on(writer.shutdown());
                }
                let mut typed = subslice(&piece, ..n);
                while !typed.is_empty() {
                    out.clear();
                    let (done, wish) = escapes.feed(typed, &mut out);
                    send(&runtime, &mut writer, &out)?;
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
    Input {
        wishes: Some(wishes),
        escape,
    }
}

/// Writes all bytes to the channel and flushes it.
fn send(runtime: &Handle, writer: &mut ChannelWriter, bytes: &[u8]) -> io::Result<()> {
    runtime.block_on(async {
        writer.write_all(bytes).await?;
        writer.flush().await
    })
}

/// Copies the output of the program to standard output, until its end.
pub(super) async fn output(reader: ChannelReader) -> io::Result<()> {
    moved(own(io::stdout())?, reader).await
}

/// Copies the standard error of the program to the local one, until its end.
pub(super) async fn errors(reader: ChannelReader) -> io::Result<()> {
    moved(own(io::stderr())?, reader).await
}

/// Duplicates the descriptor of a stream: the standard library's own type would buffer lines.
fn own(stream: impl AsFd) -> io::Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}

/// Copies a channel to a file on a new thread, and waits for its end.
async fn moved(to: File, mut from: ChannelReader) -> io::Result<()> {
    let runtime = Handle::current();
    let (mut done, end) = oneshot::channel();
    thread::spawn(move || {
        let outcome = channel_to_pipe(&runtime, &mut from, to, &mut done);
        let _ = done.send(outcome);
    });
    end.await.unwrap_or(Ok(()))
}
