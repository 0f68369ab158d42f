//! Patterns of names: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before what is meant as it is.

use super::names::join;
use super::{Fault, Remote};

/// Paths that one pattern may stand for at most.
const MOST: usize = 1 << 20;

/// Where names are looked up.
pub(crate) trait Folders {
    /// The names in a folder; the empty path is where relative paths begin.
    async fn names(&mut self, folder: &[u8]) -> Result<Vec<Vec<u8>>, Fault>;
    /// Whether something has this path.
    async fn is_there(&mut self, path: &[u8]) -> Result<bool, Fault>;
}

impl Folders for Remote {
    async fn names(&mut self, folder: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
        let folder = if folder.is_empty() { b"." } else { folder };
        let entries = self.read_dir(folder).await?;
        Ok(entries.into_iter().map(|entry| entry.name).collect())
    }

    async fn is_there(&mut self, path: &[u8]) -> Result<bool, Fault> {
        match self.lstat(path).await {
            Ok(_) => Ok(true),
            Err(why) if why.is_fatal() => Err(why.into()),
            Err(_) => Ok(false),
        }
    }
}

/// Whether it is a pattern.
pub(crate) fn has_magic(text: &[u8]) -> bool {
    let mut escaped = false;
    text.iter().any(|byte| {
        let meant = escaped;
        escaped = *byte == b'\\' && !meant;
        !meant && matches!(byte, b'*' | b'?' | b'[')
    })
}

/// The paths that a pattern stands for, sorted. What stands for nothing, or is none, is itself.
pub(crate) async fn expand(
    pattern: &[u8],
    folders: &mut impl Folders,
) -> Result<Vec<Vec<u8>>, Fault> {
    if !has_magic(pattern) {
        return Ok(vec![plain(pattern)]);
    }
    let root: &[u8] = if pattern.starts_with(b"/") { b"/" } else { b"" };
    let mut found = vec![root.to_vec()];
    let parts = pattern.split(|byte| *byte == b'/');
    let mut after_magic = false;
    for part in parts.filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        for folder in &found {
            if has_magic(part) {
                let names = match folders.names(folder).await {
                    Err(fault) if fault.is_end() => return Err(fault),
                    // Not a folder, or not to be read.
                    names => names.unwrap_or_default(),
                };
                let fit = names.iter().filter(|name| matches(part, name));
                next.extend(fit.map(|name| join(folder, name)));
            } else {
                let path = join(folder, &plain(part));
                if !after_magic || folders.is_there(&path).await? {
                    next.push(path);
                }
            }
            if next.len() > MOST {
                return Err(Fault::unfit("the pattern stands for too many files"));
            }
        }
        after_magic |= has_magic(part);
        found = next;
    }
    found.sort();
    if found.is_empty() {
        // A file may be called like that.
        return Ok(vec![plain(pattern)]);
    }
    Ok(found)
}

/// A name without the backslashes.
pub(crate) fn plain(part: &[u8]) -> Vec<u8> {
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

/// Whether a name fits. One with a dot in front fits only if the pattern has it too.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    if name.starts_with(b".") && !pattern.starts_with(b".") && !pattern.starts_with(b"\\.") {
        return false;
    }
    // Where to go on if it does not fit: behind the last `*`, which takes one octet more then.
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
        if let Some(after) = one(p, *first) {
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

/// The pattern behind its first element, if that fits the octet.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern.split_first()? {
        (b'?', rest) => Some(rest),
        (b'\\', rest) => match rest.split_first() {
            Some((meant, rest)) => (*meant == byte).then_some(rest),
            None => (byte == b'\\').then_some(rest),
        },
        (b'[', rest) => match class(rest, byte) {
            Some((fits, rest)) => fits.then_some(rest),
            None => (byte == b'[').then_some(rest),
        },
        (meant, rest) => (*meant == byte).then_some(rest),
    }
}

/// Whether the octet is in the class that begins here, and what follows it. `None`: it has no end.
fn class(text: &[u8], byte: u8) -> Option<(bool, &[u8])> {
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
            let fit = matches(pattern.as_bytes(), name.as_bytes());
            assert_eq!(fit, fits, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_do_not_take_long() {
        let pattern = b"*a".repeat(200);
        assert!(!matches(&pattern, &[b'a'; 199]));
        assert!(matches(&pattern, &[b'a'; 200]));
    }

    #[test]
    fn backslashes_go() {
        assert!(has_magic(b"a*") && has_magic(b"\\\\*") && !has_magic(b"\\*\\["));
        assert_eq!(plain(b"a\\*b\\\\c\\"), b"a*b\\c\\");
    }
}
