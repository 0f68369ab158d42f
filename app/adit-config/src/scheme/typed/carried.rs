//! What brings bytes to a server, or to a listener, where that is not TCP.

use core::time::Duration;

use adit_crypto::packet::{Check, PacketKind, session};

use crate::text::Secret;

/// A carrier with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carried {
    /// Streams of smux over sessions of KCP.
    Kcp(Box<Kcp>),
    /// Datagrams with forward error correction.
    Fec(Box<Fec>),
}

impl Carried {
    /// The scheme of a dialect that it carries.
    #[must_use]
    pub fn scheme(&self, dialect: &str) -> String {
        match self {
            Self::Kcp(kcp) if kcp.kcptun => "kcptun".to_owned(),
            Self::Kcp(_) => format!("{dialect}+kcp"),
            Self::Fec(_) => format!("{dialect}+fec"),
        }
    }

    /// The end of the range of ports that begins with `port`.
    pub(crate) const fn last_port(carried: Option<&Self>, port: u16) -> u16 {
        match carried {
            Some(Self::Kcp(kcp)) if kcp.last_port > port => kcp.last_port,
            _ => port,
        }
    }
}

/// Streams over KCP: what this end runs with. Everything is within its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kcp {
    /// It was written as `kcptun://`.
    pub kcptun: bool,
    /// The ARQ; its `mtu` is not read.
    pub arq: adit_kcp_proto::Config,
    /// Bytes of the largest UDP payload.
    pub mtu: usize,
    /// Correction of what is sent.
    pub fec: Option<Shards>,
    /// Encryption of datagrams.
    pub seal: PacketSeal,
    /// The streams.
    pub smux: adit_smux_proto::Config,
    /// Snappy around them, as kcptun has it.
    pub compress: bool,
    /// Sessions that a hop keeps, at least 1.
    pub sessions: usize,
    /// Age at which a session gets no new streams.
    pub expire: Option<Duration>,
    /// How long a session that has expired may go on.
    pub linger: Duration,
    /// Bytes a second that a session may send; 0 is no limit.
    pub rate: u32,
    /// Pads of kcptun's QPP, drawn from its password.
    pub qpp: Option<u16>,
    /// What becomes as the peer has it.
    pub learns: Learns,
    /// The end of the range of ports that begins with the port of the server or the listener; that
    /// port itself if there is no range. A session of a hop takes one of them at random.
    pub last_port: u16,
}

/// What nobody asked for, so that it becomes as the peer has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Learns {
    /// The version of smux.
    pub smux: bool,
    /// Compression.
    pub comp: bool,
    /// Error correction.
    pub fec: bool,
}

/// Datagrams with correction: what this end runs with. Everything is within its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fec {
    /// The correction.
    pub shards: Shards,
    /// Bytes of the largest UDP payload.
    pub mtu: usize,
    /// How long a datagram waits for the parity of a group that does not fill up.
    pub wait: Duration,
    /// Encryption.
    pub seal: PacketSeal,
}

/// A code: at least one of each, at most 256 together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shards {
    /// Datagrams of a group.
    pub data: usize,
    /// How many of a group may be lost.
    pub parity: usize,
}

/// How datagrams are sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PacketSeal {
    /// adit's own: an AEAD with keys for each session and a replay window.
    Session(Secret),
    /// kcptun's ciphers, or with [`Check::HighwayHash`] those of the mode kcp9.
    Packets {
        /// The cipher.
        kind: PacketKind,
        /// The check in front.
        check: Check,
        /// The password.
        password: Secret,
    },
}

/// Bytes of sequence number, kind and size that correction puts before a datagram.
const SHARD: usize = 8;
/// Bytes that number the datagrams of [`Fec`], so that none is delivered twice.
const NUMBER: usize = 8;

impl PacketSeal {
    /// Bytes it adds to a datagram.
    #[must_use]
    pub const fn overhead(&self) -> usize {
        match self {
            Self::Session(_) => session::ROOM.head + session::ROOM.tail,
            Self::Packets { kind, check, .. } => kind.overhead(*check),
        }
    }

    /// True if it hides what is said.
    #[must_use]
    pub const fn hides(&self) -> bool {
        !matches!(
            self,
            Self::Packets {
                kind: PacketKind::None | PacketKind::Null | PacketKind::Xor,
                ..
            }
        )
    }

    /// True if nobody without the key can change what is said.
    #[must_use]
    pub const fn authenticates(&self) -> bool {
        matches!(
            self,
            Self::Session(_)
                | Self::Packets {
                    kind: PacketKind::Aes128Gcm,
                    ..
                }
        )
    }

    /// The secret from which keys are made; empty if there are none.
    #[must_use]
    pub const fn password(&self) -> &Secret {
        match self {
            Self::Session(password) | Self::Packets { password, .. } => password,
        }
    }

    /// Its name as it is written.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Session(_) => "aead",
            Self::Packets { kind, .. } => kind.name(),
        }
    }
}

impl Kcp {
    /// Bytes of a UDP payload that encryption and correction take.
    #[must_use]
    pub const fn overhead(&self) -> usize {
        let fec = if self.fec.is_some() { SHARD } else { 0 };
        self.seal.overhead() + fec
    }
}

impl Fec {
    /// Bytes of a UDP payload that encryption, correction and numbers take.
    #[must_use]
    pub const fn overhead(&self) -> usize {
        self.seal.overhead() + SHARD + NUMBER
    }
}
