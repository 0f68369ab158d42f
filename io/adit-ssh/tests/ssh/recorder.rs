//! Records sessions with OpenSSH, in both roles; see `vectors/ssh-sessions`.
//!
//! Each run records sessions and replays its recordings. The files are only written if the environment
//! variable `ADIT_BLESS` is set.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use adit_interop::TempFolder;
use adit_interop::openssh::{Sshd, current_user, generate_key, ssh_command};
use adit_ssh_proto::Role;
use adit_ssh_proto::key::PrivateKey;

use crate::plan::{Plan, Rekey};
use crate::player::{HALF, KEY, Player, STATUS, text};
use crate::recording::{RecordedRead, Recording};

/// Maximum time of silence.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum size of a file, in bytes.
const MOST: usize = 64 << 10;

#[test]
fn sessions_are_recorded_and_replayed() {
    for plan in Plan::ALL {
        let recording = match plan.role {
            Role::Client => with_its_server(plan),
            Role::Server => with_its_client(plan),
        };
        let text = recording.write();
        replay(plan, &Recording::read(&text));
        if std::env::var_os("ADIT_BLESS").is_some() {
            assert!(text.len() <= MOST, "{}: {} bytes", plan.name, text.len());
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../proto/adit-ssh-proto/vectors/ssh-sessions");
            fs::write(folder.join(plan.name).with_extension("txt"), text).unwrap();
        }
    }
}

/// Checks that the protocol implementation sends the same bytes again and completes.
fn replay(plan: Plan, recording: &Recording) {
    let mut player = Player::new(plan, &recording.user);
    for turn in &recording.turns {
        player.hear(&turn.heard);
        assert_eq!(player.events(), turn.events, "{}", plan.name);
        assert!(player.said() == turn.said, "{}", plan.name);
    }
    assert!(player.is_over(), "{}", plan.name);
}

fn with_its_server(plan: Plan) -> Recording {
    let mut more = format!(
        "Ciphers {}\nMACs {}\nKexAlgorithms {}\n",
        plan.cipher, plan.mac, plan.kex
    );
    if plan.rekey == Rekey::Theirs {
        more += &format!("RekeyLimit {}\n", Plan::LIMIT);
    }
    let sshd = Sshd::start(&more).unwrap();
    let ours = PrivateKey::from_text(KEY, None).unwrap();
    let line = ours.public_key().to_line("recorded");
    fs::write(sshd.folder().join("authorized_keys"), line).unwrap();
    let socket = TcpStream::connect(("127.0.0.1", sshd.port())).unwrap();
    record(plan, &current_user(), socket)
}

fn with_its_client(plan: Plan) -> Recording {
    let folder = TempFolder::new("recorder").unwrap();
    let id = generate_key(folder.path(), "id").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = ssh_command(listener.local_addr().unwrap().port(), &id);
    command.args(["-c", plan.cipher.name(), "-m", plan.mac.name()]);
    command.args(["-o", &format!("KexAlgorithms={}", plan.kex)]);
    if plan.rekey == Rekey::Theirs {
        command.args(["-o", &format!("RekeyLimit={}", Plan::LIMIT)]);
    }
    command.args(["me@127.0.0.1", "give back"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let child = Guard(command.spawn().unwrap());
    let (socket, _) = listener.accept().unwrap();
    let near = std::thread::spawn(move || use_program(child));
    let recording = record(plan, "me", socket);
    near.join().unwrap();
    recording
}

/// Writes the first half of the text to the program, and the other half after the first came back.
fn use_program(mut child: Guard) {
    let mut input = child.0.stdin.take().unwrap();
    let mut output = child.0.stdout.take().unwrap();
    let (text, mut back) = (text(), vec![0; HALF]);
    for half in text.chunks(HALF) {
        input.write_all(half).unwrap();
        output.read_exact(&mut back).unwrap();
        assert!(back == half);
    }
    drop(input);
    let status = child.0.wait().unwrap().code();
    assert_eq!(status, i32::try_from(STATUS).ok());
}

/// A process, killed with the test.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a session between adit and the peer, and records it.
fn record(plan: Plan, user: &str, mut socket: TcpStream) -> Recording {
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut player = Player::new(plan, user);
    let mut turn = RecordedRead {
        said: player.said(),
        ..RecordedRead::default()
    };
    let mut turns = Vec::new();
    let mut buf = vec![0; 32 << 10];
    loop {
        socket.write_all(&turn.said).unwrap();
        turns.push(turn);
        if player.is_over() {
            break;
        }
        let n = socket.read(&mut buf).unwrap();
        assert!(
            n > 0,
            "{}: {:?}",
            plan.name,
            turns.last().map(|t| &t.events)
        );
        player.hear(&buf[..n]);
        turn = RecordedRead {
            heard: buf[..n].to_vec(),
            events: player.events(),
            said: player.said(),
        };
    }
    let heard: Vec<u8> = turns.iter().flat_map(|turn| turn.heard.clone()).collect();
    let line = heard.split(|octet| *octet == b'\r').next().unwrap();
    Recording {
        peer: String::from_utf8(line.to_vec()).unwrap(),
        user: user.to_owned(),
        turns,
    }
}
