//! Where JSON breaks: line, column and a line that shows no secret.
//!
//! The text may be broken in any way, so a secret could stand anywhere, without its field's name
//! or its quotation marks. Of the line only what is surely none is shown: punctuation, and names
//! of fields that the formats have.

use adit_config::text::{ConfigError, Origin, Problem, SourceLocation, Span};
use adit_wire::substr;
use json5::ErrorCode;

/// Characters on either side of the place that are looked at.
const CONTEXT_CHARS: usize = 60;
const REPLACEMENT: &str = "***";
const HINT: &str = "comments and a comma behind the last value are fine; texts stand between \
                    quotation marks, fields are separated by commas";

/// Words of a line that may be shown.
const FIELD_NAMES: &[&str] = &[
    "-",
    "true",
    "false",
    "null",
    "acl",
    "address",
    "balancer",
    "bytes_remaining",
    "bytes_used",
    "cipher",
    "clients",
    "configs",
    "enableTCP",
    "enableUDP",
    "endpoint",
    "fast_open",
    "forward_address",
    "forward_port",
    "iPSKs",
    "id",
    "listen",
    "local_address",
    "localPort",
    "local_port",
    "locals",
    "method",
    "mode",
    "name",
    "network",
    "obfs",
    "obfs_param",
    "obfsparam",
    "outbound_proxy",
    "outbounds",
    "password",
    "plugin",
    "plugin_mode",
    "plugin_opts",
    "port_password",
    "proxies",
    "proxy-groups",
    "protocol",
    "protocol_param",
    "protocolparam",
    "psk",
    "redirect",
    "remarks",
    "router",
    "server",
    "server_port",
    "servers",
    "tag",
    "tcpListeners",
    "timeout",
    "tunnelRemoteAddress",
    "tunnel_address",
    "type",
    "uPSKStorePath",
    "udpListeners",
    "udp_timeout",
    "users",
    "version",
];

/// The problem at a place, counted from 0 in lines and characters; `None` is the end of the text.
pub(super) fn problem_at(
    text: &str,
    name: &str,
    position: Option<(usize, usize)>,
    what: &str,
) -> Problem {
    problem_in(text, name, position, format!("not JSON: {what}"), HINT)
}

/// The same, with another title and hint.
pub(super) fn problem_in(
    text: &str,
    name: &str,
    position: Option<(usize, usize)>,
    title: String,
    hint: &str,
) -> Problem {
    let (line_number, line, column) = match position {
        Some((line, column)) => (line, nth_line(text, line), column),
        None => {
            let line = text.lines().count().saturating_sub(1);
            let last = nth_line(text, line);
            (line, last, last.trim_end().chars().count())
        }
    };
    let from = column.saturating_sub(CONTEXT_CHARS);
    let before: String = line.chars().skip(from).take(column - from).collect();
    let behind: String = line.chars().skip(column).take(CONTEXT_CHARS).collect();
    // Both sides are covered for themselves: a word around the place is cut into two that are
    // not names.
    let before = redact_words(&before);
    let caret = (before.chars().count(), 1);
    let place = SourceLocation {
        origin: Origin::File(name.to_owned()),
        line: line_number + 1,
        column: column + 1,
        snippet: before + &redact_words(&behind),
        caret,
    };
    ConfigError::new(Span::default(), title)
        .with_help(hint)
        .into_problem(place)
}

/// The line terminators of JSON5 (ECMAScript 5.1, section 7.3).
pub(super) const LINE_TERMINATORS: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];

fn nth_line(text: &str, n: usize) -> &str {
    let mut rest = text;
    for _ in 0..n {
        let Some(end) = rest.find(LINE_TERMINATORS) else {
            return "";
        };
        let behind = substr(rest, end..);
        let behind = behind.strip_prefix("\r\n").unwrap_or_else(|| {
            let mut chars = behind.chars();
            chars.next();
            chars.as_str()
        });
        rest = behind;
    }
    rest.split(LINE_TERMINATORS).next().unwrap_or_default()
}

fn redact_words(line: &str) -> String {
    let mut shown = String::new();
    let punctuation =
        |c: char| c.is_whitespace() || matches!(c, '{' | '}' | '[' | ']' | ':' | ',' | '"' | '\'');
    for word in line.split_inclusive(punctuation) {
        let end = word.chars().next_back().filter(|c| punctuation(*c));
        let word = end.map_or(word, |c| word.strip_suffix(c).unwrap_or(word));
        if word.is_empty() || FIELD_NAMES.contains(&word) {
            shown.push_str(word);
        } else {
            shown.push_str(REPLACEMENT);
        }
        shown.extend(end);
    }
    shown
}

/// The reader's finding, as a sentence.
pub(super) fn error_phrase(code: ErrorCode) -> String {
    match code {
        ErrorCode::EofParsingArray => "the text ends inside a list".to_owned(),
        ErrorCode::EofParsingObject => "the text ends inside an object".to_owned(),
        ErrorCode::EofParsingString => "the text ends before a closing quotation mark".to_owned(),
        ErrorCode::EofParsingComment => "the text ends inside a comment".to_owned(),
        ErrorCode::EofParsingValue => "the text ends where a value is expected".to_owned(),
        ErrorCode::LineTerminatorInString => "a line ends inside a text".to_owned(),
        ErrorCode::TrailingCharacters => "something stands behind the end".to_owned(),
        ErrorCode::ExpectedComma => "a comma is missing".to_owned(),
        ErrorCode::ExpectedColon => "a colon is missing".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_the_place_and_no_secret() {
        let text = "{\r\n  \"password\": \"hun,ter 2\" \"method\": \"a\",\n}";
        let problem = crate::json::parse_json5(text, "c.json").unwrap_err();
        assert_eq!(
            problem.to_string(),
            format!(
                "\
error: not JSON: a comma is missing
 --> c.json:2:27
2 |   \"password\": \"***,*** ***\" \"method\": \"***\",
  |                             ^
  = help: {HINT}"
            )
        );
    }

    #[test]
    fn the_end_is_a_place() {
        let problem = crate::json::parse_strict("{\n \"a\": [1\n\n", "c.json").unwrap_err();
        let place = problem.place.unwrap();
        assert_eq!((place.line, place.column), (3, 1));
        // Where the one began that does not end says more.
        let problem = crate::json::parse_json5("{\n \"a\": [1\n\n", "c.json").unwrap_err();
        assert_eq!(problem.title, "not JSON: the text ends inside a list");
        let place = problem.place.unwrap();
        assert_eq!((place.line, place.column), (2, 7));
        let problem = crate::json::parse_strict("{\"a\":}", "c.json").unwrap_err();
        let place = problem.place.unwrap();
        assert_eq!((place.line, place.column), (1, 6));
        assert_eq!(place.snippet, "{\"***\":}");
    }

    #[test]
    fn a_name_cut_by_the_place_is_covered() {
        assert_eq!(redact_words("pass"), "***");
        assert_eq!(redact_words("\"password\":"), "\"password\":");
        assert_eq!(redact_words("ss://x:y@z"), "***:***:***");
    }
}
