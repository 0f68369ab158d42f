//! From one other machine to another, through this one.

use adit_ssh_proto::sftp::{FileAttrs, FileType};

use super::names::{join, shown};
use super::there::make_folder;
use super::tree::DEEPEST;
use super::{Fault, How, Remote};

/// Copies a file, or a folder with what is in it; what goes wrong with one is told.
///
/// # Errors
/// One of the sessions failed.
pub(crate) async fn through(
    source: &Remote,
    target: &Remote,
    from: Vec<u8>,
    to: Vec<u8>,
    how: &How,
) -> Result<(), Fault> {
    let mut jobs = vec![(from, to, 0)];
    let mut folders = Vec::new();
    while let Some((from, to, depth)) = jobs.pop() {
        let outcome = one(source, target, &from, &to, depth, how).await;
        match outcome {
            Ok(None) => {}
            Ok(Some((attrs, names))) => {
                let inner = |name: Vec<u8>| (join(&from, &name), join(&to, &name), depth + 1);
                jobs.extend(names.into_iter().map(inner));
                folders.push((to, attrs));
            }
            Err(fault) => how.skip(&shown(&from), fault)?,
        }
    }
    for (path, attrs) in folders.iter().rev().filter(|_| how.preserve) {
        let outcome = target.set_stat(path, *attrs).await;
        outcome.or_else(|fault| how.skip(&shown(path), fault))?;
    }
    Ok(())
}

/// Copies a file, or makes a folder and gives its attributes and the names in it.
async fn one(
    source: &Remote,
    target: &Remote,
    from: &[u8],
    to: &[u8],
    depth: usize,
    how: &How,
) -> Result<Option<(FileAttrs, Vec<Vec<u8>>)>, Fault> {
    let found = source.stat(from).await?;
    match found.file_kind() {
        Some(FileType::Folder) => {}
        Some(FileType::Regular) | None => {
            file(source, target, from, to, &found, how).await?;
            return Ok(None);
        }
        Some(_) => return Err(Fault::unfit("is no regular file")),
    }
    if !how.recursive {
        return Err(Fault::unfit("is a folder (-r copies folders)"));
    }
    if depth >= DEEPEST {
        return Err(Fault::unfit("too many folders in folders"));
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

async fn file(
    source: &Remote,
    target: &Remote,
    from: &[u8],
    to: &[u8],
    attrs: &FileAttrs,
    how: &How,
) -> Result<(), Fault> {
    let options = how.options().with_attrs(*attrs);
    let mut copy = source.start_copy(from, target, to, &options).await?;
    let mut line = how.meter.begin(shown(from), copy.size(), copy.start());
    while let Some(n) = copy.advance().await? {
        line.add(n).await;
    }
    line.done();
    Ok(())
}
