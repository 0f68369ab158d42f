//! A reader of JSON that keeps nothing but its place: values are visited in their order.
//!
//! Comments and commas before a closing bracket are allowed, as in the documents of sing-box.

use super::limits::{Place, ReadError};

/// The place in a document.
pub(super) struct Json<'a> {
    rest: &'a [u8],
    line: usize,
    /// Levels that may still be entered.
    depth: usize,
    max_depth: usize,
}

impl<'a> Json<'a> {
    pub(super) const fn new(document: &'a [u8], depth: usize) -> Self {
        Self {
            rest: document,
            line: 1,
            depth,
            max_depth: depth,
        }
    }

    pub(super) const fn place(&self) -> Place {
        Place::Line(self.line)
    }

    pub(super) const fn error(&self, expected: &'static str) -> ReadError {
        ReadError::Syntax {
            place: self.place(),
            expected,
        }
    }

    /// Returns the first byte of the next value or mark.
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.rest {
                [b'\n', rest @ ..] => {
                    self.line += 1;
                    self.rest = rest;
                }
                [b' ' | b'\t' | b'\r', rest @ ..] => self.rest = rest,
                [b'#', ..] | [b'/', b'/', ..] => {
                    let line = self.rest.split(|byte| *byte == b'\n').next();
                    self.rest = adit_wire::subslice(self.rest, line.map_or(0, <[u8]>::len)..);
                }
                [b'/', b'*', rest @ ..] => {
                    let end = rest.windows(2).position(|pair| pair == b"*/")?;
                    let (comment, _) = rest.split_at(end);
                    self.line += comment.iter().filter(|byte| **byte == b'\n').count();
                    self.rest = adit_wire::subslice(rest, end + 2..);
                }
                [byte, ..] => return Some(*byte),
                [] => return None,
            }
        }
    }

    /// Passes a mark if it is next.
    fn accept(&mut self, mark: u8) -> bool {
        let found = self.peek() == Some(mark);
        if found && let [_, rest @ ..] = self.rest {
            self.rest = rest;
        }
        found
    }

    fn enter(&mut self) -> Result<(), ReadError> {
        let too_deep = ReadError::TooDeep(self.max_depth);
        self.depth = self.depth.checked_sub(1).ok_or(too_deep)?;
        Ok(())
    }

    /// Reads an object: `field` reads the value of each key.
    pub(super) fn object(
        &mut self,
        mut field: impl FnMut(&mut Self, &str) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        if !self.accept(b'{') {
            return Err(self.error("an object"));
        }
        self.enter()?;
        while !self.accept(b'}') {
            let key = self.string()?;
            if !self.accept(b':') {
                return Err(self.error("`:`"));
            }
            field(self, &key)?;
            if !self.accept(b',') && self.peek() != Some(b'}') {
                return Err(self.error("`,` or `}`"));
            }
        }
        self.depth += 1;
        Ok(())
    }

    /// Reads an array: `item` reads each value.
    pub(super) fn array(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        if !self.accept(b'[') {
            return Err(self.error("an array"));
        }
        self.enter()?;
        while !self.accept(b']') {
            item(self)?;
            if !self.accept(b',') && self.peek() != Some(b']') {
                return Err(self.error("`,` or `]`"));
            }
        }
        self.depth += 1;
        Ok(())
    }

    /// Reads one value, or an array of them.
    pub(super) fn one_or_many(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        if self.peek() == Some(b'[') {
            self.array(item)
        } else {
            item(self)
        }
    }

    /// Reads a text.
    pub(super) fn string(&mut self) -> Result<String, ReadError> {
        if !self.accept(b'"') {
            return Err(self.error("a text in double quotes"));
        }
        let mut out = Vec::new();
        loop {
            match self.rest {
                [b'"', rest @ ..] => {
                    self.rest = rest;
                    return String::from_utf8(out).map_err(|_| self.error("UTF-8"));
                }
                [b'\\', rest @ ..] => {
                    self.rest = rest;
                    let c = self.escaped().ok_or_else(|| self.error("an escape"))?;
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                [] | [0..0x20, ..] => return Err(self.error("the end of a text")),
                [byte, rest @ ..] => {
                    out.push(*byte);
                    self.rest = rest;
                }
            }
        }
    }

    /// Reads what follows a backslash.
    fn escaped(&mut self) -> Option<char> {
        let [kind, rest @ ..] = self.rest else {
            return None;
        };
        self.rest = rest;
        Some(match kind {
            b'"' | b'\\' | b'/' => char::from(*kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let high = self.hex()?;
                if !(0xd800..0xdc00).contains(&high) {
                    return char::from_u32(high);
                }
                self.rest = self.rest.strip_prefix(b"\\u")?;
                let low = self.hex()?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                char::from_u32(0x10000 + ((high - 0xd800) << 10) + low)?
            }
            _ => return None,
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let (digits, rest) = self.rest.split_first_chunk::<4>()?;
        self.rest = rest;
        let digits = core::str::from_utf8(digits).ok()?;
        let good = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| good)
    }

    /// Reads the letters, digits and signs of a number or a keyword.
    pub(super) fn word(&mut self) -> Result<&'a str, ReadError> {
        self.peek();
        let good = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let len = self.rest.iter().take_while(|byte| good(byte)).count();
        let (word, rest) = self.rest.split_at(len);
        if word.is_empty() {
            return Err(self.error("a value"));
        }
        self.rest = rest;
        // ASCII by its characters.
        Ok(core::str::from_utf8(word).unwrap_or_default())
    }

    /// Reads a truth value.
    pub(super) fn bool(&mut self) -> Result<bool, ReadError> {
        match self.word()? {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.error("`true` or `false`")),
        }
    }

    /// Passes a value of any kind.
    pub(super) fn skip(&mut self) -> Result<(), ReadError> {
        match self.peek() {
            Some(b'{') => self.object(|json, _| json.skip()),
            Some(b'[') => self.array(Self::skip),
            Some(b'"') => self.string().map(drop),
            _ => self.word().map(drop),
        }
    }

    /// Checks that nothing follows.
    pub(super) fn end(&mut self) -> Result<(), ReadError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("the end of the document")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_visited() {
        let text = b"// c\n{ \"a\": [\"x\\u00fc\\ud83d\\ude00\\n\", \"y\",], /* \n */ \"b\": {\"c\": -1.5e3}, # d\n\"e\": true }";
        let mut json = Json::new(text, 3);
        let mut seen = Vec::new();
        json.object(|json, key| {
            if key == "a" {
                return json.array(|json| {
                    seen.push(json.string()?);
                    Ok(())
                });
            }
            seen.push(format!("{key} {}", json.place()));
            json.skip()
        })
        .unwrap();
        json.end().unwrap();
        assert_eq!(seen, ["xü😀\n", "y", "b line 3", "e line 4"]);
    }

    #[test]
    fn wrong_documents_are_refused() {
        for text in [
            "",
            "{",
            "{\"a\"}",
            "{\"a\":1",
            "{\"a\":1 \"b\":2}",
            "[1",
            "\"",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"\\u12\"",
            "/* ",
            "\"\n\"",
            "[1 2]",
            "{a:1}",
        ] {
            let mut json = Json::new(text.as_bytes(), 9);
            assert!(json.skip().and_then(|()| json.end()).is_err(), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(
            Json::new(deep.as_bytes(), 16).skip(),
            Err(ReadError::TooDeep(16))
        );
    }
}
