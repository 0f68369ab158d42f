//! A persistent connection, opened by the first caller that needs it and shared by all.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adit_ssh::client::Session;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::{DialError, DialStage, FailureCause};

/// Pause after a first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Maximum pause if the server is unreachable: it may be back at any moment.
const MAX_UNREACHABLE_PAUSE: Duration = Duration::from_secs(2);
/// Maximum pause if the server refuses the login: it may count refusals.
const MAX_REFUSED_PAUSE: Duration = Duration::from_secs(30);

/// The error of an attempt to connect. All callers that wait for the attempt receive it.
#[derive(Debug, Clone)]
pub(super) struct ConnectFailure {
    pub(super) stage: DialStage,
    pub(super) cause: FailureCause,
    pub(super) text: String,
}

/// The result of an attempt to connect.
pub(super) type ConnectResult = Result<Session, ConnectFailure>;

/// A slot for one connection.
#[derive(Default)]
pub(super) struct ConnectionSlot(Mutex<SlotState>);

#[derive(Default)]
struct SlotState {
    now: ConnectionState,
    /// Number of failed attempts since the last successful one.
    failures: u32,
}

#[derive(Default)]
enum ConnectionState {
    #[default]
    Down,
    /// The last attempt failed, and the next one has to wait.
    Pause(ConnectFailure, Instant),
    Connecting(watch::Receiver<Option<ConnectResult>>),
    Up(Session),
}

/// The state of the slot for a caller that needs a connection.
pub(super) enum SlotContent {
    Up(Session),
    /// Another caller is connecting.
    Wait(watch::Receiver<Option<ConnectResult>>),
    /// The caller has to connect.
    Connect(ConnectAttempt),
    Failed(ConnectFailure),
}

/// The obligation to connect. Dropping it counts as a failure.
pub(super) struct ConnectAttempt {
    line: Arc<ConnectionSlot>,
    news: watch::Sender<Option<ConnectResult>>,
}

impl ConnectionSlot {
    pub(super) fn current_or_attempt(self: &Arc<Self>) -> SlotContent {
        let mut state = self.lock_state();
        match &state.now {
            ConnectionState::Up(session) if session.end_reason().is_none() => {
                return SlotContent::Up(session.clone());
            }
            ConnectionState::Connecting(news) => return SlotContent::Wait(news.clone()),
            ConnectionState::Pause(why, until) if Instant::now() < *until => {
                return SlotContent::Failed(why.clone());
            }
            ConnectionState::Up(_) | ConnectionState::Pause(..) | ConnectionState::Down => {}
        }
        let (news, reader) = watch::channel(None);
        state.now = ConnectionState::Connecting(reader);
        SlotContent::Connect(ConnectAttempt {
            line: self.clone(),
            news,
        })
    }

    /// Removes a connection that does not answer. Its streams continue.
    pub(super) fn remove_silent(&self, silent: &Session) {
        let mut state = self.lock_state();
        if matches!(&state.now, ConnectionState::Up(one) if one.session_id() == silent.session_id())
        {
            state.now = ConnectionState::Down;
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, SlotState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectAttempt {
    /// Returns a receiver of this attempt's result.
    pub(super) fn subscribe(&self) -> watch::Receiver<Option<ConnectResult>> {
        self.news.subscribe()
    }

    /// Reports the result to all that wait.
    pub(super) fn finish(self, outcome: ConnectResult) {
        let mut state = self.line.lock_state();
        match &outcome {
            Ok(session) => {
                state.failures = 0;
                state.now = ConnectionState::Up(session.clone());
            }
            Err(why) => {
                let pause = retry_pause(state.failures, why.cause.is_retryable());
                state.failures = state.failures.saturating_add(1);
                state.now = ConnectionState::Pause(why.clone(), Instant::now() + pause);
            }
        }
        drop(state);
        self.news.send_replace(Some(outcome));
    }
}

impl Drop for ConnectAttempt {
    fn drop(&mut self) {
        let mut state = self.line.lock_state();
        let mine = matches!(&state.now, ConnectionState::Connecting(news) if news.same_channel(&self.news.subscribe()));
        if mine {
            state.now = ConnectionState::Down;
        }
    }
}

impl ConnectFailure {
    pub(super) fn new(why: DialError) -> Self {
        Self {
            stage: why.stage,
            cause: why.cause,
            text: why.source_error.to_string(),
        }
    }

    pub(super) fn into_error(self) -> DialError {
        DialError {
            stage: self.stage,
            cause: self.cause,
            source_error: io::Error::other(self.text),
        }
    }
}

fn retry_pause(failures: u32, may_retry: bool) -> Duration {
    let most = if may_retry {
        MAX_UNREACHABLE_PAUSE
    } else {
        MAX_REFUSED_PAUSE
    };
    FIRST_PAUSE.saturating_mul(1 << failures.min(16)).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> ConnectFailure {
        let hop = "ssh://h:22".to_owned();
        let why = io::Error::from(io::ErrorKind::ConnectionRefused);
        ConnectFailure::new(DialError::new(DialStage::Dial { hop }, why))
    }

    #[tokio::test(start_paused = true)]
    async fn one_attempt_serves_all_and_the_next_waits() {
        let line = Arc::new(ConnectionSlot::default());
        let SlotContent::Connect(attempt) = line.current_or_attempt() else {
            panic!("there was nothing");
        };
        let mut waiting = Vec::new();
        for _ in 0..3 {
            let SlotContent::Wait(news) = line.current_or_attempt() else {
                panic!("one is on its way");
            };
            waiting.push(news);
        }
        attempt.finish(Err(failure()));
        for mut news in waiting {
            let told = news.wait_for(Option::is_some).await.unwrap();
            assert!(matches!(&*told, Some(Err(_))));
        }
        assert!(
            matches!(line.current_or_attempt(), SlotContent::Failed(_)),
            "it is too early for another attempt"
        );
        tokio::time::advance(FIRST_PAUSE).await;
        let SlotContent::Connect(attempt) = line.current_or_attempt() else {
            panic!("the pause is over");
        };
        // An attempt that was dropped has no owner: the next caller connects.
        drop(attempt);
        assert!(matches!(line.current_or_attempt(), SlotContent::Connect(_)));
    }

    #[test]
    fn pauses_grow_and_end() {
        assert_eq!(retry_pause(0, false), FIRST_PAUSE);
        assert_eq!(retry_pause(1, true), FIRST_PAUSE * 2);
        assert_eq!(retry_pause(40, true), MAX_UNREACHABLE_PAUSE);
        assert_eq!(retry_pause(40, false), MAX_REFUSED_PAUSE);
    }
}
