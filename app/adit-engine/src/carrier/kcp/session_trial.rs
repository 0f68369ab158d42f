//! Trial sessions, which find the settings that a server answers to.
//!
//! kcptun reports nothing about mismatches: it drops packets with another key or cipher, and closes
//! sessions with another smux version or compression silently. Sessions that differ in one setting
//! only reveal which one it is, by their answers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use adit_crypto::packet::{PacketCheck, PacketKey, PacketKind};
use adit_kcp::{KcpStream, PeerContact, SessionProbe, Settings};
use adit_smux::{Mux, MuxWatch, SmuxFormat};
use adit_smux_proto::Version;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::super::settings::SessionSettings;

/// Interval between two checks for answers.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Time limit for an answer to a trial.
const TRIAL_TIMEOUT: Duration = Duration::from_millis(1300);
/// Number of consecutive probes that a server has to confirm before it counts as understanding them. It
/// confirms the first in any case, and then drops the session if it does not understand it.
const REQUIRED_ROUNDS: u32 = 5;

/// Number of consecutive probes that a server has confirmed completely.
#[derive(Debug, Default)]
pub(super) struct ConfirmationCount(u32);

impl ConfirmationCount {
    /// Checks for answers, and sends the next probe if all are confirmed. Returns true once the server is
    /// known to understand.
    pub(super) fn check_round(&mut self, probe: &SessionProbe, session: &MuxWatch) -> bool {
        if session.has_valid_input() {
            return true;
        }
        if probe.peer_contact() != PeerContact::Heard || !probe.is_drained() {
            return false;
        }
        self.0 += 1;
        let done = self.0 > REQUIRED_ROUNDS;
        if !done {
            session.send_keepalive();
        }
        done
    }
}

/// Finds the smux settings that the server understands, other than `tried`.
pub(super) async fn find_manner(
    server: SocketAddr,
    terms: &SessionSettings,
    tried: SmuxFormat,
) -> Option<SmuxFormat> {
    let mut trials = JoinSet::new();
    for version in [Version::V1, Version::V2] {
        for compress in [false, true] {
            let manner = SmuxFormat { version, compress };
            if manner != tried {
                let settings = with_manner(&terms.streams.smux, manner);
                let kcp = without_counters(&terms.kcp);
                trials.spawn(async move {
                    let understood = is_understood(server, kcp, settings).await;
                    understood.then_some(manner)
                });
            }
        }
    }
    first_result(trials).await
}

/// Returns these settings with another smux version and compression.
fn with_manner(settings: &adit_smux::Settings, manner: SmuxFormat) -> adit_smux::Settings {
    let mut settings = settings.clone();
    (settings.config.version, settings.compress) = (manner.version, manner.compress);
    settings
}

async fn is_understood(server: SocketAddr, kcp: Settings, smux: adit_smux::Settings) -> bool {
    let Some((probe, mux)) = start_trial(server, kcp, smux).await else {
        return false;
    };
    let session = mux.new_watch();
    let rounds = async {
        let mut rounds = ConfirmationCount::default();
        while !rounds.check_round(&probe, &session) {
            sleep(CHECK_INTERVAL).await;
        }
    };
    let understood = tokio::select! {
        _ = session.wait_end() => false,
        done = timeout(TRIAL_TIMEOUT, rounds) => done.is_ok(),
    };
    mux.close();
    understood
}

/// Finds the cipher that the server answers to, among those that encrypt: probes under the others could
/// be recognized by observers.
pub(super) async fn find_cipher(server: SocketAddr, terms: &SessionSettings) -> Option<PacketKind> {
    let (ours, key) = terms.packets.as_ref()?;
    let mut trials = JoinSet::new();
    for kind in PacketKind::ALL {
        if kind == *ours || matches!(kind, PacketKind::None | PacketKind::Null) {
            continue;
        }
        let Ok(key) = PacketKey::from_key(kind, PacketCheck::Crc32, key.expose()) else {
            continue;
        };
        let mut kcp = without_counters(&terms.kcp);
        kcp.key = Some(Arc::new(key));
        let smux = terms.streams.smux.clone();
        trials.spawn(async move { is_answered(server, kcp, smux).await.then_some(kind) });
    }
    first_result(trials).await
}

async fn is_answered(server: SocketAddr, kcp: Settings, smux: adit_smux::Settings) -> bool {
    let Some((probe, mux)) = start_trial(server, kcp, smux).await else {
        return false;
    };
    let heard = async {
        while probe.peer_contact() != PeerContact::Heard {
            sleep(CHECK_INTERVAL).await;
        }
    };
    let heard = timeout(TRIAL_TIMEOUT, heard).await.is_ok();
    mux.close();
    heard
}

/// Returns true if the server's system reports that nothing listens there.
pub(super) async fn is_refused(server: SocketAddr) -> bool {
    let asked = async {
        let any: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0)).await?;
        // Only connected sockets receive ICMP errors.
        socket.connect(server).await?;
        socket.send(&[0]).await?;
        socket.recv(&mut [0]).await
    };
    let told = timeout(TRIAL_TIMEOUT, asked).await;
    matches!(told, Ok(Err(why)) if why.kind() == io::ErrorKind::ConnectionRefused)
}

async fn start_trial(
    server: SocketAddr,
    kcp: Settings,
    smux: adit_smux::Settings,
) -> Option<(SessionProbe, Mux)> {
    let session = KcpStream::connect(server, kcp).await.ok()?;
    let probe = session.session_probe();
    Some((probe, Mux::new(Box::new(session), smux).ok()?))
}

/// Returns the settings with separate counters: trials do not count as traffic.
fn without_counters(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    settings.counters = Arc::default();
    settings
}

/// Returns the first result, and ends the other trials.
async fn first_result<T: Send + 'static>(mut trials: JoinSet<Option<T>>) -> Option<T> {
    while let Some(found) = trials.join_next().await {
        if let Ok(Some(found)) = found {
            return Some(found);
        }
    }
    None
}
