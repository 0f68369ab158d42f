//! Open directories: their entries, with a line for users.

use std::ffi::CStr;
use std::sync::Mutex;

use adit_ssh_proto::sftp::FileAttrs;
use rustix::fs::{AtFlags, Dir, Stat};
use rustix::io::Errno;

use super::attributes::{attrs, mode_bits, set_open};
use super::entries::Entries;
use super::owner_names::OwnerNames;
use crate::listing::Line;

/// An open directory of a [`FileTree`](super::FileTree).
#[derive(Debug)]
pub struct OpenDirectory(Mutex<Dir>);

impl OpenDirectory {
    pub(super) const fn new(dir: Dir) -> Self {
        Self(Mutex::new(dir))
    }

    fn dir(&mut self) -> &mut Dir {
        self.0
            .get_mut()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn stat(&mut self) -> Result<Stat, Errno> {
        self.dir().stat()
    }

    pub(super) fn set_stat(&mut self, attrs: &FileAttrs) -> Result<(), Errno> {
        set_open(self.dir().fd()?, attrs)
    }

    /// Adds the next entries.
    pub(super) fn list(&mut self, owners: &mut OwnerNames, now: i64, entries: &mut Entries<'_>) {
        let dir = self.dir();
        while !entries.is_full() {
            // An error in the middle is the end: the entries before it are right.
            let Some(Ok(entry)) = dir.read() else {
                break;
            };
            let name = entry.file_name();
            // An entry that was removed meanwhile is skipped.
            let Ok(stat) = stat_of(dir, name) else {
                continue;
            };
            let line = line_of(&stat, owners).format(now);
            entries.push_with_line(name.to_bytes(), &line, &attrs(&stat));
        }
    }
}

fn stat_of(folder: &Dir, name: &CStr) -> Result<Stat, Errno> {
    rustix::fs::statat(folder.fd()?, name, AtFlags::SYMLINK_NOFOLLOW)
}

#[allow(
    clippy::useless_conversion,
    reason = "other types on other systems than Linux"
)]
fn line_of(stat: &Stat, owners: &mut OwnerNames) -> Line {
    let user = owners.user(stat.st_uid).map(str::to_owned);
    let group = owners.group(stat.st_gid).map(str::to_owned);
    Line {
        mode: mode_bits(stat),
        links: stat.st_nlink.into(),
        owner: [
            user.unwrap_or_else(|| stat.st_uid.to_string()),
            group.unwrap_or_else(|| stat.st_gid.to_string()),
        ],
        size: stat.st_size,
        modified: stat.st_mtime,
    }
}
