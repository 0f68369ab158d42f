//! The policy that forwards unauthenticated peers to another server, which receives all their bytes
//! unchanged, for any cause.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use adit_interop::hostile_clients::{AfterWrite, Reaction, WriteMode};
use adit_interop::{Checksum, TEST_TIMEOUT};
use rustix::net::listen;

use super::causes;
use super::kinds::ListenerCase;
use super::{CROWD, DEADLINE, LATE, full, send};

/// The decoy reports the number of bytes once nothing has arrived for this time.
const QUIET: Duration = Duration::from_millis(500);

/// Number of connections that may wait for the decoy.
const BACKLOG: i32 = 2048;

/// Starts a server that reports the bytes that it received.
fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // The system may reset connections that do not fit into its queue, and its default is small.
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
    stream.set_read_timeout(Some(TEST_TIMEOUT))?;
    let mut got = Vec::new();
    let mut buf = [0; 16 << 10];
    while let Ok(n @ 1..) = stream.read(&mut buf) {
        got.extend_from_slice(&buf[..n]);
        stream.set_read_timeout(Some(QUIET))?;
    }
    stream.write_all(&said(&got))
}

/// Returns the report for these bytes.
fn said(got: &[u8]) -> Vec<u8> {
    format!("{} {:016x}", got.len(), Checksum::EMPTY.extend_with(got).0).into_bytes()
}

/// Sends the probes to a listener that forwards unauthenticated peers.
pub(crate) fn examine(kind: &'static ListenerCase) {
    let deadline = DEADLINE.as_millis();
    let query = format!("reject=forward:{}&handshake={deadline}ms", start());
    let port = kind.start(&query);
    let seen = port.record();
    let mut probes = causes::lengths(kind, false);
    probes.extend(causes::replays(kind, &seen, full()));
    // The pauses of slow probes could be too long for the decoy on a busy machine.
    probes.retain(|probe| {
        probe.mode == WriteMode::OneWrite && probe.after_write != AfterWrite::Close
    });
    let outcomes = send(port.addr(), &probes, CROWD / 2, LATE);
    for (probe, outcome) in probes.iter().zip(outcomes) {
        let wanted = said(&probe.bytes);
        let (cause, ending) = (&probe.cause, probe.after_write);
        let heard = String::from_utf8_lossy(&outcome.answer);
        let what = format!("{}: {cause}, {ending:?}: {heard}", kind.name);
        assert_eq!(outcome.reaction, Reaction::Answer(wanted.len()), "{what}");
        assert_eq!(outcome.answer, wanted, "{what}");
    }
    port.record();
    port.stop();
}
