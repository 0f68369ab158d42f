//! Silence: when the peer is asked for a sign of life, and when it has lasted too long.

use std::time::Duration;

use adit_wire::Time;

use crate::Error;

/// How long silence may last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Nothing happens for so long, and the session ends.
    pub(crate) inactivity: Option<Duration>,
    /// Nothing comes for so long, and a sign of life is asked for.
    pub(crate) keepalive: Option<Duration>,
    /// So many questions without an answer end the session.
    pub(crate) missed: usize,
}

/// How long silence has lasted.
#[derive(Debug)]
pub(crate) struct Idle {
    patience: Patience,
    /// Since when nothing has come, or the peer was asked.
    quiet: Time,
    /// Since when nothing has happened.
    still: Time,
    asked: usize,
}

impl Idle {
    pub(crate) const fn new(patience: Patience, now: Time) -> Self {
        Self {
            patience,
            quiet: now,
            still: now,
            asked: 0,
        }
    }

    /// Anything has come.
    pub(crate) const fn heard(&mut self, now: Time) {
        (self.quiet, self.asked) = (now, 0);
    }

    /// Something has happened that is more than a sign of life.
    pub(crate) const fn moved(&mut self, now: Time) {
        self.still = now;
    }

    /// When [`Idle::tick`] is due.
    pub(crate) fn due(&self) -> Option<Time> {
        let inactive = self.patience.inactivity.map(|limit| self.still + limit);
        let quiet = self.patience.keepalive.map(|limit| self.quiet + limit);
        [inactive, quiet].into_iter().flatten().min()
    }

    /// Whether a sign of life is to be asked for.
    pub(crate) fn tick(&mut self, now: Time) -> Result<bool, Error> {
        let over =
            |limit: Option<Duration>, since: Time| limit.is_some_and(|limit| now >= since + limit);
        if over(self.patience.inactivity, self.still) {
            return Err(Error::InactivityTimeout);
        }
        if !over(self.patience.keepalive, self.quiet) {
            return Ok(false);
        }
        if self.asked >= self.patience.missed {
            return Err(Error::KeepaliveTimeout);
        }
        (self.quiet, self.asked) = (now, self.asked + 1);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u32) -> Time {
        Time(7) + SECOND * seconds
    }

    #[test]
    fn silence_is_asked_about_and_then_ends_it() {
        let patience = Patience {
            inactivity: None,
            keepalive: Some(SECOND * 10),
            missed: 2,
        };
        let mut idle = Idle::new(patience, at(0));
        assert_eq!(idle.due(), Some(at(10)));
        assert!(!idle.tick(at(9)).unwrap());
        assert!(idle.tick(at(10)).unwrap());
        idle.heard(at(15));
        assert!(!idle.tick(at(20)).unwrap());
        assert!(idle.tick(at(25)).unwrap() && idle.tick(at(35)).unwrap());
        assert!(matches!(idle.tick(at(45)), Err(Error::KeepaliveTimeout)));
    }

    #[test]
    fn signs_of_life_are_no_activity() {
        let patience = Patience {
            inactivity: Some(SECOND * 5),
            keepalive: None,
            missed: 0,
        };
        let mut idle = Idle::new(patience, at(0));
        idle.heard(at(4));
        assert_eq!(idle.due(), Some(at(5)));
        idle.moved(at(4));
        assert!(!idle.tick(at(8)).unwrap());
        assert!(matches!(idle.tick(at(9)), Err(Error::InactivityTimeout)));
    }
}
