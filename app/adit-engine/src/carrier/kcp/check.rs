//! Checks that a session works, and finds the settings that differ at the other end if it does not.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adit_crypto::packet::PacketKind;
use adit_kcp::{Contact, Probe};
use adit_smux::{End, Manner, Watch};
use adit_smux_proto::Version;
use adit_wire::Target;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, interval, sleep};
use tracing::{debug, info, warn};

use super::super::settings::{Streams, Terms};
use super::trial::{self, Rounds, STEP};

/// Time within which a server with matching settings answers a stream.
pub(super) const ANSWER: Duration = Duration::from_secs(3);
/// The same for a session. Shorter, so that the cause is logged before a stream times out.
const VERDICT: Duration = ANSWER.saturating_sub(Duration::from_millis(200));
/// Time within which a working server reveals its error correction: two groups, of which each probe
/// yields one datagram at most. With 10+3 shards this takes 1.3 s.
const CORRECTION: Duration = VERDICT.saturating_mul(2);
/// Silence after which other ciphers are tried.
const SILENCE: Duration = Duration::from_millis(1200);

/// State of the knowledge about the server.
pub(super) struct Known {
    /// The stream settings for new sessions.
    streams: Mutex<Streams>,
    /// True if a server has answered with these settings.
    understood: AtomicBool,
    /// Notified when they have changed.
    pub(super) learnt: Notify,
    /// The smux settings that were found by trial. Locked while trials run.
    found: tokio::sync::Mutex<Option<Manner>>,
    /// True if other ciphers were tried since a server last answered.
    tried: AtomicBool,
    /// True if a difference in error correction was reported.
    told: AtomicBool,
}

impl Known {
    pub(super) fn new(streams: Streams) -> Self {
        Self {
            streams: Mutex::new(streams),
            understood: AtomicBool::new(false),
            learnt: Notify::new(),
            found: tokio::sync::Mutex::default(),
            tried: AtomicBool::new(false),
            told: AtomicBool::new(false),
        }
    }

    /// Returns the smux settings to use.
    pub(super) fn smux(&self) -> adit_smux::Settings {
        self.lock().smux.clone()
    }

    /// Ignores poisoning: a panic elsewhere leaves the settings intact.
    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if streams should wait until the first session has been checked.
    pub(super) fn is_uncertain(&self) -> bool {
        !self.understood.load(Ordering::Relaxed) && self.lock().learn()
    }

    fn understood(&self) {
        self.understood.store(true, Ordering::Relaxed);
        self.tried.store(false, Ordering::Relaxed);
    }
}

/// One session that is being checked.
pub(super) struct Check<'a> {
    pub(super) terms: &'a Terms,
    pub(super) known: &'a Known,
    /// The server as configured, for messages.
    pub(super) server: &'a Target,
    pub(super) addr: SocketAddr,
    pub(super) probe: &'a Probe,
    pub(super) session: &'a Watch,
    /// The smux settings of the session.
    pub(super) smux: &'a adit_smux::Settings,
}

impl Check<'_> {
    /// Returns the option name in the style that was used: adit's or kcptun's.
    const fn named(&self, ours: &'static str, kcptuns: &'static str) -> &'static str {
        if self.terms.kcptun { kcptuns } else { ours }
    }

    fn crypt(&self) -> PacketKind {
        let packets = self.terms.packets.as_ref();
        packets.map_or(PacketKind::Null, |(kind, _)| *kind)
    }

    /// Follows the session to its end. Sends true to `checked` when it is known if the session works.
    pub(super) async fn run(&self, checked: watch::Sender<bool>) {
        let end = tokio::select! {
            end = self.session.ended() => end,
            () = self.observe(&checked) => self.session.ended().await,
        };
        self.explain(end).await;
        let _ = checked.send(true);
    }

    /// Watches the start of the session.
    async fn observe(&self, checked: &watch::Sender<bool>) {
        let start = Instant::now();
        let (mut rounds, mut ticks, mut works) = (Rounds::default(), interval(STEP), false);
        while start.elapsed() < SILENCE || self.probe.contact() == Contact::Heard {
            ticks.tick().await;
            if !works && rounds.look(self.probe, self.session) {
                works = true;
                debug!("{} answers", self.server);
                self.known.understood();
                let _ = checked.send(true);
            }
            // The answers of the server to probes reveal its error correction.
            if works && (self.compares(start.elapsed()) || start.elapsed() > CORRECTION) {
                return;
            }
            // One probe per interval, answered or not, so that a long round trip does not slow down what the
            // answers reveal.
            if works {
                self.session.greet();
            }
            if start.elapsed() > VERDICT * 4 {
                return;
            }
        }
        let heard = async {
            while self.probe.contact() == Contact::Silent {
                sleep(STEP).await;
            }
        };
        tokio::select! {
            () = heard => {}
            () = self.try_others(start) => {}
        }
        if let Contact::Foreign(count) = self.probe.contact() {
            let server = self.server;
            warn!(
                "{count} datagrams from {server} cannot be opened: `key` or `crypt` differs there"
            );
        }
        let _ = checked.send(true);
    }

    /// Nothing arrived: finds the cause, and reports it before streams time out.
    async fn try_others(&self, start: Instant) {
        if self.known.tried.swap(true, Ordering::Relaxed) {
            return;
        }
        let (refused, crypt) = tokio::join!(
            trial::is_refused(self.addr),
            trial::crypt(self.addr, self.terms),
        );
        let server = self.server;
        match (crypt, refused) {
            (Some(theirs), _) => {
                let ours = self.crypt();
                warn!("{server} answers to `crypt` {theirs} only, this end has {ours}");
            }
            (None, true) => warn!("nothing listens at {server}: it is down, or has another port"),
            (None, false) => {
                let unlike = match self.crypt() {
                    PacketKind::None | PacketKind::Null => "",
                    _ => ", or `crypt` is none or null",
                };
                warn!(
                    "no answer from {server} with any cipher in {:.1} s: `key` differs \
                     there{unlike}; or it is down, or UDP does not get through",
                    start.elapsed().as_secs_f32()
                );
            }
        }
    }

    /// Compares the error correction of both ends once it is known; returns true if nothing is left to do.
    fn compares(&self, waited: Duration) -> bool {
        let ours = self.terms.kcp.fec.map(|fec| (fec.data, fec.parity));
        let theirs = match (self.probe.peer_corrects(), self.probe.peer_shards()) {
            (None, _) => return false,
            (Some(false), _) => None,
            (Some(true), Some(shards)) => Some(Some(shards)),
            (Some(true), None) if ours.is_none() && waited >= CORRECTION - STEP * 2 => Some(None),
            (Some(true), None) => return false,
        };
        let same = match theirs {
            None => ours.is_none(),
            Some(shards) => shards.is_some() && shards == ours,
        };
        if same || self.known.told.swap(true, Ordering::Relaxed) {
            return true;
        }
        let server = self.server;
        if theirs.is_none() && self.terms.kcp.fec_follows {
            info!("{server} sends without correction: this end does the same now");
            return true;
        }
        let shown = |fec: Option<Option<(usize, usize)>>| match fec {
            None => "without correction".to_owned(),
            Some(None) => "with correction".to_owned(),
            Some(Some((data, parity))) => format!("with correction {data}+{parity}"),
        };
        warn!(
            "{server} sends {}, this end {}: releases of kcptun before 2022 may fail; \
             set `{}` and `{}` to the same values",
            shown(theirs),
            shown(ours.map(Some)),
            self.named("data", "datashard"),
            self.named("parity", "parityshard"),
        );
        true
    }

    /// Reports why a session ended, and adopts settings accordingly.
    async fn explain(&self, end: End) {
        let server = self.server;
        let ours = Manner {
            version: self.smux.config.version,
            compress: self.smux.compress,
        };
        let theirs = match &end {
            End::Closed => return debug!("{server}: the session has ended"),
            End::Version { theirs, .. } => Some(Manner {
                version: if *theirs == 1 {
                    Version::V1
                } else {
                    Version::V2
                },
                ..ours
            }),
            End::Compression { theirs } => Some(Manner {
                compress: *theirs,
                ..ours
            }),
            End::Snappy(_) | End::Protocol(_) => self.tries_manners(ours).await,
            // The server acknowledged data that it did not understand, and dropped the session for it.
            End::Below(why)
                if why.kind() == std::io::ErrorKind::ConnectionReset
                    && !self.session.is_understood() =>
            {
                let theirs = self.tries_manners(ours).await;
                if theirs.is_none() {
                    warn!(
                        "{server} closes the session immediately: `{}` or `{}` differs there",
                        self.named("smux", "smuxver"),
                        self.named("comp", "nocomp"),
                    );
                    return;
                }
                theirs
            }
            _ => None,
        };
        match theirs {
            Some(theirs) => self.learn(ours, theirs),
            None if matches!(end, End::Snappy(_) | End::Protocol(_)) => {
                let (smux, comp) = (self.named("smux", "smuxver"), self.named("comp", "nocomp"));
                warn!("{server}: {end}; `{smux}` or `{comp}` may differ there");
            }
            None => info!("{server}: {end}"),
        }
    }

    async fn tries_manners(&self, ours: Manner) -> Option<Manner> {
        let mut found = self.known.found.lock().await;
        // Skip the trial if another session has just found it and it is still true.
        if found.is_none_or(|theirs| theirs == ours) {
            *found = trial::manner(self.addr, self.terms, ours).await;
        }
        *found
    }

    /// Reports that the server's settings differ, and adopts those that were not configured.
    fn learn(&self, ours: Manner, theirs: Manner) {
        let (server, mut hints) = (self.server, Vec::new());
        let mut streams = self.known.lock();
        let learns = streams.learns;
        if ours.version != theirs.version {
            let (a, b) = (ours.version.number(), theirs.version.number());
            let what = match learns.smux {
                true => "this end does the same now".to_owned(),
                false => format!("use `{}={b}`", self.named("smux", "smuxver")),
            };
            hints.push(format!(
                "it uses smux version {b}, this end version {a}: {what}"
            ));
        }
        if ours.compress != theirs.compress {
            let (they, we, how) = match theirs.compress {
                true => (
                    "compresses",
                    "does not",
                    self.named("use `comp=true`", "remove `nocomp`"),
                ),
                false => (
                    "does not compress",
                    "does",
                    self.named("remove `comp`", "use `nocomp`"),
                ),
            };
            let what = if learns.comp {
                "this end does the same now"
            } else {
                how
            };
            hints.push(format!("it {they}, this end {we}: {what}"));
        }
        let hints = hints.join("; ");
        let new = streams.adapted(theirs);
        let mended = new.config.version == theirs.version && new.compress == theirs.compress;
        streams.smux = new;
        drop(streams);
        if mended {
            self.known.learnt.notify_one();
            info!("{server}: {hints}");
        } else {
            warn!("{server}: {hints}");
        }
    }
}
