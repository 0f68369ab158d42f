//! `[log]`: the log of the process.

use core::time::Duration;

use adit_wire::narrow_int;
use toml::de::DeValue;

use super::file_keys::{FileKey, ValueType};
use super::key_tables::NamedSecrets;
use super::table_reader::{TableReader, Value, span_of};
use crate::family::{Family, LeftOut};
use crate::plan::{LogFileSettings, LogFormat, LogLevel, LogSettings, OtlpTarget};
use crate::scheme::builder::secret_files::resolve_path;
use crate::text::{ConfigError, Secret, Span, format_duration};

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

/// Maximum number of headers of these exports.
const MAX_OTLP_HEADERS: usize = 16;
/// Headers that describe the request itself.
const OWN_HEADERS: [&str; 7] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "user-agent",
];

/// Keys of `[log]`.
pub(super) static LOG_KEYS: [FileKey; 8] = [
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
    FileKey::new(
        "otlp_headers",
        ValueType::NamedSecrets(MAX_OTLP_HEADERS),
        "Headers of these exports, such as `Authorization`; each value can be `@FILE` or `$NAME`.",
    ),
];

impl TableReader<'_> {
    /// Reads `[log]`.
    pub(super) fn read_log_settings(&mut self, value: &Value<'_>) -> LogSettings {
        let mut settings = LogSettings::default();
        let Some(entries) = self.read_process_table("log", value, &LOG_KEYS) else {
            return settings;
        };
        let (mut path, mut limits) = (None, None);
        let (mut max_size, mut keep) = (DEFAULT_SIZE, DEFAULT_COUNT);
        let (mut collector, mut interval, mut headers) = (None, None, None);
        let mut of_collector = Vec::new();
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
                "otlp_interval" => {
                    of_collector.push(("otlp_interval", span));
                    interval = self.read_otlp_interval(value);
                }
                "otlp_headers" => {
                    of_collector.push(("otlp_headers", span));
                    headers = self.read_otlp_headers(value);
                }
                // Unknown keys are reported already.
                _ => {}
            }
        }
        match collector {
            Some(url) => {
                let mut target = OtlpTarget::new(&url);
                target.interval = interval.unwrap_or(target.interval);
                target.headers = headers.unwrap_or_default();
                settings.otlp = Some(target);
            }
            None => {
                for (key, span) in of_collector {
                    let flaw = ConfigError::new(span, format!("`{key}` without `otlp`"))
                        .with_help("add `otlp = \"http://127.0.0.1:4318\"`");
                    self.report_error(flaw);
                }
            }
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
        let flaw = flaw.with_nearest(text, words());
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

    /// Reads the headers of exports, with lower-case names.
    fn read_otlp_headers(&mut self, value: &Value<'_>) -> Option<Vec<(String, Secret)>> {
        let kind = NamedSecrets {
            most: MAX_OTLP_HEADERS,
            is_table: "`otlp_headers` must be a table of `NAME = \"VALUE\"`",
            is_text: "the value of a header must be a string",
            owner: "an export",
            plural: "headers",
        };
        let all = self.read_named_secrets(value, &kind)?;
        let mut headers: Vec<(String, Secret)> = Vec::with_capacity(all.len());
        for (name, secret, span) in all {
            let name = name.to_ascii_lowercase();
            let is_known = headers.iter().any(|(known, _)| *known == name);
            match header_flaw(&name, secret.expose(), is_known) {
                None => headers.push((name, secret)),
                Some(flaw) => {
                    let flaw = ConfigError::new(span, flaw);
                    self.report_error(flaw.with_label(format!("of `{name}`")));
                }
            }
        }
        Some(headers)
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

/// Returns the flaw of a header with a lower-case name.
fn header_flaw(name: &str, value: &str, is_known: bool) -> Option<&'static str> {
    if !is_header_name(name) {
        return Some("this is no name of a header");
    }
    if OWN_HEADERS.contains(&name) {
        return Some("adit sets this header itself");
    }
    if is_known {
        return Some("this header is there twice");
    }
    let is_valid = is_header_value(value);
    (!is_valid).then_some("the value of a header is one line of printable ASCII characters")
}

/// Returns true for names as headers have them; RFC 9110 allows a few signs more.
fn is_header_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !name.is_empty() && name.bytes().all(is_plain)
}

/// Returns true for what is sent as the value of a header. Others could add headers, or would be refused.
fn is_header_value(text: &str) -> bool {
    let is_printable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    !text.is_empty() && text == text.trim() && text.bytes().all(is_printable)
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
        let header = "otlp_headers = { Authorization = \"Basic YTpi\", X-Scope-OrgID = \"7\" }";
        let target = settings(&format!("[log]\n{url}\n{header}\n")).otlp.unwrap();
        let headers = target.headers.iter();
        let headers: Vec<_> = headers.map(|(k, v)| (&**k, v.expose())).collect();
        assert_eq!(
            headers,
            [("authorization", "Basic YTpi"), ("x-scope-orgid", "7")]
        );
        assert!(!format!("{target:?}").contains("YTpi"));
        for (text, says) in [
            ("otlp = 1".to_owned(), "`otlp` must be the URL"),
            (
                "otlp = \"127.0.0.1:4318\"".to_owned(),
                "`otlp` must be the URL",
            ),
            ("otlp_interval = \"1s\"".to_owned(), "without `otlp`"),
            (format!("{url}\notlp_interval = \"1ms\""), "too short"),
            (header.to_owned(), "`otlp_headers` without `otlp`"),
            (format!("{url}\notlp_headers = 1"), "must be a table"),
            (format!("{url}\notlp_headers = {{}}"), "1 to 16 headers"),
            (
                format!("{url}\notlp_headers = {{ a = 1 }}"),
                "the value of a header must be a string",
            ),
            (
                format!("{url}\notlp_headers = {{ Host = \"a\" }}"),
                "sets this header itself",
            ),
            (
                format!("{url}\notlp_headers = {{ \"a b\" = \"c\" }}"),
                "no name of a header",
            ),
            (
                format!("{url}\notlp_headers = {{ a = \"b\\nc: d\" }}"),
                "one line",
            ),
            (
                format!("{url}\notlp_headers = {{ a = \"b\", A = \"c\" }}"),
                "twice",
            ),
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
