//! Remote paths: bytes with slashes.

/// Returns a path for display, with control characters escaped.
pub(crate) fn display_path(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    if text.chars().any(char::is_control) {
        return text.escape_debug().to_string();
    }
    text.into_owned()
}

/// Joins `name` to `folder`; an absolute name is returned unchanged.
pub(crate) fn join_path(folder: &[u8], name: &[u8]) -> Vec<u8> {
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
pub(crate) fn base_name(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/');
    let path = end.and_then(|end| path.get(..=end)).unwrap_or_default();
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        assert_eq!(join_path(b"a", b"b"), b"a/b");
        assert_eq!(join_path(b"/", b"b"), b"/b");
        assert_eq!(join_path(b"a", b"/b"), b"/b");
        assert_eq!(join_path(b"", b"b"), b"b");
        assert_eq!(base_name(b"a/b//"), b"b");
        assert_eq!(base_name(b"/"), b"");
        assert_eq!(base_name(b"b"), b"b");
        assert_eq!(base_name(b"a/.."), b"..");
    }

    #[test]
    fn nothing_reaches_the_terminal() {
        assert_eq!(display_path(b"a\x1b[2J\n"), "a\\u{1b}[2J\\n");
        assert_eq!(display_path("a'ü\"".as_bytes()), "a'ü\"");
    }
}
