//! Settings of TLS clients: the trusted authorities.

use std::fmt;
use std::sync::Arc;

use adit_wire::Host;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};

/// The certificate authorities that are trusted.
#[derive(Clone)]
pub enum TrustedRoots {
    /// The authorities that this machine trusts, and those that `SSL_CERT_FILE` and `SSL_CERT_DIR`
    /// name.
    Machine,
    /// Only these authorities.
    Only(Arc<RootCertStore>),
}

impl fmt::Debug for TrustedRoots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Machine => "Machine",
            Self::Only(_) => "Only",
        })
    }
}

/// The reason why TLS cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// This machine has no trusted certificate authorities.
    #[error("this machine has no trusted certificate authorities: install ca-certificates")]
    NoRoots,
    /// TLS could not be configured.
    #[error("TLS could not be configured")]
    Setup(#[from] rustls::Error),
    /// A text is not a name that a certificate can have.
    #[error("`{0}` is not a name of a certificate")]
    Name(String),
}

/// Returns the settings of clients that trust `roots` and offer these protocols (ALPN), the preferred one first.
/// Connections with the same settings resume sessions.
///
/// # Errors
/// There are no authorities, or TLS cannot be configured.
pub async fn client_config(
    roots: &TrustedRoots,
    protocols: &[&[u8]],
) -> Result<ClientConfig, TlsError> {
    let roots = match roots {
        TrustedRoots::Only(roots) => roots.clone(),
        TrustedRoots::Machine => {
            // This may read several hundred files.
            let read = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs);
            let mut roots = RootCertStore::empty();
            if let Ok(found) = read.await {
                roots.add_parsable_certificates(found.certs);
            }
            if roots.is_empty() {
                return Err(TlsError::NoRoots);
            }
            Arc::new(roots)
        }
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// Returns the name or address that the certificate of a host has to contain.
///
/// # Errors
/// The host is not a name of DNS.
pub fn server_name(host: &Host) -> Result<ServerName<'static>, TlsError> {
    match host {
        Host::Ip(ip) => Ok(ServerName::from(*ip)),
        Host::Name(name) => ServerName::try_from(name.as_str().to_owned())
            .map_err(|_| TlsError::Name(name.to_string())),
    }
}
