//! Conversion of a carrier's plan to the settings of its sessions.

use std::sync::Arc;

use adit_config::{Fec as FecPlan, Kcp as KcpPlan, Learns, PacketSeal, Shards};
use adit_crypto::packet::qpp::Pads;
use adit_crypto::packet::session::SessionKey;
use adit_crypto::packet::{Check, PacketKey, PacketKind, key_from_password};
use adit_crypto::{CryptoError, Secret};
use adit_fec::Matrix;
use adit_kcp::fec;
use adit_smux::Manner;

/// Maximum number of FEC channels of a listener.
const LANES: usize = 4096;

/// The error of a carrier whose planned encryption or sessions cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The key does not fit the cipher.
    #[error(transparent)]
    Key(#[from] CryptoError),
    /// The KCP parameters are invalid.
    #[error(transparent)]
    Kcp(#[from] adit_kcp::SettingsError),
}

/// The keys of datagrams: of sessions, or of packets.
#[derive(Default)]
struct Keys {
    packet: Option<Arc<PacketKey>>,
    session: Option<SessionKey>,
    /// The secret that the packet key is derived from, with the cipher.
    packets: Option<(PacketKind, Secret<[u8; 32]>)>,
}

fn keys(seal: &PacketSeal) -> Result<Keys, CryptoError> {
    Ok(match seal {
        PacketSeal::Session(secret) => {
            let key = key_from_password(secret.expose().as_bytes());
            Keys {
                session: Some(SessionKey::new(key.expose())?),
                ..Keys::default()
            }
        }
        PacketSeal::Packets {
            kind,
            check,
            password,
        } => {
            let key = key_from_password(password.expose().as_bytes());
            let packet = match kind {
                PacketKind::Null => None,
                _ => Some(Arc::new(PacketKey::from_key(*kind, *check, key.expose())?)),
            };
            Keys {
                packet,
                session: None,
                packets: Some((*kind, key)),
            }
        }
    })
}

fn code(shards: Shards, seal: &PacketSeal) -> adit_kcp::Fec {
    let kcp9 = matches!(
        seal,
        PacketSeal::Packets {
            check: Check::HighwayHash,
            ..
        }
    );
    adit_kcp::Fec {
        data: shards.data,
        parity: shards.parity,
        matrix: if kcp9 {
            Matrix::Cauchy
        } else {
            Matrix::Vandermonde
        },
    }
}

/// The settings that a carrier's sessions use.
pub(super) struct Terms {
    pub(super) kcp: adit_kcp::Settings,
    pub(super) streams: Streams,
    /// Cipher and key for datagrams that are sealed one by one, as in kcptun.
    pub(super) packets: Option<(PacketKind, Secret<[u8; 32]>)>,
    /// True if option names are those of kcptun.
    pub(super) kcptun: bool,
}

/// The settings of a session's streams, and those among them that may be adopted from the peer.
#[derive(Debug, Clone)]
pub(crate) struct Streams {
    pub(super) smux: adit_smux::Settings,
    pub(super) learns: Learns,
}

impl Streams {
    /// Returns true if any setting may be adopted.
    pub(super) const fn learn(&self) -> bool {
        self.learns.smux || self.learns.comp
    }

    /// Returns the settings with those of the peer's `to`, as far as they may be adopted.
    pub(super) fn adapted(&self, to: Manner) -> adit_smux::Settings {
        let mut smux = self.smux.clone();
        if self.learns.smux {
            smux.config.version = to.version;
        }
        if self.learns.comp {
            smux.compress = to.compress;
        }
        smux
    }
}

pub(super) fn streams(
    plan: &KcpPlan,
    counters: Arc<adit_kcp::Counters>,
) -> Result<Terms, SealError> {
    let Keys {
        packet,
        session,
        packets,
    } = keys(&plan.seal)?;
    let mut arq = plan.arq;
    arq.mtu = plan.mtu;
    let settings = adit_kcp::Settings {
        mtu: plan.mtu,
        fec: plan.fec.map(|shards| code(shards, &plan.seal)),
        fec_follows: plan.learns.fec,
        key: packet,
        session,
        rate: plan.rate,
        counters,
        ..adit_kcp::Settings::new(arq)
    };
    settings.check()?;
    let smux = adit_smux::Settings {
        config: plan.smux.clone(),
        compress: plan.compress,
        pads: pads(plan),
    };
    Ok(Terms {
        kcp: settings,
        streams: Streams {
            smux,
            learns: plan.learns,
        },
        packets,
        kcptun: plan.kcptun,
    })
}

/// Returns the pads of kcptun's QPP, if configured.
fn pads(plan: &KcpPlan) -> Option<Arc<Pads>> {
    match (&plan.seal, plan.qpp) {
        (PacketSeal::Packets { password, .. }, Some(count)) => {
            Pads::new(password.expose().as_bytes(), count).map(Arc::new)
        }
        _ => None,
    }
}

pub(super) fn datagrams(plan: &FecPlan) -> Result<fec::Settings, SealError> {
    let Keys {
        packet, session, ..
    } = keys(&plan.seal)?;
    Ok(fec::Settings {
        fec: code(plan.shards, &plan.seal),
        mtu: plan.mtu,
        wait: plan.wait,
        key: packet,
        session,
        lanes: LANES,
    })
}
