//! Completions of SSH algorithms in comma-separated lists, and of `ssh_config` options.

use adit_ssh_proto::algorithm::{Cipher, Kex, KeyAlgorithm, Mac};
use clap_complete::engine::CompletionCandidate;

use super::completers::candidates_starting_with;
use super::urls::add_prefix;

/// Options of `ssh_config` with the words that they accept; no words if the values are not known.
static OPTION_WORDS: [(&str, &[&str]); 14] = [
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
/// A function that returns the completions of a value.
type CompleteFn = fn(&str) -> Vec<CompletionCandidate>;

/// Options whose values are lists of algorithms.
static ALGORITHM_LISTS: [(&str, CompleteFn); 4] = [
    ("Ciphers", complete_ciphers),
    ("HostKeyAlgorithms", complete_host_keys),
    ("KexAlgorithms", complete_kex),
    ("MACs", complete_macs),
];

pub(super) fn complete_ciphers(typed: &str) -> Vec<CompletionCandidate> {
    complete_names(typed, Cipher::ALL.iter().map(|one| one.name()))
}

pub(super) fn complete_macs(typed: &str) -> Vec<CompletionCandidate> {
    complete_names(typed, Mac::ALL.iter().map(|one| one.name()))
}

pub(super) fn complete_kex(typed: &str) -> Vec<CompletionCandidate> {
    complete_names(typed, Kex::ALL.iter().map(|one| one.name()))
}

fn complete_host_keys(typed: &str) -> Vec<CompletionCandidate> {
    complete_names(typed, KeyAlgorithm::ALL.iter().map(|one| one.name()))
}

/// Returns the completions of the last name of a list. A sign in front (`+`, `-`, `^`) is kept, and
/// names that are already in the list are omitted.
fn complete_names(
    typed: &str,
    all: impl Iterator<Item = &'static str> + Clone,
) -> Vec<CompletionCandidate> {
    let sign = typed.len() - typed.trim_start_matches(['+', '-', '^']).len();
    let (sign, list) = typed.split_at(sign.min(1));
    let before: Vec<&str> = list
        .rsplit_once(',')
        .map_or_else(Vec::new, |(before, _)| before.split(',').collect());
    let rest = all.filter(|name| !before.contains(name));
    let found = complete_last(list, |word| candidates_starting_with(rest.clone(), word));
    add_prefix(found, sign)
}

/// Returns the completions of the last part of a comma-separated list.
pub(super) fn complete_last(
    list: &str,
    complete: impl FnOnce(&str) -> Vec<CompletionCandidate>,
) -> Vec<CompletionCandidate> {
    match list.rsplit_once(',') {
        Some((before, word)) => add_prefix(complete(word), &format!("{before},")),
        None => complete(list),
    }
}

/// Returns the completions of a `KEY=VALUE` option of `ssh_config`.
pub(super) fn complete_ssh_option(typed: &str) -> Vec<CompletionCandidate> {
    let Some((key, value)) = typed.split_once('=') else {
        let words = OPTION_WORDS.iter().map(|(key, _)| *key);
        let lists = ALGORITHM_LISTS.iter().map(|(key, _)| *key);
        // Keywords have no case, but a shell only accepts completions with the typed letters.
        let mut keys: Vec<&str> = words
            .chain(lists)
            .filter(|key| key.starts_with(typed))
            .collect();
        keys.sort_unstable();
        let keys = keys.into_iter().map(|key| format!("{key}="));
        return keys.map(CompletionCandidate::new).collect();
    };
    let front = format!("{key}=");
    if let Some((_, complete)) = ALGORITHM_LISTS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(key))
    {
        return add_prefix(complete(value), &front);
    }
    let words = OPTION_WORDS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(key));
    let words = words.map_or(&[] as &[&str], |(_, words)| words);
    add_prefix(
        candidates_starting_with(words.iter().copied(), value),
        &front,
    )
}
