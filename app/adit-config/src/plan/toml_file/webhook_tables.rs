//! `[[webhook]]`: receivers of events.

use toml::de::DeValue;

use super::file_keys::{FileKey, ValueType};
use super::table_reader::{TableReader, Value, span_of};
use crate::family::{Family, LeftOut};
use crate::plan::{WebhookEventKind, WebhookSettings};
use crate::scheme::builder::secret_files;
use crate::text::{ConfigError, Secret, SecretText, Span};

/// Receivers of a file at most.
const MAX_WEBHOOKS: usize = 16;
/// Bytes of a secret at least.
const MIN_SECRET: usize = 16;

/// Keys of `[[webhook]]`.
pub(super) static WEBHOOK_KEYS: [FileKey; 3] = [
    FileKey::new(
        "url",
        ValueType::Text,
        "The URL that events are sent to, https unless it is on this machine; `$NAME` is a variable.",
    )
    .required(),
    FileKey::new(
        "secret",
        ValueType::FileText,
        "A file with the secret that signs events.",
    )
    .required(),
    FileKey::new(
        "events",
        ValueType::Texts,
        "The events that are sent; without it, all of them.",
    ),
];

impl TableReader<'_> {
    /// Reads the list of receivers.
    pub(super) fn read_webhooks(&mut self, name: Span, value: &Value<'_>) -> Vec<WebhookSettings> {
        if !Family::Admin.is_built() {
            self.report_error(LeftOut(Family::Admin).error_at(name));
            return Vec::new();
        }
        let span = span_of(value.span());
        let DeValue::Array(items) = value.get_ref() else {
            let is = "`webhook` must be a list of tables: `[[webhook]]`";
            self.report_wrong_type(span, is, value.get_ref());
            return Vec::new();
        };
        if items.len() > MAX_WEBHOOKS {
            let title = format!("a file has at most {MAX_WEBHOOKS} `[[webhook]]` tables");
            self.report_error(ConfigError::new(span, title));
            return Vec::new();
        }
        let mut found: Vec<WebhookSettings> = Vec::with_capacity(items.len());
        for item in items.iter() {
            let Some(webhook) = self.read_webhook(item) else {
                continue;
            };
            if found.iter().any(|known| known.url == webhook.url) {
                let title = "two `[[webhook]]` tables with the same `url`";
                let flaw = ConfigError::new(span_of(item.span()), title);
                self.report_error(flaw.with_help("list the events of both in one of them"));
                continue;
            }
            found.push(webhook);
        }
        found
    }

    fn read_webhook(&mut self, value: &Value<'_>) -> Option<WebhookSettings> {
        let span = span_of(value.span());
        let DeValue::Table(table) = value.get_ref() else {
            let is = "`webhook` must be a list of tables: `[[webhook]]`";
            self.report_wrong_type(span, is, value.get_ref());
            return None;
        };
        let entries = self.known_entries(table, &WEBHOOK_KEYS, "`[[webhook]]`");
        let find = |name: &str| {
            let found = entries.iter().find(|(key, _)| key.get_ref() == name);
            found.map(|(_, value)| *value)
        };
        for (key, example) in [
            ("url", "url = \"https://panel.example/hook\""),
            ("secret", "secret = \"@webhook.key\""),
        ] {
            if find(key).is_none() {
                let flaw = ConfigError::new(span, format!("`[[webhook]]` without `{key}`"));
                self.report_error(flaw.with_help(format!("add `{example}`")));
            }
        }
        // All of them are read before one that is wrong ends this function.
        let url = find("url").and_then(|value| self.read_webhook_url(value));
        let secret = find("secret").and_then(|value| self.read_webhook_secret(value));
        let events = match find("events") {
            Some(value) => self.read_webhook_events(value),
            None => Some(WebhookEventKind::all().collect()),
        };
        Some(WebhookSettings {
            url: url?,
            secret: secret?,
            events: events?,
        })
    }

    fn read_webhook_url(&mut self, value: &Value<'_>) -> Option<Secret> {
        let span = span_of(value.span());
        let text = self.expect_string(value, "`url` must be a string")?;
        let url = match text.strip_prefix('$') {
            Some(name) => {
                let written = SecretText::Variable(name.to_owned());
                self.read_webhook_text(&written, span)?
            }
            None => Secret::from(text),
        };
        let is_url = ["https://", "http://"]
            .iter()
            .any(|scheme| url.expose().starts_with(scheme));
        if !is_url {
            let flaw = ConfigError::new(span, "`url` must be a URL: `https://HOST/PATH`");
            self.report_error(flaw);
            return None;
        }
        Some(url)
    }

    fn read_webhook_secret(&mut self, value: &Value<'_>) -> Option<Secret> {
        let span = span_of(value.span());
        let text = self.expect_string(value, "`secret` must be `@FILE`")?;
        let path = self.expect_file_name("secret", text, span, "a secret")?;
        let written = SecretText::File(path.to_owned());
        let secret = self.read_webhook_text(&written, span)?;
        if secret.expose().trim().len() < MIN_SECRET {
            let title = format!("the secret of a webhook has at least {MIN_SECRET} bytes");
            self.report_error(ConfigError::new(span, title));
            return None;
        }
        Some(Secret::from(secret.expose().trim()))
    }

    fn read_webhook_text(&mut self, written: &SecretText, span: Span) -> Option<Secret> {
        let excerpt = self.document.without_url();
        secret_files::read_secret(self.diagnostics, self.lookup, excerpt, written, span)
    }

    fn read_webhook_events(&mut self, value: &Value<'_>) -> Option<Vec<WebhookEventKind>> {
        let words = self.read_strings(value, "`events` must be a list of events");
        let all = words.len();
        let mut events = Vec::with_capacity(all);
        for (word, span) in words {
            match WebhookEventKind::from_name(word) {
                Some(kind) if events.contains(&kind) => {}
                Some(kind) => events.push(kind),
                None => {
                    let flaw = ConfigError::new(span, format!("unknown event `{word}`"));
                    let flaw = flaw.with_nearest(word, WebhookEventKind::names());
                    let names: Vec<&str> = WebhookEventKind::names().collect();
                    self.report_error(flaw.with_help(format!("events: {}", names.join(", "))));
                    return None;
                }
            }
        }
        if events.is_empty() {
            let flaw = ConfigError::new(span_of(value.span()), "`events` is empty")
                .with_help("remove it to receive all events");
            self.report_error(flaw);
            return None;
        }
        Some(events)
    }
}

#[cfg(all(test, feature = "admin"))]
mod tests {
    use std::path::Path;

    use crate::plan::{Plan, WebhookEventKind};
    use crate::text::FileText;
    use crate::text::Sources;

    const ROUTE: &str = "[route.a]\nlisten = \"mixed://127.0.0.1:0\"\n";

    /// Files with a long and a short secret.
    struct Secrets;

    impl Sources for Secrets {
        fn read_file(&self, path: &Path) -> std::io::Result<FileText> {
            let text = match path.file_name().and_then(|name| name.to_str()) {
                Some("long") => "0123456789abcdef0123\n",
                Some("short") => "short\n",
                _ => return Err(std::io::ErrorKind::NotFound.into()),
            };
            Ok(FileText {
                text: text.to_owned().into(),
                readable_by_others: false,
            })
        }

        fn read_variable(&self, name: &str) -> Option<zeroize::Zeroizing<String>> {
            (name == "HOOK").then(|| "https://c.example/x".to_owned().into())
        }
    }

    fn plan(text: &str) -> Result<Plan, String> {
        let text = format!("{ROUTE}{text}");
        Plan::from_toml_with(&text, "a.toml", &Secrets)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn receivers_are_read() {
        let text = "[[webhook]]\nurl = \"https://a.example/x\"\nsecret = \"@long\"\n\
                    [[webhook]]\nurl = \"$HOOK\"\nsecret = \"@long\"\nevents = [\"user.quota\", \"node.down\"]\n";
        let webhooks = plan(text).unwrap().webhooks;
        assert_eq!(webhooks[0].events.len(), WebhookEventKind::all().count());
        assert_eq!(webhooks[0].secret.expose(), "0123456789abcdef0123");
        assert_eq!(webhooks[1].url.expose(), "https://c.example/x");
        assert_eq!(
            webhooks[1].events,
            [WebhookEventKind::UserQuota, WebhookEventKind::NodeDown]
        );
        assert_eq!(plan("").unwrap().webhooks, []);
    }

    #[test]
    fn mistakes_have_a_place() {
        let full = "url = \"https://a.example/x\"\nsecret = \"@long\"\n";
        for (text, says) in [
            ("secret = \"@long\"", "`[[webhook]]` without `url`"),
            ("url = \"https://a\"", "`[[webhook]]` without `secret`"),
            (
                "url = \"a.example\"\nsecret = \"@long\"",
                "`url` must be a URL",
            ),
            (
                "url = \"https://a\"\nsecret = \"abc\"",
                "`secret` must be `@FILE`",
            ),
            (
                "url = \"https://a\"\nsecret = \"@none\"",
                "cannot read `none`",
            ),
            (
                "url = \"https://a\"\nsecret = \"@short\"",
                "at least 16 bytes",
            ),
            ("evnts = []", "unknown key `evnts`"),
            (
                &format!("{full}events = [\"user.qota\"]"),
                "did you mean `user.quota`?",
            ),
            (&format!("{full}events = []"), "`events` is empty"),
            (&format!("{full}[[webhook]]\n{full}"), "the same `url`"),
        ] {
            let shown = plan(&format!("[[webhook]]\n{text}\n")).unwrap_err();
            assert!(
                shown.contains(says) && shown.contains("a.toml:"),
                "{text}: {shown}"
            );
            assert!(!shown.contains("0123456789"), "{shown}");
        }
        let shown = plan("webhook = 1\n").unwrap_err();
        assert!(
            shown.contains("unknown key") || shown.contains("list of tables"),
            "{shown}"
        );
    }
}
