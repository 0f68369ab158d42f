//! `adit fleet audit`: what operators have done, and nodes that joined or left.
//!
//! Every login at the store server may write entries: their texts are those of others.

use adit_cli::CommandResult;
use adit_config::text::{format_date, sanitize_for_terminal};
use adit_fleet::AuditEntry;
use serde::Serialize;
use serde_json::{Map, Value};

use super::interrupt::run;
use super::realm::Realm;
use crate::args::fleet::FleetAuditArgs;
use crate::json;

/// Maximum length of the text of an entry, in bytes. None that adit writes is as long.
const MAX_TEXT: usize = 16 << 10;
/// Seconds of a day.
const DAY: u64 = 86_400;

/// An entry, as JSON.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct AuditJson {
    /// The store's clock, in milliseconds since 1970.
    unix_ms: u64,
    action: String,
    about: Value,
    /// The account that ran the command.
    by: Option<String>,
    program: Option<String>,
}

impl AuditJson {
    /// Reads an entry. A text that adit has not written is the action.
    fn read(entry: &AuditEntry) -> Self {
        let unknown = |action: String| Self {
            unix_ms: entry.unix_ms,
            action,
            ..Self::default()
        };
        if entry.text.len() > MAX_TEXT {
            return unknown(format!("an entry of {} bytes", entry.text.len()));
        }
        let Ok(mut fields) = serde_json::from_str::<Map<String, Value>>(&entry.text) else {
            return unknown(entry.text.clone());
        };
        let mut text = |name: &str| match fields.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let (action, by, program) = (text("action"), text("by"), text("program"));
        Self {
            unix_ms: entry.unix_ms,
            action: action.unwrap_or_default(),
            about: fields.remove("about").unwrap_or_default(),
            by,
            program,
        }
    }

    /// Returns the entry in one line.
    fn to_line(&self) -> String {
        let seconds = self.unix_ms / 1000;
        let second = seconds % DAY;
        let mut line = format!(
            "{} {:02}:{:02}:{:02}  {:<13} {}",
            format_date(seconds),
            second / 3600,
            second / 60 % 60,
            second % 60,
            self.action,
            words(&self.about)
        );
        if let Some(by) = &self.by {
            line.push_str(&format!("  by {by}"));
        }
        sanitize_for_terminal(line.trim_end())
    }
}

/// Returns the details of an entry: names and values.
fn words(about: &Value) -> String {
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match about {
        Value::Null => String::new(),
        Value::Object(fields) => {
            let each = fields
                .iter()
                .map(|(name, value)| format!("{name} {}", plain(value)));
            each.collect::<Vec<_>>().join(", ")
        }
        other => plain(other),
    }
}

pub(super) fn run_audit(typed: &FleetAuditArgs) -> CommandResult {
    let (realm, mut entries) = run(async {
        let realm = Realm::open(typed.operator.membership.as_deref()).await?;
        let entries = realm.store.audit_log(typed.last.into());
        let entries = realm.ask(entries).await?;
        Ok((realm, entries))
    })?;
    // A store that sends more is not believed.
    entries.truncate(typed.last.into());
    // As in a log, the newest is the last.
    let entries: Vec<AuditJson> = entries.iter().rev().map(AuditJson::read).collect();
    if typed.json.json {
        let result = serde_json::json!({ "realm": realm.membership.realm, "entries": entries });
        json::print_result("fleet audit", &result);
        return Ok(());
    }
    if entries.is_empty() {
        println!("no entries in the audit log of realm {}", realm.shown());
    }
    for entry in &entries {
        println!("{}", entry.to_line());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> AuditJson {
        AuditJson::read(&AuditEntry {
            unix_ms: 1_798_761_600_000 + 3_723_004,
            text: text.to_owned(),
        })
    }

    #[test]
    fn an_entry_is_a_line() {
        let full = entry(
            r#"{"action":"user import","about":{"format":"csv","users":3},"by":"root","program":"adit 1"}"#,
        );
        assert_eq!(
            full.to_line(),
            "2027-01-01 01:02:03  user import   format csv, users 3  by root"
        );
        let bare = entry(r#"{"action":"x"}"#).to_line();
        assert_eq!(bare, "2027-01-01 01:02:03  x");
    }

    #[test]
    fn entries_of_others_are_shown_without_harm() {
        for text in [
            "\u{1b}[2Jcleared",
            r#"{"action":"\u001b[2J","about":{"\u001b]0;a":"\u009b31m"},"by":"a\nb"}"#,
            r#"{"action":1,"about":["\u001b[2J"],"by":{}}"#,
            "[1]",
            "",
        ] {
            let line = entry(text).to_line();
            assert!(!line.contains(char::is_control), "{line:?}");
        }
        let long = entry(&"x".repeat(MAX_TEXT + 1));
        assert_eq!(long.action, "an entry of 16385 bytes");
    }
}
