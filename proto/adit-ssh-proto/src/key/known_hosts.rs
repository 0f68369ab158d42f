//! `known_hosts`: keys of known hosts (OpenSSH's `sshd(8)`, SSH_KNOWN_HOSTS FILE FORMAT).

use adit_crypto::{ct_eq, hmac_sha1};
use adit_wire::UnixTime;

use super::any_key::AnyKey;
use super::base64;
use super::certificate::{CertCheck, CertError};
use super::error::{KeyError, LinePosition, SkippedLine};
use super::key_lines;
use super::pattern::PatternList;
use super::public_key::PublicKey;
use crate::algorithm::KeyAlgorithm;

/// Maximum size of a file of known hosts, in bytes.
pub const MAX_KNOWN_HOSTS: usize = 16 << 20;
/// Maximum length of a line, in bytes; longer ones are skipped.
const MAX_LINE: usize = 65_536;
/// Port that entries omit.
const SSH_PORT: u16 = 22;

/// A host as named in files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName {
    name: String,
    /// `name` or `[name]:port`.
    entry: String,
}

impl HostName {
    /// Creates an entry from a name or address as the user entered it, and a port. Returns `None`
    /// if it contains characters that are not valid in host names and have a meaning in the file.
    #[must_use]
    pub fn new(name: &str, port: u16) -> Option<Self> {
        let fine = |b: u8| b.is_ascii_graphic() && !b"*?!,|#@[]\"'\\".contains(&b);
        if name.is_empty() || name.len() > 255 || !name.bytes().all(fine) {
            return None;
        }
        let name = name.to_ascii_lowercase();
        let entry = match port {
            SSH_PORT => name.clone(),
            _ => format!("[{name}]:{port}"),
        };
        Some(Self { name, entry })
    }

    /// Returns the line that adds `key` for this host, without a line end. With a salt (20 random
    /// bytes), the host is hashed, so that the file does not reveal the visited hosts.
    #[must_use]
    pub fn known_hosts_line(&self, key: &PublicKey, salt: Option<[u8; 20]>) -> String {
        let host = match salt {
            None => self.entry.clone(),
            Some(salt) => {
                let hash = hmac_sha1(&salt, &[self.entry.as_bytes()]);
                format!("|1|{}|{}", base64::encode(&salt), base64::encode(&hash))
            }
        };
        format!("{host} {}", key.to_line(""))
    }
}

impl core::fmt::Display for HostName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.entry)
    }
}

/// Result of looking up a host's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostKeyVerdict {
    /// The key is the host's, by this line: a key or an authority.
    Known(LinePosition),
    /// No line without a marker matches the host: it is new.
    Unknown,
    /// The host is known, but only with keys of other types, the first of which is in this line. It
    /// is not a new host: an attacker in between presents any key available. OpenSSH treats it as
    /// changed.
    OtherType(LinePosition),
    /// The host has another key of this type: an attack, or a new key.
    Changed(LinePosition),
    /// The key or its authority is revoked.
    Revoked(LinePosition),
    /// The authority of this line vouches for the key, but the certificate is not valid.
    BadCertificate(LinePosition, CertError),
}

/// A known key of a host, from a line without a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownKey<'a> {
    /// Key.
    pub key: &'a PublicKey,
    /// Position of its line.
    pub place: &'a LinePosition,
    /// True if the line is for this host only: a single name, plain or hashed.
    pub alone: bool,
}

/// Lines of all files.
///
/// # Examples
///
/// ```
/// use adit_ssh_proto::key::{AnyKey, HostKeyVerdict, HostName, KeyType, KnownHosts, PrivateKey};
/// use adit_wire::{FixedEntropy, UnixTime};
///
/// let now = UnixTime(1_800_000_000);
/// let new_key = |seed| PrivateKey::generate(KeyType::Ed25519, &mut FixedEntropy::new([seed; 64]));
/// let (key, other) = (new_key(1)?, new_key(2)?);
/// let host = HostName::new("example.test", 22).unwrap();
///
/// let mut known = KnownHosts::default();
/// known.add_file("known_hosts", host.known_hosts_line(key.public_key(), None).as_bytes())?;
/// let check = |key: &PrivateKey| known.check_host(&host, &AnyKey::Plain(key.public_key().clone()), now);
/// assert!(matches!(check(&key), HostKeyVerdict::Known(_)));
/// assert!(matches!(check(&other), HostKeyVerdict::Changed(_)));
/// # Ok::<(), adit_ssh_proto::key::KeyError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct KnownHosts {
    entries: Vec<KnownHostEntry>,
}

#[derive(Debug, Clone)]
struct KnownHostEntry {
    marker: LineMarker,
    hosts: HostMatcher,
    key: PublicKey,
    place: LinePosition,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineMarker {
    Key,
    Authority,
    Revoked,
}

#[derive(Debug, Clone)]
enum HostMatcher {
    Patterns(PatternList),
    Hashed { salt: Vec<u8>, hash: Vec<u8> },
}

impl KnownHosts {
    /// Reads the text of a file, which verdicts call `file`, and adds its lines. Malformed lines
    /// are skipped and reported.
    ///
    /// # Errors
    /// [`KeyError::TooMuch`] if the text is longer than 16 MiB; nothing is read then.
    pub fn add_file(&mut self, file: &str, text: &[u8]) -> Result<Vec<SkippedLine>, KeyError> {
        let what = "size of a file of known hosts";
        key_lines::parse_lines((file, what), text, MAX_KNOWN_HOSTS, |line, place| {
            let (marker, hosts, key) = parse_line(line)?;
            self.entries.push(KnownHostEntry {
                marker,
                hosts,
                key,
                place: place.clone(),
            });
            Ok(())
        })
    }

    /// Returns the key in the line of a verdict.
    #[must_use]
    pub fn key_at_position(&self, place: &LinePosition) -> Option<&PublicKey> {
        let entry = self.entries.iter().find(|entry| entry.place == *place)?;
        Some(&entry.key)
    }

    /// Formats the key in the line of a verdict for users: type, fingerprint and position.
    #[must_use]
    pub fn describe_key_at(&self, place: &LinePosition) -> String {
        match self.key_at_position(place) {
            Some(key) => format!("{} {} ({place})", key.type_name(), key.fingerprint()),
            None => place.to_string(),
        }
    }

    /// Looks up `key` for `host`. A certificate is checked if one of the host's authorities signed
    /// it; otherwise, its key is looked up like any other.
    #[must_use]
    pub fn check_host(&self, host: &HostName, key: &AnyKey, now: UnixTime) -> HostKeyVerdict {
        let entries: Vec<_> = self.entries_for(host).collect();
        let authority = key.certificate().map(|c| c.authority());
        let revoked = |e: &&&KnownHostEntry| {
            e.marker == LineMarker::Revoked && (e.key == *key.key() || Some(&e.key) == authority)
        };
        if let Some(entry) = entries.iter().find(revoked) {
            return HostKeyVerdict::Revoked(entry.place.clone());
        }
        if let Some(certificate) = key.certificate() {
            let vouches = |e: &&&KnownHostEntry| {
                e.marker == LineMarker::Authority && e.key == *certificate.authority()
            };
            if let Some(entry) = entries.iter().find(vouches) {
                let names = [host.name.as_str()];
                let check = CertCheck::host(&names, now);
                let place = entry.place.clone();
                // Trusted, because it is this entry's.
                return match certificate.check_validity(&check, |_| true) {
                    Ok(_) => HostKeyVerdict::Known(place),
                    Err(why) => HostKeyVerdict::BadCertificate(place, why),
                };
            }
        }
        let keys = || entries.iter().filter(|e| e.marker == LineMarker::Key);
        if let Some(entry) = keys().find(|e| e.key == *key.key()) {
            return HostKeyVerdict::Known(entry.place.clone());
        }
        let kind = key.key().type_name();
        if let Some(entry) = keys().find(|e| e.key.type_name() == kind) {
            return HostKeyVerdict::Changed(entry.place.clone());
        }
        match keys().next() {
            Some(entry) => HostKeyVerdict::OtherType(entry.place.clone()),
            None => HostKeyVerdict::Unknown,
        }
    }

    /// Looks up `key` for both a host's name and its address, which must not contradict each other:
    /// if one key is known for the name and another for the address, the key is changed.
    #[must_use]
    pub fn check_name_and_address(
        &self,
        host: &HostName,
        address: &HostName,
        key: &AnyKey,
        now: UnixTime,
    ) -> HostKeyVerdict {
        match (
            self.check_host(host, key, now),
            self.check_host(address, key, now),
        ) {
            (_, found @ HostKeyVerdict::Revoked(_)) => found,
            (
                HostKeyVerdict::Known(_),
                found @ (HostKeyVerdict::Changed(_) | HostKeyVerdict::OtherType(_)),
            ) => found,
            (found, _) => found,
        }
    }

    /// Iterates over the known keys of the host, in the order of their lines.
    pub fn keys_of(&self, host: &HostName) -> impl Iterator<Item = KnownKey<'_>> {
        let keys = self
            .entries_for(host)
            .filter(|entry| entry.marker == LineMarker::Key);
        keys.map(|entry| KnownKey {
            key: &entry.key,
            place: &entry.place,
            alone: match &entry.hosts {
                HostMatcher::Patterns(list) => list.is_single_name(),
                HostMatcher::Hashed { .. } => true,
            },
        })
    }

    /// Returns `offered` with the algorithms of the host's known keys first, so that the host
    /// presents a key that can be compared; otherwise, the order is kept.
    #[must_use]
    pub fn prefer_known(&self, host: &HostName, offered: &[KeyAlgorithm]) -> Vec<KeyAlgorithm> {
        let entries: Vec<_> = self.entries_for(host).collect();
        let known = |algorithm: &KeyAlgorithm| {
            entries.iter().any(|entry| match entry.marker {
                LineMarker::Key => entry.key.algorithms().contains(algorithm),
                LineMarker::Authority => algorithm.is_certificate(),
                LineMarker::Revoked => false,
            })
        };
        let (mut first, last): (Vec<_>, Vec<_>) = offered.iter().partition(|a| known(a));
        first.extend(last);
        first
    }

    /// Returns the number of lines that were read.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there are no lines.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn entries_for(&self, host: &HostName) -> impl Iterator<Item = &KnownHostEntry> {
        let host = host.clone();
        self.entries.iter().filter(move |entry| match &entry.hosts {
            HostMatcher::Patterns(list) => list.includes(&host.entry),
            HostMatcher::Hashed { salt, hash } => {
                ct_eq(&hmac_sha1(salt, &[host.entry.as_bytes()]), hash)
            }
        })
    }
}

fn parse_line(line: &str) -> Result<(LineMarker, HostMatcher, PublicKey), &'static str> {
    if line.len() > MAX_LINE {
        return Err("the line is too long");
    }
    let split = |text: &str| match text.split_once([' ', '\t']) {
        Some((word, rest)) => (word.to_owned(), rest.trim_start().to_owned()),
        None => (text.to_owned(), String::new()),
    };
    let (word, rest) = split(line);
    let (marker, (hosts, key)) = match word.as_str() {
        "@cert-authority" => (LineMarker::Authority, split(&rest)),
        "@revoked" => (LineMarker::Revoked, split(&rest)),
        _ if word.starts_with('@') => return Err("unknown marker"),
        _ => (LineMarker::Key, (word, rest)),
    };
    let hosts = match hosts.strip_prefix("|1|") {
        Some(hashed) => {
            let (salt, hash) = hashed.split_once('|').ok_or("the hash is malformed")?;
            let decoded = |text| base64::decode(text).filter(|bytes| bytes.len() == 20);
            HostMatcher::Hashed {
                salt: decoded(salt).ok_or("the hash is malformed")?,
                hash: decoded(hash).ok_or("the hash is malformed")?,
            }
        }
        None if hosts.starts_with('|') => return Err("the type of the hash is not supported"),
        None => HostMatcher::Patterns(
            PatternList::parse(&hosts).ok_or("the list of hosts is malformed")?,
        ),
    };
    match PublicKey::from_line(&key) {
        Ok((key, _)) => Ok((marker, hosts, key)),
        Err(KeyError::Unsupported(_)) => Err("the key's type is not supported"),
        Err(_) => Err("the key is malformed"),
    }
}
