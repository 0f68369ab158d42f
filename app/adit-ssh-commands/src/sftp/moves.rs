//! Files from here to there and back.

use std::path::Path;

use super::command::Command;
use super::interpreter::Interpreter;
use crate::copy::{
    Fault, Job, Local, at_home, carry, expand, join, name_here, native, octets, plain,
};

impl Interpreter {
    pub(super) async fn get(&mut self, command: &Command<'_>) -> Result<(), Fault> {
        let [from, to @ ..] = command.operands else {
            return Ok(());
        };
        let from = self.pattern(from).await?;
        let to = to.first().map(|word| native(&plain(word)));
        self.get_pattern(&from, to.as_deref()).await
    }

    pub(super) async fn get_many(&mut self, command: &Command<'_>) -> Result<(), Fault> {
        for word in command.operands {
            let from = self.pattern(word).await?;
            self.get_pattern(&from, None).await?;
        }
        Ok(())
    }

    /// A pattern there, from where we are.
    pub(super) async fn pattern(&self, word: &[u8]) -> Result<Vec<u8>, Fault> {
        let word = at_home(&self.host.remote, word).await?;
        if word.starts_with(b"/") {
            return Ok(word);
        }
        // The folder's own name is no pattern.
        let mut folder = Vec::with_capacity(self.folder.len());
        for byte in &self.folder {
            if matches!(byte, b'*' | b'?' | b'[' | b'\\') {
                folder.push(b'\\');
            }
            folder.push(*byte);
        }
        Ok(join(&folder, &word))
    }

    /// Copies what a pattern stands for to `to`, or into that folder, or to here.
    pub(super) async fn get_pattern(
        &mut self,
        from: &[u8],
        to: Option<&Path>,
    ) -> Result<(), Fault> {
        let found = expand(from, &mut self.host.remote).await?;
        let into = to.is_none_or(Path::is_dir);
        let to = to.unwrap_or_else(|| Path::new(""));
        if !into && (found.len() > 1 || octets(to).ends_with(b"/")) {
            return Err(Fault::unfit(format!("`{}` is no folder", to.display())));
        }
        let mut jobs = Vec::with_capacity(found.len());
        for from in found {
            let to = match into {
                true => to.join(native(&self.host.own_name(&from).await?)),
                false => to.to_owned(),
            };
            jobs.push(Job::Get {
                from,
                attrs: None,
                to,
                depth: 0,
            });
        }
        carry(&self.host.remote, &self.host.session, jobs, &self.how).await
    }

    pub(super) async fn put(&self, command: &Command<'_>) -> Result<(), Fault> {
        let [from, to @ ..] = command.operands else {
            return Ok(());
        };
        let to = match to.first() {
            Some(word) => Some(self.there(word).await?),
            None => None,
        };
        self.put_pattern(from, to).await
    }

    pub(super) async fn put_many(&self, command: &Command<'_>) -> Result<(), Fault> {
        for word in command.operands {
            self.put_pattern(word, None).await?;
        }
        Ok(())
    }

    async fn put_pattern(&self, from: &[u8], to: Option<Vec<u8>>) -> Result<(), Fault> {
        let found = expand(from, &mut Local).await?;
        let into = match &to {
            None => true,
            Some(path) => self.host.remote.is_dir(path).await?,
        };
        let to = to.unwrap_or_else(|| self.folder.clone());
        if !into && (found.len() > 1 || to.ends_with(b"/")) {
            return Err(Fault::unfit("the target is no folder"));
        }
        let jobs = found.into_iter().map(|from| {
            let path = native(&from);
            let to = match into {
                true => join(&to, &name_here(&path)),
                false => to.clone(),
            };
            Job::Put {
                from: path,
                to,
                depth: 0,
            }
        });
        let jobs = jobs.collect();
        carry(&self.host.remote, &self.host.session, jobs, &self.how).await
    }
}
