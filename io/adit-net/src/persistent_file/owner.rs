//! Ownership and permission checks for files that are trusted because other users cannot change or read
//! them, like those of OpenSSH's `StrictModes`.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Group, Uid, User};

/// The user on whose behalf files are read.
#[derive(Debug, Clone)]
pub struct FileOwner {
    /// The user ID.
    pub uid: u32,
    /// The user name, which is also the name of the user's own group, if they have one.
    pub name: String,
    /// The home directory: the folders above it belong to the system.
    pub home: PathBuf,
}

impl FileOwner {
    /// Returns the effective user of this process.
    #[must_use]
    pub fn current() -> Self {
        let uid = Uid::effective();
        match User::from_uid(uid).ok().flatten() {
            Some(user) => Self {
                uid: uid.as_raw(),
                name: user.name,
                home: user.dir,
            },
            None => Self {
                uid: uid.as_raw(),
                name: uid.to_string(),
                home: std::env::var_os("HOME").unwrap_or_default().into(),
            },
        }
    }

    /// Returns true if only this user and root can change a file of this owner, group and mode. A group
    /// counts as the user's own if it has their name and no other member, as in Debian's OpenSSH.
    #[must_use]
    pub fn has_exclusive_write(&self, owner: u32, group: u32, mode: u32) -> bool {
        let own_group = || {
            let group = Group::from_gid(Gid::from_raw(group)).ok().flatten();
            group.is_some_and(|group| self.is_own_group(&group))
        };
        (owner == self.uid || owner == 0) && mode & 0o002 == 0 && (mode & 0o020 == 0 || own_group())
    }

    fn is_own_group(&self, group: &Group) -> bool {
        group.name == self.name && group.mem.iter().all(|member| *member == self.name)
    }

    /// Returns why other users can change a file, and how to correct it.
    fn permission_problem(&self, path: &Path, of: &Metadata) -> Option<String> {
        let path = path.display();
        if of.uid() != self.uid && of.uid() != 0 {
            let (uid, name) = (of.uid(), &self.name);
            return Some(format!(
                "{path} belongs to user {uid}; chown {name} '{path}'"
            ));
        }
        if self.has_exclusive_write(of.uid(), of.gid(), of.mode()) {
            return None;
        }
        let mode = of.mode() & 0o7777;
        Some(format!(
            "others can write to {path} (mode {mode:03o}); chmod go-w '{path}'"
        ))
    }

    /// Reads a file that determines what is trusted. Other users can neither change nor replace it: the
    /// file, its folder and the folders above, up to the home directory if the file is in it, belong to
    /// this user or to root, and no other user can write to them. A sticky folder such as the one for
    /// temporary files, where users cannot replace the files of others, is accepted.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] with what to change, and the errors of the system.
    pub fn read_trusted(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let (file, about) = open_regular_file(path)?;
        let refused = |why| io::Error::new(io::ErrorKind::PermissionDenied, why);
        // Resolve links: the permissions of their targets have to be corrected.
        let real = fs::canonicalize(path)?;
        if let Some(why) = self.permission_problem(&real, &about) {
            return Err(refused(why));
        }
        let home = fs::canonicalize(&self.home).ok();
        for folder in real.ancestors().skip(1) {
            let about = fs::metadata(folder)?;
            let sticky = about.mode() & 0o1000 != 0 && [0, self.uid].contains(&about.uid());
            if let Some(why) = self.permission_problem(folder, &about).filter(|_| !sticky) {
                return Err(refused(why));
            }
            if home.as_deref() == Some(folder) {
                break;
            }
        }
        super::read_whole(file, limit)
    }

    /// Reads a file with a secret: other users cannot read it. A file of root may be readable for a group,
    /// which is how packages share keys with a service.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] with what to change, and the errors of the system.
    pub fn read_secret(&self, path: &Path, limit: usize) -> io::Result<String> {
        self.read_secret_checked(path, limit, false)
    }

    /// Like [`FileOwner::read_secret`], for a file that may belong to another user: an administrator reads the
    /// key of a service that runs as its own user.
    ///
    /// # Errors
    /// See [`FileOwner::read_secret`].
    pub fn read_secret_of_anyone(&self, path: &Path, limit: usize) -> io::Result<String> {
        self.read_secret_checked(path, limit, true)
    }

    fn read_secret_checked(
        &self,
        path: &Path,
        limit: usize,
        of_anyone: bool,
    ) -> io::Result<String> {
        let (file, about) = open_regular_file(path)?;
        let shown = path.display();
        let (owner, mode) = (about.uid(), about.mode() & 0o7777);
        let why = if owner != self.uid && owner != 0 && !of_anyone {
            let name = &self.name;
            format!("it belongs to user {owner}, who can change it; chown {name} '{shown}'")
        } else if (owner == self.uid && mode & 0o077 != 0) || mode & 0o027 != 0 {
            format!("others can read it (mode {mode:03o}); chmod 600 '{shown}'")
        } else {
            let text = String::from_utf8(super::read_whole(file, limit)?);
            return text
                .map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why.utf8_error()));
        };
        Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
    }
}

/// Opens a regular file and nothing else: opening a named pipe would wait for its writer forever.
fn open_regular_file(path: &Path) -> io::Result<(File, Metadata)> {
    use rustix::fs::OFlags;

    let mut how = File::options();
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    // No bit of the flags is lost: they are the system's own, in its own width.
    how.read(true).custom_flags(flags.bits().cast_signed());
    let file = how.open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("not a file"));
    }
    Ok((file, about))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_can_change_is_not_believed() {
        let base = std::env::temp_dir().join(format!("adit-owner-{}", std::process::id()));
        let deep = base.join("one/two");
        fs::create_dir_all(&deep).unwrap();
        for folder in [&base, &base.join("one"), &deep] {
            chmod(folder, 0o755);
        }
        let (file, link) = (deep.join("keys"), base.join("link"));
        fs::write(&file, "keys").unwrap();
        chmod(&file, 0o644);
        symlink(&file, &link).unwrap();
        let mut owner = FileOwner::current();
        let read = |owner: &FileOwner, path: &Path| owner.read_trusted(path, 100);
        assert_eq!(read(&owner, &link).unwrap(), b"keys");
        for (path, mode, fine) in [
            (&file, 0o646, 0o644),
            (&deep, 0o777, 0o755),
            // Also folders further up.
            (&base.join("one"), 0o757, 0o755),
        ] {
            chmod(path, mode);
            let why = read(&owner, &link).unwrap_err();
            assert_eq!(why.kind(), io::ErrorKind::PermissionDenied);
            let told = format!("chmod go-w '{}'", path.display());
            assert!(why.to_string().contains(&told), "{why}");
            chmod(path, fine);
        }
        // The folders above the home directory are the system's.
        chmod(&base.join("one"), 0o757);
        owner.home = deep.clone();
        read(&owner, &link).unwrap();
        owner.home = PathBuf::new();
        chmod(&base.join("one"), 0o1777);
        read(&owner, &link).unwrap();
        assert!(owner.read_trusted(&link, 3).is_err());
        let stranger = FileOwner {
            uid: owner.uid.wrapping_add(7),
            ..owner.clone()
        };
        if !Uid::effective().is_root() {
            assert!(read(&stranger, &file).is_err());
        }
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_secret_is_the_owners_alone() {
        let path = std::env::temp_dir().join(format!("adit-secret-{}", std::process::id()));
        fs::write(&path, "secret").unwrap();
        let owner = FileOwner::current();
        for (mode, fine) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            chmod(&path, mode);
            let read = owner.read_secret(&path, 100);
            assert_eq!(read.is_ok(), fine, "{mode:o}: {read:?}");
            if let Err(why) = read {
                assert!(why.to_string().contains("chmod 600"), "{why}");
            }
        }
        chmod(&path, 0o600);
        owner.read_secret(&path, 5).unwrap_err();
        let stranger = FileOwner {
            uid: owner.uid.wrapping_add(7),
            ..owner.clone()
        };
        let foreign = if owner.uid == 0 { &owner } else { &stranger };
        for (mode, fine) in [(0o600, true), (0o604, false), (0o660, false)] {
            chmod(&path, mode);
            let read = foreign.read_secret_of_anyone(&path, 100);
            assert_eq!(read.is_ok(), fine, "{mode:o}: {read:?}");
        }
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_named_pipe_is_no_file() {
        let path = std::env::temp_dir().join(format!("adit-pipe-{}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let owner = FileOwner::current();
        // Without a writer, opening it normally would block forever.
        for why in [
            owner.read_secret(&path, 100).unwrap_err(),
            owner.read_trusted(&path, 100).unwrap_err(),
        ] {
            assert_eq!(why.to_string(), "not a file");
        }
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn groups_of_the_same_name_are_ones_own() {
        let owner = FileOwner::current();
        let me = owner.uid;
        assert!(owner.has_exclusive_write(me, 12345, 0o644));
        assert!(owner.has_exclusive_write(0, 12345, 0o600));
        assert!(!owner.has_exclusive_write(me.wrapping_add(7).max(1), 0, 0o600));
        assert!(!owner.has_exclusive_write(me, 12345, 0o664));
        assert!(!owner.has_exclusive_write(me, 0, 0o646));
        let own = |name: &str, members: &[&str]| {
            owner.is_own_group(&Group {
                name: name.to_owned(),
                passwd: std::ffi::CString::default(),
                gid: Gid::from_raw(12345),
                mem: members.iter().map(|&member| member.to_owned()).collect(),
            })
        };
        let me = owner.name.as_str();
        assert!(own(me, &[]) && own(me, &[me]));
        assert!(!own(me, &[me, "games"]) && !own("games", &[]));
    }
}
