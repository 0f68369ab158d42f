//! Lists of offered algorithms, in order of preference.

use std::borrow::Cow;

use adit_ssh::preferred_algorithms;
use adit_ssh_proto::algorithm::{self as below, KeyAlgorithm};

use crate::keys::{Algorithm, EcdsaCurve, HashAlg};
use crate::{Error, cipher, compression, kex, mac};

/// The algorithms that one side offers, in order of preference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preferred {
    /// Key exchange methods.
    pub kex: Cow<'static, [kex::Name]>,
    /// Host key algorithms.
    pub key: Cow<'static, [Algorithm]>,
    /// Host key algorithms for which a client also accepts certificates, ahead of `key`. A server
    /// presents the certificates that it has.
    pub host_key_certificates: Cow<'static, [Algorithm]>,
    /// Ciphers.
    pub cipher: Cow<'static, [cipher::Name]>,
    /// Message authentication codes.
    pub mac: Cow<'static, [mac::Name]>,
    /// Compression.
    pub compression: Cow<'static, [compression::Name]>,
}

const HOST_KEY_ALGORITHMS: &[Algorithm] = &[
    Algorithm::Ed25519,
    Algorithm::Ecdsa {
        curve: EcdsaCurve::NistP256,
    },
    Algorithm::Ecdsa {
        curve: EcdsaCurve::NistP384,
    },
    Algorithm::Ecdsa {
        curve: EcdsaCurve::NistP521,
    },
    Algorithm::SkEd25519,
    Algorithm::SkEcdsaSha2NistP256,
    Algorithm::Rsa {
        hash: Some(HashAlg::Sha512),
    },
    Algorithm::Rsa {
        hash: Some(HashAlg::Sha256),
    },
];

impl Preferred {
    /// All algorithms, in the order for a processor with fast AES.
    pub const DEFAULT: Self = Self {
        kex: Cow::Borrowed(kex::ALL),
        key: Cow::Borrowed(HOST_KEY_ALGORITHMS),
        host_key_certificates: Cow::Borrowed(&[]),
        cipher: Cow::Borrowed(cipher::ALL),
        mac: Cow::Borrowed(mac::ALL),
        compression: Cow::Borrowed(&[compression::NONE, compression::ZLIB_LEGACY]),
    };

    /// All algorithms, with compression if the peer supports it.
    pub const COMPRESSED: Self = Self {
        compression: Cow::Borrowed(&[
            compression::ZLIB_LEGACY,
            compression::ZLIB,
            compression::NONE,
        ]),
        ..Self::DEFAULT
    };

    /// Removes finite-field Diffie–Hellman, which costs a server milliseconds for each unauthenticated
    /// peer. This is a server's default, as in OpenSSH since 10.0.
    #[must_use]
    pub fn for_server(self) -> Self {
        let finite = |name: &&kex::Name| {
            below::Kex::by_name(name.as_ref()).is_some_and(below::Kex::is_finite_field)
        };
        let kex = self.kex.iter().filter(|name| !finite(name)).copied();
        Self {
            kex: kex.collect(),
            ..self
        }
    }

    /// Converts this for the transport. Names of markers are skipped: the transport sends them itself.
    pub(crate) fn to_transport(
        &self,
        certified: HostCertificates,
    ) -> Result<below::AlgorithmPreferences, Error> {
        let plain = self.key.iter().filter_map(Algorithm::signature_algorithm);
        let certificates: Vec<KeyAlgorithm> = match certified {
            HostCertificates::Listed => {
                let listed = self.host_key_certificates.iter();
                listed
                    .filter_map(Algorithm::certificate_algorithm)
                    .collect()
            }
            HostCertificates::All => {
                let all = KeyAlgorithm::ALL.iter().copied();
                all.filter(|a| a.is_certificate()).collect()
            }
        };
        Ok(below::AlgorithmPreferences {
            kex: resolve_names("key exchange methods", &self.kex, below::Kex::by_name)?,
            host_key: require_some(
                "host key algorithms",
                certificates.into_iter().chain(plain).collect(),
            )?,
            cipher: resolve_names("ciphers", &self.cipher, below::Cipher::by_name)?,
            mac: resolve_names("MACs", &self.mac, below::Mac::by_name)?,
            compression: resolve_names(
                "compression methods",
                &self.compression,
                below::Compression::by_name,
            )?,
        })
    }
}

/// The host certificates that are accepted or presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostCertificates {
    /// On a client: those in [`Preferred::host_key_certificates`].
    Listed,
    /// On a server: all that it has.
    All,
}

fn resolve_names<N: AsRef<str>, T>(
    what: &str,
    names: &[N],
    find: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Error> {
    let found = names.iter().filter_map(|name| find(name.as_ref()));
    require_some(what, found.collect())
}

fn require_some<T>(what: &str, list: Vec<T>) -> Result<Vec<T>, Error> {
    if list.is_empty() {
        return Err(Error::InvalidConfig(format!("no {what} to offer")));
    }
    Ok(list)
}

impl Default for Preferred {
    /// All algorithms, with the ciphers in the order that suits this processor.
    fn default() -> Self {
        let order = preferred_algorithms().cipher;
        let named = order
            .iter()
            .filter_map(|cipher| cipher::Name::try_from(cipher.name()).ok());
        Self {
            cipher: named.collect(),
            ..Self::DEFAULT
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every name is one of the transport's, and none of the transport's is missing.
    #[test]
    fn names_are_complete() {
        let all = Preferred::DEFAULT
            .to_transport(HostCertificates::All)
            .unwrap();
        assert_eq!(all.kex, below::Kex::ALL);
        assert_eq!(all.mac, preferred_algorithms().mac);
        assert_eq!(all.cipher.len(), below::Cipher::ALL.len());
        assert_eq!(all.host_key.len(), KeyAlgorithm::ALL.len());
        assert_eq!(compression::ALL.len(), below::Compression::ALL.len());
        let own = Preferred::default()
            .to_transport(HostCertificates::Listed)
            .unwrap();
        assert_eq!(own.cipher, preferred_algorithms().cipher);
        assert!(own.host_key.iter().all(|a| !a.is_certificate()));
    }

    #[test]
    fn servers_offer_no_finite_fields() {
        let offered = crate::server::Config::default().preferred;
        let offered = offered.to_transport(HostCertificates::All).unwrap();
        assert_eq!(offered.kex, preferred_algorithms().for_server().kex);
    }

    #[test]
    fn lists_of_nothing_are_refused() {
        let preferred = Preferred {
            kex: Cow::Borrowed(&[kex::EXTENSION_SUPPORT_AS_CLIENT]),
            ..Preferred::DEFAULT
        };
        let why = preferred
            .to_transport(HostCertificates::Listed)
            .unwrap_err();
        assert!(matches!(why, Error::InvalidConfig(_)));
    }
}
