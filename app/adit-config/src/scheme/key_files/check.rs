//! Checks of keys that need no key derivation: form, length, and duplicates. Messages contain lengths,
//! never content.

use std::hash::{BuildHasher, RandomState};

use adit_shadowsocks::{Edition, Method};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::scheme::key_files::{KeyEntry, TruncatedList};
use crate::text::{ConfigError, Secret, Span, base64};

/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 255;

/// The holders of a list of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyListKind {
    /// Users of a server.
    Users,
    /// Next servers of a relay.
    Next,
}

/// True if sessions of the method can begin with identity headers (SIP023).
pub(crate) const fn has_identity_headers(method: Method) -> bool {
    matches!(method, Method::Blake3Aes128Gcm | Method::Blake3Aes256Gcm)
}

/// Returns the hint with the command that makes a key.
pub(crate) fn keygen_hint(method: Method) -> String {
    format!("`adit keygen {method}` makes one")
}

/// Checks one password or key.
pub(crate) fn check_key(method: Method, text: &str, span: Span) -> Result<(), ConfigError> {
    match method.edition() {
        Edition::Aead2022 if text.is_empty() => {
            Err(ConfigError::new(span, "the key is missing").with_help(keygen_hint(method)))
        }
        Edition::Aead2022 => decode_base64_key(method, text, span).map(drop),
        Edition::Aead | Edition::Stream if text.is_empty() => {
            Err(ConfigError::new(span, "the password is empty").with_help(keygen_hint(method)))
        }
        _ => Ok(()),
    }
}

/// Checks the keys of a hop, joined by `:`: those of the servers on the path, then the user's.
pub(crate) fn check_joined_keys(method: Method, text: &str, span: Span) -> Result<(), ConfigError> {
    if method.edition() != Edition::Aead2022 || !text.contains(':') {
        return check_key(method, text, span);
    }
    check_no_method(text, span)?;
    if !has_identity_headers(method) {
        return Err(no_identity_headers_error(method, span));
    }
    let all = text.split(':').count();
    for (i, key) in text.split(':').enumerate() {
        decode_base64_key(method, key, span).map_err(|mut flaw| {
            let number = i + 1;
            flaw.label = format!("key {number} of {all}: {}", flaw.label);
            flaw
        })?;
    }
    Ok(())
}

/// Checks that no method is before the keys of the 2022 edition, as in a file with `METHOD:KEY`.
pub(crate) fn check_no_method(text: &str, span: Span) -> Result<(), ConfigError> {
    let first = text.split_once(':').map(|(first, _)| first);
    match first.filter(|first| first.parse::<Method>().is_ok()) {
        Some(name) => Err(ConfigError::new(span, "the key begins with a method")
            .with_label("the URL has the method before the key already")
            .with_help(format!("remove `{name}:` from the key, or from its file"))),
        None => Ok(()),
    }
}

/// Returns the error of several keys, users or a relay with a method that has no identity headers.
pub(crate) fn no_identity_headers_error(method: Method, span: Span) -> ConfigError {
    let aes = Method::Blake3Aes256Gcm;
    ConfigError::new(span, format!("`{method}` has no identity headers"))
        .with_label("it has a single key")
        .with_help(format!("the AES methods have them (SIP023): `{aes}`"))
}

/// Decodes a key of the 2022 edition.
fn decode_base64_key(
    method: Method,
    text: &str,
    span: Span,
) -> Result<Zeroizing<Vec<u8>>, ConfigError> {
    let must = method.key_len();
    let Some(key) = base64::decode_key(text) else {
        let flaw = ConfigError::new(span, "the key is not base64")
            .with_label(format!("`{method}` needs {must} bytes in base64"));
        let flaw = if text.contains(['-', '_']) {
            flaw.with_help("this looks like base64url: write `+` for `-` and `/` for `_`")
        } else {
            flaw
        };
        return Err(flaw.with_help(keygen_hint(method)));
    };
    if key.len() == must {
        return Ok(key);
    }
    let has = key.len();
    Err(ConfigError::new(span, "the key has the wrong length")
        .with_label(format!("`{method}` needs {must} bytes, this is {has}"))
        .with_help(keygen_hint(method)))
}

/// Checks all entries together. The span of an error is that of its entry.
pub(crate) fn check_entries(
    holders: KeyListKind,
    method: Method,
    identity: Option<&Secret>,
    entries: &[KeyEntry],
) -> TruncatedList<ConfigError> {
    let judge = EntryChecker {
        holders,
        method,
        identity: identity.and_then(|secret| key_bytes(method, secret.expose())),
        entries,
    };
    let mut flaws = TruncatedList::new();
    // Duplicates are found by a keyed digest: a map of a million keys would need more memory than the
    // file.
    let digest = RandomState::new();
    let mut names = Vec::new();
    let mut keys = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        if let Some(name) = &entry.name {
            if let Err(flaw) = judge.check_name(name, entry.at) {
                flaws.push(flaw);
            }
            names.push((digest.hash_one(name), i));
        }
        match judge.check_entry_key(i, entry) {
            Ok(key) => keys.push((digest.hash_one(key.as_slice()), i)),
            Err(flaw) => flaws.push(flaw),
        }
    }
    judge.report_duplicates(names, keys, &mut flaws);
    flaws
}

/// Returns the bytes of a key for comparison: two spellings of the same bytes are the same key.
fn key_bytes(method: Method, text: &str) -> Option<Zeroizing<Vec<u8>>> {
    match method.edition() {
        Edition::Aead2022 => base64::decode_key(text),
        _ => Some(Zeroizing::new(text.as_bytes().to_vec())),
    }
}

/// Compares two keys in constant time.
fn equal_keys(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

/// A check of all entries of a list.
struct EntryChecker<'a> {
    holders: KeyListKind,
    method: Method,
    identity: Option<Zeroizing<Vec<u8>>>,
    entries: &'a [KeyEntry],
}

impl EntryChecker<'_> {
    /// Checks a name.
    fn check_name(&self, name: &str, at: Span) -> Result<(), ConfigError> {
        if name.is_empty() {
            return Err(ConfigError::new(at, "a name is empty"));
        }
        if name.len() > MAX_NAME || name.chars().any(char::is_control) {
            return Err(ConfigError::new(at, "not a valid name")
                .with_label(format!("1 to {MAX_NAME} bytes without control characters")));
        }
        Ok(())
    }

    /// Checks a key and returns its bytes.
    fn check_entry_key(
        &self,
        index: usize,
        entry: &KeyEntry,
    ) -> Result<Zeroizing<Vec<u8>>, ConfigError> {
        let text = entry.secret.expose();
        let whose = self.holder_name(index);
        let named = |mut flaw: ConfigError| {
            flaw.title = format!("{whose}: {}", flaw.title);
            flaw
        };
        let key = if self.method.edition() == Edition::Aead2022 {
            decode_base64_key(self.method, text, entry.at).map_err(|flaw| {
                if self.name_looks_like_key(entry) {
                    // Only one of them can be the key, and the text in place of the name is likelier.
                    return flaw.with_help("the name looks like a key: are the two swapped?");
                }
                flaw
            })
        } else {
            check_key(self.method, text, entry.at)
                .map(|()| Zeroizing::new(text.as_bytes().to_vec()))
        };
        let key = key.map_err(named)?;
        if self
            .identity
            .as_ref()
            .is_some_and(|identity| equal_keys(identity, &key))
        {
            let title = format!("{whose} has the identity key of the server");
            let method = self.method;
            return Err(ConfigError::new(entry.at, title)
                .with_help(format!("`adit keygen {method}` makes another key")));
        }
        Ok(key)
    }

    /// Reports names and keys that occur more than once.
    fn report_duplicates(
        &self,
        names: Vec<(u64, usize)>,
        keys: Vec<(u64, usize)>,
        flaws: &mut TruncatedList<ConfigError>,
    ) {
        let entry = |i: usize| self.entries.get(i);
        let name = |i: usize| entry(i).and_then(|entry| entry.name.as_deref());
        let bytes =
            |i: usize| entry(i).and_then(|entry| key_bytes(self.method, entry.secret.expose()));
        let at = |i: usize| entry(i).map_or_else(Span::default, |entry| entry.at);
        let same_name = |a, b| name(a).is_some() && name(a) == name(b);
        find_duplicates(names, same_name, |_, again| {
            let title = format!("{} is defined twice", self.holder_name(again));
            flaws.push(ConfigError::new(at(again), title).with_help("remove one of them"));
        });
        let what = match self.method.edition() {
            Edition::Aead2022 => "key",
            _ => "password",
        };
        let same_key = |a, b| match (bytes(a), bytes(b)) {
            (Some(a), Some(b)) => equal_keys(&a, &b),
            _ => false,
        };
        find_duplicates(keys, same_key, |first, again| {
            if !same_name(first, again) {
                let (first, second) = (self.holder_name(first), self.holder_name(again));
                let title = format!("{first} and {second} have the same {what}");
                let help = "make another one with `adit keygen`";
                flaws.push(ConfigError::new(at(again), title).with_help(help));
            }
        });
    }

    /// Returns the holder of a key for messages: "user `alice`", "next server 2".
    fn holder_name(&self, index: usize) -> String {
        let kind = match self.holders {
            KeyListKind::Users => "user",
            KeyListKind::Next => "next server",
        };
        let number = index + 1;
        match self.entries.get(index) {
            Some(entry) if !self.name_looks_like_key(entry) => match entry.name.as_deref() {
                Some(name) if !name.is_empty() => format!("{kind} `{name}`"),
                _ => format!("{kind} {number}"),
            },
            _ => format!("{kind} {number}"),
        }
    }

    /// True if the name of an entry must not be shown because it looks like a key.
    fn name_looks_like_key(&self, entry: &KeyEntry) -> bool {
        entry
            .name
            .as_ref()
            .is_some_and(|name| looks_like_key(self.method, name))
    }
}

/// True if a name could be, or contain, a key of this method: in the wrong place, in quotes or after a
/// colon. Such a name is not shown.
pub(crate) fn looks_like_key(method: Method, name: &str) -> bool {
    let is_key = |part| base64::decode_key(part).is_some_and(|key| key.len() == method.key_len());
    let ends = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '/' | '=');
    method.edition() == Edition::Aead2022 && name.split(ends).any(is_key)
}

/// Calls `found` with the first and every later one of equal entries.
fn find_duplicates(
    mut digests: Vec<(u64, usize)>,
    same: impl Fn(usize, usize) -> bool,
    mut found: impl FnMut(usize, usize),
) {
    digests.sort_unstable();
    let mut pairs = Vec::new();
    for run in digests.chunk_by(|a, b| a.0 == b.0) {
        for (i, (_, again)) in run.iter().enumerate() {
            let earlier = run.iter().take(i).map(|(_, first)| *first);
            if let Some(first) = earlier.into_iter().find(|first| same(*first, *again)) {
                pairs.push((*again, first));
            }
        }
    }
    // In the order of the document, not of the digests.
    pairs.sort_unstable();
    for (again, first) in pairs {
        found(first, again);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_in_a_name_is_known_in_quotes_and_behind_a_colon() {
        let key = "AAECAwQFBgcICQoLDA0ODw==";
        let hidden = |name: &str| looks_like_key(Method::Blake3Aes128Gcm, name);
        for name in [
            key,
            &key[..22],
            &format!("\"{key}\""),
            &format!(" {key}, alice:"),
        ] {
            assert!(hidden(name), "{name}");
        }
        assert!(hidden(&format!("alice:{key}")));
        assert!(!hidden("alice@example.org") && !hidden(&key[..20]));
        assert!(
            !looks_like_key(Method::Aes128Gcm, key),
            "passwords have no form"
        );
    }

    proptest! {
        #[test]
        fn repeats_are_those_that_a_search_finds(
            items in prop::collection::vec(0_u8..20, 0..40),
            // Digests that are good, and some that say nothing.
            digests in prop::sample::select(vec![1_u64, 7, u64::MAX]),
        ) {
            let digest = |item: u8| u64::from(item) % digests;
            let keyed = items.iter().enumerate().map(|(i, item)| (digest(*item), i)).collect();
            let mut found = Vec::new();
            find_duplicates(keyed, |a, b| items[a] == items[b], |first, again| found.push((first, again)));
            let searched: Vec<_> = (0..items.len())
                .filter_map(|again| {
                    let first = (0..again).find(|first| items[*first] == items[again])?;
                    Some((first, again))
                })
                .collect();
            prop_assert_eq!(found, searched);
        }
    }
}
