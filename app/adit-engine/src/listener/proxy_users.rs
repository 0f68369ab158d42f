//! The users of a proxy listener, whose file is read again when it changes.

use std::fmt;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use adit_config::{
    ListenerConfig, ProxyListener, Secret, SystemSources, UserPassword, read_password_file,
};

use super::users_file::{FileVersion, file_version, watch_users};
use super::{ListenerTask, box_task};
use crate::credentials::ListenerCredentials;
use crate::serve::LoginTable;

/// The users of a proxy listener: that of its URL, and those of its file.
pub struct ProxyUsers {
    in_url: Option<UserPassword>,
    /// The names of the users of the file. Locked while the file is read or changed, so that a reader never brings back
    /// what a change has replaced meanwhile.
    names: Mutex<Vec<String>>,
    file: Option<PathBuf>,
    /// The version of the file that was read last.
    version: FileVersion,
    /// True for SOCKS, true for HTTP.
    protocols: (bool, bool),
    has_carrier: bool,
    credentials: Arc<ListenerCredentials>,
    logins: Arc<LoginTable>,
}

impl ProxyUsers {
    pub(super) fn new(
        listen: &ListenerConfig,
        proxy: &ProxyListener,
        credentials: Arc<ListenerCredentials>,
        logins: Arc<LoginTable>,
    ) -> Self {
        let (url_users, others) = proxy.users.split_at(usize::from(proxy.has_url_user));
        let in_url = url_users.first().map(|login| UserPassword {
            user: login.user.clone(),
            password: Secret::from(login.password.expose()),
        });
        let file = proxy.users_file.clone();
        Self {
            in_url,
            names: Mutex::new(names_of(others)),
            version: file.as_deref().and_then(file_version),
            file,
            protocols: (proxy.socks5, proxy.http),
            has_carrier: listen.carrier.is_some(),
            credentials,
            logins,
        }
    }

    /// Returns the file of users, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns the name of the user of the URL, who cannot be changed while the listener runs.
    #[must_use]
    pub fn name_in_url(&self) -> Option<&str> {
        self.in_url.as_ref().map(|login| login.user.as_str())
    }

    /// Returns the names of the users of the file.
    #[must_use]
    pub fn names_in_file(&self) -> Vec<String> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.clone()
    }

    /// Returns true if the listener accepts SOCKS5.
    #[must_use]
    pub const fn accepts_socks(&self) -> bool {
        self.protocols.0
    }

    /// Returns true if the listener accepts HTTP.
    #[must_use]
    pub const fn accepts_http(&self) -> bool {
        self.protocols.1
    }

    /// Returns true if clients reach the listener by TCP, and not through a carrier such as KCP.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        !self.has_carrier
    }

    /// Reads the users of the file, with their passwords.
    ///
    /// # Errors
    ///
    /// There is no file, or it cannot be used: a message without secrets.
    pub fn read_file(&self) -> Result<Vec<UserPassword>, String> {
        let Some(path) = &self.file else {
            return Err("the listener has no file of users".to_owned());
        };
        read_password_file(path, self.name_in_url(), self.protocols.0, &SystemSources)
    }

    /// Changes the file by `write`, and replaces the users by those that it has then. Sessions of users that were removed,
    /// or whose password changed, end; all others are unaffected. This function blocks.
    ///
    /// # Errors
    ///
    /// The error of `write`, or that of [`Self::read_file`].
    pub fn change_file(&self, write: impl FnOnce() -> Result<(), String>) -> Result<usize, String> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        write()?;
        let users = self.read_file()?;
        *names = names_of(&users);
        self.credentials.replace(self.in_url.iter().chain(&users));
        self.logins.replace(self.in_url.iter().chain(&users));
        Ok(users.len())
    }

    /// Returns the task that watches the file, if there is one.
    pub(super) fn watch_task(self: Arc<Self>) -> Option<ListenerTask> {
        let path = self.file.clone()?;
        Some(box_task(self.watch_for_changes(path)))
    }

    /// Watches the file forever.
    async fn watch_for_changes(self: Arc<Self>, path: PathBuf) {
        let seen = self.version;
        let reread = move || self.change_file(|| Ok(()));
        watch_users(&path, seen, pending, reread).await;
    }
}

impl fmt::Debug for ProxyUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyUsers")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

fn names_of(users: &[UserPassword]) -> Vec<String> {
    users.iter().map(|login| login.user.clone()).collect()
}
