//! `[log]`: the log of the process.

use adit_wire::narrow_int;
use toml::de::DeValue;

use super::file_keys::{FileKey, ValueType};
use super::reader::{RouteReader, Value, span_of};
use crate::plan::{LogFileSettings, LogFormat, LogLevel, LogSettings};
use crate::scheme::builder::secret_files::resolve_path;
use crate::text::{ConfigError, Span, nearest_word};

/// Range of `max_size`, in MiB.
const SIZES: (u64, u64) = (1, 1 << 20);
/// `max_size` of a file without one, in MiB.
const DEFAULT_SIZE: u64 = 100;
/// Range of `keep`.
const COUNTS: (u64, u64) = (0, 1000);
/// `keep` of a file without one.
const DEFAULT_COUNT: u64 = 7;

/// Keys of `[log]`.
pub(super) static LOG_KEYS: [FileKey; 5] = [
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
        for (key, value) in entries {
            let span = span_of(value.span());
            match key.get_ref().as_ref() {
                "level" => {
                    settings.level = self
                        .read_log_word("level", value, LogLevel::names)
                        .and_then(LogLevel::from_name);
                }
                "format" => {
                    settings.format = self
                        .read_log_word("format", value, LogFormat::names)
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
                // Unknown keys are reported already.
                _ => {}
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
    fn read_log_word<'v, I: Iterator<Item = &'static str>>(
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
        };
        assert_eq!(settings(text), expected);
        let file = settings("[log]\nfile = \"/a.log\"\n").file.unwrap();
        assert_eq!((file.max_size, file.keep), (100 << 20, 7));
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
