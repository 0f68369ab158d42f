//! The account of the user who runs the server, the only one who can log in.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use adit_net::persistent_file::FileOwner;
use nix::unistd::{Uid, User};

/// The user who runs the server.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) home: PathBuf,
    pub(super) shell: PathBuf,
    pub(super) uid: Uid,
}

impl Account {
    /// Returns the account from the user database; without an entry there, from the environment.
    pub(super) fn current() -> Self {
        let uid = Uid::effective();
        let known = User::from_uid(uid).ok().flatten();
        let var = |name| env::var_os(name).filter(|value| !value.is_empty());
        let path = |name| var(name).map(PathBuf::from);
        let fallback = || {
            let name = var("USER").and_then(|name| name.into_string().ok());
            (
                name.unwrap_or_else(|| uid.to_string()),
                path("HOME").unwrap_or_default(),
                path("SHELL").unwrap_or_default(),
            )
        };
        let (name, home, shell) =
            known.map_or_else(fallback, |user| (user.name, user.dir, user.shell));
        let or = |path: PathBuf, other: &str| match path.as_os_str().is_empty() {
            true => PathBuf::from(other),
            false => path,
        };
        Self {
            name,
            home: or(home, "/"),
            shell: or(shell, "/bin/sh"),
            uid,
        }
    }

    /// Returns the name that the shell is started with; a leading `dash` makes it a login shell.
    pub(super) fn shell_name(&self, dash: &str) -> OsString {
        let mut name = OsString::from(dash);
        name.push(self.shell.file_name().unwrap_or(self.shell.as_os_str()));
        name
    }

    /// Expands a leading `~` in a path to the home folder.
    pub(super) fn expand_home(&self, path: &Path) -> PathBuf {
        match path.strip_prefix("~") {
            Ok(rest) => self.home.join(rest),
            Err(_) => path.to_owned(),
        }
    }

    /// Returns the user as the owner of trusted files.
    pub(super) fn file_owner(&self) -> FileOwner {
        FileOwner {
            uid: self.uid.as_raw(),
            name: self.name.clone(),
            home: self.home.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_names() {
        let account = Account {
            name: "me".into(),
            home: "/home/me".into(),
            shell: "/bin/bash".into(),
            uid: Uid::effective(),
        };
        let keys = account.expand_home(Path::new("~/.ssh/authorized_keys"));
        assert_eq!(keys, Path::new("/home/me/.ssh/authorized_keys"));
        assert_eq!(
            account.expand_home(Path::new("/etc/keys")),
            Path::new("/etc/keys")
        );
        assert_eq!(account.shell_name("-"), "-bash");
        assert_eq!(account.shell_name(""), "bash");
    }
}
