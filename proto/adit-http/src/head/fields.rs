//! Header fields (RFC 9112 section 5).

/// The fields of one head, in order. [`super::HeadScan`] limits their number.
#[derive(Debug)]
pub(crate) struct Fields<'a>(Vec<Field<'a>>);

/// One header line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) name: &'a [u8],
    /// The value without surrounding blanks.
    pub(crate) value: &'a [u8],
    /// True if there were surrounding blanks.
    blank: bool,
}

impl<'a> Fields<'a> {
    /// Parses the lines after the start line, which [`super::HeadScan`] has accepted.
    pub(crate) fn parse(block: &'a [u8]) -> Result<Self, &'static str> {
        block
            .split(|b| *b == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .filter(|line| !line.is_empty())
            .map(Field::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Field<'a>> {
        self.0.iter()
    }

    /// Returns the values of all fields with that name.
    pub(crate) fn all_values(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.0
            .iter()
            .filter(move |field| field.is_named(name))
            .map(|field| field.value)
    }

    /// Returns the value of the only field with that name; fails if there are several.
    pub(crate) fn single_value(
        &self,
        name: &'static str,
    ) -> Result<Option<&'a [u8]>, &'static str> {
        let mut values = self.all_values(name);
        match (values.next(), values.next()) {
            (first, None) => Ok(first),
            _ => Err(name),
        }
    }

    /// Returns the members of a comma-separated list, over all fields with that name, without empty
    /// ones.
    pub(crate) fn list_members(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.all_values(name)
            .flat_map(|value| value.split(|b| *b == b','))
            .map(trim_blanks)
            .filter(|member| !member.is_empty())
    }

    /// True if a list has that member, compared case-insensitively.
    pub(crate) fn has_member(&self, name: &str, member: &str) -> bool {
        self.list_members(name)
            .any(|found| found.eq_ignore_ascii_case(member.as_bytes()))
    }
}

impl<'a> Field<'a> {
    /// Parses a line. The rule for names also refuses lines that begin with a blank (obs-fold) and
    /// blanks before the colon.
    fn parse(line: &'a [u8]) -> Result<Self, &'static str> {
        let colon = line.iter().position(|b| *b == b':').ok_or("header line")?;
        let (name, value) = line.split_at(colon);
        if !is_token(name) {
            return Err("header name");
        }
        let raw = value.strip_prefix(b":").unwrap_or(value);
        let value = trim_blanks(raw);
        if !value.iter().all(|b| is_text(*b)) {
            return Err("header value");
        }
        let blank = raw.len() > value.len();
        Ok(Self { name, value, blank })
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// Replaces the value, which must not be longer than the old one.
    pub(crate) const fn with_value(self, value: &'a [u8]) -> Self {
        Self { value, ..self }
    }

    /// Appends the line, which is never longer than the original.
    pub(crate) fn write_to(&self, out: &mut Vec<u8>) {
        let colon: &[u8] = if self.blank { b": " } else { b":" };
        for part in [self.name, colon, self.value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
}

/// Trims blanks and tabs on both sides.
pub(crate) fn trim_blanks(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// True for HTAB, SP, VCHAR and obs-text (RFC 9110 section 5.5).
pub(crate) const fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | 0x20..=0x7e | 0x80..)
}

/// True for a `token` (RFC 9110 section 5.6.2).
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|b| is_token_byte(*b))
}

/// True for a `tchar` (RFC 9110 section 5.6.2).
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}
