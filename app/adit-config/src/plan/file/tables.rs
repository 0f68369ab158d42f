//! `[route.NAME.users]` and `[[route.NAME.relay]]`: the keys of a route's only Shadowsocks listener.

use adit_wire::Target;
use toml::de::DeValue;

use super::{Entry as Pair, Reader, Value, span_of};
use crate::grammar::bare_host;
use crate::scheme::builder::{KeyTable, TableOf, fetch};
use crate::scheme::dialect;
use crate::scheme::keyring::{Entry, MAX_USERS, Next};
use crate::text::{Flaw, Secret, SecretText, Span};

/// Keys of a next server.
const NEXT: [&str; 4] = ["server", "port", "psk", "name"];

/// True if a listener with this scheme can have a table of keys beside its URL.
pub(super) fn takes_keys(text: &str) -> bool {
    let scheme = text.split_once("://").and_then(|(name, _)| dialect(name));
    scheme.is_some_and(|scheme| scheme.has_key_table)
}

impl Reader<'_> {
    /// Reads the table of keys among the entries of a route: users or next servers.
    pub(super) fn key_table(&mut self, entries: &[Pair<'_, '_>]) -> Option<KeyTable> {
        let find = |name| {
            entries
                .iter()
                .find(|(key, _)| key.get_ref().as_ref() == name)
        };
        match (find("users"), find("relay")) {
            (Some(_), Some((key, _))) => {
                let title = "a listener has users or relays, not both";
                self.flaw(Flaw::new(span_of(key.span()), title));
                None
            }
            (Some((key, value)), None) => Some(KeyTable {
                holders: TableOf::Users(self.users(value)?),
                at: span_of(key.span()),
            }),
            (None, Some((key, value))) => Some(KeyTable {
                holders: TableOf::Relay(self.relay(value)?),
                at: span_of(key.span()),
            }),
            (None, None) => None,
        }
    }

    /// Returns the table if there is exactly one listener that it can belong to.
    pub(super) fn for_one_listener(
        &mut self,
        keys: Option<KeyTable>,
        listeners: &[(&str, Span)],
    ) -> Option<KeyTable> {
        let keys = keys?;
        let count = listeners
            .iter()
            .filter(|(text, _)| takes_keys(text))
            .count();
        if count == 1 {
            return Some(keys);
        }
        let flaw = Flaw::new(
            keys.at,
            "these keys need a route with exactly one `ss://` listener",
        )
        .label(match count {
            0 => "it has none".to_owned(),
            _ => format!("it has {count}"),
        });
        self.flaw(match count {
            0 => flaw,
            _ => flaw.help("use a separate route for each listener, or `?users=@FILE` in its URL"),
        });
        None
    }

    /// Reads a table of users.
    fn users(&mut self, value: &Value<'_>) -> Option<Vec<Entry>> {
        let span = span_of(value.span());
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong_type(
                span,
                "`users` must be a table of `NAME = \"KEY\"`",
                value.get_ref(),
            );
            return None;
        };
        if table.is_empty() || table.len() > MAX_USERS {
            let title = format!("a listener must have 1 to {MAX_USERS} users");
            self.flaw(Flaw::new(span, title).help("write `NAME = \"KEY\"`"));
            return None;
        }
        let mut users = Vec::with_capacity(table.len());
        for (name, value) in super::in_order(table) {
            let at = span_of(value.span());
            let secret = self.key(value, "the key of a user must be a string");
            users.extend(secret.map(|secret| Entry {
                name: Some(name.get_ref().to_string()),
                secret,
                at,
            }));
        }
        (users.len() == table.len()).then_some(users)
    }

    /// Reads a list of next servers.
    fn relay(&mut self, value: &Value<'_>) -> Option<Vec<Next>> {
        let span = span_of(value.span());
        let DeValue::Array(items) = value.get_ref() else {
            let is = "`relay` must be a list of `{ server, port, psk }`";
            self.wrong_type(span, is, value.get_ref());
            return None;
        };
        if items.is_empty() {
            self.flaw(Flaw::new(span, "a relay without servers"));
            return None;
        }
        let next: Vec<Next> = items.iter().filter_map(|item| self.next(item)).collect();
        (next.len() == items.len()).then_some(next)
    }

    /// Reads a next server.
    fn next(&mut self, value: &Value<'_>) -> Option<Next> {
        let span = span_of(value.span());
        let DeValue::Table(table) = value.get_ref() else {
            let is =
                "a next server must be `{ server = \"192.0.2.7\", port = 8388, psk = \"KEY\" }`";
            self.wrong_type(span, is, value.get_ref());
            return None;
        };
        let all = table.len();
        let entries = self.entries(table, &NEXT, "a next server");
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
                self.flaw(Flaw::new(span, title));
            }
        }
        let (server, port, psk) = (find("server"), find("port"), find("psk"));
        let host = server.and_then(|value| {
            let text = self.text_of(value, "`server` must be a string")?;
            let host = bare_host(text, span_of(value.span()));
            host.map_err(|flaw| self.flaw(flaw)).ok()
        });
        let port = port.and_then(|value| self.port(value));
        let entry = psk.and_then(|value| {
            Some(Entry {
                name: None,
                secret: self.key(value, "`psk` must be a string")?,
                at: span_of(value.span()),
            })
        });
        let name = match find("name") {
            Some(value) => Some(self.text_of(value, "`name` must be a string")?.to_owned()),
            None => None,
        };
        known.then_some(Next {
            server: Target::new(host?, port?),
            entry: Entry { name, ..entry? },
        })
    }

    /// Reads a port.
    fn port(&mut self, value: &Value<'_>) -> Option<u16> {
        let port = match value.get_ref() {
            DeValue::Integer(number) => u16::from_str_radix(number.as_str(), number.radix())
                .ok()
                .filter(|port| *port != 0),
            _ => None,
        };
        if port.is_none() {
            let title = "`port` must be a number from 1 to 65535";
            self.flaw(Flaw::new(span_of(value.span()), title));
        }
        port
    }

    /// Reads a key: `@FILE`, `$NAME` or the key itself.
    fn key(&mut self, value: &Value<'_>, is: &str) -> Option<Secret> {
        let text = self.text_of(value, is)?;
        let written = match (text.strip_prefix('@'), text.strip_prefix('$')) {
            (Some(path), _) => SecretText::File(path.to_owned()),
            (None, Some(name)) => SecretText::Variable(name.to_owned()),
            (None, None) => SecretText::Literal(Secret::from(text)),
        };
        let excerpt = self.document.no_url();
        let span = span_of(value.span());
        fetch::secret(self.diagnostics, self.lookup, excerpt, &written, span)
    }

    /// Returns the text of a string.
    fn text_of<'v>(&mut self, value: &'v Value<'_>, is: &str) -> Option<&'v str> {
        match value.get_ref() {
            DeValue::String(text) => Some(text.as_ref()),
            other => {
                self.wrong_type(span_of(value.span()), is, other);
                None
            }
        }
    }
}
