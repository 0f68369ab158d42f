//! Sessions that are begun only to find out with which settings a server answers.
//!
//! kcptun says nothing when it does not understand: a packet under another key or cipher is
//! dropped, a session with another smux or compression is closed without a word. What comes back,
//! or does not, from sessions that differ in one thing only tells which thing it is.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use adit_crypto::packet::{Check, PacketKey, PacketKind};
use adit_kcp::{Contact, KcpStream, Probe, Settings};
use adit_smux::{Manner, Mux, Watch};
use adit_smux_proto::Version;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::super::settings::Terms;

/// Between two looks at what came.
pub(super) const STEP: Duration = Duration::from_millis(50);
/// How long an answer to a trial is waited for.
const LIMIT: Duration = Duration::from_millis(1300);
/// Signs of life that a server confirms one after another before it is believed to understand
/// them. It confirms the first in any case, and forgets the session behind it if it does not.
const ROUNDS: u32 = 5;

/// Counts how often a server has confirmed everything.
#[derive(Debug, Default)]
pub(super) struct Rounds(u32);

impl Rounds {
    /// Looks, and if all is confirmed sends the next sign of life; true once the server is known to
    /// understand.
    pub(super) fn look(&mut self, probe: &Probe, session: &Watch) -> bool {
        if session.is_understood() {
            return true;
        }
        if probe.contact() != Contact::Heard || !probe.is_drained() {
            return false;
        }
        self.0 += 1;
        let done = self.0 > ROUNDS;
        if !done {
            session.greet();
        }
        done
    }
}

/// The manner of smux that the server understands, of those that `tried` is not.
pub(super) async fn manner(server: SocketAddr, terms: &Terms, tried: Manner) -> Option<Manner> {
    let mut trials = JoinSet::new();
    for version in [Version::V1, Version::V2] {
        for compress in [false, true] {
            let manner = Manner { version, compress };
            if manner != tried {
                let settings = with_manner(&terms.streams.smux, manner);
                let kcp = uncounted(&terms.kcp);
                trials.spawn(async move {
                    let understood = is_understood(server, kcp, settings).await;
                    understood.then_some(manner)
                });
            }
        }
    }
    first(trials).await
}

/// These settings in another manner.
fn with_manner(settings: &adit_smux::Settings, manner: Manner) -> adit_smux::Settings {
    let mut settings = settings.clone();
    (settings.config.version, settings.compress) = (manner.version, manner.compress);
    settings
}

async fn is_understood(server: SocketAddr, kcp: Settings, smux: adit_smux::Settings) -> bool {
    let Some((probe, mux)) = begin(server, kcp, smux) else {
        return false;
    };
    let session = mux.watch();
    let rounds = async {
        let mut rounds = Rounds::default();
        while !rounds.look(&probe, &session) {
            sleep(STEP).await;
        }
    };
    let understood = tokio::select! {
        _ = session.ended() => false,
        done = timeout(LIMIT, rounds) => done.is_ok(),
    };
    mux.close();
    understood
}

/// The cipher under which the server answers, of those that encrypt: what the others would send
/// could be recognised by everybody on the way.
pub(super) async fn crypt(server: SocketAddr, terms: &Terms) -> Option<PacketKind> {
    let (ours, key) = terms.packets.as_ref()?;
    let mut trials = JoinSet::new();
    for kind in PacketKind::ALL {
        if kind == *ours || matches!(kind, PacketKind::None | PacketKind::Null) {
            continue;
        }
        let Ok(key) = PacketKey::from_key(kind, Check::Crc32, key.expose()) else {
            continue;
        };
        let kcp = Settings {
            key: Some(Arc::new(key)),
            ..uncounted(&terms.kcp)
        };
        let smux = terms.streams.smux.clone();
        trials.spawn(async move { answers(server, kcp, smux).await.then_some(kind) });
    }
    first(trials).await
}

async fn answers(server: SocketAddr, kcp: Settings, smux: adit_smux::Settings) -> bool {
    let Some((probe, mux)) = begin(server, kcp, smux) else {
        return false;
    };
    let heard = async {
        while probe.contact() != Contact::Heard {
            sleep(STEP).await;
        }
    };
    let heard = timeout(LIMIT, heard).await.is_ok();
    mux.close();
    heard
}

/// Whether the server's system says that nothing listens there.
pub(super) async fn is_refused(server: SocketAddr) -> bool {
    let asked = async {
        let any: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0)).await?;
        // Only a connected socket is told.
        socket.connect(server).await?;
        socket.send(&[0]).await?;
        socket.recv(&mut [0]).await
    };
    let told = timeout(LIMIT, asked).await;
    matches!(told, Ok(Err(why)) if why.kind() == io::ErrorKind::ConnectionRefused)
}

fn begin(server: SocketAddr, kcp: Settings, smux: adit_smux::Settings) -> Option<(Probe, Mux)> {
    let session = KcpStream::connect(server, kcp).ok()?;
    let probe = session.probe();
    Some((probe, Mux::new(Box::new(session), smux).ok()?))
}

/// Trials are no traffic: they count nowhere.
fn uncounted(settings: &Settings) -> Settings {
    Settings {
        counters: Arc::default(),
        ..settings.clone()
    }
}

/// The first finding; the other trials end.
async fn first<T: Send + 'static>(mut trials: JoinSet<Option<T>>) -> Option<T> {
    while let Some(found) = trials.join_next().await {
        if let Ok(Some(found)) = found {
            return Some(found);
        }
    }
    None
}
