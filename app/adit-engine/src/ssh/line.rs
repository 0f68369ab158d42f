//! A persistent connection, opened by the first caller that needs it and shared by all.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adit_ssh::client::Session;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::{Cause, DialError, Stage};

/// Pause after a first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Maximum pause if the server is unreachable: it may be back at any moment.
const AWAY_PAUSE: Duration = Duration::from_secs(2);
/// Maximum pause if the server refuses the login: it may count refusals.
const REFUSED_PAUSE: Duration = Duration::from_secs(30);

/// The error of an attempt to connect. All callers that wait for the attempt receive it.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) stage: Stage,
    pub(super) cause: Cause,
    pub(super) text: String,
}

/// The result of an attempt to connect.
pub(super) type Outcome = Result<Session, Failure>;

/// A slot for one connection.
#[derive(Default)]
pub(super) struct Line(Mutex<State>);

#[derive(Default)]
struct State {
    now: Now,
    /// Number of failed attempts since the last successful one.
    failures: u32,
}

#[derive(Default)]
enum Now {
    #[default]
    Down,
    /// The last attempt failed, and the next one has to wait.
    Pause(Failure, Instant),
    Connecting(watch::Receiver<Option<Outcome>>),
    Up(Session),
}

/// The state of the slot for a caller that needs a connection.
pub(super) enum Found {
    Up(Session),
    /// Another caller is connecting.
    Wait(watch::Receiver<Option<Outcome>>),
    /// The caller has to connect.
    Make(Attempt),
    Failed(Failure),
}

/// The obligation to connect. Dropping it counts as a failure.
pub(super) struct Attempt {
    line: Arc<Line>,
    news: watch::Sender<Option<Outcome>>,
}

impl Line {
    pub(super) fn find(self: &Arc<Self>) -> Found {
        let mut state = self.lock();
        match &state.now {
            Now::Up(session) if session.end().is_none() => return Found::Up(session.clone()),
            Now::Connecting(news) => return Found::Wait(news.clone()),
            Now::Pause(why, until) if Instant::now() < *until => {
                return Found::Failed(why.clone());
            }
            Now::Up(_) | Now::Pause(..) | Now::Down => {}
        }
        let (news, reader) = watch::channel(None);
        state.now = Now::Connecting(reader);
        Found::Make(Attempt {
            line: self.clone(),
            news,
        })
    }

    /// Removes a connection that does not answer. Its streams continue.
    pub(super) fn give_up(&self, silent: &Session) {
        let mut state = self.lock();
        if matches!(&state.now, Now::Up(one) if one.session_id() == silent.session_id()) {
            state.now = Now::Down;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt {
    /// Returns a receiver of this attempt's result.
    pub(super) fn news(&self) -> watch::Receiver<Option<Outcome>> {
        self.news.subscribe()
    }

    /// Reports the result to all that wait.
    pub(super) fn end(self, outcome: Outcome) {
        let mut state = self.line.lock();
        match &outcome {
            Ok(session) => {
                state.failures = 0;
                state.now = Now::Up(session.clone());
            }
            Err(why) => {
                let pause = pause(state.failures, why.cause.may_retry());
                state.failures = state.failures.saturating_add(1);
                state.now = Now::Pause(why.clone(), Instant::now() + pause);
            }
        }
        drop(state);
        self.news.send_replace(Some(outcome));
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut state = self.line.lock();
        let mine = matches!(&state.now, Now::Connecting(news) if news.same_channel(&self.news.subscribe()));
        if mine {
            state.now = Now::Down;
        }
    }
}

impl Failure {
    pub(super) fn new(why: DialError) -> Self {
        Self {
            stage: why.stage,
            cause: why.cause,
            text: why.why.to_string(),
        }
    }

    pub(super) fn into_error(self) -> DialError {
        DialError {
            stage: self.stage,
            cause: self.cause,
            why: io::Error::other(self.text),
        }
    }
}

fn pause(failures: u32, may_retry: bool) -> Duration {
    let most = if may_retry { AWAY_PAUSE } else { REFUSED_PAUSE };
    FIRST_PAUSE.saturating_mul(1 << failures.min(16)).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> Failure {
        let hop = "ssh://h:22".to_owned();
        let why = io::Error::from(io::ErrorKind::ConnectionRefused);
        Failure::new(DialError::new(Stage::Dial { hop }, why))
    }

    #[tokio::test(start_paused = true)]
    async fn one_attempt_serves_all_and_the_next_waits() {
        let line = Arc::new(Line::default());
        let Found::Make(attempt) = line.find() else {
            panic!("there was nothing");
        };
        let mut waiting = Vec::new();
        for _ in 0..3 {
            let Found::Wait(news) = line.find() else {
                panic!("one is on its way");
            };
            waiting.push(news);
        }
        attempt.end(Err(failure()));
        for mut news in waiting {
            let told = news.wait_for(Option::is_some).await.unwrap();
            assert!(matches!(&*told, Some(Err(_))));
        }
        assert!(
            matches!(line.find(), Found::Failed(_)),
            "it is too early for another attempt"
        );
        tokio::time::advance(FIRST_PAUSE).await;
        let Found::Make(attempt) = line.find() else {
            panic!("the pause is over");
        };
        // An attempt that was dropped has no owner: the next caller connects.
        drop(attempt);
        assert!(matches!(line.find(), Found::Make(_)));
    }

    #[test]
    fn pauses_grow_and_end() {
        assert_eq!(pause(0, false), FIRST_PAUSE);
        assert_eq!(pause(1, true), FIRST_PAUSE * 2);
        assert_eq!(pause(40, true), AWAY_PAUSE);
        assert_eq!(pause(40, false), REFUSED_PAUSE);
    }
}
