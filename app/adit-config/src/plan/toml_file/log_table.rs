//! `[log]`: the log of the process.

use core::time::Duration;

use adit_wire::narrow_int;
use toml::de::DeValue;

use super::file_keys::{FileKey, ValueType};
use super::reader::{RouteReader, Value, span_of};
use crate::family::{Family, LeftOut};
use crate::plan::{LogFileSettings, LogFormat, LogLevel, LogSettings, OtlpTarget};
use crate::scheme::builder::secret_files::resolve_path;
use crate::text::{ConfigError, Span, format_duration, nearest_word};

/// Range of `max_size`, in MiB.
const SIZES: (u64, u64) = (1, 1 << 20);
/// `max_size` of a file without one, in MiB.
const DEFAULT_SIZE: u64 = 100;
/// Range of `keep`.
const COUNTS: (u64, u64) = (0, 1000);
/// `keep` of a file without one.
const DEFAULT_COUNT: u64 = 7;

/// Minimum interval of exports over OTLP.
const MIN_OTLP_INTERVAL: Duration = Duration::from_millis(100);

/// Keys of `[log]`.
pub(super) static LOG_KEYS: [FileKey; 7] = [
    FileKey::new(
        "level",
        ValueType::Words(|| LogLevel::names().collect()),
        "What is logged; `-v` on the command line takes precedence.",
    ),
    FileKey::new(
        "format",
        ValueType::Words(|| LogFormat::names().collect()),
        "The format of lines; `--log-format` on the command line takes precedence.",
    ),
    FileKey::new(
        "file",
        ValueType::Text,
        "The log file, instead of standard error; a reload opens it again.",
    ),
    FileKey::new(
        "max_size",
        ValueType::Number(SIZES.0, SIZES.1),
        "Size of the log file, in MiB, after which a new one begins.",
    ),
    FileKey::new(
        "keep",
        ValueType::Number(COUNTS.0, COUNTS.1),
        "Number of earlier log files that are kept; with 0, the file grows until another program renames it.",
    ),
    FileKey::new(
        "otlp",
        ValueType::Text,
        "The URL of a collector that metrics and traces are exported to (OTLP/HTTP); `--otlp` takes precedence.",
    ),
    FileKey::new(
        "otlp_interval",
        ValueType::Duration,
        "Interval of these exports.",
    ),
];

impl RouteReader<'_> {
    /// Reads `[log]`.
    pub(super) fn read_log_settings(&mut self, value: &Value<'_>) -> LogSettings {
        let mut settings = LogSettings::default();
        let Some(entries) = self.read_process_table("log", value, &LOG_KEYS) else {
            return settings;
        };
        let (mut path, mut limits) = (None, None);
        let (mut max_size, mut keep) = (DEFAULT_SIZE, DEFAULT_COUNT);
        let (mut collector, mut interval) = (None, None);
        for (key, value) in entries {
            let span = span_of(value.span());
            match key.get_ref().as_ref() {
                "level" => {
                    settings.level = self
                        .read_word("level", value, LogLevel::names)
                        .and_then(LogLevel::from_name);
                }
                "format" => {
                    settings.format = self
                        .read_word("format", value, LogFormat::names)
                        .and_then(LogFormat::from_name);
                }
                "file" => path = self.read_log_path(value),
                "max_size" => {
                    limits = Some(("max_size", span));
                    let is = "`max_size` must be a number of MiB";
                    max_size = self.read_log_number(value, is, SIZES).unwrap_or(max_size);
                }
                "keep" => {
                    limits = Some(("keep", span));
                    let is = "`keep` must be a number of files";
                    keep = self.read_log_number(value, is, COUNTS).unwrap_or(keep);
                }
                "otlp" => collector = self.read_collector_url(value),
                "otlp_interval" => interval = Some((self.read_otlp_interval(value), span)),
                // Unknown keys are reported already.
                _ => {}
            }
        }
        match (collector, interval) {
            (Some(url), interval) => {
                let mut target = OtlpTarget::new(&url);
                if let Some((Some(interval), _)) = interval {
                    target.interval = interval;
                }
                settings.otlp = Some(target);
            }
            (None, Some((_, span))) => {
                let flaw = ConfigError::new(span, "`otlp_interval` without `otlp`")
                    .with_help("add `otlp = \"http://127.0.0.1:4318\"`");
                self.report_error(flaw);
            }
            (None, None) => {}
        }
        match (path, limits) {
            (Some(path), _) => {
                settings.file = Some(LogFileSettings {
                    path,
                    max_size: max_size << 20,
                    keep: narrow_int(keep),
                });
            }
            (None, Some((key, span))) => {
                let flaw = ConfigError::new(span, format!("`{key}` without `file`")).with_help(
                    "add `file = \"adit.log\"`, or remove it: standard error has no limit",
                );
                self.report_error(flaw);
            }
            (None, None) => {}
        }
        settings
    }

    /// Returns the value of a key, which is one of these words.
    pub(super) fn read_word<'v, I: Iterator<Item = &'static str>>(
        &mut self,
        key: &str,
        value: &'v Value<'_>,
        words: fn() -> I,
    ) -> Option<&'v str> {
        let text = self.expect_string(value, &format!("`{key}` must be a string"))?;
        if words().any(|word| word == text) {
            return Some(text);
        }
        let flaw = ConfigError::new(span_of(value.span()), format!("unknown {key} `{text}`"));
        let flaw = match nearest_word(text, words()) {
            Some(meant) => flaw.with_label(format!("did you mean `{meant}`?")),
            None => flaw,
        };
        let all: Vec<&str> = words().collect();
        self.report_error(flaw.with_help(format!("{key}s: {}", all.join(", "))));
        None
    }

    /// Returns the URL of a collector.
    fn read_collector_url(&mut self, value: &Value<'_>) -> Option<String> {
        let span = span_of(value.span());
        if !Family::Otlp.is_built() {
            self.report_error(LeftOut(Family::Otlp).error_at(span));
            return None;
        }
        let text = self.expect_string(value, "`otlp` must be the URL of a collector")?;
        let is_http = text.starts_with("http://") || text.starts_with("https://");
        if !is_http {
            let flaw = ConfigError::new(span, "`otlp` must be the URL of a collector")
                .with_help("OTLP over HTTP: `otlp = \"http://127.0.0.1:4318\"`");
            self.report_error(flaw);
            return None;
        }
        Some(text.to_owned())
    }

    fn read_otlp_interval(&mut self, value: &Value<'_>) -> Option<Duration> {
        let interval = self.read_duration(value, "otlp_interval")?;
        if interval < MIN_OTLP_INTERVAL {
            let flaw = ConfigError::new(span_of(value.span()), "`otlp_interval` is too short");
            let min = format_duration(MIN_OTLP_INTERVAL);
            self.report_error(flaw.with_help(format!("at least `{min}`")));
            return None;
        }
        Some(interval)
    }

    /// Returns the path of the file. A relative one begins at the folder of the configuration file.
    fn read_log_path(&mut self, value: &Value<'_>) -> Option<std::path::PathBuf> {
        let text = self.expect_string(value, "`file` must be the path of the log file")?;
        if text.is_empty() || text.ends_with('/') {
            let span: Span = span_of(value.span());
            self.report_error(ConfigError::new(
                span,
                "`file` must be the path of the log file",
            ));
            return None;
        }
        Some(resolve_path(self.lookup, text))
    }

    fn read_log_number(
        &mut self,
        value: &Value<'_>,
        is: &str,
        (least, most): (u64, u64),
    ) -> Option<u64> {
        let span = span_of(value.span());
        let DeValue::Integer(number) = value.get_ref() else {
            self.report_wrong_type(span, is, value.get_ref());
            return None;
        };
        let parsed = u64::from_str_radix(number.as_str(), number.radix());
        let parsed = parsed.ok().filter(|number| (least..=most).contains(number));
        if parsed.is_none() {
            let flaw = ConfigError::new(span, is).with_label(format!("from {least} to {most}"));
            self.report_error(flaw);
        }
        parsed
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use crate::plan::{LogFileSettings, LogFormat, LogLevel, LogSettings, Plan};

    const ROUTE: &str = "[route.a]\nlisten = \"mixed://127.0.0.1:0\"\n";

    fn settings(text: &str) -> LogSettings {
        let plan = Plan::from_toml(&format!("{ROUTE}{text}"), "a.toml");
        plan.unwrap().log
    }

    #[test]
    fn settings_of_the_log_are_read() {
        assert_eq!(settings(""), LogSettings::default());
        let text = "[log]\nlevel = \"warn\"\nformat = \"json\"\nfile = \"/a.log\"\nmax_size = 3\nkeep = 0\n";
        let expected = LogSettings {
            level: Some(LogLevel::Warn),
            format: Some(LogFormat::Json),
            file: Some(LogFileSettings {
                path: PathBuf::from("/a.log"),
                max_size: 3 << 20,
                keep: 0,
            }),
            otlp: None,
        };
        assert_eq!(settings(text), expected);
        let file = settings("[log]\nfile = \"/a.log\"\n").file.unwrap();
        assert_eq!((file.max_size, file.keep), (100 << 20, 7));
    }

    #[cfg(feature = "otlp")]
    #[test]
    fn a_collector_has_a_url_and_an_interval() {
        use core::time::Duration;

        let url = "otlp = \"https://otel.example/a\"";
        let target = settings(&format!("[log]\n{url}\n")).otlp.unwrap();
        assert_eq!(target.url, "https://otel.example/a");
        assert_eq!(target.interval, Duration::from_secs(10));
        let text = format!("[log]\n{url}\notlp_interval = \"1m\"\n");
        assert_eq!(settings(&text).otlp.unwrap().interval.as_secs(), 60);
        for (text, says) in [
            ("otlp = 1".to_owned(), "`otlp` must be the URL"),
            (
                "otlp = \"127.0.0.1:4318\"".to_owned(),
                "`otlp` must be the URL",
            ),
            ("otlp_interval = \"1s\"".to_owned(), "without `otlp`"),
            (format!("{url}\notlp_interval = \"1ms\""), "too short"),
        ] {
            let text = format!("{ROUTE}[log]\n{text}\n");
            let errors = Plan::from_toml(&text, "a.toml").unwrap_err();
            let shown: String = errors.iter().map(ToString::to_string).collect();
            assert!(shown.contains(says), "{text}: {shown}");
        }
    }

    #[cfg(not(feature = "otlp"))]
    #[test]
    fn a_collector_that_is_left_out_is_named() {
        let text = format!("{ROUTE}[log]\notlp = \"http://127.0.0.1:4318\"\n");
        let errors = Plan::from_toml(&text, "a.toml").unwrap_err();
        let shown: String = errors.iter().map(ToString::to_string).collect();
        assert!(shown.contains("without the feature `otlp`"), "{shown}");
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, says) in [
            ("level = \"loud\"", "unknown level `loud`"),
            ("format = \"jsn\"", "did you mean `json`?"),
            ("format = 1", "`format` must be a string"),
            ("file = 1", "`file` must be the path"),
            ("file = \"a/\"", "`file` must be the path"),
            ("file = \"a\"\nmax_size = 0", "from 1 to 1048576"),
            (
                "file = \"a\"\nmax_size = \"1M\"",
                "`max_size` must be a number of MiB",
            ),
            ("file = \"a\"\nkeep = -1", "from 0 to 1000"),
            ("keep = 3", "`keep` without `file`"),
            ("max_size = 3", "`max_size` without `file`"),
        ] {
            let text = format!("{ROUTE}[log]\n{text}\n");
            let errors = Plan::from_toml(&text, "a.toml").unwrap_err();
            let shown: String = errors.iter().map(ToString::to_string).collect();
            assert!(
                shown.contains(says) && shown.contains("a.toml:"),
                "{text}: {shown}"
            );
        }
    }
}
