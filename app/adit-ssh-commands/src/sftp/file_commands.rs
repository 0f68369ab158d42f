//! Commands that change or show single remote paths.

use adit_ssh_proto::sftp::{Extension, FileAttrs};

use super::command::{Command, CommandKind};
use super::interpreter::Interpreter;
use super::list::{format_long, format_size};
use crate::copy::{CopyError, display_path, expand_pattern, rename, unescape};

impl Interpreter {
    /// Runs a command on paths that transfers no data.
    pub(super) async fn run_change(&mut self, command: &Command<'_>) -> Result<(), CopyError> {
        let first = command.operands.first().map_or(&b""[..], Vec::as_slice);
        let second = command.operands.get(1).map_or(&b""[..], Vec::as_slice);
        match command.kind {
            CommandKind::Rename => {
                let (from, to) = (
                    self.remote_path(first).await?,
                    self.remote_path(second).await?,
                );
                Ok(rename(&self.host.remote, &from, &to).await?)
            }
            CommandKind::Symlink => {
                let (target, link) = (unescape(first), self.remote_path(second).await?);
                Ok(self.host.remote.symlink(&target, &link).await?)
            }
            CommandKind::HardLink => {
                if !self.host.remote.supports(Extension::HardLink) {
                    return Err(CopyError::other(
                        "the server does not support hard links; ln -s creates a symbolic link",
                    ));
                }
                let (from, to) = (
                    self.remote_path(first).await?,
                    self.remote_path(second).await?,
                );
                Ok(self.host.remote.hard_link(&from, &to).await?)
            }
            CommandKind::Df => {
                let path = self.remote_path(first).await?;
                self.print_file_system(&path, command).await
            }
            CommandKind::Mkdir => {
                for word in command.operands {
                    let path = self.remote_path(word).await?;
                    let outcome = self.make_folders(&path, command.has_option(b'p')).await;
                    outcome.or_else(|fault| {
                        self.copy_options
                            .report_and_skip(&display_path(&path), fault)
                    })?;
                }
                Ok(())
            }
            CommandKind::Chmod | CommandKind::Chown | CommandKind::Chgrp => {
                let text = display_path(first);
                let radix = if command.kind == CommandKind::Chmod {
                    8
                } else {
                    10
                };
                let number = u32::from_str_radix(&text, radix)
                    .map_err(|_| CopyError::other(format!("`{text}` is not a number")))?;
                let rest = command.operands.get(1..).unwrap_or_default();
                self.change_matches(rest, command, number).await
            }
            _ => self.change_matches(command.operands, command, 0).await,
        }
    }

    /// Runs a command on each file that matches the patterns.
    async fn change_matches(
        &mut self,
        words: &[Vec<u8>],
        command: &Command<'_>,
        number: u32,
    ) -> Result<(), CopyError> {
        for word in words {
            let pattern = self.resolve_pattern(word).await?;
            for path in expand_pattern(&pattern, &mut self.host.remote).await? {
                let outcome = self.change_path(&path, command, number).await;
                outcome.or_else(|fault| {
                    self.copy_options
                        .report_and_skip(&display_path(&path), fault)
                })?;
            }
        }
        Ok(())
    }

    async fn change_path(
        &self,
        path: &[u8],
        command: &Command<'_>,
        number: u32,
    ) -> Result<(), CopyError> {
        let remote = &self.host.remote;
        let mut attrs = FileAttrs::default();
        match command.kind {
            CommandKind::Rm => return Ok(remote.remove_file(path).await?),
            CommandKind::Rmdir => return Ok(remote.remove_dir(path).await?),
            CommandKind::Stat => {
                let found = remote.lstat(path).await?;
                println!("{}", format_long(&found, path));
                return Ok(());
            }
            CommandKind::Chmod => attrs.permissions = Some(number & 0o7777),
            _ => {
                let found = match command.has_option(b'h') {
                    true => remote.lstat(path).await?,
                    false => remote.stat(path).await?,
                };
                let (user, group) = found
                    .owner
                    .ok_or_else(|| CopyError::other("the server does not report the owner"))?;
                attrs.owner = Some(match command.kind {
                    CommandKind::Chown => (number, group),
                    _ => (user, number),
                });
            }
        }
        match command.has_option(b'h') {
            false => Ok(remote.set_stat(path, attrs).await?),
            true if remote.supports(Extension::LSetStat) => {
                Ok(remote.set_lstat(path, attrs).await?)
            }
            true => Err(CopyError::other("the server cannot change symbolic links")),
        }
    }

    /// Creates a folder and, if `above` is true, its parents.
    async fn make_folders(&self, path: &[u8], above: bool) -> Result<(), CopyError> {
        let attrs = FileAttrs::default();
        if !above {
            return Ok(self.host.remote.create_dir(path, attrs).await?);
        }
        let ends = path.iter().enumerate().skip(1);
        let ends = ends.filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let path = path.get(..end).unwrap_or(path);
            if !self.host.remote.is_dir(path).await? {
                self.host.remote.create_dir(path, attrs).await?;
            }
        }
        Ok(())
    }

    async fn print_file_system(&self, path: &[u8], command: &Command<'_>) -> Result<(), CopyError> {
        if !self.host.remote.supports(Extension::StatVfs) {
            return Err(CopyError::other("the server does not report file systems"));
        }
        let found = self.host.remote.stat_vfs(path).await?;
        let (unit, all, free, left) = match command.has_option(b'i') {
            true => (
                "Inodes",
                found.files,
                found.files_free,
                found.files_available,
            ),
            false => {
                let octets = |blocks: u64| blocks.saturating_mul(found.fragment);
                let [all, free, left] = [found.blocks, found.free, found.available].map(octets);
                ("Size", all, free, left)
            }
        };
        let used = all.saturating_sub(free);
        let part = match used.saturating_add(left) {
            0 => 0,
            whole => (u128::from(used) * 100).div_ceil(u128::from(whole)),
        };
        let text = |value: u64| match (command.has_option(b'h'), command.has_option(b'i')) {
            (true, _) => format_size(value),
            (false, true) => value.to_string(),
            (false, false) => (value / 1024).to_string(),
        };
        println!(
            "{unit:>14} {:>14} {:>14} {:>14}  %Used",
            "Used", "Avail", "(root)"
        );
        println!(
            "{:>14} {:>14} {:>14} {:>14}  {part:>4}%",
            text(all),
            text(used),
            text(left),
            text(free)
        );
        Ok(())
    }
}
