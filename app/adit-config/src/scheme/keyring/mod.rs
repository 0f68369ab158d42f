//! Users and next servers of Shadowsocks: names with keys, from a file or a table.
//!
//! `text → entries → checked entries`: a document is cut into entries that remember their place
//! (`file`), then all of them are judged together (`check`). No message holds a key.

pub(crate) mod check;
mod file;
mod json;
mod limit;

use std::path::Path;

use adit_shadowsocks::Method;
use adit_wire::Target;

use crate::scheme::keyring::check::Holders;
use crate::scheme::typed::{RelayNext, SsUser};
use crate::text::{Flaw, Problem, Secret, Sources, Span};

pub(crate) use file::{relay_file, users_file};
pub(crate) use limit::AtMost;

/// Users of one server at most.
pub const MAX_USERS: usize = 1_000_000;
/// Bytes of a file of users at most.
pub const MAX_USERS_FILE: u64 = 64 * 1024 * 1024;

/// A name with its key, and where the key stands in its document.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Option<String>,
    pub(crate) secret: Secret,
    pub(crate) at: Span,
}

/// A server that a relay passes connections to.
#[derive(Debug)]
pub(crate) struct Next {
    pub(crate) entry: Entry,
    pub(crate) server: Target,
}

/// Reads a file of users again, for a server that runs.
///
/// `method`, `identity` and `path` are those of the plan ([`SsRole::Users`]). Whatever is wrong,
/// nothing of the file is given; the first problems of many are.
///
/// [`SsRole::Users`]: crate::SsRole::Users
pub fn read_users(
    method: Method,
    identity: Option<&Secret>,
    path: &Path,
    sources: &dyn Sources,
) -> Result<Vec<SsUser>, Vec<Problem>> {
    let name = path.display().to_string();
    let file = sources.long_file(path, MAX_USERS_FILE).map_err(|why| {
        let title = format!("cannot read `{name}`: {why}");
        vec![Problem::without_place(title, "the users stay as they were")]
    })?;
    users_file(method, identity, &name, &file.text)
}

/// Judges next servers together; without a flaw they are what the plan has.
pub(crate) fn relay(
    method: Method,
    identity: &Secret,
    next: Vec<Next>,
) -> (AtMost<Flaw>, Vec<RelayNext>) {
    let (entries, servers): (Vec<_>, Vec<_>) = next
        .into_iter()
        .map(|next| (next.entry, next.server))
        .unzip();
    let flaws = check::all(Holders::Next, method, Some(identity), &entries);
    let next = entries.into_iter().zip(servers);
    let next = next.map(|(entry, server)| RelayNext {
        name: entry.name,
        server,
        secret: entry.secret,
    });
    (flaws, next.collect())
}

impl Entry {
    /// The entry as a user. Every user has a name.
    pub(crate) fn into_user(self) -> SsUser {
        SsUser {
            name: self.name.unwrap_or_default(),
            secret: self.secret,
        }
    }
}
