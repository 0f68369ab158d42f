//! `[fleet]`: the process is a node of a fleet.

use core::time::Duration;
use std::path::PathBuf;

use toml::de::DeValue;

use super::file_keys::{FileKey, ValueType};
use super::table_reader::{TableReader, Value, span_of};
use crate::family::{Family, LeftOut};
use crate::plan::{FleetSettings, OutagePolicy};
use crate::scheme::builder::secret_files::resolve_path;
use crate::text::{ConfigError, Span, parse_size};

/// Maximum length of the address of subscriptions, in bytes.
const MAX_ADDRESS: usize = 512;

/// Keys of `[fleet]`.
pub(super) static FLEET_KEYS: [FileKey; 12] = [
    FileKey::new(
        "membership",
        ValueType::Text,
        "The file that `adit fleet init` or `adit fleet join` has written.",
    )
    .required(),
    FileKey::new(
        "state",
        ValueType::Text,
        "The folder of the local copy of the users and of usage that is not stored yet; without it, that of `membership`.",
    ),
    FileKey::new(
        "cache_max_age",
        ValueType::Duration,
        "Maximum age of the local copy at a start without the store server.",
    ),
    FileKey::new(
        "require_store",
        ValueType::Boolean,
        "The node is not ready before it has reached the store server.",
    ),
    FileKey::new(
        "grace_bytes",
        ValueType::Text,
        "Bytes that a user with a quota may move while the store server cannot be reached, such as `1GiB`.",
    ),
    FileKey::new(
        "grace_time",
        ValueType::Duration,
        "Time for which users with a quota are served while the store server cannot be reached.",
    ),
    FileKey::new(
        "quota_outage",
        ValueType::Words(|| OutagePolicy::names().collect()),
        "Users with a quota after `grace_bytes` or `grace_time`: `closed` refuses them, `open` serves them.",
    ),
    FileKey::new(
        "replay_outage",
        ValueType::Words(|| OutagePolicy::names().collect()),
        "Sessions under shared keys while other nodes cannot be asked about replays: `open` relies on the filter of this node, `closed` refuses them.",
    ),
    FileKey::new(
        "shared_replay_filter",
        ValueType::Boolean,
        "Check requests under shared keys (`identity=shared`) against those of all nodes.",
    ),
    FileKey::new(
        "drain_grace",
        ValueType::Duration,
        "Time from the request to drain the node until it accepts nothing more.",
    ),
    FileKey::new(
        "drain_timeout",
        ValueType::Duration,
        "Time that open connections of a drained node have to end.",
    ),
    FileKey::new(
        "subscriptions",
        ValueType::Text,
        "The address of the web server that forwards subscriptions to the API of this node, such as `https://vps.example`.",
    ),
];

impl TableReader<'_> {
    /// Reads `[fleet]`.
    pub(super) fn read_fleet_settings(
        &mut self,
        name: Span,
        value: &Value<'_>,
    ) -> Option<FleetSettings> {
        if !Family::Fleet.is_built() {
            self.report_error(LeftOut(Family::Fleet).error_at(name));
            return None;
        }
        let entries = self.read_process_table("fleet", value, &FLEET_KEYS)?;
        let mut found = None;
        let mut settings = FleetSettings::with_membership(PathBuf::new());
        let mut state = None;
        for (key, value) in entries {
            match key.get_ref().as_ref() {
                "membership" => found = Some(self.read_fleet_path("membership", value)),
                "state" => state = self.read_fleet_path("state", value),
                "cache_max_age" => {
                    self.set_duration(&mut settings.cache_max_age, "cache_max_age", value);
                }
                "grace_time" => self.set_duration(&mut settings.grace_time, "grace_time", value),
                "drain_grace" => {
                    self.set_duration(&mut settings.drain_grace, "drain_grace", value);
                }
                "drain_timeout" => {
                    self.set_duration(&mut settings.drain_timeout, "drain_timeout", value);
                }
                "require_store" => {
                    self.set_flag(&mut settings.require_store, "require_store", value);
                }
                "shared_replay_filter" => {
                    let flag = &mut settings.shared_replay_filter;
                    self.set_flag(flag, "shared_replay_filter", value);
                }
                "grace_bytes" => self.set_grace_bytes(&mut settings.grace_bytes, value),
                "quota_outage" => {
                    self.set_policy(&mut settings.quota_outage, "quota_outage", value);
                }
                "replay_outage" => {
                    self.set_policy(&mut settings.replay_outage, "replay_outage", value);
                }
                "subscriptions" => settings.subscriptions = self.read_subscriptions(value),
                // Unknown keys are reported already.
                _ => {}
            }
        }
        let Some(membership) = found else {
            let flaw = ConfigError::new(name, "`[fleet]` without `membership`").with_help(
                "add `membership = \"/var/lib/adit/fleet/membership.json\"`: `adit fleet join` writes it",
            );
            self.report_error(flaw);
            return None;
        };
        let beside = FleetSettings::with_membership(membership?);
        Some(FleetSettings {
            state: state.unwrap_or(beside.state),
            membership: beside.membership,
            ..settings
        })
    }

    fn read_fleet_path(&mut self, key: &str, value: &Value<'_>) -> Option<PathBuf> {
        let text = self.expect_string(value, &format!("`{key}` must be a path"))?;
        if text.is_empty() || text.starts_with('@') {
            let flaw = ConfigError::new(span_of(value.span()), format!("bad path `{text}`"))
                .with_help(format!("`{key}` is a path without `@`"));
            self.report_error(flaw);
            return None;
        }
        Some(resolve_path(self.lookup, text))
    }

    /// Returns the address of subscriptions, which the secret path of a user follows.
    fn read_subscriptions(&mut self, value: &Value<'_>) -> Option<String> {
        let text = self.expect_string(value, "`subscriptions` must be a URL")?;
        let host = text.strip_prefix("https://");
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#@".contains(&byte);
        let is_host = |rest: &str| !rest.is_empty() && !rest.starts_with('/');
        let is_address = host.is_some_and(is_host) && text.bytes().all(is_plain);
        if !is_address || text.len() > MAX_ADDRESS {
            let flaw = ConfigError::new(span_of(value.span()), format!("bad address `{text}`"))
                .with_help("`subscriptions = \"https://vps.example\"`: the path of a user follows");
            self.report_error(flaw);
            return None;
        }
        Some(text.trim_end_matches('/').to_owned())
    }

    fn set_duration(&mut self, setting: &mut Duration, key: &str, value: &Value<'_>) {
        if let Some(duration) = self.read_duration(value, key) {
            *setting = duration;
        }
    }

    fn set_flag(&mut self, setting: &mut bool, key: &str, value: &Value<'_>) {
        match value.get_ref() {
            DeValue::Boolean(yes) => *setting = *yes,
            other => {
                let is = format!("`{key}` must be true or false");
                self.report_wrong_type(span_of(value.span()), &is, other);
            }
        }
    }

    fn set_grace_bytes(&mut self, setting: &mut u64, value: &Value<'_>) {
        let Some(text) = self.expect_string(value, "`grace_bytes` must be a size") else {
            return;
        };
        match parse_size(text) {
            Some(bytes) => *setting = bytes,
            None => {
                let span = span_of(value.span());
                let flaw = ConfigError::new(span, format!("bad size `{text}`"))
                    .with_help("write a number with a unit: `1GiB`, `500MB`");
                self.report_error(flaw);
            }
        }
    }

    fn set_policy(&mut self, setting: &mut OutagePolicy, key: &'static str, value: &Value<'_>) {
        let word = self.read_word(key, value, OutagePolicy::names);
        if let Some(policy) = word.and_then(OutagePolicy::from_name) {
            *setting = policy;
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::path::Path;

    use crate::plan::{FleetSettings, OutagePolicy, Plan};

    const ROUTE: &str = "[route.a]\nlisten = \"mixed://127.0.0.1:0\"\n";

    #[test]
    fn a_fleet_has_defaults_for_everything_but_its_membership() {
        let plan = |text: &str| Plan::from_toml(&format!("{ROUTE}{text}"), "a.toml").unwrap();
        assert_eq!(plan("").fleet, None);
        let fleet = plan("[fleet]\nmembership = \"/f/membership.json\"\n").fleet;
        let defaults = FleetSettings::with_membership("/f/membership.json".into());
        assert_eq!(fleet, Some(defaults));
        let fleet = plan(
            "[fleet]\nmembership = \"/f/membership.json\"\nstate = \"/s\"\ngrace_bytes = \"2MiB\"\n\
             grace_time = \"2m\"\nquota_outage = \"open\"\nreplay_outage = \"closed\"\n\
             require_store = true\nshared_replay_filter = true\ncache_max_age = \"1h\"\n\
             drain_grace = \"1s\"\ndrain_timeout = \"5s\"\nsubscriptions = \"https://a.example:8443/x/\"\n",
        );
        let fleet = fleet.fleet.unwrap();
        assert_eq!(fleet.state, Path::new("/s"));
        assert_eq!(
            (fleet.grace_bytes, fleet.grace_time),
            (2 << 20, Duration::from_secs(120))
        );
        let policies = (fleet.quota_outage, fleet.replay_outage);
        assert_eq!(policies, (OutagePolicy::Open, OutagePolicy::Closed));
        assert!(fleet.require_store && fleet.shared_replay_filter);
        let address = fleet.subscriptions.as_deref();
        assert_eq!(address, Some("https://a.example:8443/x"));
        let times = (fleet.cache_max_age, fleet.drain_grace, fleet.drain_timeout);
        assert_eq!(
            times,
            (
                Duration::from_secs(3600),
                Duration::from_secs(1),
                Duration::from_secs(5)
            )
        );
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, title) in [
            ("[fleet]\n", "`[fleet]` without `membership`"),
            ("[fleet]\nmembership = \"@a\"\n", "bad path `@a`"),
            ("[fleet]\nmembership = 1\n", "`membership` must be a path"),
            (
                "[fleet]\nmembership = \"a\"\ngrace_bytes = \"much\"\n",
                "bad size `much`",
            ),
            (
                "[fleet]\nmembership = \"a\"\nquota_outage = \"opn\"\n",
                "unknown quota_outage `opn`",
            ),
            (
                "[fleet]\nmembership = \"a\"\nrequire_store = 1\n",
                "`require_store` must be true or false",
            ),
            (
                "[fleet]\nmembership = \"a\"\nsubscriptions = \"http://a.example\"\n",
                "bad address `http://a.example`",
            ),
            (
                "[fleet]\nmembership = \"a\"\nsubscriptions = \"https://a b\"\n",
                "bad address `https://a b`",
            ),
            (
                "[fleet]\nmembership = \"a\"\nsubscriptions = \"https:///a\"\n",
                "bad address `https:///a`",
            ),
            (
                "[fleet]\nmembership = \"a\"\nsubscriptions = \"https://a?b\"\n",
                "bad address `https://a?b`",
            ),
            (
                "[fleet]\nmembership = \"a\"\ngrace = 1\n",
                "unknown key `grace`",
            ),
        ] {
            let problems = Plan::from_toml(&format!("{ROUTE}{text}"), "a.toml").unwrap_err();
            assert_eq!(problems.len(), 1, "{text}");
            assert_eq!(problems[0].title, title);
            assert!(problems[0].place.is_some(), "{text}");
        }
    }

    #[test]
    fn listeners_with_users_of_the_fleet_need_one() {
        for url in [
            "ss://2022-blake3-aes-128-gcm@127.0.0.1:0?users=fleet",
            "ss://2022-blake3-aes-128-gcm@127.0.0.1:0?users=fleet&identity=shared",
            "ss://aes-256-gcm@127.0.0.1:0?users=fleet",
            "mixed://127.0.0.1:0?users=fleet",
            "ssr://aes-256-cfb:password@127.0.0.1:0?protocol=auth_aes128_md5&users=fleet",
            "ssh://127.0.0.1:0?users=fleet&host_key=@/nowhere/key",
        ] {
            let text = format!("[route.a]\nlisten = \"{url}\"\n");
            let problems = Plan::from_toml(&text, "a.toml").unwrap_err();
            assert_eq!(problems.len(), 1, "{url}");
            assert!(
                problems[0].title.contains("without `[fleet]`"),
                "{}",
                problems[0].title
            );
            assert!(problems[0].place.is_some(), "{url}");
            let text = format!("{text}[fleet]\nmembership = \"/m\"\n");
            let plan = Plan::from_toml(&text, "a.toml").unwrap();
            assert!(plan.routes[0].listen[0].kind.has_fleet_users(), "{url}");
            let mut kinds = plan.warnings.iter().map(|warning| warning.kind);
            let warned = kinds.any(|kind| kind == crate::WarningKind::SomeUsers);
            assert_eq!(warned, url.contains("ss://aes-256-gcm"), "{url}");
        }
        assert!(Plan::from_words(&["mixed://127.0.0.1:0?users=fleet".to_owned()]).is_err());
    }

    #[test]
    fn wrong_listeners_are_reported() {
        for (url, title) in [
            (
                "ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw==@127.0.0.1:0?users=fleet",
                "a listener with `users=fleet` has no key in its URL",
            ),
            (
                "ss://2022-blake3-chacha20-poly1305@127.0.0.1:0?users=fleet",
                "`2022-blake3-chacha20-poly1305` cannot distinguish users",
            ),
            (
                "ss://aes-256-gcm:a@127.0.0.1:0?identity=shared",
                "`identity` without `users=fleet`",
            ),
            (
                "ssr://aes-256-cfb:password@127.0.0.1:0?users=fleet",
                "the protocol `origin` has no users",
            ),
        ] {
            let text = format!("[route.a]\nlisten = \"{url}\"\n[fleet]\nmembership = \"/m\"\n");
            let problems = Plan::from_toml(&text, "a.toml").unwrap_err();
            assert_eq!(problems.len(), 1, "{url}");
            assert_eq!(problems[0].title, title, "{url}");
        }
    }
}
