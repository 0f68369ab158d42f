//! `authorized_keys`: which keys let a user in, and what for (OpenSSH's `sshd(8)`).

use core::net::IpAddr;

use adit_wire::UnixTime;

use super::any::AnyKey;
use super::certificate::{CertCheck, CertError};
use super::error::{KeyError, Place, Problem};
use super::grant::Grant;
use super::lines;
use super::options::LineOptions;
use super::pattern::SourceList;
use super::public::PublicKey;
use super::verify::{Presence, RSA_MIN_BITS};

/// The longest file of authorised keys, octets.
pub const MAX_AUTHORIZED_KEYS: usize = 4 << 20;
/// The longest line, octets; longer ones are left out.
const MAX_LINE: usize = 65_536;

/// A key that wants in, and the circumstances.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    /// The user.
    pub user: &'a str,
    /// The key, or the certificate.
    pub key: &'a AnyKey,
    /// What a token said of its user when it signed; `None` for other keys, and while the key is
    /// only asked about.
    pub presence: Option<Presence>,
    /// Where the user comes from.
    pub from: IpAddr,
    /// The name of that address, if it is known and was checked.
    pub from_name: Option<&'a str>,
    /// The time.
    pub now: UnixTime,
}

/// Why a key does not let in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Denied {
    /// No line has it.
    #[error("the key is not authorised")]
    Unknown,
    /// Its line's `from` has not this address.
    #[error("{0}: the key is not authorised from this address")]
    Source(Place),
    /// Its line's time is over.
    #[error("{0}: the key has expired")]
    Expired(Place),
    /// The token was not touched, or did not check its user.
    #[error("{0}: the token did not see its user")]
    Presence(Place),
    /// The authority is known, the certificate is not in order.
    #[error("{0}: {1}")]
    Certificate(Place, CertError),
    /// The line and the certificate force different commands.
    #[error("{0}: the line and the certificate force different commands")]
    Commands(Place),
}

/// The lines of a user's files.
#[derive(Debug, Clone)]
pub struct AuthorizedKeys {
    entries: Vec<Entry>,
    rsa_min_bits: usize,
}

impl Default for AuthorizedKeys {
    fn default() -> Self {
        Self::new(RSA_MIN_BITS)
    }
}

#[derive(Debug, Clone)]
struct Entry {
    options: LineOptions,
    key: PublicKey,
    place: Place,
}

impl AuthorizedKeys {
    /// No keys yet; RSA authorities and certified keys have to have this many bits.
    #[must_use]
    pub const fn new(rsa_min_bits: usize) -> Self {
        Self {
            entries: Vec::new(),
            rsa_min_bits,
        }
    }

    /// Reads the text of a file, which `file` names in messages, behind what was read before. A
    /// line that cannot be read, or has an option that is not known, lets nobody in and is told.
    ///
    /// # Errors
    /// [`KeyError::TooMuch`] for a text above 4 MiB, of which nothing is read.
    pub fn read(&mut self, file: &str, text: &[u8]) -> Result<Vec<Problem>, KeyError> {
        let what = "a file of authorised keys";
        lines::read((file, what), text, MAX_AUTHORIZED_KEYS, |line, place| {
            let (options, key) = parse(line)?;
            self.entries.push(Entry {
                options,
                key,
                place: place.clone(),
            });
            Ok(())
        })
    }

    /// Whether the key lets in, and what for. That the peer has the key is another question: only
    /// a signature tells.
    ///
    /// # Errors
    /// [`Denied`], of the last line that has the key.
    pub fn find(&self, offer: &Offer<'_>) -> Result<Grant, Denied> {
        let mut denied = Denied::Unknown;
        for entry in &self.entries {
            match entry.judge(offer, self.rsa_min_bits) {
                Ok(grant) => return Ok(grant),
                Err(Denied::Unknown) => {}
                Err(why) => denied = why,
            }
        }
        Err(denied)
    }

    /// Drops the authorities whose lines have no `principals=`; gives their places. A server that
    /// lets in whatever user a client names has to: any name in a certificate would be such a user,
    /// so that every certificate of the authority would let in.
    pub fn drop_authorities_without_principals(&mut self) -> Vec<Place> {
        let open = |entry: &Entry| entry.options.authority && entry.options.principals.is_none();
        let dropped = self.entries.iter().filter(|entry| open(entry));
        let dropped = dropped.map(|entry| entry.place.clone()).collect();
        self.entries.retain(|entry| !open(entry));
        dropped
    }

    /// Lines that were read.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Entry {
    fn judge(&self, offer: &Offer<'_>, rsa_min_bits: usize) -> Result<Grant, Denied> {
        let options = &self.options;
        let place = || self.place.clone();
        let certificate = match (options.authority, offer.key) {
            (false, AnyKey::Plain(key)) if *key == self.key => None,
            (true, AnyKey::Certificate(c)) if *c.authority() == self.key => Some(c),
            _ => return Err(Denied::Unknown),
        };
        let included = |list: &SourceList| list.includes(offer.from, offer.from_name);
        if !options.from.as_ref().is_none_or(included) {
            return Err(Denied::Source(place()));
        }
        if options.expires.is_some_and(|time| offer.now >= time) {
            return Err(Denied::Expired(place()));
        }
        let mut grant = options.grant.clone();
        if let Some(certificate) = certificate {
            let listed: Vec<_> = match &options.principals {
                Some(list) => list.iter().map(String::as_str).collect(),
                None => vec![offer.user],
            };
            let mut check = CertCheck::user(&listed, offer.now, Some(offer.from));
            check.rsa_min_bits = rsa_min_bits;
            // Trusted: it is this entry's.
            let of_certificate = certificate
                .check(&check, |_| true)
                .map_err(|why| Denied::Certificate(place(), why))?;
            grant = grant
                .both(of_certificate)
                .ok_or_else(|| Denied::Commands(place()))?;
        }
        if grant.accepts(offer.presence) {
            Ok(grant)
        } else {
            Err(Denied::Presence(place()))
        }
    }
}

fn parse(line: &str) -> Result<(LineOptions, PublicKey), &'static str> {
    if line.len() > MAX_LINE {
        return Err("a line that is too long");
    }
    // As OpenSSH does: what is no key begins with options.
    let whole = PublicKey::from_line(line);
    let (options, key) = match whole {
        Ok((key, _)) => return Ok((LineOptions::none(), key)),
        Err(_) => {
            let (options, rest) = LineOptions::parse(line)?;
            (options, PublicKey::from_line(rest))
        }
    };
    match key {
        Ok((key, _)) => Ok((options, key)),
        Err(KeyError::Unsupported(_)) => Err("a key of an unsupported type"),
        Err(_) => Err("a malformed key"),
    }
}
