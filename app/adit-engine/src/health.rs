//! What is known of a hop's server.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tracing::{info, warn};

use crate::BoxFuture;

/// Warnings about one server are at least this far apart.
const QUIET: Duration = Duration::from_secs(60);
/// Questions whether a server is well are at least this far apart.
const BETWEEN: Duration = Duration::from_secs(10);
/// Datagrams without an answer for so long are a reason to ask. Associations tell after 5 s by a
/// clock of whole seconds, which can be 4.
const SILENCE: Duration = Duration::from_secs(4);
/// A server clock further off than this is worth a word before it becomes a failure at 30 s.
const SKEW_WARN: i64 = 15;

/// Tells the user of a client what is wrong with a server, as no server tells by itself.
///
/// A server that does not accept a key, a method or a clock is silent or closes: both look like
/// a dead target. What differs is that not one byte of the connection has been authenticated.
/// Where the server may have answered before, it is asked before it is blamed.
pub struct Health {
    name: String,
    /// What it proves that the server answers.
    proof: String,
    /// What is likely when it does not.
    doubt: String,
    /// The first answer is worth a line.
    greets: bool,
    check: OnceLock<Box<dyn ServerCheck>>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// When the server last showed that it is there and understands us.
    well: Option<Instant>,
    /// It has been called ill since.
    ill: bool,
    warned: Option<Instant>,
    skewed: Option<Instant>,
    asked: Option<Instant>,
    /// Since when no datagram has been answered.
    unanswered: Option<Instant>,
}

/// Asks a server whether it accepts us.
pub(crate) trait ServerCheck: Send + Sync {
    /// Asks once. Only a server that holds the key can answer.
    ///
    /// # Errors
    /// Returns why there is no connection to the server.
    fn ask(&self) -> BoxFuture<'_, io::Result<Answer>>;
}

/// What a server's reaction to one question shows.
pub(crate) enum Answer {
    /// The server holds the key. Its clock minus ours, in seconds, where the edition carries one.
    Authentic(Option<i64>),
    /// The server closed the connection.
    Closed,
    /// The server said nothing.
    Silent,
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Health {
    /// Nothing is known yet of the server called `name`, for which we have a key; `dated` if it
    /// judges our clock.
    #[must_use]
    pub fn new(name: impl Into<String>, key_id: impl fmt::Display, dated: bool) -> Self {
        let proof = format!("the key {key_id} is right");
        let clock = if dated {
            ", or a clock that is off by more than 30 s"
        } else {
            ""
        };
        let doubt = format!(
            "a wrong key or method (ours has key-id {key_id}; compare it with what the server \
             prints){clock}. Try: adit client with the server's URL, it tells which"
        );
        Self::told(name, proof, doubt)
    }

    /// Nothing is known yet; `proof` and `doubt` say what an answer and its absence mean.
    #[must_use]
    pub fn told(name: impl Into<String>, proof: String, doubt: String) -> Self {
        Self {
            name: name.into(),
            proof,
            doubt,
            greets: true,
            check: OnceLock::new(),
            known: Mutex::default(),
        }
    }

    /// Nothing is known yet of a server that needs no key: its dialogue tells what is wrong.
    #[must_use]
    pub fn keyless(name: impl Into<String>) -> Self {
        let proof = "connections pass".to_owned();
        Self {
            greets: false,
            ..Self::told(name, proof, String::new())
        }
    }

    /// How the server can be asked before it is blamed. Only the first call counts.
    pub(crate) fn asking(&self, check: impl ServerCheck + 'static) {
        let _ = self.check.set(Box::new(check));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server has ever proved that it holds the key.
    #[must_use]
    pub fn proved(&self) -> bool {
        self.known().well.is_some()
    }

    /// The server has sent something authentic; `skew` is its clock minus ours, in seconds.
    pub fn proof(&self, skew: Option<i64>) {
        let mut known = self.known();
        known.unanswered = None;
        let first = known.well.replace(Instant::now()).is_none();
        let again = std::mem::take(&mut known.ill);
        if again {
            info!("{} is well again, {}", self.name, self.proof);
        } else if first && self.greets {
            info!("{} answers, {}", self.name, self.proof);
        }
        if let Some(skew) = skew
            && skew.abs() > SKEW_WARN
            && may(&mut known.skewed, QUIET)
        {
            warn!(
                "the clock of {} differs from ours by {skew} s; beyond 30 s it will refuse us: \
                 set the clock here or there (for example with NTP)",
                self.name
            );
        }
    }

    /// There is no connection to the server.
    pub fn unreachable(&self, why: &io::Error) {
        let mut known = self.known();
        if may(&mut known.warned, QUIET) {
            known.ill = true;
            warn!(
                "no connection to {}: {why}. Is it running, and is this machine online? Requests \
                 fail until then",
                self.name
            );
        }
    }

    /// A connection that began at `since` has ended, or is silent for long, without one authentic
    /// byte.
    ///
    /// Its target may be the reason. A server that has answered anybody since is not blamed; one
    /// that has answered before is asked, if it can be; then `cleared` is called if it answers.
    pub(crate) fn suspect(
        self: &Arc<Self>,
        what: &str,
        since: Instant,
        cleared: impl FnOnce() + Send + 'static,
    ) {
        let mut known = self.known();
        match known.well {
            None => self.blame(&mut known, what),
            Some(well) if well >= since => {
                drop(known);
                cleared();
            }
            Some(_) if self.check.get().is_none() => self.blame(&mut known, what),
            Some(_) => {
                if may(&mut known.asked, BETWEEN) {
                    let (health, what) = (self.clone(), what.to_owned());
                    tokio::spawn(async move { health.ask(&what, cleared).await });
                }
            }
        }
    }

    /// A datagram was sent for which nothing has come back yet: of each association the first, and
    /// one each time that it has waited for long.
    ///
    /// Targets often answer none, so the server is asked over TCP before it is blamed, and never
    /// blamed if it cannot be asked.
    pub(crate) fn unanswered(self: &Arc<Self>) {
        let mut known = self.known();
        // Kept here, since associations may be shorter than that: a client of DNS has one for each
        // question.
        let since = *known.unanswered.get_or_insert_with(Instant::now);
        // Each answer begins it anew, so whoever is well has been silent for as long.
        if since.elapsed() < SILENCE || self.check.get().is_none() {
            return;
        }
        if may(&mut known.asked, BETWEEN) {
            let health = self.clone();
            tokio::spawn(async move { health.ask("answers no datagrams", || {}).await });
        }
    }

    /// Asks the server, which only one that holds the key can answer.
    async fn ask(&self, what: &str, cleared: impl FnOnce()) {
        let Some(check) = self.check.get() else {
            return;
        };
        match check.ask().await {
            Ok(Answer::Authentic(skew)) => {
                self.proof(skew);
                cleared();
            }
            Ok(Answer::Silent | Answer::Closed) => self.blame(&mut self.known(), what),
            Err(why) => self.unreachable(&why),
        }
    }

    fn blame(&self, known: &mut Known, what: &str) {
        if !may(&mut known.warned, QUIET) {
            return;
        }
        known.ill = true;
        let (name, doubt) = (&self.name, &self.doubt);
        if known.well.is_none() {
            warn!("{name} {what}. Likely: {doubt}");
        } else {
            warn!(
                "{name} {what}, though it has answered before. Likely: its key has been changed: \
                 {doubt}; or what was asked for cannot be reached from there"
            );
        }
    }
}

/// Whether something may be done that is done once in `quiet`; then it counts as done.
fn may(last: &mut Option<Instant>, quiet: Duration) -> bool {
    let now = Instant::now();
    let may = last.is_none_or(|at| now - at >= quiet);
    if may {
        *last = Some(now);
    }
    may
}
