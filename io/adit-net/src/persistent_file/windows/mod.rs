//! Files and folders of Windows: created for the user alone, and checked for what other accounts may do with them.

mod access_list;
mod lock;
mod security;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use same_file::Handle;

use access_list::{AccessList, CHANGE, READ_OR_CHANGE};

pub(super) use lock::try_lock;
pub(crate) use security::PrivateSecurity;

/// The user on whose behalf files are read.
#[derive(Debug, Clone)]
pub struct FileOwner {
    /// The user's SID; empty if the system does not report it.
    pub sid: String,
    /// The home directory.
    pub home: PathBuf,
}

impl FileOwner {
    /// Returns the user of this process.
    #[must_use]
    pub fn current() -> Self {
        Self {
            // Without it, only files of the system and the administrators are trusted.
            sid: security::current_user().unwrap_or_default(),
            home: std::env::home_dir().unwrap_or_default(),
        }
    }

    /// Reads a file that determines what is trusted: it belongs to this user, to the system or to the administrators, and
    /// no other account has the right to change it.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] with what to change, and the errors of the system.
    pub fn read_trusted(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let file = open_regular_file(path)?;
        self.check(&file, path, Wanted::Trust)?;
        super::read_whole(file, limit)
    }

    /// Reads a file with a secret: it belongs to this user, to the system or to the administrators, and no other account
    /// has the right to read or change it.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] with what to change, and the errors of the system.
    pub fn read_secret(&self, path: &Path, limit: usize) -> io::Result<String> {
        self.read_secret_checked(path, limit, Wanted::Secret)
    }

    /// Like [`FileOwner::read_secret`], for a file that may belong to another user: an administrator reads the
    /// key of a service that runs as its own user.
    ///
    /// # Errors
    /// See [`FileOwner::read_secret`].
    pub fn read_secret_of_anyone(&self, path: &Path, limit: usize) -> io::Result<String> {
        self.read_secret_checked(path, limit, Wanted::SecretOfAnyone)
    }

    fn read_secret_checked(&self, path: &Path, limit: usize, wanted: Wanted) -> io::Result<String> {
        let file = open_regular_file(path)?;
        self.check(&file, path, wanted)?;
        let text = String::from_utf8(super::read_whole(file, limit)?);
        text.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why.utf8_error()))
    }

    fn check(&self, file: &File, path: &Path, wanted: Wanted) -> io::Result<()> {
        let refused = |why| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        let sddl = security::file_sddl(file)?;
        let path = path.display();
        let Some(list) = AccessList::parse(&sddl) else {
            return refused(format!("its access list is not supported: {sddl}"));
        };
        if wanted != Wanted::SecretOfAnyone && !list.is_owned_by(&self.sid) {
            let owner = list.owner();
            return refused(format!(
                "it belongs to another account ({owner}), which can change it; takeown /f \"{path}\""
            ));
        }
        let rights = match wanted {
            Wanted::Trust => CHANGE,
            Wanted::Secret | Wanted::SecretOfAnyone => READ_OR_CHANGE,
        };
        match list.other_with(rights, &self.sid) {
            None => Ok(()),
            Some(account) => {
                let verb = if wanted == Wanted::Trust {
                    "change"
                } else {
                    "read"
                };
                refused(format!(
                    "another account ({account}) may {verb} it; icacls \"{path}\" /inheritance:r /grant:r *{}:F",
                    self.sid
                ))
            }
        }
    }
}

/// The requirements on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Trust,
    Secret,
    SecretOfAnyone,
}

/// Opens a regular file and nothing else, such as a device.
fn open_regular_file(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    Ok(file)
}

impl PrivateSecurity {
    /// Returns the access list of something that only the user, the system and the administrators can use.
    pub(crate) fn for_user() -> io::Result<Self> {
        Self::for_user_with_flags("")
    }

    /// Returns the same for a folder, with the flags with which its files inherit it.
    fn for_user_with_flags(flags: &str) -> io::Result<Self> {
        let user = security::current_user()?;
        let entries = [user.as_str(), "SY", "BA"].map(|who| format!("(A;{flags};FA;;;{who})"));
        Self::from_sddl(&format!("D:P{}", entries.concat()))
    }
}

/// Creates a folder and its parents, for the user alone, unless it exists.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent().filter(|path| !path.as_os_str().is_empty()) {
        make_folder(parent)?;
    }
    match security::create_folder(folder, &PrivateSecurity::for_user_with_flags("OICI")?) {
        // Another process has created it at the same time.
        Err(_) if folder.is_dir() => Ok(()),
        made => made,
    }
}

/// Returns true if the path leads to this open file.
pub(super) fn is_file_at(file: &File, path: &Path) -> io::Result<bool> {
    Ok(Handle::from_file(file.try_clone()?)? == Handle::from_path(path)?)
}

/// Creates a file that does not exist yet, for the user alone.
pub(super) fn create_private_file(path: &Path) -> io::Result<File> {
    security::create_file(path, &PrivateSecurity::for_user()?)
}

pub(super) fn replace_file(folder: &Path, name: &OsStr, content: &[u8]) -> io::Result<()> {
    let fresh = folder.join(super::fresh_name());
    let written = || {
        let mut file = create_private_file(&fresh)?;
        file.write_all(content)?;
        file.sync_all()?;
        // Without an open handle, the file can be renamed on every version of Windows.
        drop(file);
        fs::rename(&fresh, folder.join(name))
    };
    written().inspect_err(|_| {
        // A leftover file only costs disk space.
        let _ = fs::remove_file(&fresh);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("adit-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn what_is_written_is_the_users_alone() {
        let folder = folder("private");
        let path = folder.join("deep").join("secret");
        super::super::write_atomically(&path, b"secret").unwrap();
        let owner = FileOwner::current();
        assert!(owner.sid.starts_with("S-1-"), "{owner:?}");
        assert_eq!(owner.read_secret(&path, 100).unwrap(), "secret");
        assert_eq!(owner.read_trusted(&path, 100).unwrap(), b"secret");
        let sddl = security::file_sddl(&File::open(&path).unwrap()).unwrap();
        let list = AccessList::parse(&sddl).unwrap();
        assert_eq!(list.other_with(READ_OR_CHANGE, &owner.sid), None, "{sddl}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_others_may_read_or_change_is_refused() {
        let folder = folder("open");
        make_folder(&folder).unwrap();
        let owner = FileOwner::current();
        for (name, rights, trusted) in [("readable", "FR", true), ("writable", "FA", false)] {
            let path = folder.join(name);
            let sddl = format!("D:P(A;;FA;;;{})(A;;{rights};;;WD)", owner.sid);
            let security = PrivateSecurity::from_sddl(&sddl).unwrap();
            drop(security::create_file(&path, &security).unwrap());
            let why = owner.read_secret(&path, 100).unwrap_err();
            assert_eq!(why.kind(), io::ErrorKind::PermissionDenied, "{name}");
            assert!(why.to_string().contains("icacls"), "{why}");
            owner.read_secret_of_anyone(&path, 100).unwrap_err();
            assert_eq!(owner.read_trusted(&path, 100).is_ok(), trusted, "{name}");
        }
        let again = create_private_file(&folder.join("readable")).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        fs::remove_dir_all(folder).unwrap();
    }
}
