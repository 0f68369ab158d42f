//! Paths of the other machine: octets with slashes.

/// A path for people: what a terminal would obey is escaped.
pub(crate) fn shown(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    if text.chars().any(char::is_control) {
        return text.escape_debug().to_string();
    }
    text.into_owned()
}

/// `name` in `folder`; an absolute name stays what it is.
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

/// The last name of a path; slashes behind it do not count.
pub(crate) fn base(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/');
    let path = end.and_then(|end| path.get(..=end)).unwrap_or_default();
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
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
    fn nothing_reaches_the_terminal() {
        assert_eq!(shown(b"a\x1b[2J\n"), "a\\u{1b}[2J\\n");
        assert_eq!(shown("a'ü\"".as_bytes()), "a'ü\"");
    }
}
