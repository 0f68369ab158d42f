//! Users and groups: their names, their homes.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStringExt;

use nix::unistd::{Gid, Group, Uid, User};

/// Names that are remembered at most.
const MOST: usize = 1024;

/// Names by number, each looked up once.
#[derive(Debug, Default)]
pub(super) struct People {
    users: BTreeMap<u32, Option<String>>,
    groups: BTreeMap<u32, Option<String>>,
}

impl People {
    /// The name of a user.
    pub(super) fn user(&mut self, id: u32) -> Option<&str> {
        let look = || Some(User::from_uid(Uid::from_raw(id)).ok()??.name);
        remembered(&mut self.users, id, look)
    }

    /// The name of a group.
    pub(super) fn group(&mut self, id: u32) -> Option<&str> {
        let look = || Some(Group::from_gid(Gid::from_raw(id)).ok()??.name);
        remembered(&mut self.groups, id, look)
    }
}

fn remembered(
    names: &mut BTreeMap<u32, Option<String>>,
    id: u32,
    look: impl FnOnce() -> Option<String>,
) -> Option<&str> {
    if names.len() >= MOST && !names.contains_key(&id) {
        names.clear();
    }
    names.entry(id).or_insert_with(look).as_deref()
}

/// The home of the user of this name, or of the one who runs this if it is empty.
pub(super) fn home(user: &[u8]) -> Option<Vec<u8>> {
    let found = match std::str::from_utf8(user).ok()? {
        "" => User::from_uid(Uid::effective()),
        name => User::from_name(name),
    };
    Some(found.ok()??.dir.into_os_string().into_vec())
}
