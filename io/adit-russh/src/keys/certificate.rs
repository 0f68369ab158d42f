//! OpenSSH certificates.

use adit_ssh_proto::key::{CertCheck, CertError, CertPurpose, Certificate as Below};
use adit_wire::UnixTime;

use super::algorithm::HashAlg;
use super::error::SshKeyError;
use super::public::{Fingerprint, KeyData};

/// A certificate. Parsing checks only its format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    inner: Below,
    key: KeyData,
    authority: KeyData,
}

/// The kind of holder that a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertType {
    /// A user.
    User,
    /// A host.
    Host,
}

impl Certificate {
    /// Parses the line of a `-cert.pub` file.
    ///
    /// # Errors
    /// The line is not a certificate, or its key has an unknown type.
    pub fn from_openssh(line: &str) -> Result<Self, SshKeyError> {
        let line = line.lines().find(|line| !line.trim().is_empty());
        let (certificate, _) = Below::from_line(line.unwrap_or_default())?;
        Ok(Self::from(certificate))
    }

    /// Returns the certified key.
    #[must_use]
    pub const fn public_key(&self) -> &KeyData {
        &self.key
    }

    /// Returns the authority's key.
    #[must_use]
    pub const fn signature_key(&self) -> &KeyData {
        &self.authority
    }

    /// Returns the kind of holder.
    #[must_use]
    pub const fn cert_type(&self) -> CertType {
        match self.inner.kind() {
            CertPurpose::User => CertType::User,
            CertPurpose::Host => CertType::Host,
        }
    }

    /// Returns the identifier for logs, as the authority set it; it may contain any characters.
    #[must_use]
    pub fn key_id(&self) -> &str {
        self.inner.id()
    }

    /// Returns the serial number.
    #[must_use]
    pub const fn serial(&self) -> u64 {
        self.inner.serial()
    }

    /// Returns the users or hosts that the certificate is for.
    #[must_use]
    pub fn valid_principals(&self) -> &[String] {
        self.inner.principals()
    }

    /// Checks that one of these authorities has signed the certificate, and that it is valid at `unix`
    /// (seconds since 1970). Check the holder yourself: [`Certificate::valid_principals`].
    ///
    /// # Errors
    /// Returns the first reason why it is invalid. Certificates that restrict their holder are refused,
    /// because the restriction would not be enforced here.
    pub fn validate_at<'a>(
        &self,
        unix: u64,
        authorities: impl IntoIterator<Item = &'a Fingerprint>,
    ) -> Result<(), SshKeyError> {
        let signer = self.authority.fingerprint(HashAlg::Sha256);
        let trusted = authorities.into_iter().any(|known| *known == signer);
        self.check_validity(UnixTime(unix), trusted)
    }

    /// Checks everything except the trust in the authority and the principals.
    pub(crate) fn check_user_certificate(&self, now: UnixTime) -> Result<(), SshKeyError> {
        if self.cert_type() != CertType::User {
            return Err(CertError::WrongKind.into());
        }
        self.check_validity(now, true)
    }

    fn check_validity(&self, now: UnixTime, trusted: bool) -> Result<(), SshKeyError> {
        let principals = self.inner.principals().iter().map(String::as_str);
        // The caller checks the principals; a certificate without any is refused.
        let principals = principals.take(1).collect::<Vec<_>>();
        let mut check = CertCheck::user(&principals, now, None);
        check.kind = self.inner.kind();
        let grant = self.inner.check_validity(&check, |_| trusted)?;
        if grant.command.is_some() || grant.verify_required {
            let option = if grant.command.is_some() {
                "force-command"
            } else {
                "verify-required"
            };
            return Err(CertError::CriticalOption(option.to_owned()).into());
        }
        Ok(())
    }

    pub(crate) const fn inner(&self) -> &Below {
        &self.inner
    }
}

impl From<Below> for Certificate {
    fn from(below: Below) -> Self {
        Self {
            key: KeyData(below.key().clone()),
            authority: KeyData(below.authority().clone()),
            inner: below,
        }
    }
}
