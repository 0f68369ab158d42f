//! The wire format of protocol buffers: fields with a number.

use adit_wire::Reader;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Four or eight bytes of a fixed number, which the formats here do not have.
    Fixed,
}

/// The fields of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(Reader<'a>);

/// The message is cut off or not of the wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WireError;

impl<'a> Fields<'a> {
    pub(super) const fn new(message: &'a [u8]) -> Self {
        Self(Reader::new(message))
    }

    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        let tag = read_varint(&mut self.0)?;
        let value = match tag & 7 {
            0 => Value::Number(read_varint(&mut self.0)?),
            1 => {
                self.0.array::<8>().ok()?;
                Value::Fixed
            }
            2 => {
                let len = usize::try_from(read_varint(&mut self.0)?).ok()?;
                Value::Bytes(self.0.take(len).ok()?)
            }
            5 => {
                self.0.array::<4>().ok()?;
                Value::Fixed
            }
            _ => return None,
        };
        Some((tag >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.rest().is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = Reader::new(&[]);
        }
        Some(field.ok_or(WireError))
    }
}

/// Reads a number of 7 bits per byte, the lowest first.
pub(super) fn read_varint(from: &mut Reader<'_>) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = from.u8().ok()?;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
