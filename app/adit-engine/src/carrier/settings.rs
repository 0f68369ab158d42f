//! From the plan of a carrier to the settings of its sessions.

use std::sync::Arc;

use adit_config::{Fec as FecPlan, Kcp as KcpPlan, PacketSeal, Shards};
use adit_crypto::CryptoError;
use adit_crypto::packet::qpp::Pads;
use adit_crypto::packet::session::SessionKey;
use adit_crypto::packet::{Check, PacketKey, PacketKind, key_from_password};
use adit_fec::Matrix;
use adit_kcp::fec;

/// Lanes of a listener at most.
const LANES: usize = 4096;

/// A carrier cannot be sealed as it is planned.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The key does not fit.
    #[error(transparent)]
    Key(#[from] CryptoError),
    /// The numbers make no session.
    #[error(transparent)]
    Kcp(#[from] adit_kcp::SettingsError),
}

/// The keys of datagrams: of sessions, or of packets.
type Keys = (Option<Arc<PacketKey>>, Option<SessionKey>);

fn keys(seal: &PacketSeal) -> Result<Keys, CryptoError> {
    Ok(match seal {
        PacketSeal::Session(secret) => {
            let key = key_from_password(secret.expose().as_bytes());
            (None, Some(SessionKey::new(key.expose())?))
        }
        PacketSeal::Packets {
            kind: PacketKind::Null,
            ..
        } => (None, None),
        PacketSeal::Packets {
            kind,
            check,
            password,
        } => {
            let key = PacketKey::new(*kind, *check, password.expose().as_bytes())?;
            (Some(Arc::new(key)), None)
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

pub(super) fn streams(
    plan: &KcpPlan,
    counters: Arc<adit_kcp::Counters>,
) -> Result<(adit_kcp::Settings, adit_smux::Settings), SealError> {
    let (key, session) = keys(&plan.seal)?;
    let mut arq = plan.arq;
    arq.mtu = plan.mtu;
    let settings = adit_kcp::Settings {
        mtu: plan.mtu,
        fec: plan.fec.map(|shards| code(shards, &plan.seal)),
        key,
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
    Ok((settings, smux))
}

/// The pads of kcptun's QPP, if the plan has such.
fn pads(plan: &KcpPlan) -> Option<Arc<Pads>> {
    match (&plan.seal, plan.qpp) {
        (PacketSeal::Packets { password, .. }, Some(count)) => {
            Pads::new(password.expose().as_bytes(), count).map(Arc::new)
        }
        _ => None,
    }
}

pub(super) fn datagrams(plan: &FecPlan) -> Result<fec::Settings, SealError> {
    let (key, session) = keys(&plan.seal)?;
    Ok(fec::Settings {
        fec: code(plan.shards, &plan.seal),
        mtu: plan.mtu,
        wait: plan.wait,
        key,
        session,
        lanes: LANES,
    })
}
