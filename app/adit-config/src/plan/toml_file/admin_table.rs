//! `[admin]`: the management API, and the store of users.

use core::time::Duration;
use std::path::PathBuf;

use adit_wire::Host;
use toml::de::DeValue;

use super::file_keys::{FileKey, ValueType};
use super::table_reader::{TableReader, Value, span_of};
use crate::family::{Family, LeftOut};
use crate::plan::run_settings::DEFAULT_STORE_INTERVAL;
use crate::plan::{AdminSettings, ApiAddress, StoreSettings};
use crate::scheme::builder::secret_files::{self, resolve_path};
use crate::text::{ConfigError, Span, format_duration};

/// Keys of `[admin]`.
pub(super) static ADMIN_KEYS: [FileKey; 7] = [
    FileKey::new(
        "listen",
        ValueType::Text,
        "The address of the management API: the path of a Unix socket, or a loopback port.",
    )
    .required(),
    FileKey::new(
        "tokens",
        ValueType::FileText,
        "A file of tokens for requests, one per line; required for a port.",
    ),
    FileKey::new(
        "public_host",
        ValueType::Text,
        "Host name or address of the servers for the subscriptions of their users.",
    ),
    FileKey::new(
        "store",
        ValueType::Text,
        "A file in which the limits and the usage of users outlive the process.",
    ),
    FileKey::new(
        "store_interval",
        ValueType::Duration,
        "Interval at which usage is written to the store.",
    ),
    FileKey::new(
        "metrics_users",
        ValueType::Boolean,
        "Metrics contain the names and the usage of users.",
    ),
    FileKey::new(
        "audit",
        ValueType::Text,
        "A file that records who has changed what through the API, one JSON object per line.",
    ),
];

/// Minimum interval at which usage is written.
const MIN_STORE_INTERVAL: Duration = Duration::from_millis(100);

impl TableReader<'_> {
    /// Reads `[admin]`.
    pub(super) fn read_admin_settings(
        &mut self,
        name: Span,
        value: &Value<'_>,
    ) -> Option<AdminSettings> {
        if !Family::Admin.is_built() {
            self.report_error(LeftOut(Family::Admin).error_at(name));
            return None;
        }
        let entries = self.read_process_table("admin", value, &ADMIN_KEYS)?;
        let find = |name: &str| {
            let found = entries.iter().find(|(key, _)| key.get_ref() == name);
            found.map(|(_, value)| *value)
        };
        let listen = find("listen");
        if listen.is_none() {
            let flaw = ConfigError::new(name, "`[admin]` without `listen`")
                .with_help("add `listen = \"admin.sock\"`: that socket is for you only");
            self.report_error(flaw);
        }
        // All of them are read before one that is wrong ends this function.
        let address = listen.and_then(|value| self.read_admin_address(value));
        let tokens = find("tokens").map(|value| self.read_tokens_path(value));
        let public_host = find("public_host").map(|value| self.read_public_host(value));
        let store = find("store").map(|value| self.read_file_path("store", value));
        let interval = self.read_store_interval(find("store_interval"), store.is_some());
        let metrics_users = find("metrics_users").is_some_and(|value| match value.get_ref() {
            DeValue::Boolean(yes) => *yes,
            other => {
                let is = "`metrics_users` must be true or false";
                self.report_wrong_type(span_of(value.span()), is, other);
                false
            }
        });
        let audit = find("audit").map(|value| self.read_file_path("audit", value));
        let address = address?;
        if matches!(address, ApiAddress::Port(_)) && tokens.is_none() {
            let span = listen.map_or(name, |value| span_of(value.span()));
            let flaw = ConfigError::new(span, "the API on a port needs `tokens`").with_help(
                "add `tokens = \"@FILE\"`, or listen on a path: that socket is for you only",
            );
            self.report_error(flaw);
            return None;
        }
        Some(AdminSettings {
            listen: address.to_string(),
            tokens: tokens.flatten(),
            public_host: public_host.flatten(),
            store: store.flatten().map(|path| StoreSettings { path, interval }),
            metrics_users,
            audit: audit.flatten(),
        })
    }

    /// Returns the address. A relative path begins at the folder of the file.
    fn read_admin_address(&mut self, value: &Value<'_>) -> Option<ApiAddress> {
        let text = self.expect_string(value, "`listen` must be a string")?;
        match ApiAddress::parse(text) {
            Ok(ApiAddress::Path(path)) => {
                let path = resolve_path(self.lookup, &path.to_string_lossy());
                Some(ApiAddress::Path(path))
            }
            Ok(port) => Some(port),
            Err(why) => {
                let span = span_of(value.span());
                let flaw = ConfigError::new(span, format!("bad address `{text}`"));
                self.report_error(flaw.with_label(why.to_string()));
                None
            }
        }
    }

    /// Returns the path of the file of tokens, which can be read.
    fn read_tokens_path(&mut self, value: &Value<'_>) -> Option<PathBuf> {
        let span = span_of(value.span());
        let text = self.expect_string(value, "`tokens` must be a string")?;
        let path = self.expect_file_name("tokens", text, span, "a token")?;
        let excerpt = self.document.without_url();
        secret_files::read_file(self.diagnostics, self.lookup, excerpt, path, span, None)?;
        Some(resolve_path(self.lookup, path))
    }

    /// Returns the interval at which usage is stored.
    fn read_store_interval(&mut self, value: Option<&Value<'_>>, has_store: bool) -> Duration {
        let Some(value) = value else {
            return DEFAULT_STORE_INTERVAL;
        };
        let span = span_of(value.span());
        if !has_store {
            let flaw = ConfigError::new(span, "`store_interval` without `store`")
                .with_help("add `store = \"users.redb\"`");
            self.report_error(flaw);
            return DEFAULT_STORE_INTERVAL;
        }
        match self.read_duration(value, "store_interval") {
            Some(interval) if interval >= MIN_STORE_INTERVAL => interval,
            Some(_) => {
                let flaw = ConfigError::new(span, "`store_interval` is too short");
                let min = format_duration(MIN_STORE_INTERVAL);
                self.report_error(flaw.with_help(format!("at least `{min}`")));
                DEFAULT_STORE_INTERVAL
            }
            None => DEFAULT_STORE_INTERVAL,
        }
    }

    fn read_public_host(&mut self, value: &Value<'_>) -> Option<Host> {
        let text = self.expect_string(value, "`public_host` must be a string")?;
        let host = Host::parse(text);
        if let Err(why) = &host {
            let flaw = ConfigError::new(span_of(value.span()), format!("bad host `{text}`"));
            self.report_error(flaw.with_label(why.to_string()));
        }
        host.ok()
    }
}
