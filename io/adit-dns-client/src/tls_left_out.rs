//! The trusted authorities of TLS clients, in a build without the feature `tls`.

/// The certificate authorities that are trusted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TrustedRoots {
    /// The authorities that this machine trusts.
    Machine,
}

/// The reason why TLS cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The build has no TLS.
    #[error("this build has no TLS: it was built without the feature `tls`")]
    LeftOut,
}
