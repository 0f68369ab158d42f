//! Commands that transfer files.

use std::path::Path;

use super::command::Command;
use super::interpreter::Interpreter;
use crate::copy::{
    CopyError, CopyJob, LocalFolders, at_home, expand_pattern, join_path, local_copy_name,
    path_bytes, path_from_bytes, run_jobs, unescape,
};

impl Interpreter {
    /// Runs `get`.
    pub(super) async fn run_get(&mut self, command: &Command<'_>) -> Result<(), CopyError> {
        let [from, to @ ..] = command.operands else {
            return Ok(());
        };
        let from = self.resolve_pattern(from).await?;
        let to = to.first().map(|word| path_from_bytes(&unescape(word)));
        self.download_pattern(&from, to.as_deref()).await
    }

    /// Runs `mget`.
    pub(super) async fn run_mget(&mut self, command: &Command<'_>) -> Result<(), CopyError> {
        for word in command.operands {
            let from = self.resolve_pattern(word).await?;
            self.download_pattern(&from, None).await?;
        }
        Ok(())
    }

    /// Makes a remote pattern absolute.
    pub(super) async fn resolve_pattern(&self, word: &[u8]) -> Result<Vec<u8>, CopyError> {
        let word = at_home(&self.host.remote, word).await?;
        if word.starts_with(b"/") {
            return Ok(word);
        }
        // The name of the folder itself is not a pattern.
        let mut folder = Vec::with_capacity(self.folder.len());
        for byte in &self.folder {
            if matches!(byte, b'*' | b'?' | b'[' | b'\\') {
                folder.push(b'\\');
            }
            folder.push(*byte);
        }
        Ok(join_path(&folder, &word))
    }

    /// Downloads the files that match a pattern to `to`, into that folder, or into the local working directory.
    pub(super) async fn download_pattern(
        &mut self,
        from: &[u8],
        to: Option<&Path>,
    ) -> Result<(), CopyError> {
        let found = expand_pattern(from, &mut self.host.remote).await?;
        let into = to.is_none_or(Path::is_dir);
        let to = to.unwrap_or_else(|| Path::new(""));
        if !into && (found.len() > 1 || path_bytes(to).ends_with(b"/")) {
            return Err(CopyError::other(format!(
                "`{}` is not a folder",
                to.display()
            )));
        }
        let mut jobs = Vec::with_capacity(found.len());
        for from in found {
            let to = match into {
                true => to.join(path_from_bytes(&self.host.copy_name(&from).await?)),
                false => to.to_owned(),
            };
            jobs.push(CopyJob::Get {
                from,
                attrs: None,
                to,
                depth: 0,
            });
        }
        run_jobs(
            &self.host.remote,
            &self.host.session,
            jobs,
            &self.copy_options,
        )
        .await
    }

    pub(super) async fn run_put(&self, command: &Command<'_>) -> Result<(), CopyError> {
        let [from, to @ ..] = command.operands else {
            return Ok(());
        };
        let to = match to.first() {
            Some(word) => Some(self.remote_path(word).await?),
            None => None,
        };
        self.upload_pattern(from, to).await
    }

    pub(super) async fn run_mput(&self, command: &Command<'_>) -> Result<(), CopyError> {
        for word in command.operands {
            self.upload_pattern(word, None).await?;
        }
        Ok(())
    }

    async fn upload_pattern(&self, from: &[u8], to: Option<Vec<u8>>) -> Result<(), CopyError> {
        let found = expand_pattern(from, &mut LocalFolders).await?;
        let into = match &to {
            None => true,
            Some(path) => self.host.remote.is_dir(path).await?,
        };
        let to = to.unwrap_or_else(|| self.folder.clone());
        if !into && (found.len() > 1 || to.ends_with(b"/")) {
            return Err(CopyError::other("the target is not a folder"));
        }
        let jobs = found.into_iter().map(|from| {
            let path = path_from_bytes(&from);
            let to = match into {
                true => join_path(&to, &local_copy_name(&path)),
                false => to.clone(),
            };
            CopyJob::Put {
                from: path,
                to,
                depth: 0,
            }
        });
        let jobs = jobs.collect();
        run_jobs(
            &self.host.remote,
            &self.host.session,
            jobs,
            &self.copy_options,
        )
        .await
    }
}
