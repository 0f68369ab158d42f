//! What is known of a keyed hop's server.

use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tracing::{info, warn};

/// Warnings about one server are at least this far apart.
const QUIET: Duration = Duration::from_secs(30);
/// A server clock further off than this is worth a word before it becomes a failure at 30 s.
const SKEW_WARN: i64 = 15;

/// Tells the user of a client what is wrong with a server, as no server tells by itself.
///
/// A server that does not accept a key, a method or a clock is silent or closes: both look like
/// a dead target. What differs is that not one byte has ever been authenticated.
#[derive(Debug)]
pub struct Health {
    name: String,
    /// What it proves that the server answers.
    proof: String,
    /// What is likely when it does not.
    doubt: String,
    proved: AtomicBool,
    warned: Mutex<Option<Instant>>,
}

impl Health {
    /// Nothing is known yet of the server called `name`.
    #[must_use]
    pub fn new(name: impl Into<String>, key_id: impl fmt::Display) -> Self {
        let proof = format!("the key {key_id} is right");
        let doubt = format!(
            "a wrong key or method (ours has key-id {key_id}; compare it with what the server \
             prints), or a clock that is off by more than 30 s. Try: adit client with the \
             server's URL, it tells which"
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
            proved: AtomicBool::new(false),
            warned: Mutex::new(None),
        }
    }

    /// Whether the server has ever proved that it holds the key.
    #[must_use]
    pub fn proved(&self) -> bool {
        self.proved.load(Ordering::Relaxed)
    }

    /// The server has sent something authentic; `skew` is its clock minus ours, in seconds.
    pub fn proof(&self, skew: Option<i64>) {
        if !self.proved.swap(true, Ordering::Relaxed) {
            info!("{} answers, {}", self.name, self.proof);
        }
        if let Some(skew) = skew
            && skew.abs() > SKEW_WARN
            && self.may_warn()
        {
            warn!(
                "the clock of {} differs from ours by {skew} s; beyond 30 s it will refuse us: \
                 set the clock here or there (for example with NTP)",
                self.name
            );
        }
    }

    /// A connection has ended, or is silent for long, without one authentic byte.
    pub fn suspect(&self, what: &str) {
        if !self.proved() && self.may_warn() {
            warn!("{} {what}. Likely: {}", self.name, self.doubt);
        }
    }

    fn may_warn(&self) -> bool {
        let mut last = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let may = last.is_none_or(|at| now - at >= QUIET);
        if may {
            *last = Some(now);
        }
        may
    }
}
