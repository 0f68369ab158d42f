//! Remote operations that take more than one request.

use adit_sftp::SftpError;
use adit_ssh_proto::sftp::{Extension, FileAttrs};

use super::{CopyError, Remote};

/// Returns a path without its `~`: relative paths start in the home folder anyway.
pub(crate) async fn at_home(remote: &Remote, path: &[u8]) -> Result<Vec<u8>, CopyError> {
    if !path.starts_with(b"~") {
        return Ok(path.to_vec());
    }
    if remote.supports(Extension::ExpandPath) {
        // The rest stays as typed, so that no server chooses the name of a copy.
        let end = path.iter().position(|byte| *byte == b'/');
        let (home, rest) = path.split_at(end.unwrap_or(path.len()));
        let mut path = remote.expand_path(home).await?;
        path.extend_from_slice(rest);
        return Ok(path);
    }
    match path.strip_prefix(b"~/") {
        Some(rest) => Ok(rest.to_vec()),
        None if path == b"~" => Ok(b".".to_vec()),
        None => Err(CopyError::other(
            "the server cannot resolve the home of another user",
        )),
    }
}

/// Renames a file. An existing file with the new name is replaced if the server supports it.
pub(crate) async fn rename(remote: &Remote, from: &[u8], to: &[u8]) -> Result<(), SftpError> {
    match remote.supports(Extension::PosixRename) {
        true => remote.posix_rename(from, to).await,
        false => remote.rename(from, to).await,
    }
}

/// Creates a folder that its owner can write to, unless it exists.
pub(super) async fn make_folder(remote: &Remote, path: &[u8], mode: u32) -> Result<(), SftpError> {
    let attrs = FileAttrs {
        permissions: Some(mode & 0o777 | 0o700),
        ..FileAttrs::default()
    };
    match remote.create_dir(path, attrs).await {
        Err(why) if why.is_fatal() || !remote.is_dir(path).await? => Err(why),
        _ => Ok(()),
    }
}
