//! Application-defined channel types and requests: a name and opaque bytes (RFC 4254 sections 4,
//! 5.1 and 5.4; names as in RFC 4251 section 6).

/// Maximum length of a name, in bytes (RFC 4251 section 6).
const MAX_NAME: usize = 64;

/// Name and data of a channel type or request that is not built in.
///
/// A name has 1 to 64 printable characters of US-ASCII, without space and comma. A name that is not
/// registered with IANA should end in `@` and a domain of its author (RFC 4251 section 6); others
/// are accepted nevertheless, since programs use them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomMessage {
    name: String,
    data: Vec<u8>,
}

/// Error of creating an [`CustomMessage`] from a name and data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CustomMessageError {
    /// The name is empty, too long, or contains other characters.
    #[error("a name must have 1 to 64 printable characters of US-ASCII, without space and comma")]
    Name,
    /// The data is longer than a message allows.
    #[error("{0} bytes of data exceed the limit of {max} for a message", max = CustomMessage::MAX_DATA)]
    Data(usize),
}

impl CustomMessage {
    /// Maximum length of the data, in bytes. With the name and the fields before the data, a
    /// message stays within the 32,768 bytes that every implementation accepts (RFC 4253 section
    /// 6.1).
    pub const MAX_DATA: usize = 31 << 10;

    /// Creates a value from a name and data.
    ///
    /// # Errors
    /// [`CustomMessageError::Name`] if the name is not valid, [`CustomMessageError::Data`] if the data is longer than
    /// [`CustomMessage::MAX_DATA`].
    pub fn new(
        name: impl Into<String>,
        data: impl Into<Vec<u8>>,
    ) -> Result<Self, CustomMessageError> {
        let (name, data) = (name.into(), data.into());
        if !is_valid_name(name.as_bytes()) {
            return Err(CustomMessageError::Name);
        }
        Self::check_len(data.len())?;
        Ok(Self { name, data })
    }

    /// Checks that `len` bytes of data fit in a message.
    ///
    /// # Errors
    /// [`CustomMessageError::Data`] if `len` exceeds [`CustomMessage::MAX_DATA`].
    pub const fn check_len(len: usize) -> Result<(), CustomMessageError> {
        if len > Self::MAX_DATA {
            return Err(CustomMessageError::Data(len));
        }
        Ok(())
    }

    /// Copies a name and data of the peer; `None`, without copying, if they are not valid.
    pub(super) fn from_wire(name: &[u8], data: &[u8]) -> Option<Self> {
        if !is_valid_name(name) || data.len() > Self::MAX_DATA {
            return None;
        }
        Some(Self {
            name: core::str::from_utf8(name).ok()?.to_owned(),
            data: data.to_vec(),
        })
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the data, which follows the fields that all types have.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns the name and the data.
    #[must_use]
    pub fn into_parts(self) -> (String, Vec<u8>) {
        (self.name, self.data)
    }

    /// Returns the total length of name and data, in bytes.
    #[must_use]
    pub const fn byte_len(&self) -> usize {
        self.name.len() + self.data.len()
    }
}

fn is_valid_name(name: &[u8]) -> bool {
    let fine = |b: &u8| b.is_ascii_graphic() && *b != b',';
    (1..=MAX_NAME).contains(&name.len()) && name.iter().all(fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_data_have_bounds() {
        for name in ["x@example.com", "x", &*"x".repeat(64)] {
            let own = CustomMessage::new(name, *b"data").unwrap();
            assert_eq!((own.name(), own.data()), (name, &b"data"[..]));
            assert_eq!(
                CustomMessage::from_wire(name.as_bytes(), b"data"),
                Some(own)
            );
        }
        for name in [
            "",
            "a b",
            "a,b",
            "a\n",
            "\u{e9}@example.com",
            "\x7f",
            &*"x".repeat(65),
        ] {
            assert_eq!(
                CustomMessage::new(name, []),
                Err(CustomMessageError::Name),
                "{name:?}"
            );
            assert_eq!(CustomMessage::from_wire(name.as_bytes(), b""), None);
        }
        let most = vec![0; CustomMessage::MAX_DATA];
        assert!(
            CustomMessage::new("x", most.clone()).is_ok()
                && CustomMessage::from_wire(b"x", &most).is_some()
        );
        let more = vec![0; CustomMessage::MAX_DATA + 1];
        assert_eq!(CustomMessage::from_wire(b"x", &more), None);
        assert_eq!(
            CustomMessage::new("x", more),
            Err(CustomMessageError::Data(CustomMessage::MAX_DATA + 1))
        );
    }
}
