//! The syntax of TOML, parsed within bounds of time and memory.

use toml::Spanned;
use toml::de::DeTable;
use toml_parser::Source;

use super::reader::span_of;
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
