//! The data types of RFC 4251 section 5, read from a slice and appended to a vector.
//!
//! No length that a peer sends leads to an allocation: values are slices of the message.

use adit_wire::{narrow_int, trim_leading_zeros, usize_from};

use crate::error::SshError;

/// Reads values from the front of a message.
#[derive(Debug, Clone, Copy)]
pub struct MessageReader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> MessageReader<'a> {
    /// Creates a reader of `bytes`; `what` names the message in errors.
    #[must_use]
    pub const fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { rest: bytes, what }
    }

    /// Returns the bytes not yet read.
    #[must_use]
    pub const fn remaining(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the error for a malformed message of this kind.
    #[must_use]
    pub const fn malformed_error(&self) -> SshError {
        SshError::Malformed(self.what)
    }

    /// Checks that the whole message was read.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if bytes are left.
    pub fn expect_end(&self) -> Result<(), SshError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.malformed_error())
        }
    }

    /// Reads the next `n` bytes.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if fewer are left, as for all methods below.
    pub fn take_bytes(&mut self, n: usize) -> Result<&'a [u8], SshError> {
        let (head, tail) = self
            .rest
            .split_at_checked(n)
            .ok_or_else(|| self.malformed_error())?;
        self.rest = tail;
        Ok(head)
    }

    /// Reads the next `N` bytes.
    ///
    /// # Errors
    /// See [`MessageReader::take_bytes`].
    pub fn read_array<const N: usize>(&mut self) -> Result<[u8; N], SshError> {
        let (head, tail) = self
            .rest
            .split_first_chunk()
            .ok_or_else(|| self.malformed_error())?;
        self.rest = tail;
        Ok(*head)
    }

    /// Reads a `byte`.
    ///
    /// # Errors
    /// See [`MessageReader::take_bytes`].
    pub fn read_u8(&mut self) -> Result<u8, SshError> {
        self.read_array().map(|[b]| b)
    }

    /// Reads a `boolean`; any value other than 0 is true.
    ///
    /// # Errors
    /// See [`MessageReader::take_bytes`].
    pub fn read_bool(&mut self) -> Result<bool, SshError> {
        self.read_u8().map(|b| b != 0)
    }

    /// Reads a `uint32`.
    ///
    /// # Errors
    /// See [`MessageReader::take_bytes`].
    pub fn read_u32(&mut self) -> Result<u32, SshError> {
        self.read_array().map(u32::from_be_bytes)
    }

    /// Reads a `uint64`.
    ///
    /// # Errors
    /// See [`MessageReader::take_bytes`].
    pub fn read_u64(&mut self) -> Result<u64, SshError> {
        self.read_array().map(u64::from_be_bytes)
    }

    /// Reads a `string`: bytes with their length in front.
    ///
    /// # Errors
    /// See [`MessageReader::take_bytes`].
    pub fn read_string(&mut self) -> Result<&'a [u8], SshError> {
        let len = usize::try_from(self.read_u32()?).map_err(|_| self.malformed_error())?;
        self.take_bytes(len)
    }

    /// Reads a `string` in UTF-8.
    ///
    /// # Errors
    /// See [`MessageReader::take_bytes`]; also if the bytes are not UTF-8.
    pub fn read_text(&mut self) -> Result<&'a str, SshError> {
        core::str::from_utf8(self.read_string()?).map_err(|_| self.malformed_error())
    }

    /// Reads an `mpint` that is not negative. Returns its big-endian bytes without leading zeros.
    ///
    /// # Errors
    /// See [`MessageReader::take_bytes`]; also for negative numbers. Superfluous leading zeros are accepted.
    pub fn read_mpint(&mut self) -> Result<&'a [u8], SshError> {
        let bytes = self.read_string()?;
        if bytes.first().is_some_and(|b| b & 0x80 != 0) {
            return Err(self.malformed_error());
        }
        Ok(trim_leading_zeros(bytes))
    }

    /// Reads a `name-list` of ASCII names, which may be empty.
    ///
    /// # Errors
    /// See [`MessageReader::take_bytes`]; also if a name is empty, longer than 64 bytes or has characters
    /// outside of `!`..=`~`, or if the list is longer than 64 KiB.
    pub fn read_name_list(&mut self) -> Result<NameList<'a>, SshError> {
        let text = self.read_text()?;
        let fine = |name: &str| {
            (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic())
        };
        if text.len() > 65_536 || !(text.is_empty() || text.split(',').all(fine)) {
            return Err(self.malformed_error());
        }
        Ok(NameList(text))
    }
}

/// A `name-list` as received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NameList<'a>(&'a str);

impl<'a> NameList<'a> {
    /// Iterates over the names in their order.
    pub fn iter(self) -> impl Iterator<Item = &'a str> {
        self.0.split(',').filter(|name| !name.is_empty())
    }

    /// True if the list contains `name`.
    #[must_use]
    pub fn contains(self, name: &str) -> bool {
        self.iter().any(|n| n == name)
    }

    /// Returns the list as received, with commas.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.0
    }
}

/// Appends the data types of SSH to a buffer.
pub trait SshBufMut {
    /// Appends a `byte`.
    fn put_u8(&mut self, value: u8);
    /// Appends a `boolean`.
    fn put_bool(&mut self, value: bool);
    /// Appends a `uint32`.
    fn put_u32(&mut self, value: u32);
    /// Appends a `uint64`.
    fn put_u64(&mut self, value: u64);
    /// Appends bytes without a length.
    fn put_raw(&mut self, value: &[u8]);
    /// Appends a `string`. Bytes beyond 2³² − 1 are cut off; adit's messages are never that long.
    fn put_string(&mut self, value: &[u8]);
    /// Appends an `mpint` from big-endian bytes, which are not negative.
    fn put_mpint(&mut self, value: &[u8]);
    /// Appends a `name-list`.
    fn put_names<'n>(&mut self, names: impl IntoIterator<Item = &'n str>)
    where
        Self: Sized;
    /// Appends a `string` with the bytes that `write` appends.
    fn put_nested(&mut self, write: impl FnOnce(&mut Self))
    where
        Self: Sized;
}

/// Returns a peer's text for a log: up to `limit` bytes; bytes other than printable ASCII and
/// spaces become `?`.
#[must_use]
pub fn to_printable(bytes: &[u8], limit: usize) -> String {
    let shown = |b: &u8| match b {
        b' '..=b'~' => char::from(*b),
        _ => '?',
    };
    bytes.iter().take(limit).map(shown).collect()
}

impl SshBufMut for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_bool(&mut self, value: bool) {
        self.push(u8::from(value));
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_raw(&mut self, value: &[u8]) {
        self.extend_from_slice(value);
    }

    fn put_string(&mut self, value: &[u8]) {
        let len = narrow_int(value.len());
        self.put_u32(len);
        self.extend(value.iter().take(usize_from(len)));
    }

    fn put_mpint(&mut self, value: &[u8]) {
        let digits = trim_leading_zeros(value);
        let sign = digits.first().is_some_and(|b| b & 0x80 != 0);
        self.put_u32(narrow_int(digits.len() + usize::from(sign)));
        if sign {
            self.push(0);
        }
        self.extend_from_slice(digits);
    }

    fn put_names<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) {
        self.put_nested(|out| {
            for (i, name) in names.into_iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(name.as_bytes());
            }
        });
    }

    fn put_nested(&mut self, write: impl FnOnce(&mut Self)) {
        let at = self.len();
        self.put_u32(0);
        write(self);
        let len = narrow_int::<u32>(self.len().saturating_sub(at + 4));
        if let Some(place) = self.get_mut(at..at + 4) {
            place.copy_from_slice(&len.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mpint(value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_mpint(value);
        out
    }

    /// The examples of RFC 4251 section 5.
    #[test]
    fn mpints_of_the_rfc() {
        assert_eq!(mpint(&[]), [0, 0, 0, 0]);
        assert_eq!(
            mpint(&[0x09, 0xa3, 0x78, 0xf9, 0xb2, 0xe3, 0x32, 0xa7]),
            [0, 0, 0, 8, 0x09, 0xa3, 0x78, 0xf9, 0xb2, 0xe3, 0x32, 0xa7]
        );
        assert_eq!(mpint(&[0x80]), [0, 0, 0, 2, 0, 0x80]);
        assert_eq!(mpint(&[0, 0, 0x80]), [0, 0, 0, 2, 0, 0x80]);
        // -1234 is negative.
        assert!(
            MessageReader::new(&[0, 0, 0, 2, 0xed, 0xcc], "x")
                .read_mpint()
                .is_err()
        );
    }

    #[test]
    fn name_lists_of_the_rfc() {
        let mut out = Vec::new();
        out.put_names(["zlib", "none"]);
        assert_eq!(out, b"\0\0\0\x09zlib,none");
        let list = MessageReader::new(&out, "x").read_name_list().unwrap();
        assert!(list.contains("none") && !list.contains("non"));
        assert_eq!(list.iter().collect::<Vec<_>>(), ["zlib", "none"]);
        for bad in [
            &b"\0\0\0\x01,"[..],
            b"\0\0\0\x03a,\n",
            b"\0\0\0\x02\xff\xff",
        ] {
            assert!(MessageReader::new(bad, "x").read_name_list().is_err());
        }
    }

    proptest! {
        #[test]
        fn what_is_put_is_read(a: Vec<u8>, b: u32, c: u64, d: bool, n: Vec<u8>) {
            let mut out = Vec::new();
            out.put_nested(|out| {
                out.put_string(&a);
                out.put_u32(b);
            });
            out.put_u64(c);
            out.put_bool(d);
            out.put_mpint(&n);
            let mut r = MessageReader::new(&out, "x");
            let mut inner = MessageReader::new(r.read_string().unwrap(), "y");
            prop_assert_eq!((inner.read_string().unwrap(), inner.read_u32().unwrap()), (&*a, b));
            prop_assert_eq!((r.read_u64().unwrap(), r.read_bool().unwrap()), (c, d));
            let zeros = n.iter().take_while(|b| **b == 0).count();
            prop_assert_eq!(r.read_mpint().unwrap(), &n[zeros..]);
            prop_assert!(r.expect_end().is_ok());
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let mut r = MessageReader::new(&bytes, "x");
            let _ = r.read_name_list();
            let _ = r.read_mpint();
            let _ = r.read_text();
        }
    }
}
