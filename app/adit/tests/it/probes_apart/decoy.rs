//! The policy that lets strangers talk to another server: they reach that server, and it gets
//! every byte as it was sent, whatever made them strangers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use adit_interop::hostile::{Ending, Manner, Reaction};
use adit_interop::{PATIENCE, Sum};
use rustix::net::listen;

use super::causes;
use super::kinds::Kind;
use super::{CROWD, DEADLINE, LATE, full, send};

/// The decoy says how much it got once nothing more comes for so long.
const QUIET: Duration = Duration::from_millis(500);

/// Connections that may wait for the decoy.
const BACKLOG: i32 = 2048;

/// A server that says what it got.
fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // The system may reset those that find no place in its queue, and by itself keeps few.
    listen(&listener, BACKLOG).unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    addr
}

/// An error here is a prober that has closed.
fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut got = Vec::new();
    let mut buf = [0; 16 << 10];
    while let Ok(n @ 1..) = stream.read(&mut buf) {
        got.extend_from_slice(&buf[..n]);
        stream.set_read_timeout(Some(QUIET))?;
    }
    stream.write_all(&said(&got))
}

/// What it says of these bytes.
fn said(got: &[u8]) -> Vec<u8> {
    format!("{} {:016x}", got.len(), Sum::EMPTY.with(got).0).into_bytes()
}

/// Sends the probes to a listener whose strangers are sent on.
pub(crate) fn examine(kind: &'static Kind) {
    let deadline = DEADLINE.as_millis();
    let query = format!("reject=forward:{}&handshake={deadline}ms", start());
    let port = kind.start(&query);
    let seen = port.record();
    let mut probes = causes::lengths(kind, false);
    probes.extend(causes::replays(kind, &seen, full()));
    // The pauses of slow ones could be too long for the decoy on a busy machine.
    probes.retain(|probe| probe.manner == Manner::AtOnce && probe.ending != Ending::Close);
    let outcomes = send(port.addr(), &probes, CROWD / 2, LATE);
    for (probe, outcome) in probes.iter().zip(outcomes) {
        let wanted = said(&probe.bytes);
        let (cause, ending) = (&probe.cause, probe.ending);
        let heard = String::from_utf8_lossy(&outcome.said);
        let what = format!("{}: {cause}, {ending:?}: {heard}", kind.name);
        assert_eq!(outcome.reaction, Reaction::Answer(wanted.len()), "{what}");
        assert_eq!(outcome.said, wanted, "{what}");
    }
    port.record();
    port.stop();
}
