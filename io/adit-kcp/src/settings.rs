//! Settings of a socket, and the layout of a datagram.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use adit_crypto::packet::session::{SESSION_OVERHEAD, SessionKey};
use adit_crypto::packet::{PacketKey, PacketKind};
use adit_fec::{CodeError, CodeMatrix, ErasureCode, HEADER};
use adit_kcp_proto::{Config, ConfigError};

use super::crypt::PacketCrypt;

/// Maximum size of a datagram, in bytes of UDP payload: kcp-go's buffers have no more.
pub(super) const MAX_DATAGRAM: usize = 1500;
/// Minimum MTU of KCP that is worth sending.
const MIN_KCP_MTU: usize = 50;

/// Twice as long as NATs keep an idle flow (RFC 4787: five minutes or less).
const DEFAULT_IDLE: Duration = Duration::from_secs(600);

/// The settings of a socket and its sessions.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use adit_kcp::{Config, PacketCheck, PacketKey, PacketKind, Settings, SettingsError};
///
/// let mut settings = Settings::new(Config::fast3());
/// settings.key = Some(Arc::new(PacketKey::new(PacketKind::Aes, PacketCheck::Crc32, b"password")?));
/// assert!(settings.check().is_ok());
///
/// settings.mtu = 9000;
/// assert!(matches!(settings.check(), Err(SettingsError::Mtu { .. })));
/// # Ok::<(), adit_kcp::CryptoError>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The ARQ. Its `mtu` limits the KCP part of a datagram, in addition to [`Self::mtu`].
    pub kcp: Config,
    /// Maximum size of a datagram in bytes, including encryption and correction; at most 1500. May
    /// differ from the peer's.
    pub mtu: usize,
    /// Forward error correction of sent datagrams. Received datagrams are corrected in any case.
    pub fec: Option<Fec>,
    /// True to send without correction to a peer that does so itself. kcp-go of 2021 without
    /// correction takes parity for data until it has detected the peer's shards, which breaks
    /// sessions.
    pub fec_follows: bool,
    /// Encryption; `None` is kcptun's `null`.
    pub key: Option<Arc<PacketKey>>,
    /// Custom encryption instead of [`Self::key`].
    pub crypt: Option<Arc<dyn PacketCrypt>>,
    /// adit's own encryption instead of [`Self::key`] and [`Self::crypt`]: session keys, a replay
    /// window, and clients whose address may change.
    pub session: Option<SessionKey>,
    /// Conversation number of the sessions that start here; `None` is a random one for each. A
    /// number that can be guessed lets third parties forge packets of the session, unless they are
    /// sealed.
    pub conv: Option<u32>,
    /// Maximum number of sessions that wait to be accepted; no more are started.
    pub backlog: usize,
    /// Maximum number of sessions of a listener.
    pub sessions: usize,
    /// Maximum number of sessions of a listener for one source: an IPv4 address, or 64 bits of an
    /// IPv6 address. For one address with its port the maximum is always four.
    pub per_source: usize,
    /// Maximum silence of the peer before the session fails with `TimedOut`; 0 is no limit. After
    /// half of it the peer is asked for its window, which every implementation answers: a peer that
    /// is there never times out.
    pub idle: Duration,
    /// Maximum rate of a session in bytes per second, headers included; 0 is no limit.
    pub rate: u32,
    /// Counters of all events. Several sockets may share them.
    pub counters: Arc<super::Counters>,
}

/// Forward error correction: each group of `data` datagrams is followed by `parity` more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fec {
    /// Number of data shards in a group.
    pub data: usize,
    /// Number of parity shards in a group, and of the datagrams of a group that may be lost.
    pub parity: usize,
    /// [`CodeMatrix::Vandermonde`] for all peers except adit in mode `kcp9`.
    pub matrix: CodeMatrix,
}

/// Error of invalid settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// An invalid number of shards.
    #[error("forward error correction: {0}")]
    Fec(CodeError),
    /// An MTU out of bounds.
    #[error("the MTU must be between {least} and 1500")]
    Mtu {
        /// The minimum with this encryption and correction.
        least: usize,
    },
    /// A value of the ARQ out of bounds.
    #[error("KCP: {0}")]
    Kcp(ConfigError),
    /// A limit of 0, with which no session could be accepted.
    #[error("`backlog`, `sessions` and `per_source` must not be 0")]
    Zero,
}

impl From<CodeError> for SettingsError {
    fn from(why: CodeError) -> Self {
        Self::Fec(why)
    }
}

impl Settings {
    /// Creates settings with this ARQ: datagrams of 1400 bytes, no encryption, no correction.
    #[must_use]
    pub fn new(kcp: Config) -> Self {
        Self {
            kcp,
            mtu: 1400,
            fec: None,
            fec_follows: false,
            key: None,
            crypt: None,
            session: None,
            conv: None,
            backlog: 128,
            sessions: 65_536,
            per_source: 4_096,
            idle: DEFAULT_IDLE,
            rate: 0,
            counters: Arc::default(),
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// See [`SettingsError`].
    pub fn check(&self) -> Result<(), SettingsError> {
        self.compute_layout().map(drop)
    }

    /// True if only holders of the key can make packets that pass the check. CRC-32 under a cipher
    /// is not an authentication.
    pub(super) fn authenticates(&self) -> bool {
        if self.session.is_some() {
            return true;
        }
        if let Some(crypt) = &self.crypt {
            return crypt.authenticates();
        }
        self.key.as_ref().is_some_and(|key| {
            let keyed = adit_crypto::packet::PacketCheck::HighwayHash;
            key.kind() == PacketKind::Aes128Gcm
                || (key.kind() != PacketKind::Null
                    && key.overhead_layout() == key.kind().overhead_layout(keyed))
        })
    }

    /// Checks the settings and computes the layout of a datagram.
    pub(super) fn compute_layout(&self) -> Result<DatagramLayout, SettingsError> {
        if let Some(Fec {
            data,
            parity,
            matrix,
        }) = self.fec
        {
            ErasureCode::new(matrix, data, parity)?;
        }
        self.kcp.check().map_err(SettingsError::Kcp)?;
        if self.backlog == 0 || self.sessions == 0 || self.per_source == 0 {
            return Err(SettingsError::Zero);
        }
        let (head, tail) = match (&self.session, &self.crypt, &self.key) {
            (Some(_), _, _) => (SESSION_OVERHEAD.head, SESSION_OVERHEAD.tail),
            (None, Some(crypt), _) => (crypt.head_len(), crypt.tail_len()),
            (None, None, Some(key)) => (key.overhead_layout().head, key.overhead_layout().tail),
            (None, None, None) => (0, 0),
        };
        let fec = if self.fec.is_some() { HEADER } else { 0 };
        let least = head.saturating_add(tail).saturating_add(fec + MIN_KCP_MTU);
        if !(least..=MAX_DATAGRAM).contains(&self.mtu) {
            return Err(SettingsError::Mtu { least });
        }
        Ok(DatagramLayout {
            head,
            fec,
            tail,
            kcp_mtu: (self.mtu - head - fec - tail).min(self.kcp.mtu),
        })
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("kcp", &self.kcp)
            .field("mtu", &self.mtu)
            .field("fec", &self.fec)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// The layout of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DatagramLayout {
    /// Bytes of encryption before the payload.
    pub(super) head: usize,
    /// Bytes of the header of a shard, or 0.
    pub(super) fec: usize,
    /// Bytes of encryption after the payload.
    pub(super) tail: usize,
    /// Maximum size of a KCP datagram in bytes.
    pub(super) kcp_mtu: usize,
}

#[cfg(test)]
mod tests {
    use adit_crypto::packet::PacketCheck;

    use super::*;

    fn with(kind: PacketKind, check: PacketCheck, fec: bool) -> Settings {
        let fec = fec.then_some(Fec {
            data: 10,
            parity: 3,
            matrix: CodeMatrix::Vandermonde,
        });
        Settings {
            key: Some(Arc::new(PacketKey::new(kind, check, b"secret").unwrap())),
            mtu: 1350,
            fec,
            ..Settings::new(Config::fast())
        }
    }

    #[test]
    fn the_mtu_is_that_of_the_datagram() {
        use PacketCheck::{Crc32, HighwayHash};
        use PacketKind::{Aes, Aes128Gcm, Null};
        for (kind, check, fec, mtu, authenticates) in [
            (Aes, Crc32, true, 1322, false),
            (Aes, Crc32, false, 1330, false),
            (Aes, HighwayHash, true, 1318, true),
            (Aes128Gcm, Crc32, true, 1314, true),
            (Null, Crc32, false, 1350, false),
            (Null, HighwayHash, false, 1350, false),
        ] {
            let settings = with(kind, check, fec);
            assert_eq!(settings.compute_layout().unwrap().kcp_mtu, mtu, "{kind}");
            assert_eq!(settings.authenticates(), authenticates, "{kind}");
        }
    }

    #[test]
    fn what_makes_no_session_is_told() {
        let good = with(PacketKind::Aes, PacketCheck::Crc32, true);
        let mtu = |mtu| Settings {
            mtu,
            ..good.clone()
        };
        assert_eq!(
            mtu(1501).compute_layout(),
            Err(SettingsError::Mtu { least: 78 })
        );
        assert_eq!(
            mtu(77).compute_layout(),
            Err(SettingsError::Mtu { least: 78 })
        );
        assert!(mtu(78).compute_layout().is_ok() && mtu(1500).compute_layout().is_ok());
        let arq = |kcp| Settings {
            kcp,
            ..good.clone()
        };
        let odd = arq(Config {
            nodelay: 9,
            ..Config::fast()
        });
        assert_eq!(
            odd.compute_layout(),
            Err(SettingsError::Kcp(ConfigError::Nodelay(9)))
        );
        let none = arq(Config {
            mtu: 0,
            ..Config::fast()
        });
        assert_eq!(
            none.compute_layout(),
            Err(SettingsError::Kcp(ConfigError::Mtu(0)))
        );
        let small = arq(Config {
            mtu: 500,
            ..Config::fast()
        });
        assert_eq!(small.compute_layout().unwrap().kcp_mtu, 500, "it is read");
        let zero = Settings {
            backlog: 0,
            ..good.clone()
        };
        assert_eq!(zero.compute_layout(), Err(SettingsError::Zero));
        let fec = good.fec.map(|fec| Fec { data: 255, ..fec });
        let wide = Settings { fec, ..good };
        assert!(matches!(wide.compute_layout(), Err(SettingsError::Fec(_))));
    }
}
