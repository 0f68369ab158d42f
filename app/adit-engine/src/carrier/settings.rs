//! Conversion of a carrier's plan to the settings of its sessions.

use std::sync::Arc;

use adit_config::{
    AdoptedFromPeer, FecSettings as FecPlan, KcpSettings as KcpPlan, PacketSeal, ShardCounts,
};
use adit_crypto::packet::qpp::PermutationPads;
use adit_crypto::packet::session::SessionKey;
use adit_crypto::packet::{PacketCheck, PacketKey, PacketKind, key_from_password};
use adit_crypto::{CryptoError, Secret};
use adit_fec::CodeMatrix;
use adit_kcp::fec;
use adit_smux::SmuxFormat;

/// Maximum number of FEC channels of a listener.
const MAX_CHANNELS: usize = 4096;

/// The error of a carrier whose planned encryption or sessions cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum CarrierError {
    /// The key does not fit the cipher.
    #[error(transparent)]
    Key(#[from] CryptoError),
    /// The KCP parameters are invalid.
    #[error(transparent)]
    Kcp(#[from] adit_kcp::SettingsError),
}

/// The keys of datagrams: of sessions, or of packets.
#[derive(Default)]
struct CarrierKeys {
    packet: Option<Arc<PacketKey>>,
    session: Option<SessionKey>,
    /// The secret that the packet key is derived from, with the cipher.
    packets: Option<(PacketKind, Secret<[u8; 32]>)>,
}

fn derive_keys(seal: &PacketSeal) -> Result<CarrierKeys, CryptoError> {
    Ok(match seal {
        PacketSeal::Session(secret) => {
            let key = key_from_password(secret.expose().as_bytes());
            CarrierKeys {
                session: Some(SessionKey::new(key.expose())?),
                ..CarrierKeys::default()
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
            CarrierKeys {
                packet,
                session: None,
                packets: Some((*kind, key)),
            }
        }
    })
}

fn fec_code(shards: ShardCounts, seal: &PacketSeal) -> adit_kcp::Fec {
    let kcp9 = matches!(
        seal,
        PacketSeal::Packets {
            check: PacketCheck::HighwayHash,
            ..
        }
    );
    adit_kcp::Fec {
        data: shards.data,
        parity: shards.parity,
        matrix: if kcp9 {
            CodeMatrix::Cauchy
        } else {
            CodeMatrix::Vandermonde
        },
    }
}

/// The settings that a carrier's sessions use.
pub(super) struct SessionSettings {
    pub(super) kcp: adit_kcp::Settings,
    pub(super) streams: StreamSettings,
    /// Cipher and key for datagrams that are sealed one by one, as in kcptun.
    pub(super) packets: Option<(PacketKind, Secret<[u8; 32]>)>,
    /// True if option names are those of kcptun.
    pub(super) kcptun: bool,
}

/// The settings of a session's streams, and those among them that may be adopted from the peer.
#[derive(Debug, Clone)]
pub(crate) struct StreamSettings {
    pub(super) smux: adit_smux::Settings,
    pub(super) learns: AdoptedFromPeer,
}

impl StreamSettings {
    /// Returns true if any setting may be adopted.
    pub(super) const fn may_adapt(&self) -> bool {
        self.learns.smux || self.learns.comp
    }

    /// Returns the settings with those of the peer's `to`, as far as they may be adopted.
    pub(super) fn adapted_to(&self, to: SmuxFormat) -> adit_smux::Settings {
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

pub(super) fn session_settings(
    plan: &KcpPlan,
    counters: Arc<adit_kcp::Counters>,
) -> Result<SessionSettings, CarrierError> {
    let CarrierKeys {
        packet,
        session,
        packets,
    } = derive_keys(&plan.seal)?;
    let mut arq = plan.arq;
    arq.mtu = plan.mtu;
    let mut settings = adit_kcp::Settings::new(arq);
    settings.mtu = plan.mtu;
    settings.fec = plan.fec.map(|shards| fec_code(shards, &plan.seal));
    settings.fec_follows = plan.adopts.fec;
    settings.key = packet;
    settings.session = session;
    settings.rate = plan.rate;
    settings.counters = counters;
    settings.check()?;
    let mut smux = adit_smux::Settings::new(plan.smux.clone());
    smux.compress = plan.compress;
    smux.pads = qpp_pads(plan);
    Ok(SessionSettings {
        kcp: settings,
        streams: StreamSettings {
            smux,
            learns: plan.adopts,
        },
        packets,
        kcptun: plan.kcptun,
    })
}

/// Returns the pads of kcptun's QPP, if configured.
fn qpp_pads(plan: &KcpPlan) -> Option<Arc<PermutationPads>> {
    match (&plan.seal, plan.qpp) {
        (PacketSeal::Packets { password, .. }, Some(count)) => {
            PermutationPads::new(password.expose().as_bytes(), count).map(Arc::new)
        }
        _ => None,
    }
}

pub(super) fn fec_settings(plan: &FecPlan) -> Result<fec::FecSettings, CarrierError> {
    let CarrierKeys {
        packet, session, ..
    } = derive_keys(&plan.seal)?;
    let mut settings = fec::FecSettings::new(fec_code(plan.shards, &plan.seal));
    settings.mtu = plan.mtu;
    settings.parity_wait = plan.wait;
    settings.key = packet;
    settings.session = session;
    settings.max_channels = MAX_CHANNELS;
    Ok(settings)
}
