//! Channels and requests of a program's own types: a name and octets that mean nothing here
//! (RFC 4254 sections 4, 5.1 and 5.4; names as in RFC 4251 section 6).

/// Longest name, octets (RFC 4251 section 6).
const MAX_NAME: usize = 64;

/// The name of a channel's type or of a request that is not defined here, and its data.
///
/// A name has 1 to 64 printable characters of US-ASCII, without space and comma. One that is not
/// registered with IANA is to end in `@` and a domain of its inventor (RFC 4251 section 6); others
/// are taken nevertheless, since programs use them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    name: String,
    data: Vec<u8>,
}

/// Why there is no [`Own`] of a name and data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnError {
    /// The name is empty, too long, or has other characters.
    #[error("a name has 1 to 64 printable characters of US-ASCII, without space and comma")]
    Name,
    /// There are more octets of data than a message may have.
    #[error("{0} octets of data, more than the {max} of a message", max = Own::MAX_DATA)]
    Data(usize),
}

impl Own {
    /// Most data, octets. With the name and the fields before the data, a message has not more than
    /// the 32,768 octets that every implementation takes (RFC 4253 section 6.1).
    pub const MAX_DATA: usize = 31 << 10;

    /// A name with its data.
    ///
    /// # Errors
    /// The name has no such form; the data are longer than [`Own::MAX_DATA`].
    pub fn new(name: impl Into<String>, data: impl Into<Vec<u8>>) -> Result<Self, OwnError> {
        let (name, data) = (name.into(), data.into());
        if !is_name(name.as_bytes()) {
            return Err(OwnError::Name);
        }
        Self::fits(data.len())?;
        Ok(Self { name, data })
    }

    /// Whether a message has room for so many octets of data.
    ///
    /// # Errors
    /// They are more than [`Own::MAX_DATA`].
    pub const fn fits(len: usize) -> Result<(), OwnError> {
        if len > Self::MAX_DATA {
            return Err(OwnError::Data(len));
        }
        Ok(())
    }

    /// What came from the peer; nothing is copied of what is too long.
    pub(super) fn read(name: &[u8], data: &[u8]) -> Option<Self> {
        if !is_name(name) || data.len() > Self::MAX_DATA {
            return None;
        }
        Some(Self {
            name: core::str::from_utf8(name).ok()?.to_owned(),
            data: data.to_vec(),
        })
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The data, which follow the fields that all types have.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns the name and the data.
    #[must_use]
    pub fn into_parts(self) -> (String, Vec<u8>) {
        (self.name, self.data)
    }

    /// Octets of the name and the data.
    #[must_use]
    pub const fn octets(&self) -> usize {
        self.name.len() + self.data.len()
    }
}

fn is_name(name: &[u8]) -> bool {
    let fine = |b: &u8| b.is_ascii_graphic() && *b != b',';
    (1..=MAX_NAME).contains(&name.len()) && name.iter().all(fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_data_have_bounds() {
        for name in ["x@example.com", "x", &*"x".repeat(64)] {
            let own = Own::new(name, *b"data").unwrap();
            assert_eq!((own.name(), own.data()), (name, &b"data"[..]));
            assert_eq!(Own::read(name.as_bytes(), b"data"), Some(own));
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
            assert_eq!(Own::new(name, []), Err(OwnError::Name), "{name:?}");
            assert_eq!(Own::read(name.as_bytes(), b""), None);
        }
        let most = vec![0; Own::MAX_DATA];
        assert!(Own::new("x", most.clone()).is_ok() && Own::read(b"x", &most).is_some());
        let more = vec![0; Own::MAX_DATA + 1];
        assert_eq!(Own::read(b"x", &more), None);
        assert_eq!(Own::new("x", more), Err(OwnError::Data(Own::MAX_DATA + 1)));
    }
}
