//! The data section of MaxMind databases.

use adit_wire::Reader;

/// Maximum levels of values inside of values.
const MAX_DEPTH: usize = 16;

/// A value, without what is inside of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Text(&'a str),
    Number(u64),
    /// A map with this number of pairs, which follow.
    Map(usize),
    /// An array with this number of values, which follow.
    Array(usize),
    Other,
}

/// The data of a database, and the number of values that may still be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data<'a> {
    section: &'a [u8],
    budget: usize,
}

impl<'a> Data<'a> {
    pub(super) const fn new(section: &'a [u8], budget: usize) -> Self {
        Self { section, budget }
    }

    fn at(&self, offset: usize) -> Option<Reader<'a>> {
        self.section.get(offset..).map(Reader::new)
    }

    /// Reads a value. Returns it with the place of what is inside, which is elsewhere after a pointer.
    fn value(&mut self, from: &mut Reader<'a>) -> Option<(Value<'a>, Option<Reader<'a>>)> {
        self.budget = self.budget.checked_sub(1)?;
        let control = from.u8().ok()?;
        if control >> 5 == 1 {
            let target = read_pointer(control, from)?;
            let mut there = self.at(target)?;
            // A pointer to a pointer is not allowed.
            let control = there.u8().ok()?;
            if control >> 5 == 1 {
                return None;
            }
            let value = read_plain(control, &mut there)?;
            return Some((value, Some(there)));
        }
        let value = read_plain(control, from)?;
        Some((value, None))
    }

    /// Passes the values inside of one.
    fn skip(&mut self, value: Value<'a>, from: &mut Reader<'a>, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let count = match value {
            Value::Map(pairs) => pairs.checked_mul(2)?,
            Value::Array(count) => count,
            _ => return Some(()),
        };
        for _ in 0..count {
            let (inner, elsewhere) = self.value(from)?;
            if elsewhere.is_none() {
                self.skip(inner, from, depth)?;
            }
        }
        Some(())
    }

    /// Finds the value of a key in the map at `offset`, and calls `found` with it and the place of what is
    /// inside. Returns `None` if the data is damaged, and `Some(None)` if there is no such key.
    fn find(
        &mut self,
        mut place: Reader<'a>,
        pairs: usize,
        wanted: &str,
    ) -> Option<Option<(Value<'a>, Reader<'a>)>> {
        for _ in 0..pairs {
            let (key, _) = self.value(&mut place)?;
            let Value::Text(key) = key else { return None };
            let (value, elsewhere) = self.value(&mut place)?;
            if key == wanted {
                return Some(Some((value, elsewhere.unwrap_or(place))));
            }
            if elsewhere.is_none() {
                self.skip(value, &mut place, MAX_DEPTH)?;
            }
        }
        Some(None)
    }

    /// Returns the number at a key of the map at `offset`.
    pub(super) fn number(&mut self, offset: usize, key: &str) -> Option<u64> {
        let mut place = self.at(offset)?;
        let (Value::Map(pairs), None) = self.value(&mut place)? else {
            return None;
        };
        match self.find(place, pairs, key)?? {
            (Value::Number(number), _) => Some(number),
            _ => None,
        }
    }

    /// True if the record at `offset` is of the country: a text, a list of texts, or a map whose `country`,
    /// or else `registered_country`, has the `iso_code`. `None` if the data is damaged.
    pub(super) fn is_of(&mut self, offset: usize, code: &str) -> Option<bool> {
        let mut place = self.at(offset)?;
        let (value, elsewhere) = self.value(&mut place)?;
        let mut place = elsewhere.unwrap_or(place);
        match value {
            Value::Text(own) => Some(own.eq_ignore_ascii_case(code)),
            Value::Array(count) => {
                let mut found = false;
                for _ in 0..count {
                    let (value, elsewhere) = self.value(&mut place)?;
                    match value {
                        Value::Text(own) => found |= own.eq_ignore_ascii_case(code),
                        other if elsewhere.is_none() => self.skip(other, &mut place, MAX_DEPTH)?,
                        _ => {}
                    }
                }
                Some(found)
            }
            Value::Map(pairs) => {
                for key in ["country", "registered_country"] {
                    let Some((Value::Map(inner), inside)) = self.find(place, pairs, key)? else {
                        continue;
                    };
                    if let Some((Value::Text(own), _)) = self.find(inside, inner, "iso_code")? {
                        return Some(own.eq_ignore_ascii_case(code));
                    }
                }
                Some(false)
            }
            Value::Number(_) | Value::Other => Some(false),
        }
    }
}

fn read_pointer(control: u8, from: &mut Reader<'_>) -> Option<usize> {
    let high = u64::from(control & 7);
    let (len, add) = match control >> 3 & 3 {
        0 => (1, 0),
        1 => (2, 2048),
        2 => (3, 526_336),
        _ => return usize::try_from(read_number(from.take(4).ok()?)).ok(),
    };
    let low = read_number(from.take(len).ok()?);
    usize::try_from((high << (8 * len)) + low + add).ok()
}

/// Reads a value that is not a pointer, after its control byte.
fn read_plain<'a>(control: u8, from: &mut Reader<'a>) -> Option<Value<'a>> {
    let kind = match control >> 5 {
        0 => from.u8().ok()?.checked_add(7)?,
        kind => kind,
    };
    let size = match control & 31 {
        29 => 29 + read_number(from.take(1).ok()?),
        30 => 285 + read_number(from.take(2).ok()?),
        31 => 65_821 + read_number(from.take(3).ok()?),
        short => short.into(),
    };
    let size = usize::try_from(size).ok()?;
    Some(match kind {
        2 => Value::Text(core::str::from_utf8(from.take(size).ok()?).ok()?),
        5 | 6 | 9 if size <= 8 => Value::Number(read_number(from.take(size).ok()?)),
        7 => Value::Map(size),
        11 => Value::Array(size),
        // The size of a truth value is the value.
        14 => Value::Other,
        3 | 4 | 8 | 10 | 15 => {
            from.take(size).ok()?;
            Value::Other
        }
        _ => return None,
    })
}

/// Returns a big-endian number of up to eight bytes.
fn read_number(bytes: &[u8]) -> u64 {
    let shift = |number, byte: &u8| number << 8 | u64::from(*byte);
    bytes.iter().fold(0, shift)
}
