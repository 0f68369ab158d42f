//! The state between commands: where we are there, and how files are carried.

use std::cell::Cell;
use std::io;
use std::process::Command as Process;

use super::command::{Command, What};
use super::help;
use super::input::Input;
use super::words::words;
use crate::args::Sftp;
use crate::copy::{Fault, Host, How, Meter, at_home, join, native, plain, shown};

/// What happens after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The next command.
    Go,
    /// The end.
    Bye,
}

#[derive(Debug)]
pub(super) struct Interpreter {
    pub(super) host: Host,
    /// The folder there that relative paths begin in.
    pub(super) folder: Vec<u8>,
    pub(super) how: How,
    /// What was typed for all commands: -r, -p and -a.
    usual: [bool; 3],
}

impl Interpreter {
    pub(super) async fn new(host: Host, typed: &Sftp) -> Result<Self, Fault> {
        let rate = typed.how.limit.map(|kbit| u64::from(kbit) * 1000 / 8);
        let folder = host.remote.real_path(b".").await?;
        Ok(Self {
            host,
            folder,
            how: How {
                recursive: false,
                preserve: false,
                resume: false,
                meter: Meter::new(typed.way.quiet || typed.batch.is_some(), rate),
                failed: Cell::new(false),
            },
            usual: [typed.how.recursive, typed.how.preserve, typed.resume],
        })
    }

    /// Begins in a folder; a file is fetched, and that is all (`true`).
    pub(super) async fn begin(&mut self, path: &[u8]) -> Result<bool, Fault> {
        let path = at_home(&self.host.remote, path).await?;
        let path = join(&self.folder, &path);
        if self.host.remote.is_dir(&path).await? {
            self.folder = self.host.remote.real_path(&path).await?;
            return Ok(false);
        }
        self.choose(&[]);
        self.get_pattern(&path, None).await?;
        Ok(true)
    }

    /// Whether something went wrong so far.
    pub(super) fn failed(&self) -> bool {
        self.how.failed.get()
    }

    /// Does commands until the end; gives whether one failed that counts.
    pub(super) async fn run(&mut self, input: &mut Input) -> Result<bool, Fault> {
        let mut failed = false;
        while let Some(line) = input.next().await? {
            let mut text = line.trim_ascii();
            let (mut quiet, mut forgiven) = (false, false);
            while let Some((first @ (b'@' | b'-'), rest)) = text.split_first() {
                quiet |= *first == b'@';
                forgiven |= *first == b'-';
                text = rest;
            }
            if !quiet {
                input.show(&line);
            }
            self.how.failed.set(false);
            let next = match self.line(text).await {
                Err(fault) if fault.is_end() => return Err(fault),
                Err(fault) => {
                    self.how.skip(&shown(text), fault)?;
                    Next::Go
                }
                Ok(next) => next,
            };
            let wrong = self.failed() && !forgiven;
            failed |= wrong && !input.is_person();
            if next == Next::Bye || (wrong && input.is_batch()) {
                break;
            }
        }
        Ok(failed)
    }

    async fn line(&mut self, text: &[u8]) -> Result<Next, Fault> {
        if let Some(command) = text.strip_prefix(b"!") {
            return shell(command).map(|()| Next::Go);
        }
        let words = words(text).map_err(Fault::unfit)?;
        if words.is_empty() {
            return Ok(Next::Go);
        }
        let command = Command::read(&words).map_err(Fault::unfit)?;
        self.choose(&command.options);
        match command.what {
            What::Bye => return Ok(Next::Bye),
            What::Get => self.get(&command).await?,
            What::Mget => self.get_many(&command).await?,
            What::Put => self.put(&command).await?,
            What::Mput => self.put_many(&command).await?,
            What::Ls => self.list(&command).await?,
            What::Help => print!("{}", help::TEXT),
            What::Pwd => println!("Remote working directory: {}", shown(&self.folder)),
            What::Version => println!("SFTP protocol version {}", adit_ssh_proto::sftp::VERSION),
            What::Progress => {
                let shows = self.how.meter.turn();
                println!("Progress meter {}", if shows { "on" } else { "off" });
            }
            What::Cd => self.enter(command.operands).await?,
            What::Lcd | What::Lpwd | What::Lls | What::Lmkdir => here(&command)?,
            _ => self.change(&command).await?,
        }
        Ok(Next::Go)
    }

    /// How files are carried by the next command.
    fn choose(&mut self, options: &[u8]) {
        let has = |letters: &[u8]| options.iter().any(|option| letters.contains(option));
        let [recursive, preserve, resume] = self.usual;
        self.how.recursive = recursive || has(b"rR");
        self.how.preserve = preserve || has(b"pP");
        self.how.resume = resume || has(b"a");
    }

    /// A path there that is no pattern.
    pub(super) async fn there(&self, word: &[u8]) -> Result<Vec<u8>, Fault> {
        let path = at_home(&self.host.remote, &plain(word)).await?;
        Ok(join(&self.folder, &path))
    }

    async fn enter(&mut self, operands: &[Vec<u8>]) -> Result<(), Fault> {
        let path = match operands.first() {
            Some(word) => self.there(word).await?,
            None => self.host.remote.real_path(b".").await?,
        };
        let path = self.host.remote.real_path(&path).await?;
        // A path of what is not there may be real as well.
        self.host.remote.stat(&path).await?;
        match self.host.remote.is_dir(&path).await? {
            true => {
                self.folder = path;
                Ok(())
            }
            false => Err(Fault::unfit("is no folder")),
        }
    }
}

/// Commands of this machine.
fn here(command: &Command<'_>) -> io::Result<()> {
    let operand = command.operands.first().map(|word| native(&plain(word)));
    match command.what {
        What::Lcd => {
            let home = || std::env::var_os("HOME").unwrap_or_else(|| "/".into());
            std::env::set_current_dir(operand.unwrap_or_else(|| home().into()))
        }
        What::Lmkdir => operand.map_or(Ok(()), std::fs::create_dir),
        What::Lls => {
            let mut process = Process::new("ls");
            process.arg("--").args(operand);
            process.status().map(drop)
        }
        _ => {
            let folder = std::env::current_dir()?;
            println!("Local working directory: {}", folder.display());
            Ok(())
        }
    }
}

/// Runs a command of this machine, or a shell.
fn shell(command: &[u8]) -> Result<(), Fault> {
    use std::os::unix::ffi::OsStrExt;
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let mut process = Process::new(shell);
    let command = command.trim_ascii();
    if !command.is_empty() {
        process.arg("-c").arg(std::ffi::OsStr::from_bytes(command));
    }
    let status = process.status()?;
    match status.success() {
        true => Ok(()),
        false => Err(Fault::unfit(status.to_string())),
    }
}
