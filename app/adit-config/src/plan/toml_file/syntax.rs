//! The syntax of TOML, parsed within bounds of time and memory.

use toml::Spanned;
use toml::de::DeTable;
use toml_parser::Source;

use super::file_keys::{FileKey, ValueType};
use super::table_reader::span_of;
use crate::text::{ConfigError, Span};

/// Maximum number of tokens of a file: keys, values, punctuation, blanks, line ends and comments. The parser needs some
/// 80 bytes for each.
const MAX_TOKENS: usize = 1_500_000;
/// Maximum number of tokens of a file of which all errors are reported, instead of the first: each needs some 100 bytes.
const MAX_TOKENS_FOR_ALL_ERRORS: usize = 100_000;

/// An error of the syntax.
pub(super) struct SyntaxError {
    pub(super) flaw: ConfigError,
}

/// Parses a file. A file with errors has a table of the other parts, or an empty one.
pub(super) fn parse_table(text: &str) -> (Spanned<DeTable<'_>>, Vec<SyntaxError>) {
    let without = |flaw| {
        let table = Spanned::new(0..0, DeTable::new());
        (table, vec![SyntaxError { flaw }])
    };
    let mut tokens = 0;
    for token in Source::new(text).lex() {
        tokens += 1;
        if tokens > MAX_TOKENS {
            let at = token.span();
            let flaw = ConfigError::new(Span::new(at.start(), at.end()), "the file is too complex");
            return without(
                flaw.with_label("the maximum number of values is reached here")
                    .with_help(
                        "move long lists of names and networks to rule sets: `adit help rules`",
                    ),
            );
        }
    }
    if tokens > MAX_TOKENS_FOR_ALL_ERRORS {
        return match DeTable::parse(text) {
            Ok(table) => (table, Vec::new()),
            Err(error) => without(to_flaw(&error)),
        };
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    let errors = errors.iter().map(|error| SyntaxError {
        flaw: to_flaw(error),
    });
    (table, errors.collect())
}

/// Returns the ranges of a line of a broken file that can be secrets: all words but those of the format. `keys` are those
/// of the file.
pub(super) fn unknown_words(line: &str, keys: &[FileKey]) -> Vec<Span> {
    let is_separator = |c: char| {
        c.is_whitespace() || matches!(c, '[' | ']' | '{' | '}' | '=' | ',' | '.' | '"' | '\'')
    };
    let mut found: Vec<Span> = Vec::new();
    let mut start = 0;
    for part in line.split_inclusive(is_separator) {
        let word = part.strip_suffix(is_separator).unwrap_or(part);
        if !word.is_empty() && !is_word_of_format(word, keys) {
            let span = Span::of_part(start, word);
            match found.last_mut() {
                // A host or a number with dots is one word.
                Some(last) if last.end + 1 == start && line.get(last.end..start) == Some(".") => {
                    last.end = span.end;
                }
                _ => found.push(span),
            }
        }
        start += part.len();
    }
    found
}

/// True if a word is `true`, `false`, or a key of one of the tables.
fn is_word_of_format(word: &str, keys: &[FileKey]) -> bool {
    matches!(word, "true" | "false" | "#")
        || keys.iter().any(|key| {
            key.name == word
                || match &key.value {
                    ValueType::Table(keys)
                    | ValueType::NamedTables(keys)
                    | ValueType::Tables(keys)
                    | ValueType::SomeTables(keys) => is_word_of_format(word, keys),
                    _ => false,
                }
        })
}

fn to_flaw(error: &toml::de::Error) -> ConfigError {
    let span = error.span().map_or_else(Span::default, span_of);
    let message = error.message().trim();
    ConfigError::new(span, message).with_help(syntax_hint(message))
}

/// Returns a hint on a syntax error by the message of the TOML parser.
fn syntax_hint(message: &str) -> &'static str {
    const HINTS: &[(&str, &str)] = &[
        (
            "duplicate key",
            "a table or a key occurs once: rename one, or remove it",
        ),
        (
            "key with no value",
            "write `KEY = VALUE`, or a table like `[route.main]`",
        ),
        (
            "unquoted key",
            "a key has letters, digits, `-` and `_`; others are between quotation marks",
        ),
        (
            "string values must be quoted",
            "write texts between quotation marks: `listen = \"mixed://127.0.0.1:1080\"`",
        ),
        (
            "escape",
            "write a backslash as `\\\\`, or the text between single quotation marks",
        ),
        (
            "expected non-double-quote",
            "remove the control character, or write it as `\\u00XX`",
        ),
        (
            "string",
            "a text ends with its quotation mark, on the line where it starts",
        ),
        ("recur", "lists and tables are nested less deeply"),
        (
            "array",
            "a list ends with `]`, and its items are separated by commas",
        ),
        (
            "inline table",
            "an inline table ends with `}`, and its keys are separated by commas",
        ),
        ("table", "the name of a table ends with `]`: `[route.main]`"),
    ];
    let found = HINTS.iter().find(|(part, _)| message.contains(part));
    found.map_or(
        "the file is TOML: `adit help config` has examples",
        |(_, hint)| hint,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::plan::toml_file::FILE_KEYS;
    use crate::text::redact_line;

    #[test]
    fn only_the_words_of_the_format_are_shown() {
        for (line, shown) in [
            ("[route.main", "[route.***"),
            (r#"listen = "mixed://127.0.0.1:1"#, r#"listen = "***"#),
            (r#"  "hunter2", 'hunter 2'"#, r#"  "***", '*** ***'"#),
            ("password: hunter2", "*** ***"),
            ("route: # via", "*** # via"),
            (
                r#"{ match = ["a"], resolve = true, "#,
                r#"{ match = ["***"], resolve = true, "#,
            ),
            ("ä€=ß", "***=***"),
            ("a.b.c==", "***=="),
            ("", ""),
        ] {
            let found = redact_line(line, Span::default(), &unknown_words(line, &FILE_KEYS));
            assert_eq!(found.0, shown, "{line}");
        }
    }

    /// A secret of a broken file is not shown, wherever it is.
    #[test]
    fn no_truncated_file_shows_a_secret() {
        let secret = "hunter2";
        let text = format!(
            "[route.a]\nlisten = [\n  \"ss://aes-128-gcm:{secret}@h:1?x={secret}\",\n  '{secret}',\n]\n\
             via = \"\"\"\n{secret}\n\"\"\"\nusers = {{ \"a\" = \"{secret}\", b = '{secret}' }}\n\
             [route.a.users]\nanna = \"{secret}\"\n\"{secret}\"\n{secret}\n"
        );
        for cut in ["\"", "'", "[", "]", "{", "}", "=", ",", "\n", "#"] {
            for (at, _) in text.match_indices(cut) {
                let broken = text[..at].to_owned() + &text[at + cut.len()..];
                for text in [&text[..at], &text[at..], &broken] {
                    let (_, errors) = parse_table(text);
                    if errors.is_empty() {
                        continue;
                    }
                    let problems = Plan::from_toml(text, "a.toml").unwrap_err();
                    for problem in problems {
                        let shown = problem.to_string();
                        assert!(!shown.contains(secret), "{text}\n{shown}");
                    }
                }
            }
        }
    }
}
