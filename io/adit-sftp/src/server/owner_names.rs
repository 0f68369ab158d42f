//! Names of users and groups, and their home directories.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStringExt;

use nix::unistd::{Gid, Group, Uid, User};

/// Maximum number of cached names of users, and of groups.
const MAX_NAMES: usize = 1024;

/// A cache of names by number.
#[derive(Debug, Default)]
pub(super) struct OwnerNames {
    users: BTreeMap<u32, Option<String>>,
    groups: BTreeMap<u32, Option<String>>,
}

impl OwnerNames {
    /// Returns the name of a user.
    pub(super) fn user(&mut self, id: u32) -> Option<&str> {
        let look = || Some(User::from_uid(Uid::from_raw(id)).ok()??.name);
        cached(&mut self.users, id, look)
    }

    /// Returns the name of a group.
    pub(super) fn group(&mut self, id: u32) -> Option<&str> {
        let look = || Some(Group::from_gid(Gid::from_raw(id)).ok()??.name);
        cached(&mut self.groups, id, look)
    }
}

/// Returns a cached name, or looks it up.
fn cached(
    names: &mut BTreeMap<u32, Option<String>>,
    id: u32,
    look: impl FnOnce() -> Option<String>,
) -> Option<&str> {
    if names.len() >= MAX_NAMES && !names.contains_key(&id) {
        names.clear();
    }
    names.entry(id).or_insert_with(look).as_deref()
}

/// Returns the home directory of a user; of the user of this process if the name is empty.
pub(super) fn home(user: &[u8]) -> Option<Vec<u8>> {
    let found = match std::str::from_utf8(user).ok()? {
        "" => User::from_uid(Uid::effective()),
        name => User::from_name(name),
    };
    Some(found.ok()??.dir.into_os_string().into_vec())
}
