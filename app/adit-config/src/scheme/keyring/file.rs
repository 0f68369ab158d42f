//! Files of users and next servers: parsed into checked entries, with errors by file and line.

use adit_shadowsocks::{Edition, Method};
use adit_wire::Target;
use serde_json::value::RawValue;

use crate::grammar::bare_host;
use crate::scheme::keyring::check::{self, Holders};
use crate::scheme::keyring::json::{self, Items, Pairs};
use crate::scheme::keyring::{self, AtMost, Entry, MAX_USERS, Next};
use crate::scheme::typed::{RelayNext, SsUser};
use crate::text::{Flaw, Origin, Place, Problem, Secret, Span, nearest};

/// Maximum number of keys in the object of a user or a next server. One more is read to detect an excess.
const FIELDS: usize = 32;
/// The replacement of a key in a message.
const COVER: &str = "***";
/// The hint for wrong files of users.
const USER_FORMS: &str =
    "write `{\"NAME\": \"KEY\"}`, `[{\"name\": …, \"password\": …}]`, or one `NAME:KEY` per line";
/// The hint for wrong files of next servers.
const RELAY_FORM: &str = "write `[{\"server\": \"192.0.2.7\", \"port\": 8388, \"psk\": \"KEY\"}]`";

/// Parses a file of users: an object of names and keys, an array of objects with `name` and
/// `password`, or lines of `name:key`. Empty lines and `#` comments are skipped.
pub(crate) fn users_file(
    method: Method,
    identity: Option<&Secret>,
    file: &str,
    text: &str,
) -> Result<Vec<SsUser>, Vec<Problem>> {
    let document = Document { file, text, method };
    let entries = document.users::<MAX_USERS>()?;
    let flaws = check::all(Holders::Users, method, identity, &entries);
    document.verdict(flaws, &entries)?;
    Ok(entries.into_iter().map(Entry::into_user).collect())
}

/// Parses a file of next servers: an array of objects with `server`, `port`, `psk` and optionally `name`.
pub(crate) fn relay_file(
    method: Method,
    identity: &Secret,
    file: &str,
    text: &str,
) -> Result<Vec<RelayNext>, Vec<Problem>> {
    let document = Document { file, text, method };
    let next = document.relay::<MAX_USERS>()?;
    let (flaws, next) = keyring::relay(method, identity, next);
    document.verdict(flaws, &[])?;
    Ok(next)
}

/// A file of keys.
struct Document<'a> {
    file: &'a str,
    text: &'a str,
    method: Method,
}

impl<'a> Document<'a> {
    /// Parses a file of users, in any of its forms.
    fn users<const MAX: usize>(&self) -> Result<Vec<Entry>, Vec<Problem>> {
        let body = self.body();
        let entries = match body.trim_start().bytes().next() {
            Some(b'{') => self.named_keys::<MAX>(body),
            Some(b'[') => self.objects::<MAX, _>(body, |item| self.user(item)),
            _ => self.lines::<MAX>(body),
        }?;
        self.count::<MAX>(entries.len(), "user", USER_FORMS)?;
        Ok(entries)
    }

    /// Parses a file of next servers.
    fn relay<const MAX: usize>(&self) -> Result<Vec<Next>, Vec<Problem>> {
        let next = self.objects::<MAX, _>(self.body(), |item| self.next(item))?;
        self.count::<MAX>(next.len(), "server", RELAY_FORM)?;
        Ok(next)
    }

    /// Returns the text without a byte order mark.
    fn body(&self) -> &'a str {
        self.text.trim_start_matches('\u{feff}')
    }

    /// Parses lines of `NAME:KEY`.
    fn lines<const MAX: usize>(&self, body: &str) -> Result<Vec<Entry>, Vec<Problem>> {
        let mut entries = Vec::new();
        let mut flaws = AtMost::new();
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
                    entries.push(Entry {
                        name: Some(name.to_owned()),
                        secret: Secret::from(key),
                        at: json::place(self.text, key),
                    });
                }
                _ => {
                    let at = json::place(self.text, line);
                    flaws.push(Flaw::new(at, "a line that is not `NAME:KEY`").help(USER_FORMS));
                }
            }
        }
        self.verdict(flaws, &[])?;
        Ok(entries)
    }

    /// Parses an object of names and keys.
    fn named_keys<const MAX: usize>(&self, body: &str) -> Result<Vec<Entry>, Vec<Problem>> {
        let Pairs::<MAX>(pairs) =
            serde_json::from_str(body).map_err(|why| vec![self.syntax(&why)])?;
        let mut entries = Vec::with_capacity(pairs.len());
        let mut flaws = AtMost::new();
        for (name, value) in pairs {
            match json::string(value) {
                Some(key) => entries.push(Entry {
                    name: Some(name),
                    secret: Secret::new(key),
                    at: self.at(value),
                }),
                None => flaws.push(
                    Flaw::new(self.at(value), "the key of a user is not a string").help(USER_FORMS),
                ),
            }
        }
        self.verdict(flaws, &entries)?;
        Ok(entries)
    }

    /// Parses an array of objects.
    fn objects<const MAX: usize, T>(
        &self,
        body: &str,
        read: impl Fn(&RawValue) -> Result<T, Flaw>,
    ) -> Result<Vec<T>, Vec<Problem>> {
        let Items::<MAX>(items) =
            serde_json::from_str(body).map_err(|why| vec![self.syntax(&why)])?;
        let mut all = Vec::with_capacity(items.len());
        let mut flaws = AtMost::new();
        for item in items {
            match read(item) {
                Ok(entry) => all.push(entry),
                Err(flaw) => flaws.push(flaw),
            }
        }
        self.verdict(flaws, &[])?;
        Ok(all)
    }

    /// Reads a user in the format of shadowsocks-rust. Keys other than `name` and `password` are ignored.
    fn user(&self, item: &RawValue) -> Result<Entry, Flaw> {
        let fields = self.fields(item, USER_FORMS)?;
        let [name, key] = self.pick(&fields, ["name", "password"])?;
        let (Some(name), Some(key)) = (name, key) else {
            let title = "a user without `name` or `password`";
            return Err(Flaw::new(self.at(item), title).help(USER_FORMS));
        };
        Ok(Entry {
            name: Some(self.string(name, "`name` is not a string")?),
            secret: Secret::new(self.string(key, "`password` is not a string")?),
            at: self.at(key),
        })
    }

    /// Reads a next server.
    fn next(&self, item: &RawValue) -> Result<Next, Flaw> {
        const KNOWN: [&str; 4] = ["server", "port", "psk", "name"];
        let fields = self.fields(item, RELAY_FORM)?;
        if let Some((key, value)) = fields
            .iter()
            .find(|(key, _)| !KNOWN.contains(&key.as_str()))
        {
            let shown = if check::looks_like_key(self.method, key) {
                COVER
            } else {
                key
            };
            let flaw = Flaw::new(self.at(value), format!("unknown key `{shown}`"));
            return Err(match nearest(key, KNOWN) {
                Some(meant) => flaw.label(format!("did you mean `{meant}`?")),
                None => flaw.help(RELAY_FORM),
            });
        }
        let [server, port, psk, name] = self.pick(&fields, KNOWN)?;
        let (Some(server), Some(port), Some(psk)) = (server, port, psk) else {
            let title = "a next server without `server`, `port` or `psk`";
            return Err(Flaw::new(self.at(item), title).help(RELAY_FORM));
        };
        let host = self.string(server, "`server` is not a string")?;
        let host = bare_host(&host, self.at(server))?;
        let number = port.get().parse::<u16>().ok().filter(|port| *port != 0);
        let number = number
            .ok_or_else(|| Flaw::new(self.at(port), "`port` must be a number from 1 to 65535"))?;
        let name = name.map(|name| self.string(name, "`name` is not a string"));
        Ok(Next {
            server: Target::new(host, number),
            entry: Entry {
                name: name.transpose()?,
                secret: Secret::new(self.string(psk, "`psk` is not a string")?),
                at: self.at(psk),
            },
        })
    }

    /// Returns the fields of an object.
    fn fields<'v>(
        &self,
        item: &'v RawValue,
        form: &str,
    ) -> Result<Vec<(String, &'v RawValue)>, Flaw> {
        match serde_json::from_str::<Pairs<'_, FIELDS>>(item.get()) {
            Ok(Pairs(fields)) if fields.len() <= FIELDS => Ok(fields),
            Ok(_) => Err(Flaw::new(self.at(item), "an object with too many keys")),
            Err(_) => Err(Flaw::new(self.at(item), "not an object").help(form)),
        }
    }

    /// Returns the values of these keys, each of which may occur once.
    fn pick<'v, const N: usize>(
        &self,
        fields: &[(String, &'v RawValue)],
        names: [&str; N],
    ) -> Result<[Option<&'v RawValue>; N], Flaw> {
        let mut picked = [None; N];
        for (slot, name) in picked.iter_mut().zip(names) {
            for (_, value) in fields.iter().filter(|(key, _)| key == name) {
                if slot.replace(*value).is_some() {
                    return Err(Flaw::new(
                        self.at(value),
                        format!("`{name}` is written twice"),
                    ));
                }
            }
        }
        Ok(picked)
    }

    /// Returns the text of a string.
    fn string(&self, value: &RawValue, otherwise: &str) -> Result<String, Flaw> {
        json::string(value).ok_or_else(|| Flaw::new(self.at(value), otherwise))
    }

    /// Returns the position of a value.
    fn at(&self, value: &RawValue) -> Span {
        json::place(self.text, value.get())
    }

    /// Checks the number of entries.
    fn count<const MAX: usize>(
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
    fn verdict(&self, flaws: AtMost<Flaw>, entries: &[Entry]) -> Result<(), Vec<Problem>> {
        if flaws.is_empty() {
            return Ok(());
        }
        let (flaws, more) = flaws.into_parts();
        let mut problems: Vec<Problem> = flaws
            .into_iter()
            .map(|flaw| {
                let place = self.place(flaw.span, entries);
                flaw.at(place)
            })
            .collect();
        if more > 0 {
            let title = format!("{more} more like these in `{}`", self.file);
            problems.push(Problem::without_place(title, "the file was not applied"));
        }
        Err(problems)
    }

    /// Returns the place of a span. Any part of the line can be a key, so only the name is quoted.
    fn place(&self, span: Span, entries: &[Entry]) -> Place {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let name = entries
            .iter()
            .find(|entry| entry.at == span)
            .and_then(|entry| entry.name.as_deref())
            .filter(|name| !check::looks_like_key(self.method, name))
            .map(|name| format!("{name}: "))
            .unwrap_or_default();
        Place {
            origin: Origin::File(self.file.to_owned()),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            caret: (name.chars().count(), COVER.len()),
            quoted: format!("{name}{COVER}"),
        }
    }

    /// Returns the problem of invalid JSON.
    fn syntax(&self, why: &serde_json::Error) -> Problem {
        let place = Place {
            origin: Origin::File(self.file.to_owned()),
            line: why.line().max(1),
            column: why.column().max(1),
            quoted: COVER.to_owned(),
            caret: (0, COVER.len()),
        };
        Flaw::new(Span::default(), "invalid JSON")
            .label(json::complaint(why))
            .at(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document<'_> {
        Document {
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
            let problems = document(text).users::<2>().unwrap_err();
            assert_eq!(problems[0].title, "more than 2 users in `u`", "{text}");
            assert!(document(text).users::<4>().is_ok(), "{text}");
        }
    }

    #[test]
    fn places_are_counted_in_the_file() {
        let text = "\u{feff}# ä\nä:1\r\n\nb:2\n";
        let entries = document(text).users::<9>().unwrap();
        let place = document(text).place(entries[1].at, &entries);
        assert_eq!((place.line, place.column), (4, 3));
        assert_eq!((place.quoted.as_str(), place.caret), ("b: ***", (3, 3)));
        assert_eq!(entries[0].name.as_deref(), Some("ä"));
        assert_eq!(entries[0].secret.expose(), "1");
    }
}
