//! The place where a program is tried, with nothing of this machine that it could depend on.
//!
//! For Linux that is a folder with the program alone, which becomes its root (`chroot`, in a user
//! namespace if this is not root): no libraries, no resolver configuration, no certificates, no
//! `/proc`. An emulator of processors is a second static file there. For Windows it is wine's drive C,
//! with the program at its root.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::emulator::Emulator;
use crate::command::{CommandRun, target_dir};
use crate::windows;

/// Time in which a program must listen. An emulator on a loaded machine translates for seconds.
const START: Duration = Duration::from_secs(60);
/// The names of the program and of the emulator in an empty root.
const PROGRAM: &str = "/adit";
const EMULATOR: &str = "/emulator";

/// A folder in which a program runs; it is removed with this value.
#[derive(Debug)]
pub(super) struct TrialRoom {
    folder: PathBuf,
    kind: RoomKind,
}

#[derive(Debug)]
enum RoomKind {
    EmptyRoot {
        is_emulated: bool,
        is_root: bool,
    },
    /// The settings of wine; the folder is on one of its drives.
    Wine {
        settings: PathBuf,
    },
}

impl TrialRoom {
    /// Copies a program, and the emulator that it needs, into a new room.
    pub(super) fn create(program: &Path, emulator: Option<&Emulator>) -> Result<Self> {
        let name = format!("trial-{}", std::process::id());
        let room = match emulator {
            Some(Emulator::Wine(settings)) => Self {
                folder: settings.join("drive_c").join(name),
                kind: RoomKind::Wine {
                    settings: settings.clone(),
                },
            },
            None | Some(Emulator::Qemu(_)) => Self {
                folder: target_dir().join("xtask").join(name),
                kind: RoomKind::EmptyRoot {
                    is_emulated: emulator.is_some(),
                    is_root: CommandRun::new("id", ["-u"]).run_captured("id")?.trim() == "0",
                },
            },
        };
        let _ = fs::remove_dir_all(&room.folder);
        fs::create_dir_all(&room.folder)?;
        fs::copy(program, room.program())?;
        if let Some(Emulator::Qemu(emulator)) = emulator {
            fs::copy(emulator, room.path_of(EMULATOR))?;
        }
        Ok(room)
    }

    /// Returns true if nothing but the program is in the room.
    pub(super) fn is_empty_root(&self) -> bool {
        matches!(self.kind, RoomKind::EmptyRoot { .. })
    }

    /// Writes a file into the folder in which the program runs.
    pub(super) fn write_file(&self, name: &str, content: &str) -> Result<()> {
        let path = self.path_of(name);
        fs::write(&path, content).with_context(|| path.display().to_string())
    }

    /// Copies a file into the folder in which the program runs, with its mode.
    pub(super) fn copy_file(&self, from: &Path, name: &str) -> Result<()> {
        let copied = fs::copy(from, self.path_of(name));
        copied.with_context(|| from.display().to_string())?;
        Ok(())
    }

    fn path_of(&self, inside: &str) -> PathBuf {
        self.folder.join(inside.trim_start_matches('/'))
    }

    fn program(&self) -> PathBuf {
        match self.kind {
            RoomKind::EmptyRoot { .. } => self.path_of(PROGRAM),
            RoomKind::Wine { .. } => self.path_of("adit.exe"),
        }
    }

    /// Returns a command of the program in its room, without the variables of this environment.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut words: Vec<OsString> = Vec::new();
        // Debian keeps `chroot` in sbin, which the PATH of an ordinary user does not include.
        let mut variables = vec![("PATH", OsString::from("/usr/sbin:/usr/bin:/sbin:/bin"))];
        match &self.kind {
            RoomKind::EmptyRoot {
                is_emulated,
                is_root,
            } => {
                variables.push(("HOME", "/".into()));
                if !is_root {
                    words.extend(["unshare", "--user", "--map-root-user"].map(OsString::from));
                }
                words.extend(["chroot".into(), self.folder.clone().into()]);
                words.extend(is_emulated.then(|| EMULATOR.into()));
                words.push(PROGRAM.into());
            }
            RoomKind::Wine { settings } => {
                variables.extend(windows::wine_settings(settings));
                words.extend([windows::WINE64.into(), self.program().into()]);
            }
        }
        let mut command = Command::new("env");
        command
            .args(words)
            .args(args)
            .env_clear()
            .envs(variables)
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        command
    }

    /// Runs the program until it ends.
    pub(super) fn run(&self, args: &[&str]) -> Result<Output> {
        let mut command = self.command(args);
        let program = command.get_program().display().to_string();
        command.output().context(program)
    }

    /// Runs the program until it ends. Returns its standard output.
    pub(super) fn output(&self, args: &[&str]) -> Result<String> {
        let output = self.run(args)?;
        let (told, why) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        ensure!(
            output.status.success(),
            "`adit {}`: {}\n{told}{why}",
            args.join(" "),
            output.status
        );
        Ok(told.into_owned())
    }

    /// Runs the program until it ends, which has to be an error. Returns its standard error.
    pub(super) fn error_of(&self, args: &[&str]) -> Result<String> {
        let output = self.run(args)?;
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            output.status.code().is_some_and(|code| code != 0),
            "`adit {}` did not fail properly: {}\n{why}",
            args.join(" "),
            output.status
        );
        Ok(why)
    }
}

impl Drop for TrialRoom {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A process that listens, and ends with this value.
pub(super) struct RunningProgram {
    child: Child,
    pub(super) address: SocketAddr,
    lines: mpsc::Receiver<String>,
}

impl RunningProgram {
    pub(super) fn start(mut command: Command) -> Result<Self> {
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

    pub(super) fn log_so_far(&self) -> String {
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
