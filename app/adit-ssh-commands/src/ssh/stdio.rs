//! The standard streams, each moved by a thread of its own.
//!
//! A thread may wait in a system call without holding anybody up, whatever the stream is: a
//! terminal, a pipe, a file. Bytes of the session are written straight from where they lie.

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

/// As much is read at once where escapes are looked for, octets.
const PIECE: usize = 16 << 10;

/// What is typed, as far as it is for us.
#[derive(Debug)]
pub(super) struct Input {
    wishes: Option<mpsc::Receiver<Wish>>,
    escape: Option<char>,
}

impl Input {
    /// Of nobody.
    pub(super) const fn idle() -> Self {
        Self {
            wishes: None,
            escape: None,
        }
    }

    /// The next escape; never, if there are none. Cancel-safe.
    pub(super) async fn wish(&mut self) -> Wish {
        match &mut self.wishes {
            Some(wishes) => match wishes.recv().await {
                Some(wish) => wish,
                None => pending().await,
            },
            None => pending().await,
        }
    }

    /// The escapes there are.
    pub(super) fn help(&self) -> String {
        Escapes::new(self.escape).help()
    }
}

/// Moves standard input to the program until either ends, but for escapes. Nobody waits for it: a
/// terminal that nobody types at must not keep us.
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
                        // Nobody to hear it: the program has ended.
                        let _ = to.blocking_send(wish);
                    }
                }
            }
        });
        // The program needs no more, or is gone: that is told by its end.
        drop(done);
    });
    Input {
        wishes: Some(wishes),
        escape,
    }
}

fn send(runtime: &Handle, writer: &mut ChannelWriter, bytes: &[u8]) -> io::Result<()> {
    runtime.block_on(async {
        writer.write_all(bytes).await?;
        writer.flush().await
    })
}

/// Moves what the program prints to standard output, until its end.
pub(super) async fn output(reader: ChannelReader) -> io::Result<()> {
    moved(own(io::stdout())?, reader).await
}

/// Moves its standard error to ours, until its end.
pub(super) async fn errors(reader: ChannelReader) -> io::Result<()> {
    moved(own(io::stderr())?, reader).await
}

/// The stream itself: that of the library would look for lines in the data.
fn own(stream: impl AsFd) -> io::Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}

async fn moved(to: File, mut from: ChannelReader) -> io::Result<()> {
    let runtime = Handle::current();
    let (mut done, end) = oneshot::channel();
    thread::spawn(move || {
        let outcome = channel_to_pipe(&runtime, &mut from, to, &mut done);
        let _ = done.send(outcome);
    });
    end.await.unwrap_or(Ok(()))
}
