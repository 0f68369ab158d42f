//! Settings of carriers: the transports of listeners and hops that do not run over TCP.

use core::time::Duration;

use adit_crypto::packet::{PacketCheck, PacketKind, session};

use crate::text::Secret;

/// A carrier with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CarrierSettings {
    /// Streams of smux over sessions of KCP.
    Kcp(Box<KcpSettings>),
    /// Datagrams with forward error correction.
    Fec(Box<FecSettings>),
}

impl CarrierSettings {
    /// Returns the scheme of a dialect with this carrier.
    #[must_use]
    pub fn carried_scheme(&self, dialect: &str) -> String {
        match self {
            Self::Kcp(kcp) if kcp.kcptun => "kcptun".to_owned(),
            Self::Kcp(_) => format!("{dialect}+kcp"),
            Self::Fec(_) => format!("{dialect}+fec"),
        }
    }

    /// Returns the end of the range of ports that begins with `port`.
    pub(crate) const fn last_port(carried: Option<&Self>, port: u16) -> u16 {
        match carried {
            Some(Self::Kcp(kcp)) if kcp.last_port > port => kcp.last_port,
            _ => port,
        }
    }
}

/// Settings of streams over KCP. Every value is within its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KcpSettings {
    /// True if it was written as `kcptun://`.
    pub kcptun: bool,
    /// Settings of the ARQ. Its `mtu` is not used.
    pub arq: adit_kcp_proto::Config,
    /// Maximum UDP payload, in bytes.
    pub mtu: usize,
    /// Error correction of sent datagrams.
    pub fec: Option<ShardCounts>,
    /// Encryption of datagrams.
    pub seal: PacketSeal,
    /// Settings of the streams.
    pub smux: adit_smux_proto::Config,
    /// True if the streams are compressed with Snappy, as in kcptun.
    pub compress: bool,
    /// Number of sessions that a hop keeps open, at least 1.
    pub sessions: usize,
    /// Age at which a session gets no new streams.
    pub expire: Option<Duration>,
    /// Maximum remaining time of a session that has expired.
    pub linger: Duration,
    /// Maximum send rate of a session, in bytes per second; 0 means no limit.
    pub rate: u32,
    /// Number of pads of kcptun's QPP, derived from the password.
    pub qpp: Option<u16>,
    /// Settings that are adopted from the peer.
    pub adopts: AdoptedFromPeer,
    /// The end of the range of ports that begins with the port of the server or the listener, or that
    /// port if there is no range. Each session of a hop uses one of them at random.
    pub last_port: u16,
}

/// Settings that are not configured and are adopted from the peer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdoptedFromPeer {
    /// True for the version of smux.
    pub smux: bool,
    /// True for compression.
    pub comp: bool,
    /// True for error correction.
    pub fec: bool,
}

/// Settings of datagrams with error correction. Every value is within its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FecSettings {
    /// The error correction.
    pub shards: ShardCounts,
    /// Maximum UDP payload, in bytes.
    pub mtu: usize,
    /// Maximum time that a datagram waits for the parity of a group that does not fill up.
    pub wait: Duration,
    /// Encryption.
    pub seal: PacketSeal,
}

/// The size of an error-correcting group: at least one shard of each kind, at most 256 together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardCounts {
    /// Number of datagrams in a group.
    pub data: usize,
    /// Number of datagrams of a group that can be lost.
    pub parity: usize,
}

/// Encryption of datagrams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PacketSeal {
    /// adit's own: an AEAD with separate keys for each session and a replay window.
    Session(Secret),
    /// kcptun's ciphers, or with `Check::HighwayHash` the mode kcp9.
    Packets {
        /// The cipher.
        kind: PacketKind,
        /// The checksum in front.
        check: PacketCheck,
        /// The password.
        password: Secret,
    },
}

/// Length of the sequence number, kind and size that error correction puts before a datagram, in bytes.
const SHARD_HEADER: usize = 8;
/// Length of the number of a datagram of [`FecSettings`], in bytes. It prevents duplicate delivery.
const SEQUENCE_NUMBER: usize = 8;

impl PacketSeal {
    /// Returns the number of bytes that it adds to a datagram.
    #[must_use]
    pub const fn overhead(&self) -> usize {
        match self {
            Self::Session(_) => session::SESSION_OVERHEAD.head + session::SESSION_OVERHEAD.tail,
            Self::Packets { kind, check, .. } => kind.overhead_len(*check),
        }
    }

    /// True if it keeps the content secret.
    #[must_use]
    pub const fn is_confidential(&self) -> bool {
        !matches!(
            self,
            Self::Packets {
                kind: PacketKind::None | PacketKind::Null | PacketKind::Xor,
                ..
            }
        )
    }

    /// True if only holders of the key can change the content.
    #[must_use]
    pub const fn is_authenticated(&self) -> bool {
        matches!(
            self,
            Self::Session(_)
                | Self::Packets {
                    kind: PacketKind::Aes128Gcm,
                    ..
                }
        )
    }

    /// Returns the secret from which keys are derived; empty if there are none.
    #[must_use]
    pub const fn password(&self) -> &Secret {
        match self {
            Self::Session(password) | Self::Packets { password, .. } => password,
        }
    }

    /// Returns its name as written in `crypt`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Session(_) => "aead",
            Self::Packets { kind, .. } => kind.name(),
        }
    }
}

impl KcpSettings {
    /// Returns the number of bytes of a UDP payload that encryption and error correction take.
    #[must_use]
    pub const fn overhead(&self) -> usize {
        let fec = if self.fec.is_some() { SHARD_HEADER } else { 0 };
        self.seal.overhead() + fec
    }
}

impl FecSettings {
    /// Returns the number of bytes of a UDP payload that encryption, error correction and numbers take.
    #[must_use]
    pub const fn overhead(&self) -> usize {
        self.seal.overhead() + SHARD_HEADER + SEQUENCE_NUMBER
    }
}
