//! Files of users and next servers: parsed into checked entries, with errors by file and line.

use adit_shadowsocks::{Edition, Method};
use adit_wire::Target;
use adit_wire::substr;
use serde_json::value::RawValue;

use crate::grammar::parse_bare_host;
use crate::scheme::endpoint_types::{RelayTarget, SsUser};
use crate::scheme::key_files::check::{self, KeyListKind};
use crate::scheme::key_files::json::{self, ArrayItems, ObjectPairs};
use crate::scheme::key_files::{self, KeyEntry, MAX_USERS, NextServer, TruncatedList};
use crate::text::{ConfigError, Origin, Problem, Secret, SourceLocation, Span};

/// Maximum number of keys in the object of a user or a next server. One more is read to detect an excess.
const FIELDS: usize = 32;
/// The replacement of a key in a message.
const REPLACEMENT: &str = "***";
/// The hint for wrong files of users.
const USER_FORMS: &str =
    "write `{\"NAME\": \"KEY\"}`, `[{\"name\": …, \"password\": …}]`, or one `NAME:KEY` per line";
/// The hint for wrong files of next servers.
const RELAY_FORM: &str = "write `[{\"server\": \"192.0.2.7\", \"port\": 8388, \"psk\": \"KEY\"}]`";

/// Parses a file of users: an object of names and keys, an array of objects with `name` and
/// `password`, or lines of `name:key`. Empty lines and `#` comments are skipped.
pub(crate) fn parse_users_file(
    method: Method,
    identity: Option<&Secret>,
    file: &str,
    text: &str,
) -> Result<Vec<SsUser>, Vec<Problem>> {
    let document = KeyFile { file, text, method };
    let entries = document.parse_users::<MAX_USERS>()?;
    let flaws = check::check_entries(KeyListKind::Users, method, identity, &entries);
    document.report_flaws(flaws, &entries)?;
    Ok(entries.into_iter().map(KeyEntry::into_user).collect())
}

/// Parses a file of next servers: an array of objects with `server`, `port`, `psk` and optionally `name`.
pub(crate) fn parse_relay_file(
    method: Method,
    identity: &Secret,
    file: &str,
    text: &str,
) -> Result<Vec<RelayTarget>, Vec<Problem>> {
    let document = KeyFile { file, text, method };
    let next = document.parse_relay::<MAX_USERS>()?;
    let (flaws, next) = key_files::check_relay(method, identity, next);
    document.report_flaws(flaws, &[])?;
    Ok(next)
}

/// A file of keys.
struct KeyFile<'a> {
    file: &'a str,
    text: &'a str,
    method: Method,
}

impl<'a> KeyFile<'a> {
    /// Parses a file of users, in any of its forms.
    fn parse_users<const MAX: usize>(&self) -> Result<Vec<KeyEntry>, Vec<Problem>> {
        let body = self.body();
        let entries = match body.trim_start().bytes().next() {
            Some(b'{') => self.parse_named_keys::<MAX>(body),
            Some(b'[') => self.parse_objects::<MAX, _>(body, |item| self.parse_user(item)),
            _ => self.parse_lines::<MAX>(body),
        }?;
        self.check_count::<MAX>(entries.len(), "user", USER_FORMS)?;
        Ok(entries)
    }

    /// Parses a file of next servers.
    fn parse_relay<const MAX: usize>(&self) -> Result<Vec<NextServer>, Vec<Problem>> {
        let next =
            self.parse_objects::<MAX, _>(self.body(), |item| self.parse_next_server(item))?;
        self.check_count::<MAX>(next.len(), "server", RELAY_FORM)?;
        Ok(next)
    }

    /// Returns the text without a byte order mark.
    fn body(&self) -> &'a str {
        self.text.trim_start_matches('\u{feff}')
    }

    /// Parses lines of `NAME:KEY`.
    fn parse_lines<const MAX: usize>(&self, body: &str) -> Result<Vec<KeyEntry>, Vec<Problem>> {
        let mut entries = Vec::new();
        let mut flaws = TruncatedList::new();
        for line in body.lines() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            if entries.len() > MAX {
                break;
            }
            match line.split_once(':') {
                Some((name, key)) if !name.is_empty() && !key.is_empty() => {
                    // Spaces can be part of a password, but not of base64.
                    let key = match self.method.edition() {
                        Edition::Aead2022 => key.trim(),
                        _ => key,
                    };
                    entries.push(KeyEntry {
                        name: Some(name.to_owned()),
                        secret: Secret::from(key),
                        at: json::span_in(self.text, key),
                    });
                }
                _ => {
                    let at = json::span_in(self.text, line);
                    flaws.push(
                        ConfigError::new(at, "a line that is not `NAME:KEY`").with_help(USER_FORMS),
                    );
                }
            }
        }
        self.report_flaws(flaws, &[])?;
        Ok(entries)
    }

    /// Parses an object of names and keys.
    fn parse_named_keys<const MAX: usize>(
        &self,
        body: &str,
    ) -> Result<Vec<KeyEntry>, Vec<Problem>> {
        let ObjectPairs::<MAX>(pairs) =
            serde_json::from_str(body).map_err(|why| vec![self.syntax_problem(&why)])?;
        let mut entries = Vec::with_capacity(pairs.len());
        let mut flaws = TruncatedList::new();
        for (name, value) in pairs {
            match json::string_value(value) {
                Some(key) => entries.push(KeyEntry {
                    name: Some(name),
                    secret: Secret::new(key),
                    at: self.span_of(value),
                }),
                None => flaws.push(
                    ConfigError::new(self.span_of(value), "the key of a user is not a string")
                        .with_help(USER_FORMS),
                ),
            }
        }
        self.report_flaws(flaws, &entries)?;
        Ok(entries)
    }

    /// Parses an array of objects.
    fn parse_objects<const MAX: usize, T>(
        &self,
        body: &str,
        read: impl Fn(&RawValue) -> Result<T, ConfigError>,
    ) -> Result<Vec<T>, Vec<Problem>> {
        let ArrayItems::<MAX>(items) =
            serde_json::from_str(body).map_err(|why| vec![self.syntax_problem(&why)])?;
        let mut all = Vec::with_capacity(items.len());
        let mut flaws = TruncatedList::new();
        for item in items {
            match read(item) {
                Ok(entry) => all.push(entry),
                Err(flaw) => flaws.push(flaw),
            }
        }
        self.report_flaws(flaws, &[])?;
        Ok(all)
    }

    /// Reads a user in the format of shadowsocks-rust. Keys other than `name` and `password` are ignored.
    fn parse_user(&self, item: &RawValue) -> Result<KeyEntry, ConfigError> {
        let fields = self.parse_fields(item, USER_FORMS)?;
        let [name, key] = self.pick_fields(&fields, ["name", "password"])?;
        let (Some(name), Some(key)) = (name, key) else {
            let title = "a user without `name` or `password`";
            return Err(ConfigError::new(self.span_of(item), title).with_help(USER_FORMS));
        };
        Ok(KeyEntry {
            name: Some(self.string_value(name, "`name` is not a string")?),
            secret: Secret::new(self.string_value(key, "`password` is not a string")?),
            at: self.span_of(key),
        })
    }

    /// Reads a next server.
    fn parse_next_server(&self, item: &RawValue) -> Result<NextServer, ConfigError> {
        const KNOWN: [&str; 4] = ["server", "port", "psk", "name"];
        let fields = self.parse_fields(item, RELAY_FORM)?;
        if let Some((key, value)) = fields
            .iter()
            .find(|(key, _)| !KNOWN.contains(&key.as_str()))
        {
            let shown = if check::looks_like_key(self.method, key) {
                REPLACEMENT
            } else {
                key
            };
            let flaw = ConfigError::unknown_key(self.span_of(value), shown);
            return Err(flaw.with_nearest(key, KNOWN).with_help(RELAY_FORM));
        }
        let [server, port, psk, name] = self.pick_fields(&fields, KNOWN)?;
        let (Some(server), Some(port), Some(psk)) = (server, port, psk) else {
            let title = "a next server without `server`, `port` or `psk`";
            return Err(ConfigError::new(self.span_of(item), title).with_help(RELAY_FORM));
        };
        let host = self.string_value(server, "`server` is not a string")?;
        let host = parse_bare_host(&host, self.span_of(server))?;
        let number = port.get().parse::<u16>().ok().filter(|port| *port != 0);
        let number = number.ok_or_else(|| {
            ConfigError::new(
                self.span_of(port),
                "`port` must be a number from 1 to 65535",
            )
        })?;
        let name = name.map(|name| self.string_value(name, "`name` is not a string"));
        Ok(NextServer {
            server: Target::new(host, number),
            entry: KeyEntry {
                name: name.transpose()?,
                secret: Secret::new(self.string_value(psk, "`psk` is not a string")?),
                at: self.span_of(psk),
            },
        })
    }

    /// Returns the fields of an object.
    fn parse_fields<'v>(
        &self,
        item: &'v RawValue,
        form: &str,
    ) -> Result<Vec<(String, &'v RawValue)>, ConfigError> {
        match serde_json::from_str::<ObjectPairs<'_, FIELDS>>(item.get()) {
            Ok(ObjectPairs(fields)) if fields.len() <= FIELDS => Ok(fields),
            Ok(_) => Err(ConfigError::new(
                self.span_of(item),
                "an object with too many keys",
            )),
            Err(_) => Err(ConfigError::new(self.span_of(item), "not an object").with_help(form)),
        }
    }

    /// Returns the values of these keys, each of which may occur once.
    fn pick_fields<'v, const N: usize>(
        &self,
        fields: &[(String, &'v RawValue)],
        names: [&str; N],
    ) -> Result<[Option<&'v RawValue>; N], ConfigError> {
        let mut picked = [None; N];
        for (slot, name) in picked.iter_mut().zip(names) {
            for (_, value) in fields.iter().filter(|(key, _)| key == name) {
                if slot.replace(*value).is_some() {
                    return Err(ConfigError::new(
                        self.span_of(value),
                        format!("`{name}` is written twice"),
                    ));
                }
            }
        }
        Ok(picked)
    }

    /// Returns the text of a string.
    fn string_value(&self, value: &RawValue, otherwise: &str) -> Result<String, ConfigError> {
        json::string_value(value).ok_or_else(|| ConfigError::new(self.span_of(value), otherwise))
    }

    /// Returns the position of a value.
    fn span_of(&self, value: &RawValue) -> Span {
        json::span_in(self.text, value.get())
    }

    /// Checks the number of entries.
    fn check_count<const MAX: usize>(
        &self,
        has: usize,
        of: &str,
        form: &str,
    ) -> Result<(), Vec<Problem>> {
        let file = self.file;
        let title = match has {
            0 => format!("no {of} in `{file}`"),
            n if n > MAX => format!("more than {MAX} {of}s in `{file}`"),
            _ => return Ok(()),
        };
        Err(vec![Problem::without_place(title, form)])
    }

    /// Returns the errors as problems, if there are any.
    fn report_flaws(
        &self,
        flaws: TruncatedList<ConfigError>,
        entries: &[KeyEntry],
    ) -> Result<(), Vec<Problem>> {
        if flaws.is_empty() {
            return Ok(());
        }
        let (flaws, more) = flaws.into_parts();
        let mut problems: Vec<Problem> = flaws
            .into_iter()
            .map(|flaw| {
                let place = self.place_of(flaw.span, entries);
                flaw.into_problem(place)
            })
            .collect();
        if more > 0 {
            let title = format!("{more} more like these in `{}`", self.file);
            problems.push(Problem::without_place(title, "the file was not applied"));
        }
        Err(problems)
    }

    /// Returns the place of a span. Any part of the line can be a key, so only the name is quoted.
    fn place_of(&self, span: Span, entries: &[KeyEntry]) -> SourceLocation {
        let before = substr(self.text, ..span.start);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let name = entries
            .iter()
            .find(|entry| entry.at == span)
            .and_then(|entry| entry.name.as_deref())
            .filter(|name| !check::looks_like_key(self.method, name))
            .map(|name| format!("{name}: "))
            .unwrap_or_default();
        SourceLocation {
            origin: Origin::File(self.file.to_owned()),
            line: before.matches('\n').count() + 1,
            column: substr(before, line_start..).chars().count() + 1,
            caret: (name.chars().count(), REPLACEMENT.len()),
            snippet: format!("{name}{REPLACEMENT}"),
        }
    }

    /// Returns the problem of invalid JSON.
    fn syntax_problem(&self, why: &serde_json::Error) -> Problem {
        let place = SourceLocation {
            origin: Origin::File(self.file.to_owned()),
            line: why.line().max(1),
            column: why.column().max(1),
            snippet: REPLACEMENT.to_owned(),
            caret: (0, REPLACEMENT.len()),
        };
        ConfigError::new(Span::default(), "invalid JSON")
            .with_label(json::parser_message(why))
            .into_problem(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> KeyFile<'_> {
        KeyFile {
            file: "u",
            text,
            method: Method::Aes256Gcm,
        }
    }

    #[test]
    fn the_number_of_users_is_bounded_in_every_form() {
        for text in [
            "{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\",\"d\":\"4\"}",
            "[{\"name\":\"a\",\"password\":\"1\"},{\"name\":\"b\",\"password\":\"2\"},\
              {\"name\":\"c\",\"password\":\"3\"}]",
            "a:1\nb:2\nc:3\nd:4\n",
        ] {
            let problems = document(text).parse_users::<2>().unwrap_err();
            assert_eq!(problems[0].title, "more than 2 users in `u`", "{text}");
            assert!(document(text).parse_users::<4>().is_ok(), "{text}");
        }
    }

    #[test]
    fn places_are_counted_in_the_file() {
        let text = "\u{feff}# ä\nä:1\r\n\nb:2\n";
        let entries = document(text).parse_users::<9>().unwrap();
        let place = document(text).place_of(entries[1].at, &entries);
        assert_eq!((place.line, place.column), (4, 3));
        assert_eq!((place.snippet.as_str(), place.caret), ("b: ***", (3, 3)));
        assert_eq!(entries[0].name.as_deref(), Some("ä"));
        assert_eq!(entries[0].secret.expose(), "1");
    }
}
