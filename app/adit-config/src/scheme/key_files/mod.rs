//! Users and next servers of Shadowsocks: names with keys, from a file or a table.
//!
//! `text → entries → checked entries`: a document is parsed into entries with their positions
//! (`file`), then all of them are checked together (`check`). No message contains a key.

pub(crate) mod check;
mod file;
mod json;
mod truncated_list;

use std::path::Path;

use adit_shadowsocks::Method;
use adit_wire::Target;

use crate::scheme::endpoint_types::{RelayTarget, SsUser};
use crate::scheme::key_files::check::KeyListKind;
use crate::text::{ConfigError, Problem, Secret, Sources, Span};

pub(crate) use file::{parse_relay_file, parse_users_file};
pub(crate) use truncated_list::TruncatedList;

/// Maximum number of users of a server.
pub const MAX_USERS: usize = 1_000_000;
/// Maximum size of a file of users, in bytes.
pub const MAX_USERS_FILE: u64 = 64 * 1024 * 1024;

/// A name with its key, and the position of the key in its document.
#[derive(Debug)]
pub(crate) struct KeyEntry {
    /// The name. Users always have one.
    pub(crate) name: Option<String>,
    /// The key or password.
    pub(crate) secret: Secret,
    /// The position of the key.
    pub(crate) at: Span,
}

/// A server that a relay passes connections to.
#[derive(Debug)]
pub(crate) struct NextServer {
    /// The key, and the name for logs.
    pub(crate) entry: KeyEntry,
    /// The server.
    pub(crate) server: Target,
}

/// Reads a file of users again, for a running server.
///
/// `method`, `identity` and `path` are those of the plan ([`SsRole::Users`]).
///
/// # Errors
///
/// The file cannot be read, or is wrong anywhere. The first problems are returned, with the number of
/// the others, and no users.
///
/// [`SsRole::Users`]: crate::SsRole::Users
pub fn read_users(
    method: Method,
    identity: Option<&Secret>,
    path: &Path,
    sources: &dyn Sources,
) -> Result<Vec<SsUser>, Vec<Problem>> {
    let name = path.display().to_string();
    let file = sources
        .read_file_up_to(path, MAX_USERS_FILE)
        .map_err(|why| {
            let title = format!("cannot read `{name}`: {why}");
            vec![Problem::without_place(title, "the users stay unchanged")]
        })?;
    parse_users_file(method, identity, &name, &file.text)
}

/// Checks next servers together. Returns the errors, and the servers for the plan if there are none.
pub(crate) fn check_relay(
    method: Method,
    identity: &Secret,
    next: Vec<NextServer>,
) -> (TruncatedList<ConfigError>, Vec<RelayTarget>) {
    let (entries, servers): (Vec<_>, Vec<_>) = next
        .into_iter()
        .map(|next| (next.entry, next.server))
        .unzip();
    let flaws = check::check_entries(KeyListKind::Next, method, Some(identity), &entries);
    let next = entries.into_iter().zip(servers);
    let next = next.map(|(entry, server)| RelayTarget {
        name: entry.name,
        server,
        secret: entry.secret,
    });
    (flaws, next.collect())
}

impl KeyEntry {
    /// Converts the entry into a user. Every user has a name.
    pub(crate) fn into_user(self) -> SsUser {
        SsUser {
            name: self.name.unwrap_or_default(),
            secret: self.secret,
        }
    }
}
