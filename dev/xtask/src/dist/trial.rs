//! Runs a program of an archive where nothing but the file exists: no libraries, no resolver
//! configuration, no certificates, no `/proc`.
//!
//! The folder with the program becomes its root (`chroot`, in a user namespace if this is not root).
//! Programs of other processors run in an emulator, which is a second static file there.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::transfer::{TransferServer, transfer};
use crate::command::{CommandRun, root, target_dir};
use crate::package_graph::PackageGraph;

/// Time in which a program must listen. An emulator on a loaded machine translates for seconds.
const START: Duration = Duration::from_secs(60);
/// Bytes in each direction of a transfer, without and with an emulator.
const AMOUNT: u64 = 1 << 30;
const EMULATED_AMOUNT: u64 = 64 << 20;
const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";
/// The name of the program in the empty root.
const INSIDE: &str = "/adit";
/// A name that only a DNS server could know, and does not exist (RFC 6761).
const NO_NAME: &str = "name.invalid";

/// A tunnel that the trial carries bytes through: its name, the URL of its server, and the options of
/// the client's URL.
const TUNNELS: [(&str, &str, &str); 3] = [
    ("ss", "ss://2022-blake3-aes-128-gcm:KEY@", ""),
    (
        "ssh",
        "ssh://me:secret@",
        "agent=false&strict=accept-new&known_hosts=@/known_hosts",
    ),
    ("kcp", "ss+kcp://2022-blake3-aes-128-gcm:KEY@", ""),
];

/// A program, and the emulator that runs it.
#[derive(Debug)]
pub(crate) struct ProgramUnderTrial {
    program: PathBuf,
    emulator: Option<PathBuf>,
}

impl ProgramUnderTrial {
    /// Takes a program that this machine runs, by `emulator` if there is one.
    pub(crate) fn new(program: PathBuf, emulator: Option<PathBuf>) -> Self {
        Self { program, emulator }
    }

    /// Runs the program among this machine's files, and returns its standard output.
    pub(crate) fn output(&self, args: &[&str]) -> Result<String> {
        let words = self.emulator.iter().chain([&self.program]);
        let mut words = words.map(|path| path.as_os_str());
        let first = words.next().context("no program")?;
        let output = Command::new(first)
            .args(words)
            .args(args)
            .stdin(Stdio::null())
            .output()
            .with_context(|| first.display().to_string())?;
        let (told, why) = (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        ensure!(output.status.success(), "`adit {}`: {why}", args.join(" "));
        Ok(told)
    }

    /// Runs the program in an empty root: its self-test, its errors without a resolver and without
    /// certificates, and transfers through three tunnels.
    pub(crate) fn run(&self) -> Result<String> {
        let room = EmptyRoot::create(self)?;
        let version = PackageGraph::load()?.version("adit")?.to_owned();
        let told = room.output(&["--version"])?;
        ensure!(told.contains(&version), "`adit --version` says {told}");
        let told = room.output(&["up", "--once"])?;
        ensure!(
            told.contains("every byte correct"),
            "`adit up` transferred nothing:\n{told}"
        );
        room.check_missing_resolver()?;
        room.check_missing_certificates()?;
        let mut notes = Vec::new();
        for tunnel in TUNNELS {
            let amount = self.emulator.as_ref().map_or(AMOUNT, |_| EMULATED_AMOUNT);
            let took = room.check_tunnel(tunnel, amount).context(tunnel.0)?;
            let rate = 2.0 * amount as f64 / 1e6 / took.as_secs_f64();
            notes.push(format!("{} {rate:.0} MB/s", tunnel.0));
        }
        let by = match &self.emulator {
            None => "natively".to_owned(),
            Some(path) => format!("in {}", path.file_name().unwrap_or_default().display()),
        };
        Ok(format!("{by}; {}", notes.join(", ")))
    }
}

/// A folder with the program alone, which is the root of its processes.
#[derive(Debug)]
struct EmptyRoot {
    folder: PathBuf,
    emulated: bool,
    is_root: bool,
}

impl EmptyRoot {
    fn create(trial: &ProgramUnderTrial) -> Result<Self> {
        let name = format!("empty-root-{}", std::process::id());
        let room = Self {
            folder: target_dir().join("xtask").join(name),
            emulated: trial.emulator.is_some(),
            is_root: CommandRun::new("id", ["-u"]).run_captured("id")?.trim() == "0",
        };
        let _ = fs::remove_dir_all(&room.folder);
        fs::create_dir_all(&room.folder)?;
        fs::copy(&trial.program, room.path_of(INSIDE))?;
        if let Some(emulator) = &trial.emulator {
            fs::copy(emulator, room.path_of("/emulator"))?;
        }
        Ok(room)
    }

    fn path_of(&self, inside: &str) -> PathBuf {
        self.folder.join(inside.trim_start_matches('/'))
    }

    /// Returns a command of the program in its root, without any variable of the environment.
    fn command(&self, args: &[&str]) -> Command {
        let mut words = Vec::new();
        if !self.is_root {
            words.extend(["unshare", "--user", "--map-root-user"]);
        }
        let folder = self.folder.to_string_lossy();
        words.extend(["chroot", &*folder]);
        if self.emulated {
            words.push("/emulator");
        }
        words.push(INSIDE);
        words.extend(args);
        // Debian keeps `chroot` in sbin, which the PATH of an ordinary user does not include.
        let mut command = Command::new("env");
        command
            .args(["-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"])
            .args(words)
            .current_dir(root())
            .stdin(Stdio::null());
        command
    }

    /// Runs the program until it ends. Returns its standard output.
    fn output(&self, args: &[&str]) -> Result<String> {
        let output = self.command(args).output().context("chroot")?;
        let (told, why) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        ensure!(
            output.status.success(),
            "`adit {}` in an empty root: {}\n{told}{why}",
            args.join(" "),
            output.status
        );
        Ok(told.into_owned())
    }

    /// Runs the program until it ends, which has to be an error. Returns its standard error.
    fn error_of(&self, args: &[&str]) -> Result<String> {
        let output = self.command(args).output().context("chroot")?;
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            output.status.code().is_some_and(|code| code != 0),
            "`adit {}` in an empty root did not fail properly: {}\n{why}",
            args.join(" "),
            output.status
        );
        Ok(why)
    }

    /// Looks up a name without `/etc/resolv.conf`.
    fn check_missing_resolver(&self) -> Result<()> {
        let url = format!("ss://2022-blake3-aes-128-gcm:{KEY}@{NO_NAME}:8388");
        let output = self.command(&["doctor", &url]).output().context("chroot")?;
        let told = String::from_utf8_lossy(&output.stdout);
        let all = format!("{told}{}", String::from_utf8_lossy(&output.stderr));
        ensure!(
            !output.status.success() && all.contains(NO_NAME) && all.contains("resolv.conf"),
            "the error of a machine without a resolver does not say so:\n{all}"
        );
        Ok(())
    }

    /// Connects by HTTPS without certificate authorities.
    fn check_missing_certificates(&self) -> Result<()> {
        // The system accepts the connection, which is all that comes before TLS.
        let server = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("https://{}/subscription", server.local_addr()?);
        let why = self.error_of(&["client", &url])?;
        ensure!(
            why.contains("certificate authorities"),
            "the error of a machine without certificates does not say so:\n{why}"
        );
        Ok(())
    }

    /// Carries `amount` bytes in both directions through a server and a client. Returns the time.
    fn check_tunnel(&self, tunnel: (&str, &str, &str), amount: u64) -> Result<Duration> {
        let (_, url, options) = tunnel;
        let url = url.replace("KEY", KEY);
        let behind = TransferServer::start(amount)?;
        let listener = format!("{url}127.0.0.1:0?allow_private=all");
        let server = RunningProgram::start(self.command(&["run", &listener]))?;
        let hop = format!("{url}{}?{options}", server.address);
        let forwarder = format!("tcp://127.0.0.1:0/{}", behind.address);
        let client = RunningProgram::start(self.command(&["run", &forwarder, &hop]))?;
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
}

impl Drop for EmptyRoot {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A process that listens, and ends with this value.
struct RunningProgram {
    child: Child,
    address: SocketAddr,
    lines: mpsc::Receiver<String>,
}

impl RunningProgram {
    fn start(mut command: Command) -> Result<Self> {
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.context("cannot start the program")?;
        let stderr = child.stderr.take().context("no standard error")?;
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                // The log is read on, so that the program never waits for a reader.
                let _ = send.send(line);
            }
        });
        let address = SocketAddr::from(([0; 4], 0));
        let mut running = Self {
            child,
            address,
            lines,
        };
        let start = Instant::now();
        let mut heard = String::new();
        while let Some(left) = START.checked_sub(start.elapsed()) {
            let Ok(line) = running.lines.recv_timeout(left) else {
                break;
            };
            heard = format!("{heard}{line}\n");
            if let Some(at) = line.strip_prefix("listening on ") {
                running.address = at.trim().parse().with_context(|| line.clone())?;
                return Ok(running);
            }
        }
        bail!("the program does not listen:\n{heard}")
    }

    fn log_so_far(&self) -> String {
        self.lines.try_iter().map(|line| line + "\n").collect()
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // The process belongs to this trial and has no state to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
