//! Completions of SSH hosts, from the configuration and the lists of known keys.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap_complete::engine::CompletionCandidate;

use super::completers::candidates_starting_with;
use super::files;
use super::urls::add_prefix;

/// Maximum number of hosts.
const MAX_HOSTS: usize = 2000;
/// Maximum number of bytes that are read of a file.
const MAX_FILE_LEN: u64 = 1 << 20;
/// Maximum number of files.
const MAX_FILES: usize = 64;
/// Maximum depth of nested `Include` lines.
const MAX_INCLUDE_DEPTH: usize = 8;

/// Returns the completions of `[USER@]HOST`.
pub(super) fn complete_host(typed: &str) -> Vec<CompletionCandidate> {
    let (user, host) = split_user(typed);
    if host.contains(':') {
        return Vec::new();
    }
    let known = known_hosts();
    add_prefix(
        candidates_starting_with(known.iter().map(String::as_str), host),
        user,
    )
}

/// Returns the completions of a source or target of `scp`: hosts, each with a colon, and local
/// files.
pub(super) fn complete_scp_path(typed: &str) -> Vec<CompletionCandidate> {
    let (user, host) = split_user(typed);
    // A path with a colon is on the host, unless a slash is before the colon.
    if host.contains(':') {
        return Vec::new();
    }
    let mut found = files::complete_path(typed);
    if !typed.contains('/') {
        let hosts = known_hosts()
            .into_iter()
            .filter(|name| name.starts_with(host));
        let hosts = hosts.map(|name| CompletionCandidate::new(format!("{user}{name}:")));
        found.extend(hosts);
    }
    found
}

/// Splits a word into the user with its `@`, and the rest.
fn split_user(typed: &str) -> (&str, &str) {
    typed.split_at(typed.rfind('@').map_or(0, |at| at + 1))
}

/// Returns the hosts in the files of this user and of the system.
fn known_hosts() -> Vec<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    hosts_of_files(home.as_deref(), Path::new("/etc/ssh"))
}

/// Returns the hosts in the files of a home folder and of a system folder, sorted, each once.
pub(super) fn hosts_of_files(home: Option<&Path>, system: &Path) -> Vec<String> {
    let mut found = HostFinder::default();
    if let Some(home) = home {
        let folder = home.join(".ssh");
        found.add_config_hosts(&folder.join("config"), &folder, Some(home), 0);
        found.add_known_hosts(&folder.join("known_hosts"));
    }
    found.add_config_hosts(&system.join("ssh_config"), system, home, 0);
    found.add_known_hosts(&system.join("ssh_known_hosts"));
    found.hosts.sort_unstable();
    found.hosts.dedup();
    found.hosts
}

/// The hosts found, within the limits.
#[derive(Debug, Default)]
struct HostFinder {
    hosts: Vec<String>,
    files: usize,
}

impl HostFinder {
    /// Returns the text of a file, or an empty text if it cannot be read or is one file too many.
    fn read_text(&mut self, path: &Path) -> String {
        self.files += 1;
        let mut bytes = Vec::new();
        // A pipe of this name would never end.
        let is_file = path.metadata().is_ok_and(|data| data.is_file());
        if self.files <= MAX_FILES
            && is_file
            && let Ok(file) = File::open(path)
        {
            let _ = file.take(MAX_FILE_LEN).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn add_host(&mut self, host: &str) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
        if self.hosts.len() < MAX_HOSTS && !host.is_empty() && host.chars().all(plain) {
            self.hosts.push(host.to_owned());
        }
    }

    /// Adds the names after `Host` that are not patterns, also those of included files.
    fn add_config_hosts(&mut self, path: &Path, folder: &Path, home: Option<&Path>, depth: usize) {
        if depth > MAX_INCLUDE_DEPTH {
            return;
        }
        for line in self.read_text(path).lines() {
            let mut words = line
                .split([' ', '\t', '=', '"'])
                .filter(|word| !word.is_empty());
            let keyword = words.next().unwrap_or_default();
            if keyword.eq_ignore_ascii_case("host") {
                // A name with `*`, `?` or `!` is a pattern, and a comment ends the line.
                let names = words.take_while(|word| !word.starts_with('#'));
                names.for_each(|name| self.add_host(name));
            } else if keyword.eq_ignore_ascii_case("include") {
                for word in words {
                    let path = match (word.strip_prefix("~/"), home) {
                        (Some(rest), Some(home)) => home.join(rest),
                        _ => folder.join(word),
                    };
                    for file in matching_files(&path) {
                        self.add_config_hosts(&file, folder, home, depth + 1);
                    }
                }
            }
        }
    }

    /// Adds the names in a list of keys, except hashed names and patterns.
    fn add_known_hosts(&mut self, path: &Path) {
        for line in self.read_text(path).lines() {
            let names = line.split_whitespace().next().unwrap_or_default();
            if names.starts_with(['#', '|', '@']) {
                continue;
            }
            for name in names.split(',') {
                let bare = name.strip_prefix('[');
                let bare = bare.and_then(|rest| rest.split(']').next());
                self.add_host(bare.unwrap_or(name));
            }
        }
    }
}

/// Returns the files that match a path, whose last part may contain `*`.
fn matching_files(path: &Path) -> Vec<PathBuf> {
    let Some((folder, name)) = path
        .parent()
        .zip(path.file_name().and_then(|name| name.to_str()))
    else {
        return Vec::new();
    };
    if !name.contains('*') {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names
        .filter(|one| !one.starts_with('.') && matches_pattern(name, one))
        .take(MAX_HOSTS)
        .collect();
    names.sort_unstable();
    names.into_iter().map(|name| folder.join(name)).collect()
}

/// True if the name matches the pattern, in which `*` is any text.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.is_empty()
}
