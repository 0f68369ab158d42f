//! Entries of the audit log about requests that change something.

use hyper::Method;
use serde_json::{Value, json};

use super::Api;
use super::access::TokenScope;
use super::reply::ApiResult;
use super::route::{Action, RequestHead, Resource};
use crate::audit_log::{AuditEntry, AuditLog};

/// Fields of bodies that are recorded. Others may be secrets.
const FIELDS: [&str; 12] = [
    "name",
    "username",
    "limits",
    "listeners",
    "selected",
    "program",
    "quota",
    "period",
    "expires",
    "rate",
    "sessions",
    "devices",
];
/// Bytes of what a request names, at most.
const MAX_ABOUT: usize = 2048;

/// A request that will be recorded.
pub(super) struct PendingAudit {
    log: AuditLog,
    by: String,
    action: String,
    about: Value,
}

impl Api {
    /// Records changes through the API in a file.
    #[must_use]
    pub fn with_audit_log(self, log: AuditLog) -> Self {
        Self {
            audit: Some(log),
            ..self
        }
    }

    /// Returns the entry of a request that may change something, to be finished with its answer.
    pub(super) fn audit_of(
        &self,
        wish: &Action,
        ask: &RequestHead<'_>,
        scope: Option<TokenScope>,
        body: &[u8],
    ) -> Option<PendingAudit> {
        let log = self.audit.clone()?;
        let is_clearing = matches!(
            wish,
            Action::Server {
                about: Resource::Stats,
                ..
            }
        ) && ask.query.contains("clear=");
        if (*ask.method == Method::GET && !is_clearing) || matches!(wish, Action::Dashboard(_)) {
            return None;
        }
        let by = match scope {
            Some(TokenScope { number: 0, .. }) => "socket".to_owned(),
            Some(TokenScope { number, .. }) => format!("token {number}"),
            None => "no token".to_owned(),
        };
        Some(PendingAudit {
            log,
            by,
            action: format!("{} {}", ask.method, ask.path),
            about: describe(wish, body),
        })
    }
}

impl PendingAudit {
    /// Returns the entry with the result, and its log.
    pub(super) fn finish(self, done: &ApiResult) -> (AuditLog, AuditEntry) {
        let (status, error) = match done {
            Ok(reply) => (reply.status, None),
            Err(refusal) => (refusal.status, Some(refusal.error.clone())),
        };
        let entry = AuditEntry::new(self.by, self.action, self.about, status.as_u16(), error);
        (self.log, entry)
    }
}

/// Returns what a body names, without secrets.
fn describe(wish: &Action, body: &[u8]) -> Value {
    let Ok(Value::Object(fields)) = serde_json::from_slice::<Value>(body) else {
        return Value::Null;
    };
    if *wish == Action::Import {
        let users = fields
            .get("users")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        let is_dry = fields
            .get("dryRun")
            .and_then(Value::as_bool)
            .unwrap_or_default();
        return json!({ "users": users, "dryRun": is_dry });
    }
    let known = fields
        .into_iter()
        .filter(|(name, _)| FIELDS.contains(&name.as_str()));
    let known = Value::Object(known.collect());
    match known.to_string().len() {
        0..=2 => Value::Null,
        3..=MAX_ABOUT => known,
        _ => Value::from("too long"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::accounts::AccountResource;

    #[test]
    fn bodies_are_described_without_secrets() {
        let all = Action::Accounts(AccountResource::All);
        for (wish, body, about) in [
            (
                &all,
                r#"{"name":"anna","limits":{"quota":5},"secrets":{"psk":"K"},"host":"h"}"#,
                json!({"name": "anna", "limits": {"quota": 5}}),
            ),
            (&all, "{}", Value::Null),
            (&all, "[1", Value::Null),
            (
                &Action::Import,
                r#"{"users":[{"name":"a","secrets":{"psk":"K"}}],"dryRun":true}"#,
                json!({"users": 1, "dryRun": true}),
            ),
            (
                &Action::Reload,
                r#"{"username":"b","uPSK":"K"}"#,
                json!({"username": "b"}),
            ),
        ] {
            assert_eq!(describe(wish, body.as_bytes()), about, "{body}");
        }
        let long = json!({ "name": "x".repeat(5000) }).to_string();
        assert_eq!(describe(&all, long.as_bytes()), Value::from("too long"));
    }
}
