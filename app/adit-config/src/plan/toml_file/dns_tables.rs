//! `[dns.NAME]`: servers that names are looked up with, and references to them.

use adit_rules::Condition;
use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::file_keys::{FileKey, ValueType};
use super::table_reader::{TableReader, Value, entries_in_order, span_of};
use crate::plan::RuleCondition;
use crate::plan::dns::{
    DnsAction, DnsRule, DnsServer, MAX_CACHE, REJECT_DNS, SYSTEM_DNS, UncheckedDns,
};
use crate::plan::unchecked_route::is_route_name;
use crate::text::{ConfigError, SourceLocation, Span};

/// Keys of a table.
pub(super) static DNS_KEYS: [FileKey; 4] = [
    FileKey::new(
        "server",
        ValueType::SomeTexts,
        "The servers, of which the first that answers is used: `udp://`, `tcp://`, `tls://`, `https://` or `system`.",
    )
    .required(),
    FileKey::new(
        "via",
        ValueType::Chain,
        "The chain that queries pass; without it, straight to the servers.",
    ),
    FileKey::new(
        "cache",
        ValueType::Number(0, MAX_CACHE as u64),
        "The number of cached answers; 0 turns the cache off.",
    ),
    FileKey::new(
        "rules",
        ValueType::Tables(&DNS_RULE_KEYS),
        "Names that are looked up elsewhere.",
    ),
];
/// Keys of a rule.
static DNS_RULE_KEYS: [FileKey; 3] = [
    FileKey::new(
        "match",
        ValueType::SomeTexts,
        "Conditions on the name; the rule applies if one of them matches.",
    )
    .required(),
    FileKey::new(
        "and",
        ValueType::SomeTexts,
        "Further conditions, of which one must match too.",
    ),
    FileKey::new(
        "dns",
        ValueType::Text,
        "The table that looks these names up: its name, `system`, or `reject` for none.",
    )
    .required(),
];

impl TableReader<'_> {
    /// Notes the names of the tables `[dns.NAME]` of a file, so that others can refer to them from anywhere.
    pub(super) fn define_dns_tables(&mut self, key: &Spanned<DeString<'_>>, value: &Value<'_>) {
        let Some(tables) = self.expect_table(key, value) else {
            return;
        };
        for (name, _) in entries_in_order(tables) {
            let (text, span) = (name.get_ref().as_ref(), span_of(name.span()));
            if !is_route_name(text) {
                self.report_error(
                    ConfigError::new(span, "not a valid name for a DNS table")
                        .with_label("1 to 64 letters, digits, `-`, `_` and `.`"),
                );
            } else if matches!(text, SYSTEM_DNS | REJECT_DNS) {
                let title = format!("`{text}` cannot be the name of a DNS table");
                let flaw = ConfigError::new(span, title).with_label("it has a meaning of its own");
                self.report_error(flaw.with_help("choose another name"));
            }
            if self.define_once("dns", text, span) {
                self.dns_names.push(text.to_owned());
            }
        }
    }

    /// Reads the tables of a file.
    pub(super) fn read_dns_tables(&mut self, value: &Value<'_>) -> Vec<UncheckedDns> {
        let DeValue::Table(tables) = value.get_ref() else {
            // Reported when the names were noted.
            return Vec::new();
        };
        let tables = entries_in_order(tables).into_iter();
        tables
            .filter_map(|(name, value)| self.read_dns_table(name, value))
            .collect()
    }

    fn read_dns_table(
        &mut self,
        name: &Spanned<DeString<'_>>,
        value: &Value<'_>,
    ) -> Option<UncheckedDns> {
        let (text, span) = (name.get_ref().as_ref(), span_of(name.span()));
        let table = self.expect_table(name, value)?;
        let mut draft = UncheckedDns::new(text.to_owned(), self.document.place_of(span));
        let mut has_servers = false;
        for (key, value) in self.known_entries(table, &DNS_KEYS, "a DNS table") {
            match key.get_ref().as_ref() {
                "server" => {
                    has_servers =
                        !matches!(value.get_ref(), DeValue::Array(list) if list.is_empty());
                    draft.servers = self.read_dns_servers(value);
                }
                "via" => draft.via = self.read_chain(value),
                "cache" => draft.cache = self.read_cache(value).unwrap_or(draft.cache),
                _ => draft.rules = self.read_dns_rules(value),
            }
        }
        if !has_servers {
            let title = format!("DNS table `{text}` has no server");
            let flaw = ConfigError::new(span, title)
                .with_help("add `server = \"udp://9.9.9.9\"`, or a list of servers");
            self.report_error(flaw);
        }
        Some(draft)
    }

    fn read_dns_servers(&mut self, value: &Value<'_>) -> Vec<(DnsServer, SourceLocation)> {
        let is = "`server` must be the URL of a DNS server, or a list of URLs";
        let mut servers = Vec::new();
        for (text, span) in self.read_strings(value, is) {
            let excerpt = self.document.url_value(span, text);
            match DnsServer::parse(text) {
                Ok(server) => servers.push((server, self.document.place_of(span))),
                Err(flaw) => self.diagnostics.add_url_error(&excerpt, flaw),
            }
        }
        servers
    }

    fn read_cache(&mut self, value: &Value<'_>) -> Option<u32> {
        let span = span_of(value.span());
        let DeValue::Integer(number) = value.get_ref() else {
            self.report_wrong_type(span, "`cache` must be a number", value.get_ref());
            return None;
        };
        let number = u32::from_str_radix(number.as_str(), number.radix());
        let number = number.ok().filter(|number| *number <= MAX_CACHE);
        if number.is_none() {
            let title = format!("`cache` must be a number from 0 to {MAX_CACHE}");
            let flaw = ConfigError::new(span, title);
            self.report_error(flaw.with_help("it is the number of cached answers"));
        }
        number
    }

    fn read_dns_rules(&mut self, value: &Value<'_>) -> Vec<DnsRule> {
        let DeValue::Array(items) = value.get_ref() else {
            let is = "`rules` must be a list of `{ match, dns }`";
            self.report_wrong_type(span_of(value.span()), is, value.get_ref());
            return Vec::new();
        };
        items
            .iter()
            .filter_map(|item| self.read_dns_rule(item))
            .collect()
    }

    fn read_dns_rule(&mut self, value: &Value<'_>) -> Option<DnsRule> {
        let span = span_of(value.span());
        let DeValue::Table(table) = value.get_ref() else {
            let is = "a rule must be `{ match = [...], dns = \"NAME\" }`";
            self.report_wrong_type(span, is, value.get_ref());
            return None;
        };
        let (mut matches, mut and, mut action) = (None, Vec::new(), None);
        for (key, value) in self.known_entries(table, &DNS_RULE_KEYS, "a rule") {
            match key.get_ref().as_ref() {
                "match" => matches = Some(self.read_name_conditions(value, "match")),
                "and" => and = self.read_name_conditions(value, "and"),
                _ => action = Some(self.read_dns_action(value)),
            }
        }
        for (name, missing) in [("match", matches.is_none()), ("dns", action.is_none())] {
            if missing {
                let flaw = ConfigError::new(span, format!("a rule without `{name}`"))
                    .with_help("write `{ match = [\"*.lan\"], dns = \"system\" }`");
                self.report_error(flaw);
            }
        }
        Some(DnsRule {
            matches: matches?,
            and,
            action: action??,
            place: self.document.place_of(span),
        })
    }

    /// Reads conditions, which can only be about the name.
    fn read_name_conditions(&mut self, value: &Value<'_>, key: &str) -> Vec<RuleCondition> {
        let conditions = self.read_conditions(value, key);
        let is_about_name = |condition: &RuleCondition| match condition {
            RuleCondition::Set(_) => true,
            RuleCondition::Condition(condition) => matches!(
                condition,
                Condition::Any
                    | Condition::NameExact(_)
                    | Condition::NameSuffix(_)
                    | Condition::Domain(_)
                    | Condition::Keyword(_)
                    | Condition::Glob(_)
                    | Condition::Pattern(_)
            ),
        };
        if let Some(other) = conditions.iter().find(|c| !is_about_name(c)) {
            let title = format!("`{other}` is not a condition on a name");
            let flaw = ConfigError::new(span_of(value.span()), title);
            let help = "rules of a DNS table have names, `suffix:`, `keyword:`, `glob:`, `regex:` and `set:`";
            self.report_error(flaw.with_help(help));
        }
        conditions
    }

    fn read_dns_action(&mut self, value: &Value<'_>) -> Option<DnsAction> {
        let text = self.expect_string(value, "`dns` must be the name of a DNS table")?;
        if text == REJECT_DNS {
            return Some(DnsAction::Reject);
        }
        self.read_dns_reference(value).map(DnsAction::Use)
    }

    /// Reads the name of a table, or `system`.
    pub(super) fn read_dns_reference(&mut self, value: &Value<'_>) -> Option<String> {
        let name = self.expect_string(value, "`dns` must be the name of a DNS table")?;
        if name == SYSTEM_DNS || self.dns_names.iter().any(|known| known == name) {
            return Some(name.to_owned());
        }
        self.report_unknown_dns(name, span_of(value.span()));
        None
    }

    fn report_unknown_dns(&mut self, name: &str, span: Span) {
        let flaw = ConfigError::new(span, format!("no DNS table is called `{name}`"));
        let names = self.dns_names.iter().map(String::as_str);
        let flaw = flaw.with_nearest(name, names.chain([SYSTEM_DNS]));
        let flaw = match name {
            REJECT_DNS => flaw.with_help("`reject` is for rules of a DNS table"),
            _ => flaw.with_help(format!(
                "define it: `[dns.{name}]` with `server = \"udp://9.9.9.9\"`"
            )),
        };
        self.report_error(flaw);
    }
}
