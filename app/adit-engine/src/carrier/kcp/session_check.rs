//! Checks that a session works, and finds the settings that differ at the other end if it does not.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adit_crypto::packet::PacketKind;
use adit_kcp::{PeerContact, SessionProbe};
use adit_smux::{EndReason, MuxWatch, SmuxFormat};
use adit_smux_proto::Version;
use adit_wire::Target;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, interval, sleep};
use tracing::{debug, info, warn};

use super::super::settings::{SessionSettings, StreamSettings};
use super::session_trial::{self, CHECK_INTERVAL, ConfirmationCount};

/// Time within which a server with matching settings answers a stream.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// The same for a session. Shorter, so that the cause is logged before a stream times out.
const VERDICT_TIMEOUT: Duration = ANSWER_TIMEOUT.saturating_sub(Duration::from_millis(200));
/// Time within which a working server reveals its error correction: two groups, of which each probe
/// yields one datagram at most. With 10+3 shards this takes 1.3 s.
const CORRECTION_TIMEOUT: Duration = VERDICT_TIMEOUT.saturating_mul(2);
/// Silence after which other ciphers are tried.
const SILENCE_BEFORE_TRIALS: Duration = Duration::from_millis(1200);

/// State of the knowledge about the server.
pub(super) struct ServerKnowledge {
    /// The stream settings for new sessions.
    streams: Mutex<StreamSettings>,
    /// True if a server has answered with these settings.
    understood: AtomicBool,
    /// Notified when they have changed.
    pub(super) settings_changed: Notify,
    /// The smux settings that were found by trial. Locked while trials run.
    found_manner: tokio::sync::Mutex<Option<SmuxFormat>>,
    /// True if other ciphers were tried since a server last answered.
    tried_ciphers: AtomicBool,
    /// True if a difference in error correction was reported.
    reported_correction: AtomicBool,
}

impl ServerKnowledge {
    pub(super) fn new(streams: StreamSettings) -> Self {
        Self {
            streams: Mutex::new(streams),
            understood: AtomicBool::new(false),
            settings_changed: Notify::new(),
            found_manner: tokio::sync::Mutex::default(),
            tried_ciphers: AtomicBool::new(false),
            reported_correction: AtomicBool::new(false),
        }
    }

    /// Returns the smux settings to use.
    pub(super) fn smux_settings(&self) -> adit_smux::Settings {
        self.lock_streams().smux.clone()
    }

    /// Ignores poisoning: a panic elsewhere leaves the settings intact.
    fn lock_streams(&self) -> MutexGuard<'_, StreamSettings> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if streams should wait until the first session has been checked.
    pub(super) fn is_uncertain(&self) -> bool {
        !self.understood.load(Ordering::Relaxed) && self.lock_streams().may_adapt()
    }

    fn mark_understood(&self) {
        self.understood.store(true, Ordering::Relaxed);
        self.tried_ciphers.store(false, Ordering::Relaxed);
    }
}

/// One session that is being checked.
pub(super) struct SessionCheck<'a> {
    pub(super) terms: &'a SessionSettings,
    pub(super) known: &'a ServerKnowledge,
    /// The server as configured, for messages.
    pub(super) server: &'a Target,
    pub(super) addr: SocketAddr,
    pub(super) probe: &'a SessionProbe,
    pub(super) session: &'a MuxWatch,
    /// The smux settings of the session.
    pub(super) smux: &'a adit_smux::Settings,
}

impl SessionCheck<'_> {
    /// Returns the option name in the style that was used: adit's or kcptun's.
    const fn option_name(&self, ours: &'static str, kcptuns: &'static str) -> &'static str {
        if self.terms.kcptun { kcptuns } else { ours }
    }

    fn packet_cipher(&self) -> PacketKind {
        let packets = self.terms.packets.as_ref();
        packets.map_or(PacketKind::Null, |(kind, _)| *kind)
    }

    /// Follows the session to its end. Sends true to `checked` when it is known if the session works.
    pub(super) async fn follow_session(&self, checked: watch::Sender<bool>) {
        let end = tokio::select! {
            end = self.session.wait_end() => end,
            () = self.observe_start(&checked) => self.session.wait_end().await,
        };
        self.explain_end(end).await;
        let _ = checked.send(true);
    }

    /// Watches the start of the session.
    async fn observe_start(&self, checked: &watch::Sender<bool>) {
        let start = Instant::now();
        let (mut rounds, mut ticks, mut works) = (
            ConfirmationCount::default(),
            interval(CHECK_INTERVAL),
            false,
        );
        while start.elapsed() < SILENCE_BEFORE_TRIALS
            || self.probe.peer_contact() == PeerContact::Heard
        {
            ticks.tick().await;
            if !works && rounds.check_round(self.probe, self.session) {
                works = true;
                debug!("{} answers", self.server);
                self.known.mark_understood();
                let _ = checked.send(true);
            }
            // The answers of the server to probes reveal its error correction.
            if works
                && (self.compare_correction(start.elapsed())
                    || start.elapsed() > CORRECTION_TIMEOUT)
            {
                return;
            }
            // One probe per interval, answered or not, so that a long round trip does not slow down what the
            // answers reveal.
            if works {
                self.session.send_keepalive();
            }
            if start.elapsed() > VERDICT_TIMEOUT * 4 {
                return;
            }
        }
        let heard = async {
            while self.probe.peer_contact() == PeerContact::Silent {
                sleep(CHECK_INTERVAL).await;
            }
        };
        tokio::select! {
            () = heard => {}
            () = self.try_other_ciphers(start) => {}
        }
        if let PeerContact::Foreign(count) = self.probe.peer_contact() {
            let server = self.server;
            warn!(
                "{count} datagrams from {server} cannot be opened: `key` or `crypt` differs there"
            );
        }
        let _ = checked.send(true);
    }

    /// Nothing arrived: finds the cause, and reports it before streams time out.
    async fn try_other_ciphers(&self, start: Instant) {
        if self.known.tried_ciphers.swap(true, Ordering::Relaxed) {
            return;
        }
        let (refused, crypt) = tokio::join!(
            session_trial::is_refused(self.addr),
            session_trial::find_cipher(self.addr, self.terms),
        );
        let server = self.server;
        match (crypt, refused) {
            (Some(theirs), _) => {
                let ours = self.packet_cipher();
                warn!("{server} answers to `crypt` {theirs} only, this end has {ours}");
            }
            (None, true) => warn!("nothing listens at {server}: it is down, or has another port"),
            (None, false) => {
                let unlike = match self.packet_cipher() {
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
    fn compare_correction(&self, waited: Duration) -> bool {
        let ours = self.terms.kcp.fec.map(|fec| (fec.data, fec.parity));
        let theirs = match (self.probe.peer_uses_fec(), self.probe.peer_shards()) {
            (None, _) => return false,
            (Some(false), _) => None,
            (Some(true), Some(shards)) => Some(Some(shards)),
            (Some(true), None)
                if ours.is_none() && waited >= CORRECTION_TIMEOUT - CHECK_INTERVAL * 2 =>
            {
                Some(None)
            }
            (Some(true), None) => return false,
        };
        let same = match theirs {
            None => ours.is_none(),
            Some(shards) => shards.is_some() && shards == ours,
        };
        if same || self.known.reported_correction.swap(true, Ordering::Relaxed) {
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
            self.option_name("data", "datashard"),
            self.option_name("parity", "parityshard"),
        );
        true
    }

    /// Reports why a session ended, and adopts settings accordingly.
    async fn explain_end(&self, end: EndReason) {
        let server = self.server;
        let ours = SmuxFormat {
            version: self.smux.config.version,
            compress: self.smux.compress,
        };
        let theirs = match &end {
            EndReason::Closed => return debug!("{server}: the session has ended"),
            EndReason::Version { theirs, .. } => Some(SmuxFormat {
                version: if *theirs == 1 {
                    Version::V1
                } else {
                    Version::V2
                },
                ..ours
            }),
            EndReason::Compression { theirs } => Some(SmuxFormat {
                compress: *theirs,
                ..ours
            }),
            EndReason::Snappy(_) | EndReason::Protocol(_) => self.find_manner(ours).await,
            // The server acknowledged data that it did not understand, and dropped the session for it.
            EndReason::Below(why)
                if why.kind() == std::io::ErrorKind::ConnectionReset
                    && !self.session.has_valid_input() =>
            {
                let theirs = self.find_manner(ours).await;
                if theirs.is_none() {
                    warn!(
                        "{server} closes the session immediately: `{}` or `{}` differs there",
                        self.option_name("smux", "smuxver"),
                        self.option_name("comp", "nocomp"),
                    );
                    return;
                }
                theirs
            }
            _ => None,
        };
        match theirs {
            Some(theirs) => self.adopt_manner(ours, theirs),
            None if matches!(end, EndReason::Snappy(_) | EndReason::Protocol(_)) => {
                let (smux, comp) = (
                    self.option_name("smux", "smuxver"),
                    self.option_name("comp", "nocomp"),
                );
                warn!("{server}: {end}; `{smux}` or `{comp}` may differ there");
            }
            None => info!("{server}: {end}"),
        }
    }

    async fn find_manner(&self, ours: SmuxFormat) -> Option<SmuxFormat> {
        let mut found = self.known.found_manner.lock().await;
        // Skip the trial if another session has just found it and it is still true.
        if found.is_none_or(|theirs| theirs == ours) {
            *found = session_trial::find_manner(self.addr, self.terms, ours).await;
        }
        *found
    }

    /// Reports that the server's settings differ, and adopts those that were not configured.
    fn adopt_manner(&self, ours: SmuxFormat, theirs: SmuxFormat) {
        let (server, mut hints) = (self.server, Vec::new());
        let mut streams = self.known.lock_streams();
        let learns = streams.learns;
        if ours.version != theirs.version {
            let (a, b) = (ours.version.number(), theirs.version.number());
            let what = match learns.smux {
                true => "this end does the same now".to_owned(),
                false => format!("use `{}={b}`", self.option_name("smux", "smuxver")),
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
                    self.option_name("use `comp=true`", "remove `nocomp`"),
                ),
                false => (
                    "does not compress",
                    "does",
                    self.option_name("remove `comp`", "use `nocomp`"),
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
        let new = streams.adapted_to(theirs);
        let mended = new.config.version == theirs.version && new.compress == theirs.compress;
        streams.smux = new;
        drop(streams);
        if mended {
            self.known.settings_changed.notify_one();
            info!("{server}: {hints}");
        } else {
            warn!("{server}: {hints}");
        }
    }
}
