//! `[route.NAME.users]` and `[[route.NAME.relay]]`: the keys of a route's only Shadowsocks listener.

use adit_wire::Target;
use toml::de::DeValue;

use super::file_keys::{FileKey, ValueType};
use super::table_reader::{Entry as Pair, TableReader, Value, entries_in_order, span_of};
use crate::grammar::parse_bare_host;
use crate::scheme::builder::{KeyTable, KeyTableEntries, secret_files};
use crate::scheme::find_dialect;
use crate::scheme::key_files::{KeyEntry, MAX_USERS, NextServer};
use crate::text::{ConfigError, Secret, SecretText, Span};

/// Keys of a next server.
pub(super) static NEXT_SERVER_KEYS: [FileKey; 4] = [
    FileKey::new(
        "server",
        ValueType::Text,
        "Host name or address of the next server.",
    )
    .required(),
    FileKey::new("port", ValueType::Number(1, 65535), "Its port.").required(),
    FileKey::new(
        "psk",
        ValueType::Text,
        "Its key: `@FILE`, `$NAME` or the key itself.",
    )
    .required(),
    FileKey::new("name", ValueType::Text, "A name for the log."),
];

/// True if a listener with this scheme can have a table of keys beside its URL.
pub(super) fn accepts_key_table(text: &str) -> bool {
    let scheme = text
        .split_once("://")
        .and_then(|(name, _)| find_dialect(name));
    scheme.is_some_and(|scheme| scheme.has_key_table)
}

/// The bounds of a table of `NAME = "SECRET"`, and the words of its error messages.
pub(super) struct NamedSecrets {
    /// Maximum number of entries.
    pub(super) most: usize,
    /// The message about a value that is no table.
    pub(super) is_table: &'static str,
    /// The message about an entry that is no string.
    pub(super) is_text: &'static str,
    /// The owner of the entries, with its article.
    pub(super) owner: &'static str,
    /// The name of the entries, in the plural.
    pub(super) plural: &'static str,
}

impl TableReader<'_> {
    /// Reads the table of keys among the entries of a route: users or next servers.
    pub(super) fn read_key_table(&mut self, entries: &[Pair<'_, '_>]) -> Option<KeyTable> {
        let find = |name| {
            entries
                .iter()
                .find(|(key, _)| key.get_ref().as_ref() == name)
        };
        match (find("users"), find("relay")) {
            (Some(_), Some((key, _))) => {
                let title = "a listener has users or relays, not both";
                self.report_error(ConfigError::new(span_of(key.span()), title));
                None
            }
            (Some((key, value)), None) => Some(KeyTable {
                entries: KeyTableEntries::Users(self.read_users(value)?),
                at: span_of(key.span()),
            }),
            (None, Some((key, value))) => Some(KeyTable {
                entries: KeyTableEntries::Relay(self.read_relay(value)?),
                at: span_of(key.span()),
            }),
            (None, None) => None,
        }
    }

    /// Returns the table if there is exactly one listener that it can belong to.
    pub(super) fn assign_to_listener(
        &mut self,
        keys: Option<KeyTable>,
        listeners: &[(&str, Span)],
    ) -> Option<KeyTable> {
        let keys = keys?;
        let count = listeners
            .iter()
            .filter(|(text, _)| accepts_key_table(text))
            .count();
        if count == 1 {
            return Some(keys);
        }
        let flaw = ConfigError::new(
            keys.at,
            "these keys need a route with exactly one `ss://` listener",
        )
        .with_label(match count {
            0 => "it has none".to_owned(),
            _ => format!("it has {count}"),
        });
        self.report_error(match count {
            0 => flaw,
            _ => flaw
                .with_help("use a separate route for each listener, or `?users=@FILE` in its URL"),
        });
        None
    }

    /// Reads a table of users.
    fn read_users(&mut self, value: &Value<'_>) -> Option<Vec<KeyEntry>> {
        let users = self.read_named_secrets(
            value,
            &NamedSecrets {
                most: MAX_USERS,
                is_table: "`users` must be a table of `NAME = \"KEY\"`",
                is_text: "the key of a user must be a string",
                owner: "a listener",
                plural: "users",
            },
        )?;
        let entry = |(name, secret, at)| KeyEntry {
            name: Some(name),
            secret,
            at,
        };
        Some(users.into_iter().map(entry).collect())
    }

    /// Reads a table of secrets with names, as strings: `@FILE`, `$NAME` or the secret itself.
    pub(super) fn read_named_secrets(
        &mut self,
        value: &Value<'_>,
        kind: &NamedSecrets,
    ) -> Option<Vec<(String, Secret, Span)>> {
        let span = span_of(value.span());
        let DeValue::Table(table) = value.get_ref() else {
            self.report_wrong_type(span, kind.is_table, value.get_ref());
            return None;
        };
        if table.is_empty() || table.len() > kind.most {
            let title = format!(
                "{} must have 1 to {} {}",
                kind.owner, kind.most, kind.plural
            );
            self.report_error(ConfigError::new(span, title).with_help("write `NAME = \"KEY\"`"));
            return None;
        }
        let mut all = Vec::with_capacity(table.len());
        for (name, value) in entries_in_order(table) {
            let at = span_of(value.span());
            let secret = self.read_key(value, kind.is_text);
            all.extend(secret.map(|secret| (name.get_ref().to_string(), secret, at)));
        }
        (all.len() == table.len()).then_some(all)
    }

    /// Reads a list of next servers.
    fn read_relay(&mut self, value: &Value<'_>) -> Option<Vec<NextServer>> {
        let span = span_of(value.span());
        let DeValue::Array(items) = value.get_ref() else {
            let is = "`relay` must be a list of `{ server, port, psk }`";
            self.report_wrong_type(span, is, value.get_ref());
            return None;
        };
        if items.is_empty() {
            self.report_error(ConfigError::new(span, "a relay without servers"));
            return None;
        }
        let next: Vec<NextServer> = items
            .iter()
            .filter_map(|item| self.read_next_server(item))
            .collect();
        (next.len() == items.len()).then_some(next)
    }

    /// Reads a next server.
    fn read_next_server(&mut self, value: &Value<'_>) -> Option<NextServer> {
        let span = span_of(value.span());
        let DeValue::Table(table) = value.get_ref() else {
            let is =
                "a next server must be `{ server = \"192.0.2.7\", port = 8388, psk = \"KEY\" }`";
            self.report_wrong_type(span, is, value.get_ref());
            return None;
        };
        let all = table.len();
        let entries = self.known_entries(table, &NEXT_SERVER_KEYS, "a next server");
        let known = entries.len() == all;
        let find = |name| {
            let found = entries
                .iter()
                .find(|(key, _)| key.get_ref().as_ref() == name);
            found.map(|(_, value)| *value)
        };
        for missing in ["server", "port", "psk"] {
            if find(missing).is_none() {
                let title = format!("a next server without `{missing}`");
                self.report_error(ConfigError::new(span, title));
            }
        }
        let (server, port, psk) = (find("server"), find("port"), find("psk"));
        let host = server.and_then(|value| {
            let text = self.expect_string(value, "`server` must be a string")?;
            let host = parse_bare_host(text, span_of(value.span()));
            host.map_err(|flaw| self.report_error(flaw)).ok()
        });
        let port = port.and_then(|value| self.read_port(value));
        let entry = psk.and_then(|value| {
            Some(KeyEntry {
                name: None,
                secret: self.read_key(value, "`psk` must be a string")?,
                at: span_of(value.span()),
            })
        });
        let name = match find("name") {
            Some(value) => Some(
                self.expect_string(value, "`name` must be a string")?
                    .to_owned(),
            ),
            None => None,
        };
        known.then_some(NextServer {
            server: Target::new(host?, port?),
            entry: KeyEntry { name, ..entry? },
        })
    }

    /// Reads a port.
    fn read_port(&mut self, value: &Value<'_>) -> Option<u16> {
        let port = match value.get_ref() {
            DeValue::Integer(number) => u16::from_str_radix(number.as_str(), number.radix())
                .ok()
                .filter(|port| *port != 0),
            _ => None,
        };
        if port.is_none() {
            let title = "`port` must be a number from 1 to 65535";
            let flaw = ConfigError::new(span_of(value.span()), title);
            self.report_error(flaw.with_help("write a number, without quotation marks"));
        }
        port
    }

    /// Reads a key: `@FILE`, `$NAME` or the key itself.
    fn read_key(&mut self, value: &Value<'_>, is: &str) -> Option<Secret> {
        let text = self.expect_string(value, is)?;
        let written = match (text.strip_prefix('@'), text.strip_prefix('$')) {
            (Some(path), _) => SecretText::File(path.to_owned()),
            (None, Some(name)) => SecretText::Variable(name.to_owned()),
            (None, None) => SecretText::Literal(Secret::from(text)),
        };
        let excerpt = self.document.without_url();
        let span = span_of(value.span());
        secret_files::read_secret(self.diagnostics, self.lookup, excerpt, &written, span)
    }
}
