//! One message with its fields, and the formats in which it is written.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use adit_config::LogFormat;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tracing::field::{Field, Visit};
use tracing::{Level, Metadata};

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FieldValue {
    /// Text, to be quoted.
    Text(String),
    /// A number, `true` or `false`.
    Plain(String),
}

/// The prefix of fields that are for traces alone: they would repeat what messages say.
pub(super) const TRACE_PREFIX: &str = "trace.";

/// The fields of a message or a span, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields(pub(super) Vec<(&'static str, FieldValue)>);

impl Fields {
    /// Sets a field. One of an inner span, or of the message, replaces one of an outer span.
    pub(super) fn set(&mut self, name: &'static str, value: FieldValue) {
        if name.starts_with(TRACE_PREFIX) {
            return;
        }
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// Removes the text of the message.
    fn take_message(&mut self) -> String {
        let at = self.0.iter().position(|(name, _)| *name == "message");
        match at.map(|at| self.0.remove(at)) {
            Some((_, FieldValue::Text(text) | FieldValue::Plain(text))) => text,
            None => String::new(),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field.name(), FieldValue::Text(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), FieldValue::Text(value.to_owned()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), FieldValue::Plain(value.to_string()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), FieldValue::Plain(value.to_string()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), FieldValue::Plain(value.to_string()));
    }
}

/// A message with its fields.
#[derive(Debug)]
pub(super) struct LogRecord {
    pub(super) level: Level,
    pub(super) target: String,
    pub(super) message: String,
    pub(super) fields: Fields,
}

/// The way in which text for people is written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HumanStyle {
    /// True if the terminal shows colours.
    pub(super) colours: bool,
    /// True if lines name the module.
    pub(super) shows_target: bool,
}

impl LogRecord {
    /// Creates a record of an event, whose fields include its message.
    pub(super) fn new(metadata: &Metadata<'_>, mut fields: Fields) -> Self {
        let message = fields.take_message();
        Self {
            level: *metadata.level(),
            target: metadata.target().to_owned(),
            message,
            fields,
        }
    }

    /// Returns the line, with its end, for a message at `now`.
    pub(super) fn to_line(
        &self,
        format: LogFormat,
        style: HumanStyle,
        now: Timestamp,
        zone: &TimeZone,
    ) -> String {
        let mut line = match format {
            LogFormat::Human => self.to_human(style, now, zone),
            LogFormat::Json => self.to_json(now),
            LogFormat::Logfmt => self.to_logfmt(now),
        };
        line.push('\n');
        line
    }

    fn to_human(&self, style: HumanStyle, now: Timestamp, zone: &TimeZone) -> String {
        let (dim, colour, end) = match style.colours {
            true => ("\x1b[2m", level_colour(self.level), "\x1b[0m"),
            false => ("", "", ""),
        };
        let time = now.to_zoned_datetime(zone.clone()).strftime("%F %T%:z");
        let mut line = format!("{dim}{time}{end} {colour}{:>5}{end} ", self.level.as_str());
        if style.shows_target {
            let _ = write!(line, "{dim}{}:{end} ", self.target);
        }
        line.push_str(&self.to_text());
        line
    }

    /// Returns the message with its fields, without time and level.
    pub(super) fn to_text(&self) -> String {
        let mut text = escape_controls(&self.message).into_owned();
        for (name, value) in &self.fields.0 {
            if !text.is_empty() {
                text.push(' ');
            }
            push_pair(&mut text, name, value);
        }
        text
    }

    fn to_json(&self, now: Timestamp) -> String {
        let mut line = format!(
            "{{\"time\":\"{now:.3}\",\"level\":\"{}\",\"module\":{},\"message\":{}",
            level_name(self.level),
            json_text(&self.target),
            json_text(&self.message)
        );
        for (name, value) in &self.fields.0 {
            let value = match value {
                FieldValue::Text(text) => json_text(text),
                FieldValue::Plain(text) => text.clone(),
            };
            let _ = write!(line, ",{}:{value}", json_text(name));
        }
        line.push('}');
        line
    }

    fn to_logfmt(&self, now: Timestamp) -> String {
        let mut line = format!(
            "time={now:.3} level={} module={} ",
            level_name(self.level),
            self.target
        );
        push_pair(&mut line, "msg", &FieldValue::Text(self.message.clone()));
        for (name, value) in &self.fields.0 {
            line.push(' ');
            push_pair(&mut line, name, value);
        }
        line
    }
}

/// Appends `name=value`, with the value in quotes if it would be ambiguous.
fn push_pair(line: &mut String, name: &str, value: &FieldValue) {
    let (FieldValue::Text(text) | FieldValue::Plain(text)) = value;
    let is_bare = !text.is_empty()
        && text
            .chars()
            .all(|c| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '=' | '\\'));
    let _ = match is_bare {
        true => write!(line, "{name}={text}"),
        false => write!(line, "{name}={}", json_text(text)),
    };
}

/// Returns the text as a string of JSON, without control characters.
fn json_text(text: &str) -> String {
    // Text never fails to serialize. DEL and the C1 controls are allowed in JSON, but not on a terminal.
    let quoted = serde_json::to_string(text).unwrap_or_default();
    let mut safe = String::with_capacity(quoted.len());
    for c in quoted.chars() {
        match c.is_control() {
            true => {
                let _ = write!(safe, "\\u{:04x}", u32::from(c));
            }
            false => safe.push(c),
        }
    }
    safe
}

/// Escapes control characters: text of a peer must neither start lines nor control the terminal.
fn escape_controls(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => escaped.extend(c.escape_default()),
            false => escaped.push(c),
        }
    }
    escaped.into()
}

const fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

const fn level_colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        Level::DEBUG => "\x1b[34m",
        Level::TRACE => "\x1b[35m",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> LogRecord {
        let text = |text: &str| FieldValue::Text(text.to_owned());
        LogRecord {
            level: Level::WARN,
            target: "adit_engine::serve".to_owned(),
            message: "closed: \"the\nuser\"".to_owned(),
            fields: Fields(vec![
                ("session", FieldValue::Plain("7".to_owned())),
                ("client", text("192.0.2.1:5")),
                ("user", text("")),
                ("why", text("a b\x1b[31m=\u{9b}")),
            ]),
        }
    }

    fn line(format: LogFormat, style: HumanStyle) -> String {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let now = Timestamp::from_millisecond(1_700_000_000_123).unwrap();
        record().to_line(format, style, now, &zone)
    }

    #[test]
    fn a_line_for_people_has_the_date_and_the_zone() {
        let fields = r#"closed: "the\nuser" session=7 client=192.0.2.1:5 user="" why="a b\u001b[31m=\u009b""#;
        assert_eq!(
            line(LogFormat::Human, HumanStyle::default()),
            format!("2023-11-15 00:13:20+02:00  WARN {fields}\n")
        );
        let style = HumanStyle {
            colours: true,
            shows_target: true,
        };
        assert_eq!(
            line(LogFormat::Human, style),
            format!(
                "\x1b[2m2023-11-15 00:13:20+02:00\x1b[0m \x1b[33m WARN\x1b[0m \
                 \x1b[2madit_engine::serve:\x1b[0m {fields}\n"
            )
        );
    }

    #[test]
    fn programs_get_json_and_logfmt_in_universal_time() {
        let json = line(LogFormat::Json, HumanStyle::default());
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let expected = serde_json::json!({
            "time": "2023-11-14T22:13:20.123Z",
            "level": "warn",
            "module": "adit_engine::serve",
            "message": "closed: \"the\nuser\"",
            "session": 7,
            "client": "192.0.2.1:5",
            "user": "",
            "why": "a b\u{1b}[31m=\u{9b}",
        });
        assert_eq!(value, expected);
        assert!(!json.trim_end().contains(char::is_control), "{json}");
        assert_eq!(
            line(LogFormat::Logfmt, HumanStyle::default()),
            "time=2023-11-14T22:13:20.123Z level=warn module=adit_engine::serve \
             msg=\"closed: \\\"the\\nuser\\\"\" session=7 client=192.0.2.1:5 user=\"\" \
             why=\"a b\\u001b[31m=\\u009b\"\n"
        );
    }

    #[test]
    fn a_field_of_the_message_replaces_that_of_a_span() {
        let mut fields = Fields::default();
        fields.set("client", FieldValue::Text("a".to_owned()));
        fields.set("session", FieldValue::Plain("1".to_owned()));
        fields.set("client", FieldValue::Text("b".to_owned()));
        fields.set("trace.up", FieldValue::Plain("3".to_owned()));
        assert_eq!(
            fields.0,
            [
                ("client", FieldValue::Text("b".to_owned())),
                ("session", FieldValue::Plain("1".to_owned())),
            ]
        );
    }
}
