//! Algorithms of SSH, in lists with commas and in options of `ssh_config`.

use adit_ssh_proto::algorithm::{Cipher, Kex, KeyAlgorithm, Mac};
use clap_complete::engine::CompletionCandidate;

use super::urls::prefixed;
use super::values::beginning;

/// Options of `ssh_config` with words, or with nothing that is known.
static OPTIONS: [(&str, &[&str]); 14] = [
    ("AddressFamily", &["any", "inet", "inet6"]),
    ("Compression", &["no", "yes"]),
    ("ConnectTimeout", &[]),
    ("ForwardAgent", &["no", "yes"]),
    ("IdentitiesOnly", &["no", "yes"]),
    ("IdentityFile", &[]),
    ("LogLevel", &["QUIET", "ERROR", "INFO", "VERBOSE", "DEBUG"]),
    ("Port", &[]),
    ("ProxyCommand", &[]),
    ("ServerAliveCountMax", &[]),
    ("ServerAliveInterval", &[]),
    ("StrictHostKeyChecking", &["accept-new", "ask", "no", "yes"]),
    ("User", &[]),
    ("UserKnownHostsFile", &[]),
];
/// Returns how a value may go on.
type Complete = fn(&str) -> Vec<CompletionCandidate>;

/// Options that are lists of algorithms.
static LISTS: [(&str, Complete); 4] = [
    ("Ciphers", ciphers),
    ("HostKeyAlgorithms", host_keys),
    ("KexAlgorithms", kex),
    ("MACs", macs),
];

pub(super) fn ciphers(typed: &str) -> Vec<CompletionCandidate> {
    names(typed, Cipher::ALL.iter().map(|one| one.name()))
}

pub(super) fn macs(typed: &str) -> Vec<CompletionCandidate> {
    names(typed, Mac::ALL.iter().map(|one| one.name()))
}

pub(super) fn kex(typed: &str) -> Vec<CompletionCandidate> {
    names(typed, Kex::ALL.iter().map(|one| one.name()))
}

fn host_keys(typed: &str) -> Vec<CompletionCandidate> {
    names(typed, KeyAlgorithm::ALL.iter().map(|one| one.name()))
}

/// Returns how the last name of a list may go on. A sign in front (`+`, `-`, `^`) stays, and no name
/// is offered twice.
fn names(typed: &str, all: impl Iterator<Item = &'static str> + Clone) -> Vec<CompletionCandidate> {
    let sign = typed.len() - typed.trim_start_matches(['+', '-', '^']).len();
    let (sign, list) = typed.split_at(sign.min(1));
    let before: Vec<&str> = list
        .rsplit_once(',')
        .map_or_else(Vec::new, |(before, _)| before.split(',').collect());
    let rest = all.filter(|name| !before.contains(name));
    let found = last(list, |word| beginning(rest.clone(), word));
    prefixed(found, sign)
}

/// Returns how the last part of a list with commas may go on.
pub(super) fn last(
    list: &str,
    complete: impl FnOnce(&str) -> Vec<CompletionCandidate>,
) -> Vec<CompletionCandidate> {
    match list.rsplit_once(',') {
        Some((before, word)) => prefixed(complete(word), &format!("{before},")),
        None => complete(list),
    }
}

/// Returns how an option of `ssh_config` may go on.
pub(super) fn ssh_options(typed: &str) -> Vec<CompletionCandidate> {
    let Some((key, value)) = typed.split_once('=') else {
        let words = OPTIONS.iter().map(|(key, _)| *key);
        let lists = LISTS.iter().map(|(key, _)| *key);
        let mut keys: Vec<&str> = words
            .chain(lists)
            .filter(|key| begins(key, typed))
            .collect();
        keys.sort_unstable();
        let keys = keys.into_iter().map(|key| format!("{key}="));
        return keys.map(CompletionCandidate::new).collect();
    };
    let front = format!("{key}=");
    if let Some((_, complete)) = LISTS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(key))
    {
        return prefixed(complete(value), &front);
    }
    let words = OPTIONS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(key));
    let words = words.map_or(&[] as &[&str], |(_, words)| words);
    prefixed(beginning(words.iter().copied(), value), &front)
}

/// Keywords have no case, but a shell only takes what begins with the very letters that were typed.
fn begins(key: &str, typed: &str) -> bool {
    key.starts_with(typed)
}
