//! Patterns of names and addresses (OpenSSH's `ssh_config(5)`, section PATTERNS).

use core::net::IpAddr;

use adit_wire::unmap_ipv4;

/// True if `text` matches the pattern, in which `*` is any sequence of characters and `?` one
/// character; ASCII letters match case-insensitively. The time is at most proportional to the
/// product of the lengths.
pub(super) fn matches_glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Position after the last star, and the current end of its match in the text.
    let mut star = None;
    while let Some(byte) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                star = Some((p, t));
            }
            Some(b'?') => (p, t) = (p + 1, t + 1),
            Some(wanted) if wanted.eq_ignore_ascii_case(byte) => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((behind, run)) => {
                    star = Some((behind, run + 1));
                    (p, t) = (behind, run + 1);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|byte| *byte == b'*')
}

/// A list of patterns, in which `!` excludes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatternList(Vec<(bool, String)>);

impl PatternList {
    /// Parses patterns separated by commas.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let one = |item: &str| {
            let (excludes, pattern) = item
                .strip_prefix('!')
                .map_or((false, item), |rest| (true, rest));
            (!pattern.is_empty()).then(|| (excludes, pattern.to_owned()))
        };
        text.split(',').map(one).collect::<Option<_>>().map(Self)
    }

    /// True if the list is a single name without wildcards.
    pub(super) fn is_single_name(&self) -> bool {
        matches!(&*self.0, [(false, name)] if !name.contains(['*', '?']))
    }

    /// True if a pattern includes the text and none excludes it.
    pub(super) fn includes(&self, text: &str) -> bool {
        let mut included = false;
        for (excludes, pattern) in &self.0 {
            if matches_glob(pattern, text) {
                if *excludes {
                    return false;
                }
                included = true;
            }
        }
        included
    }
}

/// A range of addresses with a common prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    address: IpAddr,
    bits: u32,
}

impl AddressRange {
    /// Parses `address/bits` or a single address.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(digits) => digits.parse().ok().filter(|bits| *bits <= most)?,
            None => most,
        };
        Some(Self { address, bits })
    }

    /// True if the range contains the address. An IPv4-mapped IPv6 address counts as IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let differ = match (self.address, unmap_ipv4(address)) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                { (a.to_bits() ^ b.to_bits()).checked_shr(32 - self.bits.min(32)) }.map(u128::from)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                (a.to_bits() ^ b.to_bits()).checked_shr(128 - self.bits.min(128))
            }
            _ => return false,
        };
        // A shift by the full width leaves no bits that could differ.
        differ.unwrap_or(0) == 0
    }
}

/// Addresses and names from which a user may connect: `from=` of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceList(Vec<(bool, SourcePattern)>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum SourcePattern {
    Net(AddressRange),
    Pattern(String),
}

impl SourceList {
    /// Parses names, addresses, patterns of both, and `address/bits`, separated by commas; `!`
    /// excludes. An item with a slash is never a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let one = |(excludes, text): (bool, String)| {
            let source = match AddressRange::parse(&text) {
                Some(net) => SourcePattern::Net(net),
                None if text.contains('/') => return None,
                None => SourcePattern::Pattern(text),
            };
            Some((excludes, source))
        };
        let PatternList(items) = PatternList::parse(text)?;
        items.into_iter().map(one).collect::<Option<_>>().map(Self)
    }

    /// True if a peer with this address, and this name if known, is included and neither is
    /// excluded.
    #[must_use]
    pub fn includes(&self, address: IpAddr, name: Option<&str>) -> bool {
        let text = unmap_ipv4(address).to_string();
        let mut included = false;
        for (excludes, source) in &self.0 {
            let hit = match source {
                SourcePattern::Net(net) => net.contains(address),
                SourcePattern::Pattern(pattern) => {
                    matches_glob(pattern, &text)
                        || name.is_some_and(|name| matches_glob(pattern, name))
                }
            };
            if hit && *excludes {
                return false;
            }
            included |= hit;
        }
        included
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition of the pattern, which is slow.
    fn slow(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            ([b'*', rest @ ..], _) => (0..=text.len()).any(|n| slow(rest, &text[n..])),
            ([b'?', p @ ..], [_, t @ ..]) => slow(p, t),
            ([a, p @ ..], [b, t @ ..]) => a.eq_ignore_ascii_case(b) && slow(p, t),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn globs_are_as_defined(pattern in "[aB*?]{0,8}", text in "[abB]{0,8}") {
            let wanted = slow(pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches_glob(&pattern, &text), wanted);
        }

        #[test]
        fn nets_contain_by_prefix(a: u32, b: u32, bits in 0u32..=32) {
            let text = format!("{}/{bits}", core::net::Ipv4Addr::from(a));
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            let b = core::net::Ipv4Addr::from(b);
            let wanted = a & mask == b.to_bits() & mask;
            prop_assert_eq!(AddressRange::parse(&text).unwrap().contains(b.into()), wanted);
            let mapped = b.to_ipv6_mapped();
            prop_assert_eq!(AddressRange::parse(&text).unwrap().contains(mapped.into()), wanted);
        }
    }

    #[test]
    fn hostile_patterns_end_soon() {
        let pattern = "*a".repeat(2000) + "b";
        assert!(!matches_glob(&pattern, &"a".repeat(4000)));
    }

    #[test]
    fn sources() {
        let at = |text: &str| text.parse().unwrap();
        let list =
            SourceList::parse("!10.0.0.66,10.0.0.0/8,*.example.org,!bad.example.org,fe80::/10");
        let list = list.unwrap();
        assert!(list.includes(at("10.1.2.3"), None));
        assert!(list.includes(at("::ffff:10.1.2.3"), None));
        assert!(!list.includes(at("10.0.0.66"), None));
        assert!(list.includes(at("192.0.2.1"), Some("good.EXAMPLE.org")));
        assert!(!list.includes(at("192.0.2.1"), Some("bad.example.org")));
        assert!(!list.includes(at("10.1.2.3"), Some("bad.example.org")));
        assert!(list.includes(at("fe80::1"), None) && !list.includes(at("fec0::1"), None));
        let one = SourceList::parse("192.0.2.?").unwrap();
        assert!(one.includes(at("192.0.2.7"), None) && !one.includes(at("192.0.2.77"), None));
        for bad in ["", "a,,b", "!", "10.0.0.0/33", "10.0.0.0/x", "a/8"] {
            assert_eq!(SourceList::parse(bad), None, "{bad}");
        }
        // A list that only excludes includes nothing.
        let never = SourceList::parse("!10.0.0.1").unwrap();
        assert!(!never.includes(at("10.0.0.2"), None));
    }
}
