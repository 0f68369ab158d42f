//! Remote paths: bytes with slashes.

/// Returns a path for display, with control characters escaped.
pub(crate) fn shown(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    if text.chars().any(char::is_control) {
        return text.escape_debug().to_string();
    }
    text.into_owned()
}

/// Joins `name` to `folder`; an absolute name is returned unchanged.
pub(crate) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if name.starts_with(b"/") || folder.is_empty() {
        return name.to_vec();
    }
    if name.is_empty() {
        return folder.to_vec();
    }
    let mut path = folder.to_vec();
    if !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Returns the last component of a path, ignoring trailing slashes.
pub(crate) fn base(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/');
    let path = end.and_then(|end| path.get(..=end)).unwrap_or_default();
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Whether it may be the name of a folder's entry. A server could name files elsewhere.
pub(crate) fn is_entry(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        assert_eq!(join(b"a", b"b"), b"a/b");
        assert_eq!(join(b"/", b"b"), b"/b");
        assert_eq!(join(b"a", b"/b"), b"/b");
        assert_eq!(join(b"", b"b"), b"b");
        assert_eq!(base(b"a/b//"), b"b");
        assert_eq!(base(b"/"), b"");
        assert_eq!(base(b"b"), b"b");
        assert_eq!(base(b"a/.."), b"..");
    }

    #[test]
    fn entries_lead_nowhere_else() {
        for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0"] {
            assert!(!is_entry(name), "{name:?}");
        }
        assert!(is_entry(b"...") && is_entry(b"\xff \n"));
    }

    #[test]
    fn nothing_reaches_the_terminal() {
        assert_eq!(shown(b"a\x1b[2J\n"), "a\\u{1b}[2J\\n");
        assert_eq!(shown("a'ü\"".as_bytes()), "a'ü\"");
    }
}
