//! Copies from one host to another, through this machine.

use adit_ssh_proto::sftp::{FileAttrs, FileType};

use super::names::{display_path, join_path};
use super::there::make_folder;
use super::tree::MAX_DEPTH;
use super::{CopyError, CopyOptions, Remote};

/// Copies a file, or a folder with its contents. Errors with one file are reported, and the others are copied.
///
/// # Errors
/// One of the sessions failed.
pub(crate) async fn copy_through(
    source: &Remote,
    target: &Remote,
    from: Vec<u8>,
    to: Vec<u8>,
    how: &CopyOptions,
) -> Result<(), CopyError> {
    let mut jobs = vec![(from, to, 0)];
    let mut folders = Vec::new();
    while let Some((from, to, depth)) = jobs.pop() {
        let outcome = copy_one(source, target, &from, &to, depth, how).await;
        match outcome {
            Ok(None) => {}
            Ok(Some((attrs, names))) => {
                let inner =
                    |name: Vec<u8>| (join_path(&from, &name), join_path(&to, &name), depth + 1);
                jobs.extend(names.into_iter().map(inner));
                folders.push((to, attrs));
            }
            Err(fault) => how.report_and_skip(&display_path(&from), fault)?,
        }
    }
    for (path, attrs) in folders.iter().rev().filter(|_| how.preserve) {
        let outcome = target.set_stat(path, *attrs).await;
        outcome.or_else(|fault| how.report_and_skip(&display_path(path), fault))?;
    }
    Ok(())
}

/// Copies a file, or creates a folder. Returns the attributes and the entry names of a folder.
async fn copy_one(
    source: &Remote,
    target: &Remote,
    from: &[u8],
    to: &[u8],
    depth: usize,
    how: &CopyOptions,
) -> Result<Option<(FileAttrs, Vec<Vec<u8>>)>, CopyError> {
    let found = source.stat(from).await?;
    match found.file_kind() {
        Some(FileType::Folder) => {}
        Some(FileType::Regular) | None => {
            copy_file(source, target, from, to, &found, how).await?;
            return Ok(None);
        }
        Some(_) => return Err(CopyError::other("is not a regular file")),
    }
    if !how.recursive {
        return Err(CopyError::other("is a folder (-r copies folders)"));
    }
    if depth >= MAX_DEPTH {
        return Err(CopyError::other("folders are nested too deeply"));
    }
    let entries = source.read_dir(from).await?;
    make_folder(target, to, found.permissions.unwrap_or(0o777)).await?;
    let attrs = FileAttrs {
        permissions: found.permissions.map(|mode| mode & 0o7777),
        times: found.times,
        ..FileAttrs::default()
    };
    let names = entries.into_iter().map(|entry| entry.name).collect();
    Ok(Some((attrs, names)))
}

/// Copies the content of a file.
async fn copy_file(
    source: &Remote,
    target: &Remote,
    from: &[u8],
    to: &[u8],
    attrs: &FileAttrs,
    how: &CopyOptions,
) -> Result<(), CopyError> {
    let options = how.transfer_options().with_attrs(*attrs);
    let mut copy = source.start_copy(from, target, to, &options).await?;
    let mut line = how
        .meter
        .start_file(display_path(from), copy.size(), copy.start());
    while let Some(n) = copy.advance().await? {
        line.add_bytes(n).await;
    }
    line.finish();
    Ok(())
}
