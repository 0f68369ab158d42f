//! What is changed there, and what is told of a single path.

use adit_ssh_proto::sftp::{Extension, FileAttrs};

use super::command::{Command, What};
use super::interpreter::Interpreter;
use super::list::{amount, long};
use crate::copy::{Fault, expand, plain, rename, shown};

impl Interpreter {
    /// Does what takes paths and carries nothing.
    pub(super) async fn change(&mut self, command: &Command<'_>) -> Result<(), Fault> {
        let first = command.operands.first().map_or(&b""[..], Vec::as_slice);
        let second = command.operands.get(1).map_or(&b""[..], Vec::as_slice);
        match command.what {
            What::Rename => {
                let (from, to) = (self.there(first).await?, self.there(second).await?);
                Ok(rename(&self.host.remote, &from, &to).await?)
            }
            What::Symlink => {
                let (target, link) = (plain(first), self.there(second).await?);
                Ok(self.host.remote.symlink(&target, &link).await?)
            }
            What::HardLink => {
                if !self.host.remote.supports(Extension::HardLink) {
                    return Err(Fault::unfit("the server cannot; ln -s makes another kind"));
                }
                let (from, to) = (self.there(first).await?, self.there(second).await?);
                Ok(self.host.remote.hard_link(&from, &to).await?)
            }
            What::Df => {
                let path = self.there(first).await?;
                self.file_system(&path, command).await
            }
            What::Mkdir => {
                for word in command.operands {
                    let path = self.there(word).await?;
                    let outcome = self.make(&path, command.has(b'p')).await;
                    outcome.or_else(|fault| self.how.skip(&shown(&path), fault))?;
                }
                Ok(())
            }
            What::Chmod | What::Chown | What::Chgrp => {
                let text = shown(first);
                let radix = if command.what == What::Chmod { 8 } else { 10 };
                let number = u32::from_str_radix(&text, radix)
                    .map_err(|_| Fault::unfit(format!("`{text}` is no number")))?;
                let rest = command.operands.get(1..).unwrap_or_default();
                self.each(rest, command, number).await
            }
            _ => self.each(command.operands, command, 0).await,
        }
    }

    /// Does it with each file that the patterns stand for.
    async fn each(
        &mut self,
        words: &[Vec<u8>],
        command: &Command<'_>,
        number: u32,
    ) -> Result<(), Fault> {
        for word in words {
            let pattern = self.pattern(word).await?;
            for path in expand(&pattern, &mut self.host.remote).await? {
                let outcome = self.one(&path, command, number).await;
                outcome.or_else(|fault| self.how.skip(&shown(&path), fault))?;
            }
        }
        Ok(())
    }

    async fn one(&self, path: &[u8], command: &Command<'_>, number: u32) -> Result<(), Fault> {
        let remote = &self.host.remote;
        let mut attrs = FileAttrs::default();
        match command.what {
            What::Rm => return Ok(remote.remove_file(path).await?),
            What::Rmdir => return Ok(remote.remove_dir(path).await?),
            What::Stat => {
                let found = remote.lstat(path).await?;
                println!("{}", long(&found, path));
                return Ok(());
            }
            What::Chmod => attrs.permissions = Some(number & 0o7777),
            _ => {
                let found = match command.has(b'h') {
                    true => remote.lstat(path).await?,
                    false => remote.stat(path).await?,
                };
                let (user, group) = found
                    .owner
                    .ok_or_else(|| Fault::unfit("the server does not tell whose it is"))?;
                attrs.owner = Some(match command.what {
                    What::Chown => (number, group),
                    _ => (user, number),
                });
            }
        }
        match command.has(b'h') {
            false => Ok(remote.set_stat(path, attrs).await?),
            true if remote.supports(Extension::LSetStat) => {
                Ok(remote.set_lstat(path, attrs).await?)
            }
            true => Err(Fault::unfit("the server follows links")),
        }
    }

    /// Makes a folder, with those above it if they are wanted.
    async fn make(&self, path: &[u8], above: bool) -> Result<(), Fault> {
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

    async fn file_system(&self, path: &[u8], command: &Command<'_>) -> Result<(), Fault> {
        if !self.host.remote.supports(Extension::StatVfs) {
            return Err(Fault::unfit("the server does not tell"));
        }
        let found = self.host.remote.stat_vfs(path).await?;
        let (unit, all, free, left) = match command.has(b'i') {
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
        let text = |value: u64| match (command.has(b'h'), command.has(b'i')) {
            (true, _) => amount(value),
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
