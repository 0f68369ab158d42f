//! `authorized_keys`: keys that may log in, and their permissions (OpenSSH's `sshd(8)`).

use core::net::IpAddr;

use adit_wire::UnixTime;

use super::any_key::AnyKey;
use super::certificate::{CertCheck, CertError};
use super::error::{KeyError, LinePosition, SkippedLine};
use super::key_grant::KeyGrant;
use super::key_lines;
use super::line_options::LineOptions;
use super::pattern::SourceList;
use super::public_key::PublicKey;
use super::verify::{RSA_MIN_BITS, UserPresence};

/// Maximum size of a file of authorised keys, in bytes.
pub const MAX_AUTHORIZED_KEYS: usize = 4 << 20;
/// Maximum length of a line, in bytes; longer ones are skipped.
const MAX_LINE: usize = 65_536;

/// A key offered for a login, with the circumstances.
#[derive(Debug, Clone, Copy)]
pub struct KeyOffer<'a> {
    /// User name.
    pub user: &'a str,
    /// Key or certificate.
    pub key: &'a AnyKey,
    /// User presence as reported by a security key when it signed; `None` for other keys, and while
    /// the key is only queried.
    pub presence: Option<UserPresence>,
    /// Address from which the user connects.
    pub from: IpAddr,
    /// Name of that address, if it is known and was verified.
    pub from_name: Option<&'a str>,
    /// Current time.
    pub now: UnixTime,
}

/// Reason why a key is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyDenied {
    /// No line contains the key.
    #[error("the key is not authorised")]
    Unknown,
    /// The `from` option of its line does not include the address.
    #[error("{0}: the key is not authorised from this address")]
    Source(LinePosition),
    /// Its line has expired.
    #[error("{0}: the key has expired")]
    Expired(LinePosition),
    /// The security key was not touched, or did not verify its user.
    #[error("{0}: the security key did not confirm the user's presence")]
    Presence(LinePosition),
    /// The authority is trusted, but the certificate is not valid.
    #[error("{0}: {1}")]
    Certificate(LinePosition, CertError),
    /// The line and the certificate force different commands.
    #[error("{0}: the line and the certificate force different commands")]
    Commands(LinePosition),
}

/// Lines of a user's files.
///
/// # Examples
///
/// ```
/// use adit_ssh_proto::key::{AnyKey, AuthorizedKeys, KeyOffer, KeyType, PrivateKey};
/// use adit_wire::{FixedEntropy, UnixTime};
///
/// let key = PrivateKey::generate(KeyType::Ed25519, &mut FixedEntropy::new([7; 64]))?;
/// let key = key.public_key().clone();
/// let mut keys = AuthorizedKeys::default();
/// let line = format!("from=\"192.0.2.0/24\",no-pty {}", key.to_line(""));
/// assert!(keys.add_file("authorized_keys", line.as_bytes())?.is_empty(), "no line was skipped");
///
/// let key = AnyKey::Plain(key);
/// let mut offer = KeyOffer {
///     user: "me",
///     key: &key,
///     presence: None,
///     from: "192.0.2.7".parse().unwrap(),
///     from_name: None,
///     now: UnixTime(1_800_000_000),
/// };
/// assert!(!keys.find_grant(&offer).unwrap().pty);
/// offer.from = "198.51.100.1".parse().unwrap();
/// assert!(keys.find_grant(&offer).is_err());
/// # Ok::<(), adit_ssh_proto::key::KeyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct AuthorizedKeys {
    entries: Vec<AuthorizedEntry>,
    rsa_min_bits: usize,
}

impl Default for AuthorizedKeys {
    fn default() -> Self {
        Self::new(RSA_MIN_BITS)
    }
}

#[derive(Debug, Clone)]
struct AuthorizedEntry {
    options: LineOptions,
    key: PublicKey,
    place: LinePosition,
}

impl AuthorizedKeys {
    /// Creates an empty list. RSA authorities and certified RSA keys must have at least
    /// `rsa_min_bits`.
    #[must_use]
    pub const fn new(rsa_min_bits: usize) -> Self {
        Self {
            entries: Vec::new(),
            rsa_min_bits,
        }
    }

    /// Reads the text of a file, which messages call `file`, and adds its lines. A line that is
    /// malformed or contains an unknown option grants no access and is reported.
    ///
    /// # Errors
    /// [`KeyError::TooMuch`] if the text is longer than 4 MiB; nothing is read then.
    pub fn add_file(&mut self, file: &str, text: &[u8]) -> Result<Vec<SkippedLine>, KeyError> {
        let what = "size of a file of authorised keys";
        key_lines::parse_lines((file, what), text, MAX_AUTHORIZED_KEYS, |line, place| {
            let (options, key) = parse_line(line)?;
            self.entries.push(AuthorizedEntry {
                options,
                key,
                place: place.clone(),
            });
            Ok(())
        })
    }

    /// Returns the permissions of the key if it is accepted. This does not prove that the peer has
    /// the key: only a signature does.
    ///
    /// # Errors
    /// [`KeyDenied`] with the reason of the last line that contains the key.
    pub fn find_grant(&self, offer: &KeyOffer<'_>) -> Result<KeyGrant, KeyDenied> {
        let mut denied = KeyDenied::Unknown;
        for entry in &self.entries {
            match entry.check_offer(offer, self.rsa_min_bits) {
                Ok(grant) => return Ok(grant),
                Err(KeyDenied::Unknown) => {}
                Err(why) => denied = why,
            }
        }
        Err(denied)
    }

    /// Removes the authorities whose lines have no `principals=`; returns their positions. Required
    /// for servers that accept any user name that a client sends: every name in a certificate would
    /// be such a user, so that every certificate of the authority would be accepted.
    pub fn drop_authorities_without_principals(&mut self) -> Vec<LinePosition> {
        let open =
            |entry: &AuthorizedEntry| entry.options.authority && entry.options.principals.is_none();
        let dropped = self.entries.iter().filter(|entry| open(entry));
        let dropped = dropped.map(|entry| entry.place.clone()).collect();
        self.entries.retain(|entry| !open(entry));
        dropped
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
}

impl AuthorizedEntry {
    fn check_offer(
        &self,
        offer: &KeyOffer<'_>,
        rsa_min_bits: usize,
    ) -> Result<KeyGrant, KeyDenied> {
        let options = &self.options;
        let place = || self.place.clone();
        let certificate = match (options.authority, offer.key) {
            (false, AnyKey::Plain(key)) if *key == self.key => None,
            (true, AnyKey::Certificate(c)) if *c.authority() == self.key => Some(c),
            _ => return Err(KeyDenied::Unknown),
        };
        let included = |list: &SourceList| list.includes(offer.from, offer.from_name);
        if !options.from.as_ref().is_none_or(included) {
            return Err(KeyDenied::Source(place()));
        }
        if options.expires.is_some_and(|time| offer.now >= time) {
            return Err(KeyDenied::Expired(place()));
        }
        let mut grant = options.grant.clone();
        if let Some(certificate) = certificate {
            let listed: Vec<_> = match &options.principals {
                Some(list) => list.iter().map(String::as_str).collect(),
                None => vec![offer.user],
            };
            let mut check = CertCheck::user(&listed, offer.now, Some(offer.from));
            check.rsa_min_bits = rsa_min_bits;
            // Trusted, because it is this entry's.
            let of_certificate = certificate
                .check_validity(&check, |_| true)
                .map_err(|why| KeyDenied::Certificate(place(), why))?;
            grant = grant
                .intersect(of_certificate)
                .ok_or_else(|| KeyDenied::Commands(place()))?;
        }
        if grant.accepts_presence(offer.presence) {
            Ok(grant)
        } else {
            Err(KeyDenied::Presence(place()))
        }
    }
}

fn parse_line(line: &str) -> Result<(LineOptions, PublicKey), &'static str> {
    if line.len() > MAX_LINE {
        return Err("the line is too long");
    }
    // Like OpenSSH: a line that is not a key starts with options.
    let whole = PublicKey::from_line(line);
    let (options, key) = match whole {
        Ok((key, _)) => return Ok((LineOptions::defaults(), key)),
        Err(_) => {
            let (options, rest) = LineOptions::parse(line)?;
            (options, PublicKey::from_line(rest))
        }
    };
    match key {
        Ok((key, _)) => Ok((options, key)),
        Err(KeyError::Unsupported(_)) => Err("the key's type is not supported"),
        Err(_) => Err("the key is malformed"),
    }
}
