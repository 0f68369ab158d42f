//! Updates of the file of users, so that changes survive a restart.

use std::fs;
use std::path::Path;

use adit_config::{SsUser, SystemSources, read_users};
use adit_net::persistent_file;
use adit_shadowsocks::Method;
use serde::{Serialize, Serializer};
use zeroize::Zeroizing;

use crate::untrusted_text::join_places;

/// One change of a list of users.
pub(crate) enum UserChange {
    /// Adds a user, or changes the key.
    Put(String, Zeroizing<String>),
    /// Removes a user.
    Remove(String),
}

/// Applies the change to a file of users and writes it as `{"NAME": "KEY"}`. Users that were added
/// by hand are kept; comments and the format are not. This function blocks.
pub(crate) fn write_change(path: &Path, method: Method, change: &UserChange) -> Result<(), String> {
    // If the path is a symbolic link, its target is replaced, not the link.
    let path = fs::canonicalize(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut users = read_users(method, None, &path, &SystemSources).map_err(|p| join_places(&p))?;
    match change {
        UserChange::Put(name, key) => match users.iter_mut().find(|user| user.name == *name) {
            Some(user) => user.secret = key.as_str().into(),
            None => users.push(SsUser {
                name: name.clone(),
                secret: key.as_str().into(),
            }),
        },
        UserChange::Remove(name) => users.retain(|user| user.name != *name),
    }
    if users.is_empty() {
        return Err("cannot remove the last user of a file".to_owned());
    }
    let text = serde_json::to_vec_pretty(&UserObject(&users)).map_err(|e| e.to_string())?;
    let text = Zeroizing::new(text);
    persistent_file::write_atomically(&path, &text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Serializes users as an object, in their order.
struct UserObject<'a>(&'a [SsUser]);

impl Serialize for UserObject<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|u| (&u.name, u.secret.expose())))
    }
}
