//! `[group.NAME]`: groups that chains refer to by their name.

use adit_wire::Target;
use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::file_keys::{FileKey, ValueType};
use super::table_reader::{GroupText, Selected, TableReader, Value, entries_in_order, span_of};
use crate::plan::Stage;
use crate::plan::group::{GroupKind, NamedGroup};
use crate::plan::unchecked_route::{UncheckedStage, is_route_name, parse_named_hop};
use crate::scheme::endpoint_types::Hop;
use crate::text::{ConfigError, SourceLocation, Span};

/// Keys of a group.
pub(super) static GROUP_KEYS: [FileKey; 4] = [
    FileKey::new(
        "members",
        ValueType::Members,
        "The members; a list of URLs is a chain, and the `#name` of its last URL the name of the member.",
    )
    .required(),
    FileKey::new(
        "kind",
        ValueType::Words(|| GroupKind::names().collect()),
        "The way that members are chosen.",
    ),
    FileKey::new(
        "selected",
        ValueType::TextOrNumber,
        "The member that a group of the kind `manual` uses at first.",
    ),
    FileKey::new(
        "check",
        ValueType::Target,
        "The target that probes request; without it, that of the last answered request.",
    ),
];

/// The hops of one member.
struct MemberHops {
    name: Option<String>,
    hops: Vec<Hop>,
    place: SourceLocation,
}

/// Returns true if a text in a chain is the name of a group.
pub(super) fn is_group_name(text: &str) -> bool {
    is_route_name(text)
}

impl TableReader<'_> {
    /// Reads all groups, so that chains can refer to them from anywhere in the file.
    pub(super) fn read_groups(&mut self, key: &Spanned<DeString<'_>>, value: &Value<'_>) {
        let Some(groups) = self.expect_table(key, value) else {
            return;
        };
        for (name, value) in entries_in_order(groups) {
            if !self.define_once("group", name.get_ref(), span_of(name.span())) {
                continue;
            }
            if let Some(group) = self.read_group(name, value) {
                // Errors in its URLs are reported once, even if no chain refers to it.
                let is_complete = self.build_stage(&group).is_some();
                self.groups.push((group, is_complete));
            }
        }
    }

    fn read_group(&mut self, name: &Spanned<DeString<'_>>, value: &Value<'_>) -> Option<GroupText> {
        let span = span_of(name.span());
        let text = name.get_ref();
        if !is_route_name(text) {
            self.report_error(
                ConfigError::new(span, "not a valid name for a group")
                    .with_label("1 to 64 letters, digits, `-`, `_` and `.`"),
            );
        }
        let table = self.expect_table(name, value)?;
        let mut group = GroupText {
            file: self.file,
            name: text.clone().into_owned(),
            kind: GroupKind::default(),
            selected: None,
            check: None,
            members: Vec::new(),
        };
        for (key, value) in self.known_entries(table, &GROUP_KEYS, "a group") {
            match key.get_ref().as_ref() {
                "members" => group.members = self.read_members(value),
                "kind" => group.kind = self.read_kind(value),
                "selected" => group.selected = self.read_selected(value),
                _ => group.check = self.read_check(value),
            }
        }
        if group.members.is_empty() {
            let title = format!("group `{text}` has no members");
            let flaw =
                ConfigError::new(span, title).with_help("add `members = [\"ss://…\", \"ss://…\"]`");
            self.report_error(flaw);
            return None;
        }
        if group.kind != GroupKind::Manual
            && let Some((_, span)) = &group.selected
        {
            let flaw = ConfigError::new(*span, "`selected` needs a group that you select by hand")
                .with_help("add `kind = \"manual\"`, or remove it");
            self.report_error(flaw);
        }
        Some(group)
    }

    /// Reads the members: URLs, or lists of URLs for chains.
    fn read_members(&mut self, value: &Value<'_>) -> Vec<Vec<(String, Span)>> {
        let is = "`members` must be a list of URLs, or of lists of URLs";
        let span = span_of(value.span());
        let DeValue::Array(items) = value.get_ref() else {
            self.report_wrong_type(span, is, value.get_ref());
            return Vec::new();
        };
        let mut members = Vec::with_capacity(items.len());
        for item in items.iter() {
            let urls = self.read_strings(item, is);
            if urls.is_empty() {
                self.report_error(ConfigError::new(
                    span_of(item.span()),
                    "a member without hops",
                ));
                continue;
            }
            let urls = urls.into_iter();
            members.push(urls.map(|(text, span)| (text.to_owned(), span)).collect());
        }
        members
    }

    fn read_kind(&mut self, value: &Value<'_>) -> GroupKind {
        let span = span_of(value.span());
        let DeValue::String(text) = value.get_ref() else {
            self.report_wrong_type(span, "`kind` must be a string", value.get_ref());
            return GroupKind::default();
        };
        if let Some(kind) = GroupKind::from_name(text) {
            return kind;
        }
        let flaw = ConfigError::new(span, format!("unknown kind of group `{text}`"));
        let flaw = flaw.with_nearest(text, GroupKind::names());
        let all: Vec<&str> = GroupKind::names().collect();
        self.report_error(flaw.with_help(format!("kinds: {}", all.join(", "))));
        GroupKind::default()
    }

    fn read_selected(&mut self, value: &Value<'_>) -> Option<(Selected, Span)> {
        let span = span_of(value.span());
        let selected = match value.get_ref() {
            DeValue::String(text) => Selected::Name(text.clone().into_owned()),
            DeValue::Integer(number) => {
                // A number that is too large is not that of a member.
                let number = usize::from_str_radix(number.as_str(), number.radix());
                Selected::Number(number.unwrap_or_default())
            }
            other => {
                let is = "`selected` must be the name of a member, or its number";
                self.report_wrong_type(span, is, other);
                return None;
            }
        };
        Some((selected, span))
    }

    fn read_check(&mut self, value: &Value<'_>) -> Option<Target> {
        let span = span_of(value.span());
        let DeValue::String(text) = value.get_ref() else {
            self.report_wrong_type(span, "`check` must be a string", value.get_ref());
            return None;
        };
        match text.parse::<Target>() {
            Ok(target) if target.port != 0 => return Some(target),
            Ok(_) => self.report_error(ConfigError::new(span, "`check` needs a port")),
            Err(why) => {
                let flaw = ConfigError::new(span, "`check` must be `HOST:PORT`");
                self.report_error(flaw.with_label(why.to_string()));
            }
        }
        None
    }

    /// Returns the stage for a reference to a group.
    pub(super) fn read_group_reference(
        &mut self,
        name: &str,
        span: Span,
    ) -> Option<UncheckedStage> {
        let groups = std::mem::take(&mut self.groups);
        let found = groups.iter().find(|(group, _)| group.name == name);
        let stage = match found {
            // Its errors were reported.
            Some((_, false)) => None,
            Some((group, true)) => self.rebuild_stage(group),
            None => {
                let flaw = ConfigError::new(span, format!("no group is called `{name}`"));
                let names = groups.iter().map(|(group, _)| &*group.name);
                let flaw = flaw
                    .with_label("a hop is a URL, such as `socks5://HOST:PORT`")
                    .with_nearest(name, names);
                self.report_error(flaw.with_help(format!(
                    "a group starts with `[group.{name}]` and `members = [\"ss://…\", \"ss://…\"]`"
                )));
                None
            }
        };
        self.groups = groups;
        stage
    }

    /// Builds the hops of a group whose errors and warnings were reported.
    fn rebuild_stage(&mut self, group: &GroupText) -> Option<UncheckedStage> {
        let seen = std::mem::take(self.diagnostics);
        let here = self.enter_file(group.file);
        let built = self.build_stage(group);
        self.enter_file(here);
        *self.diagnostics = seen;
        built
    }

    /// Builds the hops of a group.
    fn build_stage(&mut self, group: &GroupText) -> Option<UncheckedStage> {
        let members: Vec<Option<MemberHops>> = group
            .members
            .iter()
            .map(|urls| self.read_member(urls))
            .collect();
        let members: Vec<MemberHops> = members.into_iter().collect::<Option<_>>()?;
        let place = members.first()?.place.clone();
        let mut named = NamedGroup {
            name: group.name.clone(),
            kind: group.kind,
            selected: 0,
            check: group.check.clone(),
            member_names: Vec::new(),
            hops: Vec::new(),
            leads: Vec::new(),
        };
        for mut member in members {
            let last = member.hops.pop()?;
            let name = member.name.unwrap_or_else(|| last.to_string());
            named
                .member_names
                .push(unique_name(&named.member_names, name));
            named.hops.push(last);
            named.leads.push(member.hops);
        }
        if let Some((selected, span)) = &group.selected {
            let found = match selected {
                Selected::Name(name) => named.member_names.iter().position(|n| n == name),
                Selected::Number(number) => {
                    number.checked_sub(1).filter(|at| *at < named.hops.len())
                }
            };
            let Some(at) = found else {
                let all = named.member_names.join(", ");
                self.report_error(
                    ConfigError::new(*span, "no member of the group has this name or number")
                        .with_help(format!("members: {all}")),
                );
                return None;
            };
            named.selected = at;
        }
        let stage = Stage::Named(Box::new(named));
        Some(UncheckedStage { stage, place })
    }

    /// Parses the hops of a member.
    fn read_member(&mut self, urls: &[(String, Span)]) -> Option<MemberHops> {
        let mut hops = Vec::with_capacity(urls.len());
        let mut first_place = None;
        let mut last_name = None;
        for (at, (text, span)) in urls.iter().enumerate() {
            if !text.contains("://") && is_group_name(text) {
                self.report_error(
                    ConfigError::new(*span, "a group cannot be a member of a group")
                        .with_help("write the URLs of its members"),
                );
                continue;
            }
            let excerpt = self.document.url_value(*span, text);
            let Some((hop, place, name)) =
                parse_named_hop(self.diagnostics, self.lookup, excerpt, text)
            else {
                continue;
            };
            first_place.get_or_insert(place);
            last_name = name;
            let flaw = match &hop {
                Hop::Direct | Hop::Reject if urls.len() > 1 => {
                    Some(format!("`{hop}` has no effect with other hops"))
                }
                _ if at > 0 && hop.carrier().is_some() => Some(format!(
                    "`{hop}` sends UDP from this machine and cannot use other hops"
                )),
                _ => None,
            };
            match flaw {
                Some(title) => self.report_error(ConfigError::new(*span, title)),
                None => hops.push(hop),
            }
        }
        (hops.len() == urls.len()).then_some(MemberHops {
            name: last_name,
            hops,
            place: first_place?,
        })
    }
}

/// Returns `name`, with a number if it is taken.
fn unique_name(taken: &[String], name: String) -> String {
    if !taken.contains(&name) {
        return name;
    }
    let numbered = (2..=taken.len() + 2).map(|number| format!("{name} ({number})"));
    let mut free = numbered.filter(|name| !taken.contains(name));
    free.next().unwrap_or(name)
}
