//! Glob patterns: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` as an escape.

use super::names::join_path;
use super::{CopyError, Remote};

/// Maximum number of paths that a pattern may match.
const MAX_MATCHES: usize = 1 << 20;

/// A source of file names.
pub(crate) trait FolderSource {
    /// Returns the names in a folder; the empty path is the folder that relative paths start in.
    async fn list_names(&mut self, folder: &[u8]) -> Result<Vec<Vec<u8>>, CopyError>;
    /// Returns true if the path exists.
    async fn exists(&mut self, path: &[u8]) -> Result<bool, CopyError>;
}

impl FolderSource for Remote {
    async fn list_names(&mut self, folder: &[u8]) -> Result<Vec<Vec<u8>>, CopyError> {
        let folder = if folder.is_empty() { b"." } else { folder };
        let entries = self.read_dir(folder).await?;
        Ok(entries.into_iter().map(|entry| entry.name).collect())
    }

    async fn exists(&mut self, path: &[u8]) -> Result<bool, CopyError> {
        match self.lstat(path).await {
            Ok(_) => Ok(true),
            Err(why) if why.is_fatal() => Err(why.into()),
            Err(_) => Ok(false),
        }
    }
}

/// Returns true if `text` contains a wildcard.
pub(crate) fn is_pattern(text: &[u8]) -> bool {
    let mut escaped = false;
    text.iter().any(|byte| {
        let meant = escaped;
        escaped = *byte == b'\\' && !meant;
        !meant && matches!(byte, b'*' | b'?' | b'[')
    })
}

/// Returns the paths that match a pattern, sorted. A pattern without matches, or without wildcards, is returned
/// as a path.
pub(crate) async fn expand_pattern(
    pattern: &[u8],
    folders: &mut impl FolderSource,
) -> Result<Vec<Vec<u8>>, CopyError> {
    if !is_pattern(pattern) {
        return Ok(vec![unescape(pattern)]);
    }
    let root: &[u8] = if pattern.starts_with(b"/") { b"/" } else { b"" };
    let mut found = vec![root.to_vec()];
    let parts = pattern.split(|byte| *byte == b'/');
    let mut after_magic = false;
    for part in parts.filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        for folder in &found {
            if is_pattern(part) {
                let names = match folders.list_names(folder).await {
                    Err(fault) if fault.is_fatal() => return Err(fault),
                    // Not a folder, or not readable.
                    names => names.unwrap_or_default(),
                };
                let fit = names.iter().filter(|name| matches_pattern(part, name));
                next.extend(fit.map(|name| join_path(folder, name)));
            } else {
                let path = join_path(folder, &unescape(part));
                if !after_magic || folders.exists(&path).await? {
                    next.push(path);
                }
            }
            if next.len() > MAX_MATCHES {
                return Err(CopyError::other("the pattern matches too many files"));
            }
        }
        after_magic |= is_pattern(part);
        found = next;
    }
    found.sort();
    if found.is_empty() {
        // A file may have this literal name.
        return Ok(vec![unescape(pattern)]);
    }
    Ok(found)
}

/// Removes the escapes from a name.
pub(crate) fn unescape(part: &[u8]) -> Vec<u8> {
    let (mut out, mut escaped) = (Vec::with_capacity(part.len()), false);
    for byte in part {
        if *byte == b'\\' && !escaped {
            escaped = true;
        } else {
            out.push(*byte);
            escaped = false;
        }
    }
    if escaped {
        out.push(b'\\');
    }
    out
}

/// Returns true if a name matches. A leading dot must be matched literally.
fn matches_pattern(pattern: &[u8], name: &[u8]) -> bool {
    if name.starts_with(b".") && !pattern.starts_with(b".") && !pattern.starts_with(b"\\.") {
        return false;
    }
    // Backtracking point: after the last `*`, which then consumes one more byte.
    let (mut p, mut n, mut back) = (pattern, name, None);
    loop {
        if let Some(rest) = p.strip_prefix(b"*") {
            back = Some((rest, n));
            p = rest;
            continue;
        }
        let Some((first, rest)) = n.split_first() else {
            return p.is_empty();
        };
        if let Some(after) = match_element(p, *first) {
            (p, n) = (after, rest);
            continue;
        }
        let Some((star, at)) = back else {
            return false;
        };
        let Some((_, at)) = at.split_first() else {
            return false;
        };
        back = Some((star, at));
        (p, n) = (star, at);
    }
}

/// Matches the first element of a pattern against a byte; returns the rest of the pattern on success.
fn match_element(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern.split_first()? {
        (b'?', rest) => Some(rest),
        (b'\\', rest) => match rest.split_first() {
            Some((meant, rest)) => (*meant == byte).then_some(rest),
            None => (byte == b'\\').then_some(rest),
        },
        (b'[', rest) => match match_class(rest, byte) {
            Some((fits, rest)) => fits.then_some(rest),
            None => (byte == b'[').then_some(rest),
        },
        (meant, rest) => (*meant == byte).then_some(rest),
    }
}

/// Returns true with the rest of the pattern if the byte is in the character class; `None` if the class is not
/// closed.
fn match_class(text: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let (not, mut text) = match text.split_first()? {
        (b'!' | b'^', rest) => (true, rest),
        _ => (false, text),
    };
    let (mut fits, mut first) = (false, true);
    loop {
        let (low, rest) = text.split_first()?;
        if *low == b']' && !first {
            return Some((fits != not, rest));
        }
        first = false;
        text = rest;
        let high = match rest {
            [b'-', high, after @ ..] if *high != b']' => {
                text = after;
                *high
            }
            _ => *low,
        };
        fits |= (*low..=high).contains(&byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns() {
        for (pattern, name, fits) in [
            ("*", "a", true),
            ("*", ".a", false),
            (".*", ".a", true),
            ("*.txt", "a.txt", true),
            ("*.txt", "a.txt.gz", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?", "", false),
            ("a?", "ab", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]x]", "]", true),
            ("[a", "[a", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a**", "a", true),
        ] {
            let fit = matches_pattern(pattern.as_bytes(), name.as_bytes());
            assert_eq!(fit, fits, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_do_not_take_long() {
        let pattern = b"*a".repeat(200);
        assert!(!matches_pattern(&pattern, &[b'a'; 199]));
        assert!(matches_pattern(&pattern, &[b'a'; 200]));
    }

    #[test]
    fn backslashes_go() {
        assert!(is_pattern(b"a*") && is_pattern(b"\\\\*") && !is_pattern(b"\\*\\["));
        assert_eq!(unescape(b"a\\*b\\\\c\\"), b"a*b\\c\\");
    }
}
