//! The rules of a route.

use adit_rules::Condition;
use toml::de::DeValue;

use super::file_keys::{FileKey, ValueType};
use super::table_reader::{TableReader, Value, span_of};
use crate::plan::RuleCondition;
use crate::plan::unchecked_route::UncheckedRule;
use crate::text::{ConfigError, Span};

/// Keys of a rule.
pub(super) static RULE_KEYS: [FileKey; 4] = [
    FileKey::new(
        "match",
        ValueType::SomeTexts,
        "Conditions; the rule applies if one of them matches.",
    )
    .required(),
    FileKey::new(
        "and",
        ValueType::SomeTexts,
        "Further conditions, of which one must match too.",
    ),
    FileKey::new("via", ValueType::Chain, "The chain of these requests.").required(),
    FileKey::new(
        "resolve",
        ValueType::Boolean,
        "Look names up, and compare their addresses with the networks in `match`.",
    ),
];
/// The prefix of a condition that names a rule set.
const SET_PREFIX: &str = "set:";

impl TableReader<'_> {
    /// Reads the rules of a route.
    pub(super) fn read_rules(&mut self, value: &Value<'_>) -> Vec<UncheckedRule> {
        let span = span_of(value.span());
        let DeValue::Array(items) = value.get_ref() else {
            self.report_wrong_type(
                span,
                "`rules` must be a list of `{ match, via }`",
                value.get_ref(),
            );
            return Vec::new();
        };
        items
            .iter()
            .filter_map(|item| self.read_rule(item))
            .collect()
    }

    /// Reads a rule.
    fn read_rule(&mut self, value: &Value<'_>) -> Option<UncheckedRule> {
        let span = span_of(value.span());
        let DeValue::Table(table) = value.get_ref() else {
            self.report_wrong_type(
                span,
                "a rule must be `{ match = [...], via = [...] }`",
                value.get_ref(),
            );
            return None;
        };
        let mut matches = None;
        let mut and = Vec::new();
        let mut via = None;
        let mut resolve = false;
        for (key, value) in self.known_entries(table, &RULE_KEYS, "a rule") {
            match key.get_ref().as_ref() {
                "match" => matches = Some(self.read_conditions(value, "match")),
                "and" => and = self.read_conditions(value, "and"),
                "resolve" => match value.get_ref() {
                    DeValue::Boolean(yes) => resolve = *yes,
                    other => {
                        let span = span_of(value.span());
                        self.report_wrong_type(span, "`resolve` must be true or false", other);
                    }
                },
                _ => via = Some(self.read_chain(value)),
            }
        }
        for (name, missing) in [("match", matches.is_none()), ("via", via.is_none())] {
            if missing {
                let flaw = ConfigError::new(span, format!("a rule without `{name}`"))
                    .with_help("write `{ match = [\"*.lan\"], via = [\"direct://\"] }`");
                self.report_error(flaw);
            }
        }
        Some(UncheckedRule {
            matches: matches?,
            and,
            via: via?,
            resolve,
            place: self.document.place_of(span),
        })
    }

    /// Reads the conditions of a rule.
    pub(super) fn read_conditions(&mut self, value: &Value<'_>, key: &str) -> Vec<RuleCondition> {
        let is = format!("`{key}` must be a condition or a list of conditions");
        let items = self.read_strings(value, &is);
        if items.is_empty() && matches!(value.get_ref(), DeValue::Array(_)) {
            self.report_error(ConfigError::new(
                span_of(value.span()),
                "a rule that matches nothing",
            ));
        }
        let mut matches = Vec::new();
        for (text, span) in items {
            if let Some(name) = text.strip_prefix(SET_PREFIX) {
                matches.extend(self.find_set(name, span));
                continue;
            }
            match Condition::parse(text) {
                Ok(condition) => matches.push(RuleCondition::Condition(condition)),
                Err(expected) => {
                    let title = format!("bad condition `{text}`");
                    let flaw = ConfigError::new(span, title).with_label(expected.to_string());
                    self.report_error(flaw);
                }
            }
        }
        matches
    }

    /// Returns the condition for a rule set, if it exists.
    fn find_set(&mut self, name: &str, span: Span) -> Option<RuleCondition> {
        if self.set_names.iter().any(|known| known == name) {
            return Some(RuleCondition::Set(name.to_owned()));
        }
        let flaw = ConfigError::new(span, format!("no rule set `{name}`"));
        let names = self.set_names.iter().map(String::as_str);
        let flaw = flaw.with_nearest(name, names);
        let help =
            format!("define it: `[set.{name}]` with `file = \"…\"` or `url = \"https://…\"`");
        self.report_error(flaw.with_help(help));
        None
    }
}
