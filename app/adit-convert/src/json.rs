//! JSON as people write it in configuration files: JSON5 into a tree, within bounds.
//!
//! Text → [`Json`]. How deep it nests and how many values it holds is bounded while it is read;
//! the length of the text is the caller's to bound. What is wrong comes back with line and column.

use core::cell::Cell;
use core::fmt;

use adit_config::text::Problem;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use zeroize::Zeroizing;

use crate::json_error;

/// Objects and arrays inside each other at most. The formats need five.
pub(super) const MAX_DEPTH: usize = 32;
/// Values in a document at most: 10,000 servers with a hundred fields each.
pub(super) const MAX_VALUES: usize = 1_000_000;

/// A value. Texts can be secrets, so they are wiped and `Debug` does not show them.
#[derive(Clone, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Whole(u64),
    /// Negative, or with a fraction.
    Real(f64),
    Text(Zeroizing<String>),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

/// Reads JSON5: comments, trailing commas, keys without quotation marks.
pub(super) fn parse_json5(text: &str, name: &str) -> Result<Json, Box<Problem>> {
    if too_many_hex_numbers(text) {
        return Err(Box::new(Problem::without_place(
            format!("`{name}` holds too many hexadecimal numbers"),
            "write them as decimal numbers",
        )));
    }
    json5::from_str::<LimitedDocument>(text)
        .map(|document| document.0)
        .map_err(|error| {
            let position = error.position().map(|at| (at.line, at.column));
            let what = match error.code() {
                Some(code) => json_error::error_phrase(code),
                // Without the position, which the place has.
                None => strip_position(&error.to_string()).to_owned(),
            };
            Box::new(json_error::problem_at(text, name, position, &what))
        })
}

/// Reads JSON (RFC 8259) and nothing beyond it: what machines exchange.
pub(super) fn parse_strict(text: &str, name: &str) -> Result<Json, Box<Problem>> {
    serde_json::from_str::<LimitedDocument>(text)
        .map(|document| document.0)
        .map_err(|error| {
            let position = (error.line() > 0)
                .then(|| (error.line() - 1, error.column().saturating_sub(1)))
                .filter(|_| !error.is_eof());
            let text_of = error.to_string();
            Box::new(json_error::problem_at(
                text,
                name,
                position,
                strip_position(&text_of),
            ))
        })
}

fn strip_position(message: &str) -> &str {
    message
        .rsplit_once(" at line ")
        .map_or(message, |(message, _)| message)
}

/// The JSON5 reader works out the place of each digit of a hexadecimal number, for an error that
/// rarely comes, by counting from the start. The product of both is bounded.
fn too_many_hex_numbers(text: &str) -> bool {
    let numbers = text.matches("0x").count() + text.matches("0X").count();
    numbers.saturating_mul(text.len()) > 1 << 28
}

struct LimitedDocument(Json);

impl<'de> serde::Deserialize<'de> for LimitedDocument {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let left = Cell::new(MAX_VALUES);
        let value = ValueSeed {
            depth: 0,
            values_left: &left,
        };
        value.deserialize(from).map(Self)
    }
}

/// Reads one value at a depth, and what is left of the budget.
#[derive(Clone, Copy)]
struct ValueSeed<'a> {
    depth: usize,
    values_left: &'a Cell<usize>,
}

impl ValueSeed<'_> {
    fn inner_seed<E: Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(E::custom(format_args!(
                "more than {MAX_DEPTH} objects and arrays inside each other"
            )));
        }
        Ok(Self {
            depth: self.depth + 1,
            ..self
        })
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Json, D::Error> {
        match self.values_left.get().checked_sub(1) {
            Some(left) => self.values_left.set(left),
            None => {
                let why = format_args!("more than {MAX_VALUES} values");
                return Err(D::Error::custom(why));
            }
        }
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Whole(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json, E> {
        match u64::try_from(value) {
            Ok(value) => Ok(Json::Whole(value)),
            // Nothing in these formats is negative; only that it is one matters.
            Err(_) => Ok(Json::Real(-1.0)),
        }
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Real(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(Zeroizing::new(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::Text(Zeroizing::new(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Json, A::Error> {
        let inner = self.inner_seed()?;
        let mut items = Vec::new();
        while let Some(item) = from.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Json, A::Error> {
        let inner = self.inner_seed()?;
        let mut entries = Vec::new();
        while let Some(key) = from.next_key()? {
            entries.push((key, from.next_value_seed(inner)?));
        }
        Ok(Json::Object(entries))
    }
}

impl Json {
    /// The type's name, for messages.
    pub(super) const fn kind_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Whole(_) | Self::Real(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// True for what says the same as leaving the field away.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Null | Self::Bool(false) | Self::Whole(0) => true,
            Self::Text(text) => text.is_empty(),
            Self::List(items) => items.is_empty(),
            Self::Object(entries) => entries.is_empty(),
            Self::Bool(true) | Self::Whole(_) | Self::Real(_) => false,
        }
    }

    /// The text of a text.
    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number, also between quotation marks: both are found in files.
    pub(super) fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Whole(number) => Some(*number),
            Self::Real(number) if number.fract() == 0.0 && (0.0..1e9).contains(number) => {
                format!("{number:.0}").parse().ok()
            }
            Self::Text(text) if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
            _ => None,
        }
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(entries) => f
                .debug_map()
                .entries(entries.iter().map(|(key, value)| (key, value)))
                .finish(),
            Self::List(items) => f.debug_list().entries(items).finish(),
            other => f.write_str(other.kind_name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json5_is_read() {
        let text =
            "\u{feff}// comment\n{ a: 'x', \"b\": [1, 2.5, -3, true, null,], /* c */ c: {},}";
        let read = parse_json5(text.trim_start_matches('\u{feff}'), "a.json").unwrap();
        let Json::Object(entries) = read else {
            panic!("no object")
        };
        assert_eq!(entries[0].1.as_str(), Some("x"));
        assert_eq!(
            entries[1].1,
            Json::List(vec![
                Json::Whole(1),
                Json::Real(2.5),
                Json::Real(-1.0),
                Json::Bool(true),
                Json::Null
            ])
        );
        assert!(entries[2].1.is_empty());
        assert!(parse_strict(text, "a.json").is_err());
    }

    #[test]
    fn numbers_between_quotation_marks_are_numbers() {
        assert_eq!(parse_json5("'8388'", "").unwrap().as_u64(), Some(8388));
        assert_eq!(parse_json5("8388.0", "").unwrap().as_u64(), Some(8388));
        assert_eq!(parse_json5("-1", "").unwrap().as_u64(), None);
        assert_eq!(parse_json5("''", "").unwrap().as_u64(), None);
        assert_eq!(parse_json5("NaN", "").unwrap().as_u64(), None);
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse_json5(&deep(MAX_DEPTH), "").is_ok());
        for read in [parse_json5, parse_strict] {
            let why = read(&deep(MAX_DEPTH + 1), "").unwrap_err();
            assert!(why.title.contains("inside each other"), "{why}");
            assert!(read(&"[".repeat(200_000), "").is_err());
            assert!(read(&format!("1 {}", "[".repeat(200_000)), "").is_err());
            let many = format!("[{}0]", "0,".repeat(MAX_VALUES));
            let why = read(&many, "").unwrap_err();
            assert!(why.title.contains("values"), "{why}");
        }
        let hex = format!("[{}0]", "0x1,".repeat(100_000));
        assert!(parse_json5(&hex, "").is_err());
    }

    #[test]
    fn debug_shows_no_text() {
        let json = parse_json5("{password: 'hunter2', l: ['hunter3']}", "").unwrap();
        assert!(!format!("{json:?}").contains("hunter"));
    }
}
