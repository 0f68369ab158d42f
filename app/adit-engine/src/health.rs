//! The health of a hop's server.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tracing::{debug, info, warn};

use crate::BoxFuture;
use crate::clock_reference;
use crate::clock_steps;
use crate::connect_pacer::ConnectPacer;

/// Minimum interval between warnings about one server.
const WARN_INTERVAL: Duration = Duration::from_secs(60);
/// Minimum interval between checks of one server.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Time without answers to datagrams after which the server is checked. Associations report after 5 s by
/// a clock of whole seconds, which can be 4 s.
const MAX_UNANSWERED: Duration = Duration::from_secs(4);
/// Time without an answer after which a server that can be checked is checked.
const CHECK_SILENCE_AFTER: Duration = Duration::from_secs(2);
/// The same for a server that cannot be checked, and is suspected without proof.
const SUSPECT_SILENCE_AFTER: Duration = Duration::from_secs(6);
/// Clock skew in seconds from which a warning is logged; at 30 s it becomes a failure.
const SKEW_WARN: i64 = 15;

/// Reports problems of a server to the user of a client, because servers report none themselves.
///
/// A server that does not accept a key, a method or a clock is silent or closes the connection, like a
/// dead target. The difference is that no byte of the connection has been authenticated. If the
/// server may have answered earlier, it is checked before a warning is logged.
pub struct ServerHealth {
    name: String,
    /// The fact that an answer of the server proves.
    proven_by_answer: String,
    /// The likely causes if it does not answer.
    likely_causes: String,
    /// True if the first answer is logged.
    logs_first_answer: bool,
    check: OnceLock<Box<dyn HealthCheck>>,
    /// Limits connections until the server has proved itself, if it has a key.
    pacer: Option<Arc<ConnectPacer>>,
    /// True if the server is a member of a group, which reports its failures.
    is_in_group: AtomicBool,
    known: Mutex<HealthState>,
}

#[derive(Debug, Default)]
struct HealthState {
    /// Time at which the server last proved that it runs and accepts this client.
    last_proof: Option<Instant>,
    /// True if a warning was logged since.
    is_blamed: bool,
    warned: Option<Instant>,
    skewed: Option<Instant>,
    asked: Option<Instant>,
    /// Time since which no datagram was answered.
    unanswered: Option<Instant>,
}

/// Asks a server whether it accepts us.
pub(crate) trait HealthCheck: Send + Sync {
    /// Asks once. Only a server that holds the key can answer. With `tries_clocks`, a server that does not answer is
    /// asked again with other clocks. `pacer` counts the connections, and delays those over its limit.
    ///
    /// # Errors
    /// Returns why there is no connection to the server.
    fn ask<'a>(
        &'a self,
        tries_clocks: bool,
        pacer: Option<&'a Arc<ConnectPacer>>,
    ) -> BoxFuture<'a, io::Result<ProbeAnswer>>;
}

/// The reaction of a server to one question.
pub(crate) enum ProbeAnswer {
    /// The server holds the key. Its clock minus the local one, in seconds, where the edition carries one.
    Authentic(Option<i64>),
    /// The server holds the key, and refuses requests because its clock differs from the local one by this number of
    /// seconds.
    WrongClock(i64),
    /// The server closed the connection.
    Closed,
    /// The server sent nothing.
    Silent,
}

impl fmt::Debug for ServerHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl ServerHealth {
    /// Creates the state of a keyed server called `name`; `dated` is true if it checks the client's clock.
    #[must_use]
    pub fn new(name: impl Into<String>, key_id: impl fmt::Display, dated: bool) -> Self {
        let proof = proof_of_key(&key_id);
        let clock = if dated {
            ", or a clock that differs by more than 30 s"
        } else {
            ""
        };
        let doubt = format!(
            "a wrong key or method (the key here has key-id {key_id}; compare it with the one that \
             the server prints){clock}. To find out, run `adit client` with the server's URL"
        );
        Self::with_texts(name, proof, doubt)
    }

    /// Creates the state of a server; `proof` and `doubt` are the meaning of an answer and of its absence.
    #[must_use]
    pub fn with_texts(
        name: impl Into<String>,
        proven_by_answer: String,
        likely_causes: String,
    ) -> Self {
        let name: String = name.into();
        let pacer = Some(ConnectPacer::shared(&name, &proven_by_answer));
        Self {
            name,
            proven_by_answer,
            likely_causes,
            logs_first_answer: true,
            check: OnceLock::new(),
            pacer,
            is_in_group: AtomicBool::new(false),
            known: Mutex::default(),
        }
    }

    /// Creates the state of a server without a key, whose handshake reports errors.
    #[must_use]
    pub fn without_key(name: impl Into<String>) -> Self {
        let proof = "connections pass".to_owned();
        Self {
            logs_first_answer: false,
            pacer: None,
            ..Self::with_texts(name, proof, String::new())
        }
    }

    /// Sets the parameters for checks of the server. Only the first call has an effect.
    pub(crate) fn set_check(&self, check: impl HealthCheck + 'static) {
        let _ = self.check.set(Box::new(check));
    }

    /// Returns the name of the server.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if the server does not accept this client: a check, which only a server with the key can answer,
    /// has failed since the last proof.
    pub(crate) fn has_failed_check(&self) -> bool {
        let pacer = self.pacer.as_ref().filter(|_| self.check.get().is_some());
        pacer.is_some_and(|pacer| pacer.has_failure())
    }

    /// Returns the limit on connections to the server, if it has a key.
    pub(crate) const fn pacer(&self) -> Option<&Arc<ConnectPacer>> {
        self.pacer.as_ref()
    }

    /// Leaves messages about failures to the group that the server is a member of. Requests do not fail with it.
    pub(crate) fn leave_reports_to_group(&self) {
        self.is_in_group.store(true, Ordering::Relaxed);
    }

    /// Returns the likely causes if the server does not answer, for messages.
    pub(crate) fn likely_causes(&self) -> Option<&str> {
        Some(&*self.likely_causes).filter(|causes| !causes.is_empty())
    }

    /// Returns the time without an answer after which [`report_suspect`](Self::report_suspect) is called.
    pub(crate) fn silence_limit(&self) -> Duration {
        match self.check.get() {
            Some(_) => CHECK_SILENCE_AFTER,
            None => SUSPECT_SILENCE_AFTER,
        }
    }

    /// Asks the server whether it accepts this client, for a group, which probes with growing pauses. `None` if there
    /// is no question that it could answer.
    pub(crate) async fn ask(&self) -> Option<io::Result<ProbeAnswer>> {
        self.ask_paced(None).await
    }

    async fn ask_paced(
        &self,
        pacer: Option<&Arc<ConnectPacer>>,
    ) -> Option<io::Result<ProbeAnswer>> {
        // A server that has accepted this client has the key, or had it.
        let tries_clocks = self.has_proof();
        let answer = self.check.get()?.ask(tries_clocks, pacer).await;
        if let Ok(ProbeAnswer::Authentic(skew)) = &answer {
            self.record_proof(*skew);
        }
        Some(answer)
    }

    /// Logs a failure, unless the group does.
    fn complain(&self, known: &mut HealthState, text: &str) {
        if self.is_in_group.load(Ordering::Relaxed) {
            debug!("{text}");
        } else if rate_limit(&mut known.warned, WARN_INTERVAL) {
            known.is_blamed = true;
            warn!("{text}");
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, HealthState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the server has ever proved that it has the key.
    #[must_use]
    pub fn has_proof(&self) -> bool {
        self.lock_state().last_proof.is_some()
    }

    /// Records an authentic answer; `skew` is the server's clock minus the local one, in seconds.
    pub fn record_proof(&self, skew: Option<i64>) {
        if let Some(pacer) = &self.pacer {
            pacer.record_proof();
        }
        let mut known = self.lock_state();
        known.unanswered = None;
        let first = known.last_proof.replace(Instant::now()).is_none();
        let again = std::mem::take(&mut known.is_blamed);
        if again {
            info!("{} is healthy again, {}", self.name, self.proven_by_answer);
        } else if first && self.logs_first_answer {
            info!("{} answers, {}", self.name, self.proven_by_answer);
        }
        if let Some(skew) = skew
            && skew.abs() > SKEW_WARN
            && rate_limit(&mut known.skewed, WARN_INTERVAL)
        {
            warn!(
                "the clock of {} differs by {skew} s; beyond 30 s it refuses requests: \
                 set the clock of either machine (for example with NTP)",
                self.name
            );
        }
    }

    /// Records that the server cannot be connected to.
    pub fn report_unreachable(&self, why: &io::Error) {
        let text = format!(
            "no connection to {}: {why}. Is it running, and is this machine online? Requests fail until then",
            self.name
        );
        self.complain(&mut self.lock_state(), &text);
    }

    /// Records that a connection that started at `since` has ended, or is silent for long, without an
    /// authenticated byte.
    ///
    /// Its target may be the cause. A server that has answered any client since is not blamed; others are checked, if
    /// possible.
    pub(crate) fn report_suspect(self: &Arc<Self>, what: &str, since: Instant) {
        let mut known = self.lock_state();
        if known.last_proof.is_some_and(|well| well >= since) {
            return;
        }
        if self.check.get().is_none() {
            self.log_suspicion(&mut known, what);
        } else if rate_limit(&mut known.asked, CHECK_INTERVAL) {
            let (health, what) = (self.clone(), what.to_owned());
            tokio::spawn(async move { health.check_server(&what).await });
        }
    }

    /// Records that a datagram was sent without an answer so far. Each association reports its first
    /// datagram, and further ones whenever the wait has become long.
    ///
    /// Many targets send no answer, so the server is checked over TCP before it is blamed, and is never
    /// blamed if it cannot be checked.
    pub(crate) fn report_unanswered(self: &Arc<Self>) {
        let mut known = self.lock_state();
        // Stored here, because associations may be shorter: a DNS client uses one per query.
        let since = *known.unanswered.get_or_insert_with(Instant::now);
        // Each answer restarts the interval, so a working server must have been silent for this long.
        if since.elapsed() < MAX_UNANSWERED || self.check.get().is_none() {
            return;
        }
        if rate_limit(&mut known.asked, CHECK_INTERVAL) {
            let health = self.clone();
            tokio::spawn(async move { health.check_server("answers no datagrams").await });
        }
    }

    /// Checks the server with a request that only a server with the key can answer.
    async fn check_server(&self, what: &str) {
        match self.ask_paced(self.pacer.as_ref()).await {
            None | Some(Ok(ProbeAnswer::Authentic(_))) => {}
            Some(Ok(ProbeAnswer::WrongClock(skew))) => {
                let stepped = match clock_steps::was_set_by(-skew) {
                    true => ". This machine's clock was set while adit was running",
                    false => "",
                };
                let text = format!(
                    "{} {what}: its clock differs by {skew} s, and beyond 30 s it refuses requests: set the clock of \
                     either machine (for example with NTP){stepped}",
                    self.name
                );
                self.complain(&mut self.lock_state(), &text);
            }
            Some(Ok(ProbeAnswer::Silent | ProbeAnswer::Closed)) => {
                self.log_suspicion(&mut self.lock_state(), what);
            }
            Some(Err(why)) => self.report_unreachable(&why),
        }
    }

    fn log_suspicion(&self, known: &mut HealthState, what: &str) {
        if let Some(pacer) = &self.pacer {
            pacer.record_failure(what);
        }
        let clock = clock_reference::last_offset();
        let clock = clock.map_or_else(String::new, |offset| format!(". Note: {offset}"));
        let (name, doubt) = (&self.name, &self.likely_causes);
        let text = if known.last_proof.is_none() {
            format!("{name} {what}. Likely: {doubt}{clock}")
        } else {
            format!(
                "{name} {what}, though it has answered before. Likely: its key has been changed: {doubt}; or the target \
                 cannot be reached from there{clock}"
            )
        };
        self.complain(known, &text);
    }
}

/// Returns the pacer of connections to a server whose health was created by [`ServerHealth::new`].
pub(crate) fn pacer_of_key(name: &str, key_id: impl fmt::Display) -> Arc<ConnectPacer> {
    ConnectPacer::shared(name, &proof_of_key(key_id))
}

fn proof_of_key(key_id: impl fmt::Display) -> String {
    format!("the key {key_id} is right")
}

/// Returns true if at least `quiet` has passed since `last`, and sets `last` to now in this case.
fn rate_limit(last: &mut Option<Instant>, quiet: Duration) -> bool {
    let now = Instant::now();
    let may = last.is_none_or(|at| now - at >= quiet);
    if may {
        *last = Some(now);
    }
    may
}
