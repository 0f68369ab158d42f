//! `[run]`: settings of the process.

use toml::de::DeValue;

use super::file_keys::{FileKey, ValueType};
use super::table_reader::{TableReader, Value, span_of};
use crate::plan::RunSettings;

/// Keys of `[run]`.
pub(super) static RUN_KEYS: [FileKey; 3] = [
    FileKey::new(
        "watch",
        ValueType::Boolean,
        "Reload when a file changes that the configuration consists of or refers to.",
    ),
    FileKey::new(
        "drain",
        ValueType::Duration,
        "Time that open connections have to end after SIGTERM.",
    ),
    FileKey::new(
        "dns",
        ValueType::Text,
        "The DNS table of routes without one, for the servers that chains of DNS tables name, and for the URLs of rule sets.",
    ),
];

impl TableReader<'_> {
    /// Reads `[run]`: settings of the process, and the default DNS table.
    pub(super) fn read_run_settings(&mut self, value: &Value<'_>) -> (RunSettings, Option<String>) {
        let mut settings = RunSettings::default();
        let mut dns = None;
        let span = span_of(value.span());
        let DeValue::Table(table) = value.get_ref() else {
            self.report_wrong_type(span, "`run` must be a table", value.get_ref());
            return (settings, dns);
        };
        for (key, value) in self.known_entries(table, &RUN_KEYS, "`[run]`") {
            let span = span_of(value.span());
            if key.get_ref() == "dns" {
                dns = self.read_dns_reference(value);
                continue;
            }
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("watch", DeValue::Boolean(yes)) => settings.watch = *yes,
                ("watch", other) => {
                    self.report_wrong_type(span, "`watch` must be true or false", other);
                }
                _ => {
                    if let Some(drain) = self.read_duration(value, "drain") {
                        settings.drain = drain;
                    }
                }
            }
        }
        (settings, dns)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use crate::plan::{Plan, RunSettings};

    const ROUTE: &str = "[route.a]\nlisten = \"mixed://127.0.0.1:0\"\n";

    #[test]
    fn settings_of_the_process_are_read() {
        let plan = |text: &str| Plan::from_toml(&format!("{ROUTE}{text}"), "a.toml").unwrap();
        assert_eq!(plan("").run, RunSettings::default());
        let run = plan("[run]\nwatch = true\ndrain = \"2m\"\n").run;
        assert_eq!((run.watch, run.drain), (true, Duration::from_secs(120)));
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, title) in [
            ("[run]\nwatch = 1\n", "`watch` must be true or false"),
            ("[run]\ndrain = \"soon\"\n", "bad duration `soon`"),
            (
                "[run]\ndrain = 30\n",
                "`drain` must be a duration, such as \"30s\"",
            ),
            ("[run]\nwach = true\n", "unknown key `wach`"),
        ] {
            let problems = Plan::from_toml(&format!("{ROUTE}{text}"), "a.toml").unwrap_err();
            assert_eq!(problems.len(), 1, "{text}");
            assert_eq!(problems[0].title, title);
            assert_eq!(problems[0].place.as_ref().unwrap().line, 4, "{text}");
        }
    }
}
