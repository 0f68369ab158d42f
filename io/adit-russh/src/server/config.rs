//! Server configuration.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use adit_ssh::messages::QueueLimits;
use adit_ssh::server::ServerConfig;
use adit_ssh_proto::SshError;
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::key::{Certificate as CertificateBelow, PrivateKey as KeyBelow, Signer};

use crate::keys::{Certificate, PrivateKey};
use crate::preferred::HostCertificates;
use crate::{Error, Limits, MethodKind, MethodSet, Preferred, SshId, config_conversion};

/// The configuration of a server, shared by all its connections.
pub struct Config {
    /// The server's identification string.
    pub server_id: SshId,
    /// The offered authentication methods.
    pub methods: MethodSet,
    /// Time that every refusal takes, so that its duration does not reveal the reason.
    pub auth_rejection_time: Duration,
    /// The same for the first `none` attempt, by which clients learn the methods.
    pub auth_rejection_time_initial: Option<Duration>,
    /// The host keys.
    pub keys: Vec<PrivateKey>,
    /// Certificates of host keys in `keys`.
    pub certificates: Vec<Certificate>,
    /// Limits for key re-exchange.
    pub limits: Limits,
    /// Window of a channel: what the client may send before it is read, in bytes.
    pub window_size: u32,
    /// Maximum size of one data message from the client, in bytes.
    pub maximum_packet_size: u32,
    /// Number of messages other than data that wait for a channel's reader; further ones are passed to
    /// the [`Handler`](super::Handler) alone.
    pub channel_buffer_size: usize,
    /// Number of data chunks that wait in one channel before its writer waits.
    pub event_buffer_size: usize,
    /// The offered algorithms; the default is [`Preferred::for_server`].
    pub preferred: Preferred,
    /// Number of failed attempts after which the connection ends.
    pub max_auth_attempts: usize,
    /// Ends the connection when it was idle for this time.
    pub inactivity_timeout: Option<Duration>,
    /// Sends a keepalive request when the client was silent for this time.
    pub keepalive_interval: Option<Duration>,
    /// Number of unanswered keepalive requests that end the connection.
    pub keepalive_max: usize,
    /// Sets `TCP_NODELAY`, so that small packets are sent immediately. Used by
    /// [`Server`](super::Server).
    pub nodelay: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            server_id: SshId::default(),
            methods: MethodSet::server_supported(),
            auth_rejection_time: Duration::from_secs(1),
            auth_rejection_time_initial: None,
            keys: Vec::new(),
            certificates: Vec::new(),
            limits: Limits::default(),
            window_size: config_conversion::DEFAULT_WINDOW,
            maximum_packet_size: config_conversion::DEFAULT_PACKET,
            channel_buffer_size: config_conversion::DEFAULT_QUEUE,
            event_buffer_size: 10,
            preferred: Preferred::default().for_server(),
            max_auth_attempts: 10,
            inactivity_timeout: Some(Duration::from_secs(600)),
            keepalive_interval: None,
            keepalive_max: config_conversion::DEFAULT_KEEPALIVES,
            nodelay: false,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("server_id", &self.server_id)
            .field("methods", &self.methods)
            .field("keys", &self.keys.len())
            .field("certificates", &self.certificates.len())
            .field("limits", &self.limits)
            .field("preferred", &self.preferred)
            .finish_non_exhaustive()
    }
}

impl Config {
    pub(super) fn to_server_config(&self) -> Result<ServerConfig, Error> {
        let preferred = self.preferred.to_transport(HostCertificates::All)?;
        let mut config = ServerConfig::new(self.build_signer()?);
        config.transport =
            config_conversion::transport_config(preferred, &self.server_id, &self.limits)?;
        config.auth.methods = self.methods.to_methods();
        config.auth.ask_none = self.methods.contains(&MethodKind::None);
        config.auth.tries = u32::try_from(self.max_auth_attempts).unwrap_or(u32::MAX);
        config.limits =
            config_conversion::connection_limits(self.window_size, self.maximum_packet_size);
        config.keepalive =
            config_conversion::keepalive_settings(self.keepalive_interval, self.keepalive_max);
        config.inactivity = self.inactivity_timeout;
        config.login_grace = config_conversion::login_timeout(self.inactivity_timeout);
        Ok(config)
    }

    pub(super) const fn queue_limits(&self) -> QueueLimits {
        let mut limits = QueueLimits::new();
        limits.messages = self.channel_buffer_size;
        limits.chunks = self.event_buffer_size;
        limits
    }

    fn build_signer(&self) -> Result<Arc<dyn Signer>, Error> {
        let mut all = Vec::new();
        for key in &self.keys {
            let mut own = self.certificates.iter();
            let own = own.find(|one| one.inner().key() == key.public_key().inner());
            all.push(HostKey {
                key: Arc::clone(key.inner()),
                certificate: own.map(|certificate| certificate.inner().clone()),
            });
        }
        let used = all.iter().filter(|key| key.certificate.is_some()).count();
        if all.is_empty() || used < self.certificates.len() {
            let why = if all.is_empty() {
                "a server needs a host key"
            } else {
                "a certificate does not belong to any host key"
            };
            return Err(Error::InvalidConfig(why.to_owned()));
        }
        Ok(Arc::new(HostKeySigner(all)))
    }
}

/// The host keys with their certificates.
struct HostKeySigner(Vec<HostKey>);

struct HostKey {
    key: Arc<KeyBelow>,
    certificate: Option<CertificateBelow>,
}

impl HostKey {
    fn blob(&self, algorithm: KeyAlgorithm) -> Option<Vec<u8>> {
        if !algorithm.is_certificate() {
            let own = self.key.public_key().algorithms().contains(&algorithm);
            return own.then(|| self.key.public_key().to_blob());
        }
        let certificate = self.certificate.as_ref()?;
        let own = certificate.algorithms().contains(&algorithm);
        own.then(|| certificate.blob().to_vec())
    }
}

impl Signer for HostKeySigner {
    fn algorithms(&self) -> Vec<KeyAlgorithm> {
        let known = |a: &KeyAlgorithm| self.0.iter().any(|key| key.blob(*a).is_some());
        KeyAlgorithm::ALL.iter().copied().filter(known).collect()
    }

    fn public_blob(&self, algorithm: KeyAlgorithm) -> Vec<u8> {
        let mut blobs = self.0.iter().filter_map(|key| key.blob(algorithm));
        blobs.next().unwrap_or_default()
    }

    fn sign_data(&self, algorithm: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, SshError> {
        let mut keys = self.0.iter();
        let key = keys.find(|key| key.blob(algorithm).is_some());
        let key = key.ok_or(SshError::Policy("no host key for this algorithm"))?;
        Ok(key.key.sign(algorithm, data)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Algorithm;

    #[test]
    fn a_server_has_a_key() {
        let mut config = Config::default();
        assert!(matches!(
            config.build_signer(),
            Err(Error::InvalidConfig(_))
        ));
        let key = PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).unwrap();
        config.keys = vec![key.clone()];
        let signer = config.build_signer().unwrap();
        assert_eq!(signer.algorithms(), [KeyAlgorithm::Ed25519]);
        let blob = signer.public_blob(KeyAlgorithm::Ed25519);
        assert_eq!(blob, key.public_key().to_bytes().unwrap());
        assert!(
            signer
                .sign_data(KeyAlgorithm::Ed25519Cert, b"data")
                .is_err()
        );
        let signature = signer.sign_data(KeyAlgorithm::Ed25519, b"data").unwrap();
        let public = key.public_key().inner();
        assert!(
            public
                .verify_signature(KeyAlgorithm::Ed25519, b"data", &signature)
                .is_ok()
        );
    }
}
