//! `GET /sessions` and `DELETE /sessions/:id`: the open sessions, without destinations and clients (SEC-E9).

use adit_engine::SessionReport;
use serde::Serialize;

use super::Api;
use super::reply::{ApiResult, Refusal, Reply};

/// Number of sessions in a response, unless the request states another one.
const DEFAULT_LIMIT: usize = 1000;

#[derive(Serialize)]
struct Sessions {
    total: usize,
    sessions: Vec<SessionInfo>,
}

#[derive(Serialize)]
struct SessionInfo {
    id: u64,
    kind: &'static str,
    user: String,
    route: String,
    listen: String,
    /// Class and port of the destination.
    target: String,
    /// Seconds since the session has started.
    age: u64,
    up: u64,
    down: u64,
}

impl From<SessionReport> for SessionInfo {
    fn from(session: SessionReport) -> Self {
        Self {
            id: session.id,
            kind: session.kind.name(),
            target: session.target(),
            listen: session.listen.to_string(),
            age: session.age.as_secs(),
            up: session.up,
            down: session.down,
            user: session.user,
            route: session.route,
        }
    }
}

impl Api {
    /// Answers `GET /sessions`: the newest sessions.
    pub(super) fn list_sessions(&self, query: &str) -> ApiResult {
        let limit = limit_of(query)?;
        let list = self.engine.sessions(limit);
        Ok(Reply::ok(&Sessions {
            total: list.total,
            sessions: list.sessions.into_iter().map(SessionInfo::from).collect(),
        }))
    }

    /// Answers `DELETE /sessions/:id`: ends a session.
    pub(super) fn end_session(&self, id: u64) -> ApiResult {
        match self.engine.end_session(id) {
            true => Ok(Reply::no_content()),
            false => Err(Refusal::not_found("no such session is open")),
        }
    }
}

/// Returns the `limit` of a query.
fn limit_of(query: &str) -> Result<usize, Refusal> {
    let limit = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("limit="));
    let Some(limit) = limit else {
        return Ok(DEFAULT_LIMIT);
    };
    let refused = |_| Refusal::bad_request("`limit` must be a number of sessions");
    limit.parse().map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number() {
        assert_eq!(limit_of(""), Ok(DEFAULT_LIMIT));
        assert_eq!(limit_of("a=b&limit=7"), Ok(7));
        for wrong in [
            "limit=",
            "limit=-1",
            "limit=many",
            "limit=99999999999999999999",
        ] {
            assert!(limit_of(wrong).is_err(), "{wrong}");
        }
    }
}
