//! Answers of the server, read without trust.

use redis::Value;

use crate::store::{StoreError, StoreErrorKind};

/// Returns the error of an answer that has another form.
pub(super) fn unexpected<T>() -> Result<T, StoreError> {
    Err(StoreErrorKind::Protocol.into())
}

/// Returns the bytes of a string.
pub(super) fn bytes(value: Value) -> Result<Vec<u8>, StoreError> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) => Ok(text.into_bytes()),
        Value::Okay => Ok(b"OK".to_vec()),
        Value::Int(number) => Ok(number.to_string().into_bytes()),
        _ => unexpected(),
    }
}

/// Returns a text.
pub(super) fn text(value: Value) -> Result<String, StoreError> {
    String::from_utf8(bytes(value)?).or_else(|_| unexpected())
}

/// Returns a number, from an integer or a string.
pub(super) fn number(value: Value) -> Result<u64, StoreError> {
    match value {
        Value::Int(number) => u64::try_from(number).or_else(|_| unexpected()),
        other => text(other)?.parse().or_else(|_| unexpected()),
    }
}

/// Returns a number that may be absent.
pub(super) fn number_or_zero(value: Value) -> Result<u64, StoreError> {
    match value {
        Value::Nil => Ok(0),
        value => number(value),
    }
}

/// Returns the number of a user or node.
pub(super) fn id(value: Value) -> Result<u32, StoreError> {
    u32::try_from(number(value)?).or_else(|_| unexpected())
}

/// Returns a value that may be absent.
pub(super) fn optional(value: Value) -> Option<Value> {
    match value {
        Value::Nil => None,
        value => Some(value),
    }
}

/// Returns the items of a list; none if it is absent.
pub(super) fn list(value: Value) -> Result<Vec<Value>, StoreError> {
    match value {
        Value::Array(items) | Value::Set(items) => Ok(items),
        Value::Nil => Ok(Vec::new()),
        Value::Map(pairs) => Ok(pairs
            .into_iter()
            .flat_map(|(key, value)| [key, value])
            .collect()),
        _ => unexpected(),
    }
}

/// Returns the items of a list with exactly `N`.
pub(super) fn array<const N: usize>(value: Value) -> Result<[Value; N], StoreError> {
    list(value)?.try_into().or_else(|_| unexpected())
}

/// Returns the items of a list in pairs.
pub(super) fn pairs(value: Value) -> Result<Vec<(Value, Value)>, StoreError> {
    let mut items = list(value)?.into_iter();
    let mut pairs = Vec::with_capacity(items.len() / 2);
    while let Some(first) = items.next() {
        pairs.push((first, items.next().ok_or(StoreErrorKind::Protocol)?));
    }
    Ok(pairs)
}

/// Returns the value of a field in a list of fields and values.
pub(super) fn field(fields: &mut Vec<(Value, Value)>, name: &[u8]) -> Option<Value> {
    let is_it = |(key, _): &(Value, Value)| matches!(key, Value::BulkString(key) if key == name);
    let index = fields.iter().position(is_it)?;
    Some(fields.swap_remove(index).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn numbers_come_in_two_forms() {
        assert_eq!(number(Value::Int(5)), Ok(5));
        assert_eq!(number(string("5")), Ok(5));
        assert_eq!(number_or_zero(Value::Nil), Ok(0));
        for wrong in [Value::Int(-1), string("x"), string(""), Value::Nil] {
            number(wrong).unwrap_err();
        }
        id(Value::Int(1 << 32)).unwrap_err();
    }

    #[test]
    fn lists_have_the_expected_form() {
        let three = || Value::Array(vec![Value::Int(1), Value::Int(2), Value::Int(3)]);
        pairs(three()).unwrap_err();
        array::<2>(three()).unwrap_err();
        list(Value::Int(1)).unwrap_err();
        let mut fields = pairs(Value::Array(vec![string("a"), Value::Int(1)])).unwrap();
        assert_eq!(field(&mut fields, b"b"), None);
        assert_eq!(field(&mut fields, b"a"), Some(Value::Int(1)));
    }
}
