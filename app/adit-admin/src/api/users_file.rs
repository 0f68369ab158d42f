//! Updates of files of users, so that changes survive a restart.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use adit_config::{MAX_USERS_FILE, Sources, SsUser, SystemSources, read_users};
use adit_engine::ProxyUsers;
use adit_net::persistent_file;
use adit_shadowsocks::Method;
use serde::{Serialize, Serializer};
use zeroize::Zeroizing;

use crate::untrusted_text::join_places;

/// One change of a list of users.
pub(crate) enum UserChange {
    /// Adds a user, or changes the key.
    Put(String, Zeroizing<String>),
    /// Does this for several users, with different names.
    PutAll(Vec<(String, Zeroizing<String>)>),
    /// Removes a user.
    Remove(String),
}

impl UserChange {
    /// Returns the name to remove, and the names to add with their keys.
    pub(crate) fn parts(&self) -> (Option<&str>, Vec<(&str, &str)>) {
        match self {
            Self::Put(name, key) => (None, vec![(name.as_str(), key.as_str())]),
            Self::PutAll(users) => {
                let put = users.iter();
                let put = put.map(|(name, key)| (name.as_str(), key.as_str()));
                (None, put.collect())
            }
            Self::Remove(name) => (Some(name.as_str()), Vec::new()),
        }
    }
}

/// Applies the change to a file of users and writes it as `{"NAME": "KEY"}`. Users that were added
/// by hand are kept; comments and the format are not. This function blocks.
pub(crate) fn write_change(path: &Path, method: Method, change: &UserChange) -> Result<(), String> {
    // If the path is a symbolic link, its target is replaced, not the link.
    let path = fs::canonicalize(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut users = read_users(method, None, &path, &SystemSources).map_err(|p| join_places(&p))?;
    let (remove, put) = change.parts();
    if let Some(name) = remove {
        users.retain(|user| user.name != name);
    }
    let mut new: HashMap<&str, &str> = put.iter().copied().collect();
    for user in &mut users {
        if let Some(key) = new.remove(user.name.as_str()) {
            user.secret = key.into();
        }
    }
    // In the order of the change.
    users.extend(put.iter().filter_map(|(name, _)| {
        Some(SsUser {
            secret: new.remove(name)?.into(),
            name: (*name).to_owned(),
        })
    }));
    if users.is_empty() {
        return Err("cannot remove the last user of a file".to_owned());
    }
    let text = serde_json::to_vec_pretty(&UserObject(&users)).map_err(|e| e.to_string())?;
    let text = Zeroizing::new(text);
    persistent_file::write_atomically(&path, &text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Applies the change to the file of a proxy's users, one `user:password` per line. Comments, and the other users, are
/// kept as they are. This function blocks.
pub(crate) fn write_password_change(users: &ProxyUsers, change: &UserChange) -> Result<(), String> {
    let path = users.file().ok_or("the listener has no file of users")?;
    let path = fs::canonicalize(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    // A file with a mistake stays as it is, for its author to mend.
    users.read_file()?;
    let file = SystemSources.read_file_up_to(&path, MAX_USERS_FILE);
    let text = changed_lines(&file.map_err(failed)?.text, change)?;
    persistent_file::write_atomically(&path, text.as_bytes()).map_err(failed)
}

/// Returns the lines of a file of passwords after a change.
fn changed_lines(text: &str, change: &UserChange) -> Result<Zeroizing<String>, String> {
    let (remove, put) = change.parts();
    // A text that grows would leave copies of its passwords in memory.
    let len = |(name, password): &(&str, &str)| name.len() + password.len() + ":\n".len();
    let added = put.iter().map(len).sum::<usize>() + "\n".len();
    let mut changed = Zeroizing::new(String::with_capacity(text.len() + added));
    let mut has_users = !put.is_empty();
    let mut new: HashMap<&str, &str> = put.iter().copied().collect();
    let mut changes: HashSet<&str> = new.keys().copied().collect();
    changes.extend(remove);
    for line in text.lines() {
        let is_user = !line.starts_with('#') && !line.trim().is_empty();
        let user = line.split_once(':').filter(|_| is_user);
        let user = user.map(|(user, _)| user);
        let Some(name) = user.filter(|user| changes.contains(user)) else {
            has_users |= user.is_some();
            changed.extend([line, "\n"]);
            continue;
        };
        if let Some(password) = new.remove(name) {
            changed.extend([name, ":", password, "\n"]);
        }
    }
    for (name, _) in &put {
        if let Some(password) = new.remove(name) {
            changed.extend([name, ":", password, "\n"]);
        }
    }
    if !has_users {
        return Err("cannot remove the last user of a file".to_owned());
    }
    Ok(changed)
}

/// Serializes users as an object, in their order.
struct UserObject<'a>(&'a [SsUser]);

impl Serialize for UserObject<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|u| (&u.name, u.secret.expose())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_of_a_file_of_passwords_changes() {
        let text = "# ours\nann:1\n\nbob:2:3";
        let put = |name: &str| UserChange::Put(name.to_owned(), Zeroizing::new("new".to_owned()));
        let remove = |name: &str| UserChange::Remove(name.to_owned());
        for (change, expected) in [
            (put("bob"), "# ours\nann:1\n\nbob:new\n"),
            (put("eve"), "# ours\nann:1\n\nbob:2:3\neve:new\n"),
            (remove("ann"), "# ours\n\nbob:2:3\n"),
            (remove("eve"), "# ours\nann:1\n\nbob:2:3\n"),
            (
                UserChange::PutAll(
                    ["zoe", "ann", "eve"]
                        .map(|name| (name.to_owned(), Zeroizing::new("new".to_owned())))
                        .to_vec(),
                ),
                "# ours\nann:new\n\nbob:2:3\nzoe:new\neve:new\n",
            ),
        ] {
            assert_eq!(*changed_lines(text, &change).unwrap(), expected);
        }
        let why = changed_lines("# ann:1\nann:1\n", &remove("ann")).unwrap_err();
        assert!(why.contains("last user"), "{why}");
    }
}
