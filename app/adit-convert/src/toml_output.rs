//! Output: routes of URLs, and their TOML.

use core::fmt::Write;
use std::collections::HashMap;

use adit_config::text::{SecretText, Span, Spanned, escape, format_target, sanitize_for_terminal};
use adit_config::{Endpoint, GroupKind};
use adit_wire::{Host, Target};
use zeroize::Zeroizing;

use crate::conversion_context::Format;
use crate::notes::Note;

/// The routes of the file to write.
#[derive(Default)]
pub(super) struct RouteSet {
    pub(super) routes: Vec<Route>,
    /// Groups that chains can name.
    pub(super) groups: Vec<Group>,
}

/// One group with a name.
pub(super) struct Group {
    /// A valid and unique name.
    pub(super) name: String,
    /// The name in the document, if it is another.
    pub(super) title: Option<String>,
    pub(super) kind: GroupKind,
    /// The hops of each member.
    pub(super) members: Vec<Vec<Zeroizing<String>>>,
    /// The member that is selected at first, from 0.
    pub(super) selected: Option<usize>,
    /// The target of probes.
    pub(super) check: Option<Target>,
}

/// One route.
pub(super) struct Route {
    /// The requested name; it is made valid and unique when it is written.
    pub(super) name: String,
    pub(super) listen: Vec<UrlBuilder>,
    pub(super) via: Vec<Stage>,
    pub(super) rules: Vec<Rule>,
    /// Users of a Shadowsocks listener (SIP023).
    pub(super) users: Vec<(String, SecretText)>,
}

/// Conditions of a rule that stay on its line.
const MAX_CONDITIONS_PER_LINE: usize = 8;

/// One step of a chain: the name of a group, or hops, of which the first that works is used.
pub(super) type Stage = Vec<Zeroizing<String>>;

/// Requests that go another way.
#[derive(Clone)]
pub(super) struct Rule {
    pub(super) matches: Vec<String>,
    pub(super) via: Vec<Stage>,
    /// Names are looked up for networks.
    pub(super) resolve: bool,
}

/// A URL that is still open for keys.
pub(super) struct UrlBuilder {
    scheme: &'static str,
    user: Option<(String, SecretText)>,
    /// `None` listens on all addresses.
    pub(super) host: Option<Host>,
    pub(super) port: u16,
    target: Option<Target>,
    params: Vec<(&'static str, String)>,
    name: Option<String>,
}

impl UrlBuilder {
    pub(super) const fn new(scheme: &'static str, host: Option<Host>, port: u16) -> Self {
        Self {
            scheme,
            user: None,
            host,
            port,
            target: None,
            params: Vec::new(),
            name: None,
        }
    }

    pub(super) fn with_user(mut self, user: &str, secret: SecretText) -> Self {
        self.user = Some((user.to_owned(), secret));
        self
    }

    pub(super) fn with_target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    pub(super) fn with_name(mut self, name: Option<&str>) -> Self {
        self.name = name.map(str::to_owned);
        self
    }

    /// Adds a key. One that is there already stays as it is.
    pub(super) fn set_key(&mut self, key: &'static str, value: impl Into<String>) {
        if !self.has_key(key) {
            self.params.push((key, value.into()));
        }
    }

    pub(super) const fn scheme(&self) -> &'static str {
        self.scheme
    }

    /// True if a key is set.
    pub(super) fn has_key(&self, key: &str) -> bool {
        self.params.iter().any(|(name, _)| *name == key)
    }

    pub(super) const fn has_user(&self) -> bool {
        self.user.is_some()
    }

    /// True if only this machine can reach it.
    pub(super) fn is_loopback(&self) -> bool {
        self.host
            .as_ref()
            .is_some_and(adit_config::text::is_this_machine)
    }

    /// The text. Unlike in a share link, method and password stand in clear text, so that a
    /// reader finds them.
    pub(super) fn to_text(&self) -> Zeroizing<String> {
        let user = match &self.user {
            None => Zeroizing::new(String::new()),
            Some((user, SecretText::Literal(secret))) => Zeroizing::new(format!(
                "{}:{}@",
                escape::encode_part(user),
                escape::encode_part(secret.expose())
            )),
            Some((user, SecretText::File(path))) => Zeroizing::new(format!(
                "{}:@{}@",
                escape::encode_part(user),
                escape::encode_path(path)
            )),
            Some((user, SecretText::Variable(name))) => {
                Zeroizing::new(format!("{}:${name}@", escape::encode_part(user)))
            }
        };
        let rest = self.endpoint_without_user().to_url();
        let behind = rest.split_once("://").map_or("", |(_, behind)| behind);
        Zeroizing::new(format!("{}://{}{behind}", self.scheme, &*user))
    }

    fn endpoint_without_user(&self) -> Endpoint {
        fn at<T>(value: T) -> Spanned<T> {
            Spanned::new(value, Span::default())
        }
        Endpoint {
            scheme: at(self.scheme.to_owned()),
            user: None,
            secret: None,
            host: self.host.clone().map(at),
            port: Some(at(self.port)),
            last_port: None,
            target: self.target.as_ref().map(|target| at(format_target(target))),
            params: self
                .params
                .iter()
                .map(|(key, value)| adit_config::QueryPair {
                    key: at((*key).to_owned()),
                    value: at(value.clone()),
                })
                .collect(),
            name: self.name.clone().map(at),
            address: Span::default(),
        }
    }
}

impl RouteSet {
    /// The file.
    pub(super) fn to_toml(&self, name: &str, format: Format, notes: &[Note]) -> Zeroizing<String> {
        let mut out = Zeroizing::new(String::new());
        write_line(
            &mut out,
            format_args!("# From `{}` ({format}).", sanitize_for_terminal(name)),
        );
        for note in notes {
            write_line(&mut out, format_args!("# {note}"));
        }
        for group in &self.groups {
            group.write_toml(&mut out);
        }
        let mut names = HashMap::new();
        for route in &self.routes {
            let name = unique_name(&route.name, "route", &mut names);
            let key = toml_key(&name);
            let key = key.as_str();
            write_line(&mut out, format_args!("\n[route.{key}]"));
            let listen: Vec<_> = route.listen.iter().map(UrlBuilder::to_text).collect();
            out.push_str("listen = ");
            let urls = listen.iter().map(|url| toml_string(url));
            if listen.len() > 1 {
                write_lines(&mut out, urls, "");
            } else {
                write_inline(&mut out, urls);
            }
            out.push('\n');
            if !route.via.is_empty() {
                out.push_str("via = ");
                write_chain(&mut out, &route.via);
                out.push('\n');
            }
            if !route.rules.is_empty() {
                out.push_str("rules = [\n");
                for rule in &route.rules {
                    out.push_str("  { match = ");
                    let matches = rule.matches.iter().map(|text| toml_string(text));
                    match rule.matches.len() {
                        0..=MAX_CONDITIONS_PER_LINE => write_inline(&mut out, matches),
                        _ => write_lines(&mut out, matches, "  "),
                    }
                    out.push_str(", via = ");
                    let stages = rule.via.iter().map(stage_text);
                    write_inline(&mut out, stages);
                    out.push_str(match rule.resolve {
                        true => ", resolve = true },\n",
                        false => " },\n",
                    });
                }
                out.push_str("]\n");
            }
            if !route.users.is_empty() {
                write_line(&mut out, format_args!("\n[route.{key}.users]"));
                for (user, secret) in &route.users {
                    out.push_str(&toml_key(user));
                    out.push_str(" = ");
                    out.push_str(&match secret {
                        SecretText::Literal(secret) => toml_string(secret.expose()),
                        SecretText::File(path) => toml_string(&format!("@{path}")),
                        SecretText::Variable(name) => toml_string(&format!("${name}")),
                    });
                    out.push('\n');
                }
            }
        }
        out
    }
}

impl Group {
    fn write_toml(&self, out: &mut String) {
        write_line(out, format_args!("\n[group.{}]", &*toml_key(&self.name)));
        if let Some(title) = &self.title {
            write_line(out, format_args!("# {}", sanitize_for_terminal(title)));
        }
        write_line(out, format_args!("kind = \"{}\"", self.kind));
        if let Some(at) = self.selected {
            write_line(out, format_args!("selected = {}", at + 1));
        }
        if let Some(target) = &self.check {
            let check = toml_string(&format_target(target));
            write_line(out, format_args!("check = {}", &*check));
        }
        out.push_str("members = ");
        let members = self.members.iter().map(|hops| {
            let mut text = Zeroizing::new(String::new());
            match hops.as_slice() {
                [hop] => text.push_str(&toml_string(hop)),
                hops => write_inline(&mut text, hops.iter().map(|hop| toml_string(hop))),
            }
            text
        });
        write_lines(out, members, "");
        out.push('\n');
    }
}

/// A name that a route or group can have, not yet taken, or `fallback` if nothing of the requested one can stay.
/// `taken` holds the last number that was tried for each.
pub(super) fn unique_name(
    wished: &str,
    fallback: &str,
    taken: &mut HashMap<String, usize>,
) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let clean: String = wished
        .chars()
        .map(|c| if good(c) { c } else { '-' })
        .take(56)
        .collect();
    let clean = match clean.trim_matches('-') {
        "" => fallback,
        clean => clean,
    };
    let mut name = clean.to_owned();
    while taken.contains_key(&name) {
        let number = taken.entry(clean.to_owned()).or_insert(1);
        *number += 1;
        name = format!("{clean}-{number}");
    }
    taken.insert(name.clone(), 1);
    name
}

/// A chain: one hop stays on the line, else each stage has a line, and each hop of a group too.
fn write_chain(out: &mut String, stages: &[Stage]) {
    if let [stage] = stages
        && stage.len() < 2
    {
        return write_inline(out, stages.iter().map(stage_text));
    }
    let texts = stages.iter().map(|stage| {
        if stage.len() < 2 {
            return stage_text(stage);
        }
        let mut text = Zeroizing::new(String::new());
        write_lines(&mut text, stage.iter().map(|hop| toml_string(hop)), "  ");
        text
    });
    write_lines(out, texts, "");
}

fn stage_text(stage: &Stage) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::new());
    match stage.as_slice() {
        [hop] => text.push_str(&toml_string(hop)),
        hops => write_inline(&mut text, hops.iter().map(|hop| toml_string(hop))),
    }
    text
}

/// A list with a line for each item.
fn write_lines(out: &mut String, items: impl Iterator<Item = Zeroizing<String>>, indent: &str) {
    out.push_str("[\n");
    for item in items {
        write_line(out, format_args!("{indent}  {},", &*item));
    }
    out.push_str(indent);
    out.push(']');
}

fn write_inline(out: &mut String, items: impl Iterator<Item = Zeroizing<String>>) {
    out.push('[');
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        out.push_str(&item);
    }
    out.push(']');
}

/// A key of TOML: bare where it can be.
fn toml_key(text: &str) -> Zeroizing<String> {
    let bare = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    if !text.is_empty() && text.bytes().all(bare) {
        Zeroizing::new(text.to_owned())
    } else {
        toml_string(text)
    }
}

/// A basic string of TOML.
fn toml_string(text: &str) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::with_capacity(text.len() + 2));
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                push_formatted(&mut out, format_args!("\\u{:04X}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn write_line(out: &mut String, text: core::fmt::Arguments<'_>) {
    push_formatted(out, text);
    out.push('\n');
}

/// Writing to a `String` cannot fail.
fn push_formatted(out: &mut String, text: core::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_valid_and_unique() {
        let mut taken = HashMap::new();
        for (wished, name) in [
            ("main", "main"),
            ("main", "main-2"),
            ("東京 1", "1"),
            ("", "route"),
            ("a b", "a-b"),
            ("main", "main-3"),
        ] {
            assert_eq!(unique_name(wished, "route", &mut taken), name);
        }
    }

    #[test]
    fn strings_are_escaped() {
        assert_eq!(
            *toml_string("a\"b\\c\nd\u{7f}é"),
            "\"a\\\"b\\\\c\\u000Ad\\u007Fé\""
        );
    }

    #[test]
    fn urls_show_the_method() {
        let secret = SecretText::Literal(adit_config::Secret::from("@p:$/"));
        let host = Host::parse("2001:db8::1").ok();
        let mut url = UrlBuilder::new("ss", host, 8388).with_user("aes-256-gcm", secret);
        url.set_key("udp", "false");
        url.set_key("udp", "true");
        let text = url.with_name(Some("a b")).to_text();
        assert_eq!(
            *text,
            "ss://aes-256-gcm:%40p%3A%24%2F@[2001:db8::1]:8388/?udp=false#a%20b"
        );
        assert!(Endpoint::parse(&text).is_ok());
    }
}
