//! The least that a relay can cost: `splice(2)` and nothing else, for the suite `ss-relay`.

use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::str::FromStr;
use std::thread;

use anyhow::{Context, Error, Result};
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, pipe, splice};

/// Bytes that wait in a pipe, at most.
const PIPE: usize = 1 << 20;

/// Where it listens, and where it leads: `ADDR,ADDR`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    at: SocketAddr,
    to: SocketAddr,
}

impl FromStr for Ends {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (at, to) = text.split_once(',').context("two addresses")?;
        Ok(Self {
            at: at.parse()?,
            to: to.parse()?,
        })
    }
}

/// Relays until the process is ended.
pub(crate) fn run(ends: Ends) -> Result<()> {
    for near in TcpListener::bind(ends.at)?.incoming() {
        let (near, far) = (near?, TcpStream::connect(ends.to)?);
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let (near_back, far_back) = (near.try_clone()?, far.try_clone()?);
        // An error is a connection that somebody gave up.
        thread::spawn(move || pass_on(&near, &far));
        thread::spawn(move || pass_on(&far_back, &near_back));
    }
    Ok(())
}

fn pass_on(from: &TcpStream, to: &TcpStream) -> Result<()> {
    let (read, write) = pipe()?;
    fcntl_setpipe_size(&write, PIPE)?;
    loop {
        let mut held = match splice(from, None, &write, None, PIPE, SpliceFlags::MOVE) {
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            held => held?,
        };
        if held == 0 {
            to.shutdown(Shutdown::Write)?;
            return Ok(());
        }
        while held > 0 {
            held -= splice(&read, None, to, None, held, SpliceFlags::MOVE)?;
        }
    }
}
