//! The documents of the management API, as the commands that show them read them.
//!
//! A process of another version may have more fields, or fewer: those are zero.

use std::fmt;

use adit_config::text::sanitize_for_terminal;
use serde::{Deserialize, Deserializer};

/// A text of another process, which is safe to show in a terminal (SEC-X7).
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ShownText(String);

impl ShownText {
    /// Creates it from a text from elsewhere.
    pub(super) fn new(text: &str) -> Self {
        Self(sanitize_for_terminal(text))
    }

    #[cfg(any(feature = "top", test))]
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for ShownText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(Self::new(&text.unwrap_or_default()))
    }
}

impl fmt::Display for ShownText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// `GET /overview`, and the data of `GET /events`, which has the rates too.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Overview {
    pub(super) version: ShownText,
    pub(super) pid: u32,
    /// Seconds since the start.
    pub(super) uptime: u64,
    /// Bytes from clients, and to them.
    pub(super) up: u64,
    pub(super) down: u64,
    /// Bytes per second.
    pub(super) up_rate: u64,
    pub(super) down_rate: u64,
    pub(super) sessions_open: u64,
    pub(super) sessions_total: u64,
    pub(super) connections_open: u64,
    pub(super) associations_open: u64,
    pub(super) listeners: Vec<Listener>,
    /// The counters of KCP by their names, which this program does not need to know.
    pub(super) kcp: serde_json::Map<String, serde_json::Value>,
    /// `None` if the process does not count them.
    pub(super) rejects: Option<Vec<Reject>>,
}

/// A listener with its traffic.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Listener {
    pub(super) route: ShownText,
    pub(super) listen: ShownText,
    pub(super) transports: Transports,
    pub(super) up: u64,
    pub(super) down: u64,
    pub(super) sessions_open: u64,
    pub(super) sessions_total: u64,
    pub(super) datagrams_lost: u64,
}

/// The transports of a listener: a text, or a list of texts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Transports(String);

impl<'de> Deserialize<'de> for Transports {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            List(Vec<String>),
            Text(String),
        }
        let text = match Form::deserialize(deserializer)? {
            Form::List(list) => list.join("+"),
            Form::Text(text) => text,
        };
        Ok(Self(sanitize_for_terminal(&text)))
    }
}

impl fmt::Display for Transports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The number of clients that were refused for one cause.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Reject {
    pub(super) cause: ShownText,
    pub(super) count: u64,
}

/// `GET /sessions`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct SessionList {
    /// Number of open sessions; more than those in the list if that is limited.
    pub(super) total: u64,
    pub(super) sessions: Vec<Session>,
}

/// An open session.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) kind: ShownText,
    pub(super) user: ShownText,
    pub(super) route: ShownText,
    pub(super) listen: ShownText,
    /// Class and port of the target, which is not itself shown.
    pub(super) target: ShownText,
    /// Seconds since it was opened.
    pub(super) age: u64,
    pub(super) up: u64,
    pub(super) down: u64,
}

/// `GET /groups`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct GroupList {
    pub(super) groups: Vec<Group>,
}

/// A group of servers.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Group {
    /// The name, unchanged: requests contain it.
    pub(super) name: String,
    pub(super) kind: ShownText,
    pub(super) members: Vec<Member>,
}

/// A member of a group.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Member {
    /// The name, unchanged: requests contain it.
    pub(super) name: String,
    pub(super) up: bool,
    /// Only in a group whose member is selected by hand.
    pub(super) selected: Option<bool>,
    pub(super) usual_seconds: Option<f64>,
    pub(super) out_seconds: Option<u64>,
    pub(super) reason: ShownText,
}

impl Member {
    /// Describes its health in a few words.
    pub(super) fn health(&self) -> String {
        match (self.up, self.usual_seconds, self.out_seconds) {
            (true, Some(seconds), _) => format!("up, {:.0} ms", seconds * 1000.0),
            (true, None, _) => "up".to_owned(),
            (false, _, Some(seconds)) => format!("out, {seconds} s"),
            (false, _, None) => "out".to_owned(),
        }
    }
}

/// `GET /accounts`.
#[cfg(feature = "top")]
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct AccountList {
    pub(super) accounts: Vec<Account>,
}

/// A user with limits and usage.
#[cfg(feature = "top")]
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Account {
    pub(super) name: ShownText,
    pub(super) state: ShownText,
    /// Bytes per period.
    pub(super) quota: Option<u64>,
    pub(super) used_up: u64,
    pub(super) used_down: u64,
    pub(super) total_up: u64,
    pub(super) total_down: u64,
    pub(super) sessions_open: u64,
    pub(super) devices_open: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_move_the_cursor() {
        let text =
            r#"{"total": 1, "sessions": [{"id": 3, "user": "a\u001b[2J\u202eb", "more": 1}]}"#;
        let list: SessionList = serde_json::from_str(text).unwrap();
        assert_eq!(list.sessions[0].user.as_str(), "a\u{fffd}[2J\u{fffd}b");
        assert_eq!(list.sessions[0].down, 0);
        let text = r#"{"user": null}"#;
        let session: Session = serde_json::from_str(text).unwrap();
        assert_eq!(session.user.as_str(), "");
    }

    #[test]
    fn transports_have_two_forms() {
        for text in [
            r#"{"transports": ["tcp", "udp"]}"#,
            r#"{"transports": "tcp+udp"}"#,
        ] {
            let listener: Listener = serde_json::from_str(text).unwrap();
            assert_eq!(listener.transports.to_string(), "tcp+udp");
        }
    }
}
