//! Names of directory entries.

/// True if `name` may be the name of a directory entry. Others, such as `..` and `a/b`, would lead a
/// client that joins them to a local path out of its directory.
#[must_use]
pub fn is_entry_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_lead_nowhere_else() {
        for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0"] {
            assert!(!is_entry_name(name), "{name:?}");
        }
        assert!(is_entry_name(b"...") && is_entry_name(b"\xff \n"));
    }
}
