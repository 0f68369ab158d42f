//! The tables of all files: that of the command line, and those that it includes.

use std::rc::Rc;

use toml::Spanned;
use toml::de::DeTable;

use super::include::IncludedFile;
use super::syntax::{self, SyntaxError};
use super::table_reader::{Entry, TableReader, entries_in_order, span_of};
use super::{FILE_KEYS, UncheckedFile};
use crate::text::{Diagnostics, Document, Origin, Problem, SecretLookup, WarningKind};

/// A file of which the tables are read.
pub(super) struct ParsedFile<'a> {
    pub(super) document: Document<'a>,
    pub(super) lookup: SecretLookup<'a>,
    pub(super) table: Spanned<DeTable<'a>>,
    pub(super) errors: Vec<SyntaxError>,
}

impl<'a> ParsedFile<'a> {
    /// Parses an included file. `lookup` is that of another file.
    pub(super) fn included(file: &'a IncludedFile, lookup: SecretLookup<'a>) -> Self {
        let (table, errors) = syntax::parse_table(&file.text);
        Self {
            document: file.document(),
            lookup: SecretLookup {
                sources: lookup.sources,
                base: &file.folder,
            },
            table,
            errors,
        }
    }
}

/// Warns that other users can read the secrets in a file.
pub(in crate::plan) fn warn_readable_secrets(diagnostics: &mut Diagnostics, name: &str) {
    let title = format!("every user of this machine can read the secrets in `{name}`");
    let about = Problem::without_place(title, format!("chmod 600 {name}"));
    diagnostics.add_warning(WarningKind::ReadableSecret, about);
}

impl TableReader<'_> {
    /// Reads all tables of all files: groups, rule sets and the names of DNS tables first, so that others can refer to
    /// them from anywhere.
    pub(super) fn read_tables(
        &mut self,
        tables: &[&DeTable<'_>],
        included: &[Rc<IncludedFile>],
    ) -> UncheckedFile {
        let mut content = UncheckedFile::default();
        let mut files = Vec::with_capacity(tables.len());
        for (at, table) in tables.iter().enumerate() {
            self.enter_file(at);
            // The flag tells whether secrets are written out in the file.
            let entries = self.known_entries(table, &FILE_KEYS, "the file");
            files.push((entries, false));
        }
        for is_referred_to in [true, false] {
            for (at, (entries, has_secret)) in files.iter_mut().enumerate() {
                self.enter_file(at);
                self.diagnostics.literal_secret = *has_secret;
                for entry in entries.iter() {
                    match entry.0.get_ref().as_ref() {
                        "dns" if is_referred_to => self.define_dns_tables(entry.0, entry.1),
                        "group" | "set" if !is_referred_to => {}
                        "group" | "set" => self.read_table(entry, &mut content),
                        _ if is_referred_to => {}
                        _ => self.read_table(entry, &mut content),
                    }
                }
                *has_secret = self.diagnostics.literal_secret;
            }
        }
        self.enter_file(0);
        let mut has_secret = files.iter().map(|(_, has_secret)| *has_secret);
        self.diagnostics.literal_secret = has_secret.next().unwrap_or_default();
        for (file, has_secret) in included.iter().zip(has_secret) {
            if let Origin::File(name) = &file.origin
                && file.readable_by_others
                && has_secret
            {
                warn_readable_secrets(self.diagnostics, name);
            }
        }
        self.check_has_route(&content);
        content
    }

    /// Reads a table, or a value outside of tables.
    fn read_table(&mut self, (key, value): &Entry<'_, '_>, content: &mut UncheckedFile) {
        let span = span_of(key.span());
        match key.get_ref().as_ref() {
            "version" => self.check_version(value),
            // The files were read before; this reports values of a wrong type.
            "include" => {
                self.read_strings(value, "`include` must be a path, or a list of paths");
            }
            "group" => self.read_groups(key, value),
            "dns" => content.dns.extend(self.read_dns_tables(value)),
            "set" => content.sets.extend(self.read_rule_sets(key, value)),
            "run" if self.define_once("run", "", span) => {
                (content.run, content.default_dns) = self.read_run_settings(value);
            }
            "log" if self.define_once("log", "", span) => {
                content.log = self.read_log_settings(value);
            }
            "admin" if self.define_once("admin", "", span) => {
                content.admin = self.read_admin_settings(span, value);
            }
            "fleet" if self.define_once("fleet", "", span) => {
                content.names_fleet = true;
                content.fleet = self.read_fleet_settings(span, value);
            }
            "webhook" => content.webhooks.extend(self.read_webhooks(span, value)),
            "route" => {
                let Some(routes) = self.expect_table(key, value) else {
                    return;
                };
                for (name, value) in entries_in_order(routes) {
                    if self.define_once("route", name.get_ref(), span_of(name.span())) {
                        content.routes.extend(self.read_route(name, value));
                    }
                }
            }
            _ => {}
        }
    }

    /// Reports files without a route.
    fn check_has_route(&mut self, content: &UncheckedFile) {
        if !content.routes.is_empty() || self.diagnostics.has_problems() {
            return;
        }
        let name = match self.document.origin {
            Origin::File(name) => name.as_str(),
            Origin::Argument(_) | Origin::Text => "the file",
        };
        self.diagnostics.add_problem(Problem::without_place(
            format!("no route in `{name}`"),
            "start with `[route.main]` and `listen = \"mixed://127.0.0.1:1080\"`",
        ));
    }
}
