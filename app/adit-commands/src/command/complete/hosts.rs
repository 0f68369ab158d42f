//! Hosts of SSH: those that the configuration and the lists of known keys name.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap_complete::engine::CompletionCandidate;

use super::files;
use super::urls::prefixed;
use super::values::beginning;

/// Hosts at most.
const MOST: usize = 2000;
/// Bytes of a file at most, and files in all.
const LONGEST: u64 = 1 << 20;
const FILES: usize = 64;
/// `Include` in `Include`, at most this deep.
const DEPTH: usize = 8;

/// Returns how `[USER@]HOST` may go on.
pub(super) fn complete(typed: &str) -> Vec<CompletionCandidate> {
    let (user, host) = split_user(typed);
    if host.contains(':') {
        return Vec::new();
    }
    let known = known();
    prefixed(beginning(known.iter().map(String::as_str), host), user)
}

/// Returns how a source or target of `scp` may go on: a host with its colon, or a file here.
pub(super) fn complete_places(typed: &str) -> Vec<CompletionCandidate> {
    let (user, host) = split_user(typed);
    // What has a colon is a file there, and what has a slash before it one here.
    if host.contains(':') {
        return Vec::new();
    }
    let mut found = files::any(typed);
    if !typed.contains('/') {
        let hosts = known().into_iter().filter(|name| name.starts_with(host));
        let hosts = hosts.map(|name| CompletionCandidate::new(format!("{user}{name}:")));
        found.extend(hosts);
    }
    found
}

/// The user with its `@`, and the rest.
fn split_user(typed: &str) -> (&str, &str) {
    typed.split_at(typed.rfind('@').map_or(0, |at| at + 1))
}

/// The hosts of this user's files and the system's.
fn known() -> Vec<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    of(home.as_deref(), Path::new("/etc/ssh"))
}

/// The hosts of the files of a home and of a system's folder; each once, in the order of the alphabet.
pub(super) fn of(home: Option<&Path>, system: &Path) -> Vec<String> {
    let mut found = Found::default();
    if let Some(home) = home {
        let folder = home.join(".ssh");
        found.configuration(&folder.join("config"), &folder, Some(home), 0);
        found.known_hosts(&folder.join("known_hosts"));
    }
    found.configuration(&system.join("ssh_config"), system, home, 0);
    found.known_hosts(&system.join("ssh_known_hosts"));
    found.hosts.sort_unstable();
    found.hosts.dedup();
    found.hosts
}

#[derive(Debug, Default)]
struct Found {
    hosts: Vec<String>,
    files: usize,
}

impl Found {
    /// The text of a file; empty if it cannot be read or there were too many.
    fn read(&mut self, path: &Path) -> String {
        self.files += 1;
        let mut bytes = Vec::new();
        // A pipe with this name would never end.
        let is_file = path.metadata().is_ok_and(|data| data.is_file());
        if self.files <= FILES
            && is_file
            && let Ok(file) = File::open(path)
        {
            let _ = file.take(LONGEST).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn add(&mut self, host: &str) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
        if self.hosts.len() < MOST && !host.is_empty() && host.chars().all(plain) {
            self.hosts.push(host.to_owned());
        }
    }

    /// The names after `Host` that are no patterns, and those of included files.
    fn configuration(&mut self, path: &Path, folder: &Path, home: Option<&Path>, depth: usize) {
        if depth > DEPTH {
            return;
        }
        for line in self.read(path).lines() {
            let mut words = line
                .split([' ', '\t', '=', '"'])
                .filter(|word| !word.is_empty());
            let keyword = words.next().unwrap_or_default();
            if keyword.eq_ignore_ascii_case("host") {
                // A name with `*`, `?` or `!` is a pattern, and a comment ends the line.
                let names = words.take_while(|word| !word.starts_with('#'));
                names.for_each(|name| self.add(name));
            } else if keyword.eq_ignore_ascii_case("include") {
                for word in words {
                    let path = match (word.strip_prefix("~/"), home) {
                        (Some(rest), Some(home)) => home.join(rest),
                        _ => folder.join(word),
                    };
                    for file in matching(&path) {
                        self.configuration(&file, folder, home, depth + 1);
                    }
                }
            }
        }
    }

    /// The names of a list of keys. Hashed ones and patterns say no name.
    fn known_hosts(&mut self, path: &Path) {
        for line in self.read(path).lines() {
            let names = line.split_whitespace().next().unwrap_or_default();
            if names.starts_with(['#', '|', '@']) {
                continue;
            }
            for name in names.split(',') {
                let bare = name.strip_prefix('[');
                let bare = bare.and_then(|rest| rest.split(']').next());
                self.add(bare.unwrap_or(name));
            }
        }
    }
}

/// The files that a path names, whose last part may have `*`.
fn matching(path: &Path) -> Vec<PathBuf> {
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
        .filter(|one| !one.starts_with('.') && fits(name, one))
        .take(MOST)
        .collect();
    names.sort_unstable();
    names.into_iter().map(|name| folder.join(name)).collect()
}

/// True if the name is what the pattern says, in which `*` is any text.
fn fits(pattern: &str, name: &str) -> bool {
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
