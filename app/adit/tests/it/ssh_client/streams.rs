//! Standard streams that are non-blocking, because a program that shares them has set that.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use adit_interop::BytePattern;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use super::World;

/// More than any pipe, socket or terminal holds.
const MUCH: usize = 1 << 20;
/// Input that a terminal must accept, line by line.
const TYPED: usize = 64 << 10;

/// The type of a standard stream of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamKind {
    Pipe,
    Pair,
    File,
    Terminal,
}

/// A stream: the program's end and the test's.
struct Ends {
    theirs: OwnedFd,
    ours: File,
}

fn terminal() -> Ends {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    // The program's own copy would keep it open.
    fcntl_setfd(&ours, FdFlags::CLOEXEC).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    let theirs = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
    let mut modes = tcgetattr(&theirs).unwrap();
    modes.local_modes -= LocalModes::ECHO;
    tcsetattr(&theirs, OptionalActions::Now, &modes).unwrap();
    Ends {
        theirs,
        ours: File::from(ours),
    }
}

fn file(world: &World, name: &str) -> Ends {
    let path = world.at_home(name);
    let open = || {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
    };
    Ends {
        theirs: open().unwrap().into(),
        ours: open().unwrap(),
    }
}

impl StreamKind {
    fn input(self, world: &World) -> Ends {
        match self {
            Self::Pipe => {
                let (read, write) = io::pipe().unwrap();
                Ends {
                    theirs: read.into(),
                    ours: File::from(OwnedFd::from(write)),
                }
            }
            _ => self.output(world, "input"),
        }
    }

    fn output(self, world: &World, name: &str) -> Ends {
        match self {
            Self::Pipe => {
                let (read, write) = io::pipe().unwrap();
                Ends {
                    theirs: write.into(),
                    ours: File::from(OwnedFd::from(read)),
                }
            }
            Self::Pair => {
                let (theirs, ours) = UnixStream::pair().unwrap();
                Ends {
                    theirs: theirs.into(),
                    ours: File::from(OwnedFd::from(ours)),
                }
            }
            Self::File => file(world, name),
            Self::Terminal => terminal(),
        }
    }
}

fn flags(stream: &impl AsFd) -> OFlags {
    fcntl_getfl(stream).unwrap()
}

fn impatient(stream: &impl AsFd) {
    fcntl_setfl(stream, flags(stream) | OFlags::NONBLOCK).unwrap();
}

/// Reads to the end, but late, so that the stream is full before.
fn read_late(mut from: File) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut got = vec![0];
        from.read_exact(&mut got).unwrap();
        thread::sleep(Duration::from_millis(200));
        // A terminal whose other end is closed is an error.
        let _ = from.read_to_end(&mut got);
        got.retain(|byte| *byte != b'\r');
        got
    })
}

/// Returns lines that a terminal does not change.
fn lines(len: usize) -> Vec<u8> {
    let text = b"a line that comes back as it went there\n";
    text.iter()
        .copied()
        .cycle()
        .take(len / text.len() * text.len())
        .collect()
}

#[test]
fn streams_that_do_not_wait_are_waited_for() {
    let world = World::new("");
    // Both outputs at once, and the input is returned.
    let line = format!("(yes eeeeeee | head -c {MUCH} >&2) & cat; wait");
    for kind in [
        StreamKind::Pipe,
        StreamKind::Pair,
        StreamKind::File,
        StreamKind::Terminal,
    ] {
        let input = kind.input(&world);
        let outputs = [kind.output(&world, "out"), kind.output(&world, "err")];
        let all = [&input.theirs, &outputs[0].theirs, &outputs[1].theirs];
        for stream in all {
            impatient(stream);
        }
        let before = all.map(flags);
        let mut command = world.ssh(&["-T"]);
        let given = |stream: &OwnedFd| Stdio::from(stream.try_clone().unwrap());
        command.arg(&line).stdin(given(&input.theirs));
        command
            .stdout(given(&outputs[0].theirs))
            .stderr(given(&outputs[1].theirs));
        let sent = match kind {
            StreamKind::Terminal => lines(TYPED),
            _ => BytePattern::new(3)
                .next_bytes(MUCH)
                .into_iter()
                .filter(|byte| *byte != b'\r')
                .collect(),
        };
        let typed = sent.clone();
        let mut ours = input.ours;
        let write = move || {
            thread::sleep(Duration::from_millis(100));
            ours.write_all(&typed).unwrap();
            if kind == StreamKind::Terminal {
                ours.write_all(b"\x04").unwrap();
            }
            // Closing the terminal would also end the input of the program.
            (kind == StreamKind::Terminal).then_some(ours)
        };
        let writer = match kind {
            // It has an end from the start.
            StreamKind::File => {
                write();
                None
            }
            _ => Some(thread::spawn(write)),
        };
        let mut child: Child = command.spawn().unwrap();
        drop(command);
        let [out, err] = outputs;
        let mut readers = Vec::new();
        let mut files = Vec::new();
        for ours in [out.ours, err.ours] {
            match kind {
                StreamKind::File => files.push(ours),
                _ => readers.push(read_late(ours)),
            }
        }
        let code = child.wait().unwrap().code();
        let after = [&input.theirs, &out.theirs, &err.theirs].map(flags);
        drop((input.theirs, out.theirs, err.theirs));
        readers.extend(files.into_iter().map(read_late));
        let got: Vec<Vec<u8>> = readers
            .into_iter()
            .map(|reader| reader.join().unwrap())
            .collect();
        let said = String::from_utf8_lossy(&got[1][..got[1].len().min(300)]).into_owned();
        assert_eq!(code, Some(0), "{kind:?}: {said}");
        assert!(
            got[0] == sent,
            "{kind:?}: {} of {} bytes",
            got[0].len(),
            sent.len()
        );
        assert_eq!(got[1].len(), MUCH, "{kind:?}: {said}");
        assert_eq!(after, before, "{kind:?}");
        drop(writer.map(|writer| writer.join().unwrap()));
    }
}

#[test]
fn a_terminal_that_is_shared_stays_as_it_is() {
    let world = World::new("");
    let Ends { theirs, ours } = terminal();
    let before = flags(&theirs);
    let given = || Stdio::from(theirs.try_clone().unwrap());
    let mut command = world.ssh(&["-tt"]);
    command
        .arg("echo here; read x")
        .stdin(given())
        .stdout(given())
        .stderr(given());
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut screen = ours;
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains("here") {
        let mut piece = [0; 256];
        let n = screen.read(&mut piece).unwrap();
        shown.extend_from_slice(&piece[..n]);
    }
    // While the program runs, and after its end.
    assert_eq!(flags(&theirs), before);
    screen.write_all(b"\r").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(flags(&theirs), before);
}
