//! Names in the form in which they are compared.

use crate::punycode::encode_label;

/// Maximum length of a compared name, in bytes.
pub(crate) const MAX_NAME: usize = 255;

/// The byte between the labels of a key. It sorts before every byte of a label, so that the names below
/// another follow it directly.
pub(crate) const SEPARATOR: u8 = 1;

/// A name in lower-case ASCII without the dot at its end, and its bytes in reverse order.
#[derive(Clone)]
pub(crate) struct NameKey {
    text: [u8; MAX_NAME],
    key: [u8; MAX_NAME],
    len: u8,
}

impl NameKey {
    /// Converts a name. Returns `None` if nothing is left of it or more than [`MAX_NAME`] bytes.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let name = name.trim_end_matches('.');
        if name.is_ascii() {
            return Self::from_ascii(name.as_bytes());
        }
        Self::from_ascii(&to_ascii(name)?)
    }

    fn from_ascii(name: &[u8]) -> Option<Self> {
        let len = u8::try_from(name.len()).ok().filter(|len| *len > 0)?;
        let (mut text, mut key) = ([0; MAX_NAME], [0; MAX_NAME]);
        for (to, from) in text.iter_mut().zip(name) {
            *to = from.to_ascii_lowercase();
        }
        for (to, from) in key.iter_mut().zip(text.iter().take(name.len()).rev()) {
            *to = if *from == b'.' { SEPARATOR } else { *from };
        }
        Some(Self { text, key, len })
    }

    /// Returns the name from left to right.
    pub(crate) fn text(&self) -> &str {
        // ASCII by construction.
        core::str::from_utf8(self.bytes()).unwrap_or_default()
    }

    /// Returns the bytes of the name from left to right.
    pub(crate) fn bytes(&self) -> &[u8] {
        adit_wire::subslice(&self.text, ..usize::from(self.len))
    }

    /// Returns the bytes from right to left with [`SEPARATOR`] for the dots.
    pub(crate) fn key(&self) -> &[u8] {
        adit_wire::subslice(&self.key, ..usize::from(self.len))
    }
}

impl core::fmt::Debug for NameKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("NameKey").field(&self.text()).finish()
    }
}

/// Returns a name of a rule in lower-case ASCII without the dot at its end, or `None` if no target can have
/// it: an empty label, a character other than letters, digits, `-` and `_`, or more than [`MAX_NAME`] bytes.
pub(crate) fn rule_name(name: &str) -> Option<NameKey> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let good = |label: &str| {
        let mut chars = label.chars();
        !label.is_empty() && chars.all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
    };
    // Marks of scripts that compose their letters are not alphanumeric.
    let good = |label: &str| good(label) || (!label.is_ascii() && encode_label(label).is_some());
    name.split('.').all(good).then(|| NameKey::new(name))?
}

/// Returns a name in lower-case ASCII, its other labels in Punycode (RFC 3492). The tables of IDNA are not
/// applied: letters become lower-case, and composed forms stay distinct from decomposed ones.
fn to_ascii(name: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(name.len() + 8);
    for (at, label) in name.split('.').enumerate() {
        if at > 0 {
            out.push(b'.');
        }
        if label.is_ascii() {
            out.extend_from_slice(label.as_bytes());
        } else {
            out.extend_from_slice(&encode_label(label)?);
        }
        if out.len() > MAX_NAME {
            return None;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_form() {
        let key = NameKey::new("WWW.Example.").unwrap();
        assert_eq!(key.text(), "www.example");
        assert_eq!(key.key(), b"elpmaxe\x01www");
        let key = NameKey::new("Bücher.example").unwrap();
        assert_eq!(key.text(), "xn--bcher-kva.example");
        assert!(NameKey::new("...").is_none());
        assert!(NameKey::new(&"a".repeat(256)).is_none());
        assert!(NameKey::new(&"a".repeat(255)).is_some());
    }

    #[test]
    fn names_of_rules_are_checked() {
        for good in ["a", "a.b.", "_x.y-z", "bücher.example", "xn--bcher-kva"] {
            assert!(rule_name(good).is_some(), "{good}");
        }
        for bad in [
            "", ".", ".a", "a..b", "a b", "a*", "http://a", "a/b", "a..", "ü b",
        ] {
            assert!(rule_name(bad).is_none(), "{bad}");
        }
    }
}
