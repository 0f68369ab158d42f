//! OpenSSH's certificates (`PROTOCOL.certkeys`).
//!
//! Two checks are separate: that an authority vouches for the key, which [`Certificate::check_validity`]
//! does, and that the peer has the key, which a signature of the exchange or the request proves.
//! Both are required.

use core::net::IpAddr;

use adit_wire::{UnixTime, subslice};

use super::error::KeyError;
use super::key_grant::KeyGrant;
use super::pattern::{AddressRange, matches_glob};
use super::public_key::{PublicKey, certificate_type, split_line};
use super::verify::RSA_MIN_BITS;
use crate::algorithm::KeyAlgorithm;
use crate::wire::MessageReader;

/// Maximum number of principals, and of options of each kind, in a certificate.
const MAX_ENTRIES: usize = 256;

/// Purpose of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertPurpose {
    /// Authenticates a user.
    User,
    /// Authenticates a host.
    Host,
}

/// A certificate with a valid format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    blob: Vec<u8>,
    signed: usize,
    signature: Vec<u8>,
    key: PublicKey,
    authority: PublicKey,
    serial: u64,
    kind: CertPurpose,
    id: String,
    principals: Vec<String>,
    valid_after: UnixTime,
    valid_before: UnixTime,
    critical: Vec<(String, Vec<u8>)>,
    extensions: Vec<(String, Vec<u8>)>,
}

/// Requirements for a certificate.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CertCheck<'a> {
    /// Required purpose.
    pub kind: CertPurpose,
    /// Names of the user or the host, or equivalents; one of them has to match.
    pub principals: &'a [&'a str],
    /// Current time.
    pub now: UnixTime,
    /// Address from which the user connects; `None` fails any restriction of addresses.
    pub from: Option<IpAddr>,
    /// Minimum size of an RSA modulus, in bits; [`RSA_MIN_BITS`] by default.
    pub rsa_min_bits: usize,
}

impl<'a> CertCheck<'a> {
    /// Creates the requirements for a host certificate.
    #[must_use]
    pub const fn host(principals: &'a [&'a str], now: UnixTime) -> Self {
        Self {
            kind: CertPurpose::Host,
            principals,
            now,
            from: None,
            rsa_min_bits: RSA_MIN_BITS,
        }
    }

    /// Creates the requirements for a user certificate.
    #[must_use]
    pub const fn user(principals: &'a [&'a str], now: UnixTime, from: Option<IpAddr>) -> Self {
        Self {
            kind: CertPurpose::User,
            principals,
            now,
            from,
            rsa_min_bits: RSA_MIN_BITS,
        }
    }
}

/// Reason why a certificate is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertError {
    /// The authority is not trusted.
    #[error("the certificate's authority is not trusted")]
    Untrusted,
    /// It is a host certificate where a user certificate is required, or the reverse.
    #[error("the certificate has the wrong type")]
    WrongKind,
    /// It is not valid yet.
    #[error("the certificate is not valid yet")]
    NotYetValid,
    /// It has expired.
    #[error("the certificate has expired")]
    Expired,
    /// It is for other names, or for none: a certificate without principals is never accepted.
    #[error("the certificate is not for this name")]
    WrongPrincipal,
    /// A critical option is unknown, not allowed for this type, or repeated.
    #[error("the critical option `{0}` of the certificate is not supported")]
    CriticalOption(String),
    /// The certificate does not allow the peer's address.
    #[error("the certificate is not for this address")]
    WrongSource,
    /// The authority's signature or a key in the certificate is not valid.
    #[error("the certificate is not valid: {0}")]
    Key(KeyError),
}

impl From<KeyError> for CertError {
    fn from(why: KeyError) -> Self {
        Self::Key(why)
    }
}

impl Certificate {
    /// Parses a blob.
    ///
    /// # Errors
    /// [`KeyError::Malformed`] if it is not valid; [`KeyError::Unsupported`] if the type of the key
    /// or of the authority's key is unknown, or if the authority is itself a certificate;
    /// [`KeyError::TooMuch`] if it has too many entries.
    pub fn parse(blob: &[u8]) -> Result<Self, KeyError> {
        let mut r = MessageReader::new(blob, "certificate");
        let plain =
            plain_type(r.read_text()?).ok_or(KeyError::Unsupported("the certificate type"))?;
        r.read_string()?;
        let key = PublicKey::parse_fields(plain, &mut r)?;
        let serial = r.read_u64()?;
        let kind = match r.read_u32()? {
            1 => CertPurpose::User,
            2 => CertPurpose::Host,
            _ => return Err(KeyError::Malformed("certificate")),
        };
        let id = r.read_text()?.to_owned();
        let principals = parse_principals(r.read_string()?)?;
        let (valid_after, valid_before) = (UnixTime(r.read_u64()?), UnixTime(r.read_u64()?));
        let (critical, extensions) = (
            parse_options(r.read_string()?)?,
            parse_options(r.read_string()?)?,
        );
        r.read_string()?;
        let authority = PublicKey::parse(r.read_string()?)?;
        let signed = blob.len().saturating_sub(r.remaining().len());
        let signature = r.read_string()?.to_vec();
        r.expect_end()?;
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

    /// Parses a line of a `-cert.pub` file; returns the certificate and its comment.
    ///
    /// # Errors
    /// The errors of [`Certificate::parse`].
    pub fn from_line(line: &str) -> Result<(Self, &str), KeyError> {
        let (name, blob, comment) = split_line(line)?;
        let certificate = Self::parse(&blob)?;
        if certificate_type(certificate.key.type_name()) != name {
            return Err(KeyError::Malformed("certificate"));
        }
        Ok((certificate, comment))
    }

    /// Checks everything but the possession of the key; returns the permissions.
    ///
    /// `trusted` returns true if an authority is trusted for this purpose. A host's principals may
    /// contain `*` and `?`, a user's may not.
    ///
    /// # Errors
    /// [`CertError`] with the first reason found.
    pub fn check_validity(
        &self,
        check: &CertCheck<'_>,
        trusted: impl FnOnce(&PublicKey) -> bool,
    ) -> Result<KeyGrant, CertError> {
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
                CertPurpose::User => principal == wanted,
                CertPurpose::Host => matches_glob(principal, wanted),
            })
        };
        if !check.principals.iter().any(named) {
            return Err(CertError::WrongPrincipal);
        }
        let grant = self.grant_for(check.from)?;
        for key in [&self.key, &self.authority] {
            if let PublicKey::Rsa(rsa) = key {
                let (bits, least) = (rsa.bits(), check.rsa_min_bits);
                if bits < least {
                    return Err(KeyError::ShortRsa { bits, least }.into());
                }
            }
        }
        // The expensive check is last.
        let mut r = MessageReader::new(&self.signature, "certificate");
        let name = r.read_text().map_err(KeyError::from)?;
        let algorithm = KeyAlgorithm::by_name(name).filter(|a| !a.is_certificate());
        let algorithm = algorithm.ok_or(KeyError::WrongAlgorithm)?;
        let signed = subslice(&self.blob, ..self.signed);
        self.authority
            .verify_with(check.rsa_min_bits, algorithm, signed, &self.signature)?;
        Ok(grant)
    }

    fn grant_for(&self, from: Option<IpAddr>) -> Result<KeyGrant, CertError> {
        let mut grant = KeyGrant::deny_all();
        for (at, (name, data)) in self.critical.iter().enumerate() {
            let refused = || CertError::CriticalOption(to_log_text(name));
            let twice = self
                .critical
                .iter()
                .take(at)
                .any(|(other, _)| other == name);
            if self.kind == CertPurpose::Host || twice {
                return Err(refused());
            }
            match name.as_str() {
                "force-command" => {
                    grant.command = Some(parse_text_option(data).ok_or_else(refused)?);
                }
                "verify-required" if data.is_empty() => grant.verify_required = true,
                "source-address" => {
                    let list = parse_text_option(data).ok_or_else(refused)?;
                    let nets: Option<Vec<_>> = list.split(',').map(AddressRange::parse).collect();
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

    /// Returns the key.
    #[must_use]
    pub const fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Returns the authority's key.
    #[must_use]
    pub const fn authority(&self) -> &PublicKey {
        &self.authority
    }

    /// Returns the whole certificate as a blob.
    #[must_use]
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// Returns the serial number, as assigned by the authority.
    #[must_use]
    pub const fn serial(&self) -> u64 {
        self.serial
    }

    /// Returns the purpose.
    #[must_use]
    pub const fn kind(&self) -> CertPurpose {
        self.kind
    }

    /// Returns the key identifier for logs, as assigned by the authority: any characters.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the names that the certificate is for.
    #[must_use]
    pub fn principals(&self) -> &[String] {
        &self.principals
    }

    /// Returns the start of the validity (inclusive) and its end (exclusive).
    #[must_use]
    pub const fn validity(&self) -> (UnixTime, UnixTime) {
        (self.valid_after, self.valid_before)
    }

    /// Returns the supported algorithms, most preferred first.
    #[must_use]
    pub fn algorithms(&self) -> Vec<KeyAlgorithm> {
        let plain = self.key.algorithms();
        let of_ours =
            |a: &KeyAlgorithm| a.is_certificate() && plain.contains(&a.without_certificate());
        KeyAlgorithm::ALL.iter().copied().filter(of_ours).collect()
    }
}

/// Returns the plain key type for a certificate type.
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

fn parse_principals(packed: &[u8]) -> Result<Vec<String>, KeyError> {
    let mut r = MessageReader::new(packed, "certificate");
    let mut out = Vec::new();
    while !r.remaining().is_empty() {
        check_entry_count(out.len())?;
        out.push(r.read_text()?.to_owned());
    }
    Ok(out)
}

fn parse_options(packed: &[u8]) -> Result<Vec<(String, Vec<u8>)>, KeyError> {
    let mut r = MessageReader::new(packed, "certificate");
    let mut out = Vec::new();
    while !r.remaining().is_empty() {
        check_entry_count(out.len())?;
        out.push((r.read_text()?.to_owned(), r.read_string()?.to_vec()));
    }
    Ok(out)
}

const fn check_entry_count(count: usize) -> Result<(), KeyError> {
    if count < MAX_ENTRIES {
        return Ok(());
    }
    Err(KeyError::TooMuch {
        what: "number of entries in a certificate",
        limit: MAX_ENTRIES,
    })
}

/// Returns the data of an option that consists of one string.
fn parse_text_option(data: &[u8]) -> Option<String> {
    let mut r = MessageReader::new(data, "certificate");
    let text = r.read_text().ok()?.to_owned();
    r.expect_end().ok()?;
    Some(text)
}

/// Returns a peer's text for a log.
fn to_log_text(text: &str) -> String {
    text.chars()
        .filter(char::is_ascii_graphic)
        .take(64)
        .collect()
}
