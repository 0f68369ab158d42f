//! Interpreter of commands, with the remote working directory and the copy options.

use std::cell::Cell;
use std::io;
use std::process::Command as Process;

use super::command::{Command, CommandKind};
use super::help;
use super::input::CommandInput;
use super::line_words::split_words;
use crate::args::SftpArgs;
use crate::copy::{
    CopyError, CopyOptions, ProgressMeter, SftpHost, at_home, display_path, join_path,
    path_from_bytes, unescape,
};

/// The next step after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    /// Continue with the next command.
    Continue,
    /// End the program.
    Quit,
}

/// The interpreter of a session.
#[derive(Debug)]
pub(super) struct Interpreter {
    pub(super) host: SftpHost,
    /// The remote working directory.
    pub(super) folder: Vec<u8>,
    pub(super) copy_options: CopyOptions,
    /// Options of the command line that apply to all commands: -r, -p and -a.
    default_options: [bool; 3],
}

impl Interpreter {
    pub(super) async fn new(host: SftpHost, typed: &SftpArgs) -> Result<Self, CopyError> {
        let rate = typed.copy_args.limit.map(|kbit| u64::from(kbit) * 1000 / 8);
        let folder = host.remote.real_path(b".").await?;
        Ok(Self {
            host,
            folder,
            copy_options: CopyOptions {
                recursive: false,
                preserve: false,
                resume: false,
                meter: ProgressMeter::new(typed.host_args.quiet || typed.batch.is_some(), rate),
                any_failed: Cell::new(false),
            },
            default_options: [
                typed.copy_args.recursive,
                typed.copy_args.preserve,
                typed.resume,
            ],
        })
    }

    /// Starts in a folder; a file is fetched instead. Returns true if a file was fetched, so that the program ends.
    pub(super) async fn open_start_path(&mut self, path: &[u8]) -> Result<bool, CopyError> {
        let path = at_home(&self.host.remote, path).await?;
        let path = join_path(&self.folder, &path);
        if self.host.remote.is_dir(&path).await? {
            self.folder = self.host.remote.real_path(&path).await?;
            return Ok(false);
        }
        self.apply_options(&[]);
        self.download_pattern(&path, None).await?;
        Ok(true)
    }

    /// Returns true if the last command failed.
    pub(super) fn has_failed(&self) -> bool {
        self.copy_options.any_failed.get()
    }

    /// Runs commands until the end. Returns true if one failed, not counting those that are marked with `-` or
    /// typed by a user.
    pub(super) async fn run(&mut self, input: &mut CommandInput) -> Result<bool, CopyError> {
        let mut failed = false;
        while let Some(line) = input.next_line().await? {
            let mut text = line.trim_ascii();
            let (mut quiet, mut forgiven) = (false, false);
            while let Some((first @ (b'@' | b'-'), rest)) = text.split_first() {
                quiet |= *first == b'@';
                forgiven |= *first == b'-';
                text = rest;
            }
            if !quiet {
                input.echo_command(&line);
            }
            self.copy_options.any_failed.set(false);
            let next = match self.run_line(text).await {
                Err(fault) if fault.is_fatal() => return Err(fault),
                Err(fault) => {
                    self.copy_options
                        .report_and_skip(&display_path(text), fault)?;
                    NextStep::Continue
                }
                Ok(next) => next,
            };
            let wrong = self.has_failed() && !forgiven;
            failed |= wrong && !input.is_interactive();
            if next == NextStep::Quit || (wrong && input.is_batch()) {
                break;
            }
        }
        Ok(failed)
    }

    /// Runs one line.
    async fn run_line(&mut self, text: &[u8]) -> Result<NextStep, CopyError> {
        if let Some(command) = text.strip_prefix(b"!") {
            return run_shell(command).map(|()| NextStep::Continue);
        }
        let words = split_words(text).map_err(CopyError::other)?;
        if words.is_empty() {
            return Ok(NextStep::Continue);
        }
        let command = Command::parse(&words).map_err(CopyError::other)?;
        self.apply_options(&command.options);
        match command.kind {
            CommandKind::Bye => return Ok(NextStep::Quit),
            CommandKind::Get => self.run_get(&command).await?,
            CommandKind::Mget => self.run_mget(&command).await?,
            CommandKind::Put => self.run_put(&command).await?,
            CommandKind::Mput => self.run_mput(&command).await?,
            CommandKind::Ls => self.run_ls(&command).await?,
            CommandKind::Help => print!("{}", help::HELP_TEXT),
            CommandKind::Pwd => {
                println!("Remote working directory: {}", display_path(&self.folder));
            }
            CommandKind::Version => {
                println!("SFTP protocol version {}", adit_ssh_proto::sftp::VERSION);
            }
            CommandKind::Progress => {
                let shows = self.copy_options.meter.toggle();
                println!("Progress meter {}", if shows { "on" } else { "off" });
            }
            CommandKind::Cd => self.change_folder(command.operands).await?,
            CommandKind::Lcd | CommandKind::Lpwd | CommandKind::Lls | CommandKind::Lmkdir => {
                run_local(&command)?;
            }
            _ => self.run_change(&command).await?,
        }
        Ok(NextStep::Continue)
    }

    /// Sets the copy options for the next command.
    fn apply_options(&mut self, options: &[u8]) {
        let has = |letters: &[u8]| options.iter().any(|option| letters.contains(option));
        let [recursive, preserve, resume] = self.default_options;
        self.copy_options.recursive = recursive || has(b"rR");
        self.copy_options.preserve = preserve || has(b"pP");
        self.copy_options.resume = resume || has(b"a");
    }

    /// Returns the absolute remote path for an operand that is not a pattern.
    pub(super) async fn remote_path(&self, word: &[u8]) -> Result<Vec<u8>, CopyError> {
        let path = at_home(&self.host.remote, &unescape(word)).await?;
        Ok(join_path(&self.folder, &path))
    }

    /// Runs `cd`.
    async fn change_folder(&mut self, operands: &[Vec<u8>]) -> Result<(), CopyError> {
        let path = match operands.first() {
            Some(word) => self.remote_path(word).await?,
            None => self.host.remote.real_path(b".").await?,
        };
        let path = self.host.remote.real_path(&path).await?;
        // The server may resolve a path that does not exist.
        self.host.remote.stat(&path).await?;
        match self.host.remote.is_dir(&path).await? {
            true => {
                self.folder = path;
                Ok(())
            }
            false => Err(CopyError::other("is not a folder")),
        }
    }
}

/// Runs a local command (`lcd`, `lls`, `lmkdir`, `lpwd`).
fn run_local(command: &Command<'_>) -> io::Result<()> {
    let operand = command
        .operands
        .first()
        .map(|word| path_from_bytes(&unescape(word)));
    match command.kind {
        CommandKind::Lcd => {
            let home = || std::env::var_os("HOME").unwrap_or_else(|| "/".into());
            std::env::set_current_dir(operand.unwrap_or_else(|| home().into()))
        }
        CommandKind::Lmkdir => operand.map_or(Ok(()), std::fs::create_dir),
        CommandKind::Lls => {
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

/// Runs a command in the local shell, or an interactive shell if it is empty.
fn run_shell(command: &[u8]) -> Result<(), CopyError> {
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
        false => Err(CopyError::other(status.to_string())),
    }
}
