//! Parts of names: many are searched for in one pass.

use adit_wire::subslice;

/// Bits of the filter of pairs.
const FILTER_BITS: usize = 4096;

/// Keywords in lower case, sorted. A filter of their first two bytes rejects nearly every position of a name
/// without a look at the keywords.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct KeywordSet {
    words: Box<[Box<[u8]>]>,
    filter: Box<[u64]>,
    /// Bytes that are a keyword alone.
    single: Box<[u8]>,
}

impl KeywordSet {
    pub(crate) fn new(mut words: Vec<Box<[u8]>>) -> Self {
        words.sort_unstable();
        words.dedup();
        let single = words.iter().filter(|word| word.len() == 1);
        let single: Box<[u8]> = single.flat_map(|word| word.iter().copied()).collect();
        words.retain(|word| word.len() > 1);
        let mut filter = vec![
            0;
            if words.is_empty() {
                0
            } else {
                FILTER_BITS / 64
            }
        ];
        for word in &words {
            if let [a, b, ..] = **word {
                let bit = pair_bit(a, b);
                if let Some(bits) = filter.get_mut(bit / 64) {
                    *bits |= 1_u64 << (bit % 64);
                }
            }
        }
        Self {
            words: words.into(),
            filter: filter.into(),
            single,
        }
    }

    /// True if the name contains a keyword.
    pub(crate) fn is_in(&self, name: &[u8]) -> bool {
        if !self.single.is_empty() && name.iter().any(|byte| self.single.contains(byte)) {
            return true;
        }
        if self.words.is_empty() {
            return false;
        }
        name.windows(2).enumerate().any(|(at, pair)| {
            let [a, b] = *pair else { return false };
            let bit = pair_bit(a, b);
            let bits = self.filter.get(bit / 64).copied().unwrap_or_default();
            bits & (1 << (bit % 64)) != 0 && self.starts(subslice(name, at..))
        })
    }

    /// True if the text starts with a keyword.
    fn starts(&self, text: &[u8]) -> bool {
        let pair = subslice(text, ..2);
        let first = self.words.partition_point(|word| &**word < pair);
        let candidates = subslice(&self.words, first..);
        let mut candidates = candidates.iter().take_while(|word| word.starts_with(pair));
        candidates.any(|word| text.starts_with(word))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let single = self.single.chunks(1);
        single.chain(self.words.iter().map(|word| &**word))
    }

    pub(crate) fn len(&self) -> usize {
        self.words.len() + self.single.len()
    }

    pub(crate) fn memory(&self) -> usize {
        let words = self.words.iter().map(|word| word.len() + size_of_val(word));
        words.sum::<usize>() + self.filter.len() * 8 + self.single.len()
    }
}

const fn pair_bit(a: u8, b: u8) -> usize {
    (a as usize * 67 + b as usize) % FILTER_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(words: &[&str]) -> KeywordSet {
        KeywordSet::new(words.iter().map(|word| word.as_bytes().into()).collect())
    }

    #[test]
    fn keywords_are_found_anywhere() {
        let set = set(&["ads", "adserver", "track", "ads"]);
        assert_eq!(set.len(), 3);
        for (name, found) in [
            ("ads.example", true),
            ("x.track", true),
            ("adserver", true),
            ("ad.example", false),
            ("trac", false),
            ("a", false),
            ("", false),
        ] {
            assert_eq!(set.is_in(name.as_bytes()), found, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_set_answers_as_its_definition(
            words in prop::collection::vec("[abc]{1,4}", 0..8),
            name in "[abcd.]{0,12}",
        ) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let expected = words.iter().any(|word| name.contains(word));
            prop_assert_eq!(set(&words).is_in(name.as_bytes()), expected);
        }
    }
}
