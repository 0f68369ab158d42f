//! Routes from TOML. The file has names, groups, rules, rule sets and settings of the process; everything else is in the URLs.

mod admin_table;
mod dns_tables;
pub(crate) mod file_keys;
mod file_set;
mod fleet_table;
mod groups;
mod include;
mod key_tables;
mod log_table;
mod rule_sets;
mod rules;
mod run_table;
mod syntax;
mod table_reader;
mod version;
mod webhook_tables;

use std::collections::HashMap;

use adit_wire::u64_from;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::plan::dns::UncheckedDns;
use crate::plan::short_listener::expand_short_listener;
use crate::plan::toml_file::file_keys::{FileKey, ValueType};
use crate::plan::toml_file::file_set::ParsedFile;
pub(super) use crate::plan::toml_file::file_set::warn_readable_secrets;
use crate::plan::toml_file::groups::is_group_name;
use crate::plan::toml_file::key_tables::accepts_key_table;
pub use crate::plan::toml_file::table_reader::MAX_FILE_LEN;
use crate::plan::toml_file::table_reader::{TableReader, Value, span_of};
use crate::plan::unchecked_route::{self, UncheckedRoute, UncheckedStage};
use crate::plan::{
    AdminSettings, FleetSettings, LogSettings, RuleSetConfig, RunSettings, Stage, WebhookSettings,
};
use crate::scheme::builder::KeyTable;
use crate::scheme::key_files::MAX_USERS;
use crate::scheme::secret_redaction;
use crate::text::{ConfigError, Diagnostics, LineIndex, Origin, SecretLookup, Span};

/// Keys of the file.
pub(crate) static FILE_KEYS: [FileKey; 11] = [
    FileKey::new(
        "version",
        ValueType::Number(version::VERSIONS.0, version::VERSIONS.1),
        "The version of the format of the file.",
    ),
    FileKey::new(
        "include",
        ValueType::Texts,
        "Further files, relative to this one; the last part of a path can have `*` and `?`.",
    ),
    FileKey::new(
        "log",
        ValueType::Table(&log_table::LOG_KEYS),
        "The log of the process.",
    ),
    FileKey::new(
        "admin",
        ValueType::Table(&admin_table::ADMIN_KEYS),
        "The management API.",
    ),
    FileKey::new(
        "fleet",
        ValueType::Table(&fleet_table::FLEET_KEYS),
        "The fleet whose users listeners with `users=fleet` have.",
    ),
    FileKey::new(
        "webhook",
        ValueType::Tables(&webhook_tables::WEBHOOK_KEYS),
        "Receivers of events.",
    ),
    FileKey::new(
        "run",
        ValueType::Table(&run_table::RUN_KEYS),
        "Settings of the process.",
    ),
    FileKey::new(
        "group",
        ValueType::NamedTables(&groups::GROUP_KEYS),
        "Groups of servers that chains refer to by their names.",
    ),
    FileKey::new(
        "set",
        ValueType::NamedTables(&rule_sets::SET_KEYS),
        "Rule sets: lists that rules use as a condition, `set:NAME`.",
    ),
    FileKey::new(
        "dns",
        ValueType::NamedTables(&dns_tables::DNS_KEYS),
        "DNS tables: servers that names are looked up with.",
    ),
    FileKey::new(
        "route",
        ValueType::NamedTables(&ROUTE_KEYS),
        "Routes: listeners, and where their requests are sent.",
    ),
];
/// Keys of a route.
static ROUTE_KEYS: [FileKey; 6] = [
    FileKey::new(
        "listen",
        ValueType::Listeners,
        "The listeners; `1080` is short for `mixed://127.0.0.1:1080`.",
    )
    .required(),
    FileKey::new(
        "via",
        ValueType::Chain,
        "The hops, in the order in which they are passed; without it, straight to the target.",
    ),
    FileKey::new(
        "rules",
        ValueType::Tables(&rules::RULE_KEYS),
        "Requests that take another chain.",
    ),
    FileKey::new(
        "dns",
        ValueType::Text,
        "The DNS table that looks up names for the route, or `system`; without it, that of `[run]`.",
    ),
    FileKey::new(
        "users",
        ValueType::NamedSecrets(MAX_USERS),
        "Users of the one `ss://` listener of the route.",
    ),
    FileKey::new(
        "relay",
        ValueType::SomeTables(&key_tables::NEXT_SERVER_KEYS),
        "Servers to relay to from the one `ss://` listener of the route.",
    ),
];
/// The content of a file.
#[derive(Default)]
pub(super) struct UncheckedFile {
    /// The routes, in the order of the file.
    pub(super) routes: Vec<UncheckedRoute>,
    /// The rule sets, in the order of the files.
    pub(super) sets: Vec<RuleSetConfig>,
    /// The DNS tables, in the order of the files.
    pub(super) dns: Vec<UncheckedDns>,
    /// The default DNS table.
    pub(super) default_dns: Option<String>,
    /// Settings of the process.
    pub(super) run: RunSettings,
    /// The log.
    pub(super) log: LogSettings,
    /// The management API.
    pub(super) admin: Option<AdminSettings>,
    /// The fleet.
    pub(super) fleet: Option<FleetSettings>,
    /// True if the file has the table of the fleet, with mistakes or without.
    pub(super) names_fleet: bool,
    /// The receivers of events.
    pub(super) webhooks: Vec<WebhookSettings>,
}

/// Parses a file and those that it includes.
pub(super) fn parse_file(
    diagnostics: &mut Diagnostics,
    lookup: SecretLookup<'_>,
    text: &str,
    file_name: &str,
) -> UncheckedFile {
    let origin = Origin::File(file_name.to_owned());
    let lines = LineIndex::default();
    let document = secret_redaction::redacting_document(&origin, text, &lines);
    if u64_from(text.len()) > MAX_FILE_LEN {
        let title = format!("a configuration file has at most {MAX_FILE_LEN} bytes");
        diagnostics.add_error(document, ConfigError::new(Span::new(0, 1), title));
        return UncheckedFile::default();
    }
    let (main, errors) = syntax::parse_table(text);
    let table = main.get_ref();
    let included = if errors.is_empty() {
        include::read_included_files(diagnostics, lookup, document, file_name, table)
    } else {
        Vec::new()
    };
    if diagnostics.has_problems() {
        // Without a file that is missing, there would be more errors.
        return UncheckedFile::default();
    }
    let mut files = vec![ParsedFile {
        document,
        lookup,
        table: main,
        errors,
    }];
    let more = included
        .iter()
        .map(|file| ParsedFile::included(file, lookup));
    files.extend(more);
    let mut reader = TableReader {
        diagnostics,
        lookup,
        document,
        files: files.iter().map(|f| (f.document, f.lookup)).collect(),
        file: 0,
        defined: HashMap::new(),
        groups: Vec::new(),
        set_names: Vec::new(),
        dns_names: Vec::new(),
    };
    let is_valid = files.iter().all(|file| file.errors.is_empty());
    for (at, file) in files.iter_mut().enumerate() {
        reader.enter_file(at);
        let secrets = |line: &str, _: &str| syntax::unknown_words(line, &FILE_KEYS);
        reader.report_syntax(core::mem::take(&mut file.errors), secrets);
    }
    if !is_valid {
        // The rest of an invalid document would cause more errors.
        return UncheckedFile::default();
    }
    let tables: Vec<&DeTable<'_>> = files.iter().map(|file| file.table.get_ref()).collect();
    reader.read_tables(&tables, &included)
}

impl TableReader<'_> {
    /// Reads a route.
    fn read_route(
        &mut self,
        name: &Spanned<DeString<'_>>,
        value: &Value<'_>,
    ) -> Option<UncheckedRoute> {
        let span = span_of(name.span());
        let text = name.get_ref();
        if !unchecked_route::is_route_name(text) {
            self.report_error(
                ConfigError::new(span, "not a valid name for a route")
                    .with_label("1 to 64 letters, digits, `-`, `_` and `.`"),
            );
        }
        let table = self.expect_table(name, value)?;
        let mut draft = UncheckedRoute::new(text.clone().into_owned());
        let entries = self.known_entries(table, &ROUTE_KEYS, "a route");
        let mut keys = self.read_key_table(&entries);
        let mut listens = false;
        for (key, value) in entries {
            match key.get_ref().as_ref() {
                "listen" => {
                    listens = !matches!(value.get_ref(), DeValue::Array(list) if list.is_empty());
                    self.read_listeners(value, keys.take(), &mut draft);
                }
                "via" => draft.via = self.read_chain(value),
                "rules" => draft.rules = self.read_rules(value),
                "dns" => draft.dns = self.read_dns_reference(value),
                // Read above, before the listener that they belong to.
                _ => {}
            }
        }
        if !listens {
            let title = format!("route `{text}` has no listener");
            let flaw = ConfigError::new(span, title)
                .with_help("add `listen = [\"mixed://127.0.0.1:1080\"]`");
            self.report_error(flaw);
        }
        Some(draft)
    }

    /// Reads the listeners of a route.
    fn read_listeners(
        &mut self,
        value: &Value<'_>,
        keys: Option<KeyTable>,
        draft: &mut UncheckedRoute,
    ) {
        let items = self.read_strings(value, "`listen` must be a URL or a list of URLs");
        let short: Vec<Option<String>> = items
            .iter()
            .map(|(text, _)| expand_short_listener(text))
            .collect();
        let mut keys = self.assign_to_listener(keys, &items);
        for ((written, span), short) in items.into_iter().zip(&short) {
            let text = short.as_deref().unwrap_or(written);
            let excerpt = match short {
                None => self.document.url_value(span, text),
                Some(_) => self.document.whole_value(span),
            };
            let keys = if accepts_key_table(text) {
                keys.take()
            } else {
                None
            };
            let found =
                unchecked_route::parse_listener(self.diagnostics, self.lookup, excerpt, text, keys);
            draft.listen.extend(found.map(|(listen, _)| listen));
        }
    }

    /// Reads a chain. A string is a single hop; in a list, an inner list is a group.
    fn read_chain(&mut self, value: &Value<'_>) -> Vec<UncheckedStage> {
        let DeValue::Array(items) = value.get_ref() else {
            return self.read_stage(value).into_iter().collect();
        };
        items
            .iter()
            .filter_map(|item| self.read_stage(item))
            .collect()
    }

    /// Reads a hop or a group.
    fn read_stage(&mut self, value: &Value<'_>) -> Option<UncheckedStage> {
        let span = span_of(value.span());
        match value.get_ref() {
            DeValue::String(text) if !text.contains("://") && is_group_name(text) => {
                self.read_group_reference(text, span)
            }
            DeValue::String(text) => {
                let excerpt = self.document.url_value(span, text);
                let (hop, place) =
                    unchecked_route::parse_hop(self.diagnostics, self.lookup, excerpt, text)?;
                let stage = Stage::Single(hop);
                Some(UncheckedStage { stage, place })
            }
            DeValue::Array(_) => {
                let mut hops = Vec::new();
                let items = self.read_strings(value, "a group must be a list of URLs");
                if items.is_empty() {
                    let flaw = ConfigError::new(span, "a group without hops");
                    self.report_error(flaw.with_help("write its URLs between the brackets"));
                }
                let all = items.len();
                for (text, span) in items {
                    let excerpt = self.document.url_value(span, text);
                    hops.extend(unchecked_route::parse_hop(
                        self.diagnostics,
                        self.lookup,
                        excerpt,
                        text,
                    ));
                }
                if hops.len() < all {
                    return None;
                }
                let place = hops.first()?.1.clone();
                let stage = if all == 1 {
                    Stage::Single(hops.pop()?.0)
                } else {
                    Stage::Group(hops.into_iter().map(|(hop, _)| hop).collect())
                };
                Some(UncheckedStage { stage, place })
            }
            other => {
                self.report_wrong_type(
                    span,
                    "a hop must be a URL, and a group a list of URLs",
                    other,
                );
                None
            }
        }
    }
}
