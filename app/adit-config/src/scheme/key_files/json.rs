//! JSON with positions: objects are read as pairs, in their order and with repetitions.

use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::text::Span;

/// The pairs of an object. Values are not parsed yet and borrow from the document.
pub(crate) struct ObjectPairs<'a, const MAX: usize>(pub(crate) Vec<(String, &'a RawValue)>);

/// The items of an array.
pub(crate) struct ArrayItems<'a, const MAX: usize>(pub(crate) Vec<&'a RawValue>);

/// Returns the position of `part`, a slice of `document`, in it.
pub(crate) fn span_in(document: &str, part: &str) -> Span {
    let start = part
        .as_ptr()
        .addr()
        .saturating_sub(document.as_ptr().addr());
    Span::of_part(start.min(document.len()), part)
}

/// Returns the text of a value, if it is a string.
pub(crate) fn string_value(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// Returns the message of the JSON parser without the position. It describes the expected input, never
/// the actual one.
pub(crate) fn parser_message(why: &serde_json::Error) -> String {
    if why.is_data() {
        return "a value of the wrong type".to_owned();
    }
    let text = why.to_string();
    text.rsplit_once(" at line ")
        .map_or_else(|| text.clone(), |(text, _)| text.to_owned())
}

/// The visitor that collects pairs or items.
struct CollectVisitor<T>(PhantomData<T>);

impl<'de: 'a, 'a, const MAX: usize> Deserialize<'de> for ObjectPairs<'a, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(CollectVisitor::<Self>(PhantomData))
    }
}

impl<'de: 'a, 'a, const MAX: usize> Deserialize<'de> for ArrayItems<'a, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(CollectVisitor::<Self>(PhantomData))
    }
}

impl<'de: 'a, 'a, const MAX: usize> Visitor<'de> for CollectVisitor<ObjectPairs<'a, MAX>> {
    type Value = ObjectPairs<'a, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    /// Keeps one pair above the limit, so that the caller can detect an excess.
    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut pairs = Vec::new();
        while pairs.len() <= MAX {
            match map.next_entry()? {
                Some(pair) => pairs.push(pair),
                None => return Ok(ObjectPairs(pairs)),
            }
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(ObjectPairs(pairs))
    }
}

impl<'de: 'a, 'a, const MAX: usize> Visitor<'de> for CollectVisitor<ArrayItems<'a, MAX>> {
    type Value = ArrayItems<'a, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Self::Value, S::Error> {
        let mut items = Vec::new();
        while items.len() <= MAX {
            match seq.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(ArrayItems(items)),
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(ArrayItems(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_and_places_are_kept() {
        let text = "{ \"a\": 1,\n\"a\" : \"x\" }";
        let ObjectPairs::<9>(pairs) = serde_json::from_str(text).unwrap();
        let read: Vec<_> = pairs
            .iter()
            .map(|(key, value)| (key.as_str(), value.get(), span_in(text, value.get()).start))
            .collect();
        assert_eq!(read, [("a", "1", 7), ("a", "\"x\"", 16)]);
        assert_eq!(string_value(pairs[1].1).as_deref(), Some("x"));
        assert_eq!(string_value(pairs[0].1), None);
    }

    #[test]
    fn no_more_is_kept_than_one_above_the_limit() {
        let ArrayItems::<2>(items) = serde_json::from_str("[1, 2, 3, 4, 5]").unwrap();
        assert_eq!(items.len(), 3);
        let ObjectPairs::<1>(pairs) = serde_json::from_str(r#"{"a":1,"b":2,"c":3}"#).unwrap();
        assert_eq!(pairs.len(), 2);
        // What is not kept has to be JSON too.
        assert!(serde_json::from_str::<ArrayItems<'_, 1>>("[1, 2, 3, x]").is_err());
    }

    #[test]
    fn complaints_hold_nothing_of_the_text() {
        for text in [
            "[\"hunter2\" \"hunter2\"]",
            "{\"hunter2\"}",
            "[hunter2]",
            "\"hunter2\"",
        ] {
            let why = serde_json::from_str::<ArrayItems<'_, 9>>(text)
                .err()
                .unwrap();
            let shown = parser_message(&why);
            assert!(
                !shown.contains("hunter2") && !shown.contains(" line "),
                "{shown}"
            );
        }
    }
}
