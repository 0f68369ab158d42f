//! Runs a program of an archive: its self-test, its errors, and transfers through tunnels between two
//! of its processes.

use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use super::archive::hex;
use super::emulator::Emulator;
use super::openssh::OpensshServer;
use super::room::{RunningProgram, TrialRoom};
use super::transfer::{TransferServer, transfer};
use crate::package_graph::PackageGraph;

/// Bytes in each direction of a transfer: natively, in wine, which runs the program's own code as it is,
/// and in an emulator of a processor.
const AMOUNT: u64 = 1 << 30;
const WINE_AMOUNT: u64 = 256 << 20;
const EMULATED_AMOUNT: u64 = 64 << 20;
/// Bytes on the standard input of a program on OpenSSH's server.
const SSH_INPUT: usize = 4 << 20;
const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";
/// A name that only a DNS server could know, and does not exist (RFC 6761).
const NO_NAME: &str = "name.invalid";
/// A configuration, and a line that makes it a wrong one.
const CONFIG: &str = "[route.client]\nlisten = \"mixed://127.0.0.1:0\"\n";
const MISTAKE: &str = "via = [\"sss://127.0.0.1:1\"]\n";

/// A tunnel that the trial carries bytes through: its name, the URL of its server, and the options of
/// the client's URL.
const TUNNELS: [(&str, &str, &str); 3] = [
    ("ss", "ss://2022-blake3-aes-128-gcm:KEY@", ""),
    (
        "ssh",
        "ssh://me:secret@",
        "agent=false&strict=accept-new&known_hosts=@known_hosts",
    ),
    ("kcp", "ss+kcp://2022-blake3-aes-128-gcm:KEY@", ""),
];

/// A program, and the emulator that runs it.
#[derive(Debug)]
pub(crate) struct ProgramUnderTrial {
    program: PathBuf,
    emulator: Option<Emulator>,
}

impl ProgramUnderTrial {
    /// Takes a program that this machine runs, by `emulator` if there is one.
    pub(crate) fn new(program: PathBuf, emulator: Option<Emulator>) -> Self {
        Self { program, emulator }
    }

    /// Runs the program among this machine's files, and returns its standard output.
    pub(crate) fn output(&self, args: &[&str]) -> Result<String> {
        let own = || Command::new(&self.program);
        let emulated = |emulator: &Emulator| emulator.command(&self.program);
        let mut command = self.emulator.as_ref().map_or_else(own, emulated);
        let output = command
            .args(args)
            .stdin(Stdio::null())
            .output()
            .with_context(|| command.get_program().display().to_string())?;
        let (told, why) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        ensure!(output.status.success(), "`adit {}`: {why}", args.join(" "));
        Ok(told)
    }

    /// Runs the program where it finds nothing of this machine: its self-test, a configuration with and
    /// without a mistake, its errors without a resolver and without certificates, and transfers through
    /// three tunnels. Its SSH client runs a program on OpenSSH's server.
    pub(crate) fn run(&self) -> Result<String> {
        let room = TrialRoom::create(&self.program, self.emulator.as_ref())?;
        let version = PackageGraph::load()?.version("adit")?.to_owned();
        let told = room.output(&["--version"])?;
        ensure!(told.contains(&version), "`adit --version` says {told}");
        let told = room.output(&["up", "--once"])?;
        ensure!(
            told.contains("every byte correct"),
            "`adit up` transferred nothing:\n{told}"
        );
        check_configurations(&room)?;
        // Wine has the resolver and the certificates of this machine.
        if room.is_empty_root() {
            check_missing_resolver(&room)?;
            check_missing_certificates(&room)?;
        }
        let (by, amount) = match &self.emulator {
            None => ("natively".to_owned(), AMOUNT),
            Some(Emulator::Wine(_)) => ("in wine".to_owned(), WINE_AMOUNT),
            Some(Emulator::Qemu(path)) => {
                let name = path.file_name().unwrap_or_default();
                (format!("in {}", name.display()), EMULATED_AMOUNT)
            }
        };
        let mut notes = Vec::new();
        for tunnel in TUNNELS {
            let took = carry_through(&room, tunnel, amount).context(tunnel.0)?;
            let rate = 2.0 * amount as f64 / 1e6 / took.as_secs_f64();
            notes.push(format!("{} {rate:.0} MB/s", tunnel.0));
        }
        check_ssh_client(&room).context("adit ssh")?;
        notes.push("adit ssh against OpenSSH".to_owned());
        Ok(format!("{by}; {}", notes.join(", ")))
    }
}

/// Checks a file without a mistake, and one with a mistake.
fn check_configurations(room: &TrialRoom) -> Result<()> {
    room.write_file("right.toml", CONFIG)?;
    room.output(&["check", "-c", "right.toml"])?;
    room.write_file("wrong.toml", &format!("{CONFIG}{MISTAKE}"))?;
    let why = room.error_of(&["check", "-c", "wrong.toml"])?;
    ensure!(
        why.contains("wrong.toml") && why.contains("sss"),
        "the error of a wrong file does not name the mistake:\n{why}"
    );
    Ok(())
}

/// Looks up a name without `/etc/resolv.conf`.
fn check_missing_resolver(room: &TrialRoom) -> Result<()> {
    let url = format!("ss://2022-blake3-aes-128-gcm:{KEY}@{NO_NAME}:8388");
    let output = room.run(&["doctor", &url])?;
    let told = String::from_utf8_lossy(&output.stdout);
    let all = format!("{told}{}", String::from_utf8_lossy(&output.stderr));
    ensure!(
        !output.status.success() && all.contains(NO_NAME) && all.contains("resolv.conf"),
        "the error of a machine without a resolver does not say so:\n{all}"
    );
    Ok(())
}

/// Connects by HTTPS without certificate authorities.
fn check_missing_certificates(room: &TrialRoom) -> Result<()> {
    // The system accepts the connection, which is all that comes before TLS.
    let server = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("https://{}/subscription", server.local_addr()?);
    let why = room.error_of(&["client", &url])?;
    ensure!(
        why.contains("certificate authorities"),
        "the error of a machine without certificates does not say so:\n{why}"
    );
    Ok(())
}

/// Runs a program on OpenSSH's server: with input, output and an exit code.
fn check_ssh_client(room: &TrialRoom) -> Result<()> {
    let server = OpensshServer::start()?;
    room.copy_file(&server.key(), "key")?;
    let (port, host) = (
        server.port.to_string(),
        format!("{}@127.0.0.1", server.user),
    );
    let mut command = room.command(&[
        "ssh",
        "-F",
        "none",
        "-i",
        "key",
        "-p",
        &port,
        "-o",
        "IdentityAgent=none",
        "-o",
        "BatchMode=yes",
        "-o",
        "StrictHostKeyChecking=accept-new",
        "-o",
        "UserKnownHostsFile=known_ssh",
        &host,
        "sha256sum; echo error >&2; exit 7",
    ]);
    let mut client = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = client.stdin.take().context("no standard input")?;
    let sent: Vec<u8> = (0..SSH_INPUT).map(|at| (at % 251) as u8).collect();
    let sum = hex(&Sha256::digest(&sent));
    let writer = thread::spawn(move || input.write_all(&sent));
    let output = client.wait_with_output()?;
    let written = writer.join();
    let (told, why) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    ensure!(
        told.starts_with(&sum) && why.contains("error") && output.status.code() == Some(7),
        "{}; input {written:?}\n{told}{why}server:\n{}",
        output.status,
        server.log_so_far()
    );
    Ok(())
}

/// Carries `amount` bytes in both directions through a server and a client. Returns the time.
fn carry_through(room: &TrialRoom, tunnel: (&str, &str, &str), amount: u64) -> Result<Duration> {
    let (_, url, options) = tunnel;
    let url = url.replace("KEY", KEY);
    let behind = TransferServer::start(amount)?;
    let listener = format!("{url}127.0.0.1:0?allow_private=all");
    let server = RunningProgram::start(room.command(&["run", &listener]))?;
    let hop = format!("{url}{}?{options}", server.address);
    let forwarder = format!("tcp://127.0.0.1:0/{}", behind.address);
    let client = RunningProgram::start(room.command(&["run", &forwarder, &hop]))?;
    let start = Instant::now();
    let done = transfer(client.address, amount);
    let took = start.elapsed();
    done.with_context(|| {
        format!(
            "server:\n{}client:\n{}",
            server.log_so_far(),
            client.log_so_far()
        )
    })?;
    Ok(took)
}
