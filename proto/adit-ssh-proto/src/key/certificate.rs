//! OpenSSH's certificates (`PROTOCOL.certkeys`).
//!
//! Two questions are kept apart: whether an authority vouches for the key, which
//! [`Certificate::check`] answers, and whether the peer has the key, which a signature over the
//! exchange or over the request does. Both are needed.

use core::net::IpAddr;

use adit_wire::{UnixTime, subslice};

use super::error::KeyError;
use super::grant::Grant;
use super::pattern::{Cidr, glob};
use super::public::{PublicKey, certificate_type, split_line};
use super::verify::RSA_MIN_BITS;
use crate::algorithm::KeyAlgorithm;
use crate::wire::Reader;

/// Principals, and options of a kind, that a certificate may have.
const MAX_ENTRIES: usize = 256;

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertKind {
    /// A user.
    User,
    /// A host.
    Host,
}

/// A certificate whose form is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    blob: Vec<u8>,
    signed: usize,
    signature: Vec<u8>,
    key: PublicKey,
    authority: PublicKey,
    serial: u64,
    kind: CertKind,
    id: String,
    principals: Vec<String>,
    valid_after: UnixTime,
    valid_before: UnixTime,
    critical: Vec<(String, Vec<u8>)>,
    extensions: Vec<(String, Vec<u8>)>,
}

/// What a certificate is held against.
#[derive(Debug, Clone, Copy)]
pub struct CertCheck<'a> {
    /// What it has to be for.
    pub kind: CertKind,
    /// The user or the host, or what stands for them: one of these is enough.
    pub principals: &'a [&'a str],
    /// The time.
    pub now: UnixTime,
    /// Where the user comes from; unknown counts as elsewhere.
    pub from: Option<IpAddr>,
    /// Bits of the shortest RSA modulus; [`RSA_MIN_BITS`] unless told otherwise.
    pub rsa_min_bits: usize,
}

impl<'a> CertCheck<'a> {
    /// Of a host.
    #[must_use]
    pub const fn host(principals: &'a [&'a str], now: UnixTime) -> Self {
        Self {
            kind: CertKind::Host,
            principals,
            now,
            from: None,
            rsa_min_bits: RSA_MIN_BITS,
        }
    }

    /// Of a user.
    #[must_use]
    pub const fn user(principals: &'a [&'a str], now: UnixTime, from: Option<IpAddr>) -> Self {
        Self {
            kind: CertKind::User,
            principals,
            now,
            from,
            rsa_min_bits: RSA_MIN_BITS,
        }
    }
}

/// Why a certificate is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertError {
    /// The authority is none that is trusted here.
    #[error("the certificate's authority is not trusted")]
    Untrusted,
    /// A host's where a user's is needed, or the reverse.
    #[error("the certificate is of the wrong kind")]
    WrongKind,
    /// It is not valid yet.
    #[error("the certificate is not valid yet")]
    NotYetValid,
    /// It is not valid any more.
    #[error("the certificate has expired")]
    Expired,
    /// It is for others, or for nobody: one without principals is never taken.
    #[error("the certificate is not for this name")]
    WrongPrincipal,
    /// A critical option that is not known, does not belong to this kind, or stands twice.
    #[error("the certificate has the critical option `{0}`")]
    CriticalOption(String),
    /// The peer's address is not one of the certificate's.
    #[error("the certificate is not for this address")]
    WrongSource,
    /// The authority's signature, or a key in it.
    #[error("the certificate: {0}")]
    Key(KeyError),
}

impl From<KeyError> for CertError {
    fn from(why: KeyError) -> Self {
        Self::Key(why)
    }
}

impl Certificate {
    /// Reads a blob.
    ///
    /// # Errors
    /// [`KeyError::Malformed`]; [`KeyError::Unsupported`] if the key or the authority's key is of
    /// no known type, and the authority is itself a certificate; [`KeyError::TooMuch`].
    pub fn parse(blob: &[u8]) -> Result<Self, KeyError> {
        let mut r = Reader::new(blob, "certificate");
        let plain = plain_type(r.text()?).ok_or(KeyError::Unsupported("this certificate"))?;
        r.string()?;
        let key = PublicKey::read_fields(plain, &mut r)?;
        let serial = r.u64()?;
        let kind = match r.u32()? {
            1 => CertKind::User,
            2 => CertKind::Host,
            _ => return Err(KeyError::Malformed("certificate")),
        };
        let id = r.text()?.to_owned();
        let principals = principals(r.string()?)?;
        let (valid_after, valid_before) = (UnixTime(r.u64()?), UnixTime(r.u64()?));
        let (critical, extensions) = (options(r.string()?)?, options(r.string()?)?);
        r.string()?;
        let authority = PublicKey::parse(r.string()?)?;
        let signed = blob.len().saturating_sub(r.rest().len());
        let signature = r.string()?.to_vec();
        r.end()?;
        Ok(Self {
            blob: blob.to_vec(),
            signed,
            signature,
            key,
            authority,
            serial,
            kind,
            id,
            principals,
            valid_after,
            valid_before,
            critical,
            extensions,
        })
    }

    /// Reads the line of a `-cert.pub` file: the certificate and its comment.
    ///
    /// # Errors
    /// See [`Certificate::parse`].
    pub fn from_line(line: &str) -> Result<(Self, &str), KeyError> {
        let (name, blob, comment) = split_line(line)?;
        let certificate = Self::parse(&blob)?;
        if certificate_type(certificate.key.type_name()) != name {
            return Err(KeyError::Malformed("certificate"));
        }
        Ok((certificate, comment))
    }

    /// Checks everything of it but the possession of the key; gives what it allows.
    ///
    /// `trusted` tells whether an authority is trusted for this. A host's principals may have `*`
    /// and `?`, a user's not.
    ///
    /// # Errors
    /// [`CertError`], the first of its reasons.
    pub fn check(
        &self,
        check: &CertCheck<'_>,
        trusted: impl FnOnce(&PublicKey) -> bool,
    ) -> Result<Grant, CertError> {
        if self.kind != check.kind {
            return Err(CertError::WrongKind);
        }
        if !trusted(&self.authority) {
            return Err(CertError::Untrusted);
        }
        if check.now < self.valid_after {
            return Err(CertError::NotYetValid);
        }
        if check.now >= self.valid_before {
            return Err(CertError::Expired);
        }
        let named = |wanted: &&str| {
            self.principals.iter().any(|principal| match self.kind {
                CertKind::User => principal == wanted,
                CertKind::Host => glob(principal, wanted),
            })
        };
        if !check.principals.iter().any(named) {
            return Err(CertError::WrongPrincipal);
        }
        let grant = self.grant(check.from)?;
        for key in [&self.key, &self.authority] {
            if let PublicKey::Rsa(rsa) = key {
                let (bits, least) = (rsa.bits(), check.rsa_min_bits);
                if bits < least {
                    return Err(KeyError::ShortRsa { bits, least }.into());
                }
            }
        }
        // The dear part last.
        let mut r = Reader::new(&self.signature, "certificate");
        let name = r.text().map_err(KeyError::from)?;
        let algorithm = KeyAlgorithm::by_name(name).filter(|a| !a.is_certificate());
        let algorithm = algorithm.ok_or(KeyError::WrongAlgorithm)?;
        let signed = subslice(&self.blob, ..self.signed);
        self.authority
            .verify_with(check.rsa_min_bits, algorithm, signed, &self.signature)?;
        Ok(grant)
    }

    fn grant(&self, from: Option<IpAddr>) -> Result<Grant, CertError> {
        let mut grant = Grant::nothing();
        for (at, (name, data)) in self.critical.iter().enumerate() {
            let refused = || CertError::CriticalOption(printable(name));
            let twice = self
                .critical
                .iter()
                .take(at)
                .any(|(other, _)| other == name);
            if self.kind == CertKind::Host || twice {
                return Err(refused());
            }
            match name.as_str() {
                "force-command" => grant.command = Some(text(data).ok_or_else(refused)?),
                "verify-required" if data.is_empty() => grant.verify_required = true,
                "source-address" => {
                    let list = text(data).ok_or_else(refused)?;
                    let nets: Option<Vec<_>> = list.split(',').map(Cidr::parse).collect();
                    let nets = nets.ok_or_else(refused)?;
                    if !from.is_some_and(|from| nets.iter().any(|net| net.contains(from))) {
                        return Err(CertError::WrongSource);
                    }
                }
                _ => return Err(refused()),
            }
        }
        for (name, _) in &self.extensions {
            match name.as_str() {
                "permit-pty" => grant.pty = true,
                "permit-port-forwarding" => grant.port_forwarding = true,
                "permit-agent-forwarding" => grant.agent_forwarding = true,
                "permit-X11-forwarding" => grant.x11_forwarding = true,
                "permit-user-rc" => grant.user_rc = true,
                "no-touch-required" => grant.touch_required = false,
                _ => {}
            }
        }
        Ok(grant)
    }

    /// The key.
    #[must_use]
    pub const fn key(&self) -> &PublicKey {
        &self.key
    }

    /// The authority's key.
    #[must_use]
    pub const fn authority(&self) -> &PublicKey {
        &self.authority
    }

    /// The whole of it.
    #[must_use]
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// Its number, as the authority gave it.
    #[must_use]
    pub const fn serial(&self) -> u64 {
        self.serial
    }

    /// What it is for.
    #[must_use]
    pub const fn kind(&self) -> CertKind {
        self.kind
    }

    /// Its name for logs, as the authority gave it: any characters.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whom it is for.
    #[must_use]
    pub fn principals(&self) -> &[String] {
        &self.principals
    }

    /// From when on, and until before when, it is valid.
    #[must_use]
    pub const fn validity(&self) -> (UnixTime, UnixTime) {
        (self.valid_after, self.valid_before)
    }

    /// The algorithms it is used with, the best first.
    #[must_use]
    pub fn algorithms(&self) -> Vec<KeyAlgorithm> {
        let plain = self.key.algorithms();
        let of_ours = |a: &KeyAlgorithm| a.is_certificate() && plain.contains(&a.plain());
        KeyAlgorithm::ALL.iter().copied().filter(of_ours).collect()
    }
}

/// The plain type for the type of a certificate.
fn plain_type(name: &str) -> Option<&'static str> {
    const PLAIN: [&str; 7] = [
        "ssh-ed25519",
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
        "ssh-rsa",
        "sk-ssh-ed25519@openssh.com",
        "sk-ecdsa-sha2-nistp256@openssh.com",
    ];
    PLAIN
        .into_iter()
        .find(|plain| certificate_type(plain) == name)
}

fn principals(packed: &[u8]) -> Result<Vec<String>, KeyError> {
    let mut r = Reader::new(packed, "certificate");
    let mut out = Vec::new();
    while !r.rest().is_empty() {
        room(out.len())?;
        out.push(r.text()?.to_owned());
    }
    Ok(out)
}

fn options(packed: &[u8]) -> Result<Vec<(String, Vec<u8>)>, KeyError> {
    let mut r = Reader::new(packed, "certificate");
    let mut out = Vec::new();
    while !r.rest().is_empty() {
        room(out.len())?;
        out.push((r.text()?.to_owned(), r.string()?.to_vec()));
    }
    Ok(out)
}

const fn room(count: usize) -> Result<(), KeyError> {
    if count < MAX_ENTRIES {
        return Ok(());
    }
    Err(KeyError::TooMuch {
        what: "the entries of a certificate",
        limit: MAX_ENTRIES,
    })
}

/// The data of an option that is one string.
fn text(data: &[u8]) -> Option<String> {
    let mut r = Reader::new(data, "certificate");
    let text = r.text().ok()?.to_owned();
    r.end().ok()?;
    Some(text)
}

/// A peer's word for a log.
fn printable(text: &str) -> String {
    text.chars()
        .filter(char::is_ascii_graphic)
        .take(64)
        .collect()
}
