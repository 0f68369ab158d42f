//! The names of bars: words that a reader knows for what a table calls by its short name.

use crate::peers::is_floor;
use crate::suite::NO_RELAY;

/// Whose figure a bar shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Whose {
    Adit,
    Rival,
    /// Not a proxy: what the bare work costs.
    Floor,
}

impl Whose {
    pub(super) const ALL: [Self; 3] = [Self::Adit, Self::Rival, Self::Floor];

    /// Returns the class of its bars.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Adit => "adit",
            Self::Rival => "rival",
            Self::Floor => "floor",
        }
    }

    /// Returns what the legend says.
    pub(super) const fn legend(self) -> &'static str {
        match self {
            Self::Adit => "adit",
            Self::Rival => "other programs",
            Self::Floor => "reference: the bare work, without a proxy",
        }
    }
}

/// Words for parts of a name, which are separated by commas.
const PARTS: &[(&str, &str)] = &[
    ("bare records", "copies and cipher alone"),
    ("bare splice", "splice(2) alone"),
    (NO_RELAY, "no proxy"),
    ("dante", "Dante"),
    ("bbr", "BBR"),
    ("TCP reno", "plain TCP, Reno"),
    ("TCP bbr", "plain TCP, BBR"),
    ("portable", "adit, portable code"),
    ("avx2", "adit, AVX2"),
    ("avx2-vaes", "adit, AVX2 and VAES"),
    ("avx512", "adit, AVX-512"),
];

/// Returns the name that a chart shows, and whose bar it is.
pub(super) fn named(who: &str) -> (String, Whose) {
    let parts: Vec<&str> = who.split(", ").collect();
    let word = |part: &&str| PARTS.iter().find(|(short, _)| short == part);
    let words = parts
        .iter()
        .map(|part| word(part).map_or(*part, |(_, word)| *word));
    let name = words.collect::<Vec<_>>().join(", ");
    let floor = who == NO_RELAY || is_floor(who);
    let whose = match floor {
        true => Whose::Floor,
        false if name.split(", ").any(|part| part == "adit") => Whose::Adit,
        false => Whose::Rival,
    };
    (name, whose)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_become_words() {
        for (who, name, whose) in [
            ("adit", "adit", Whose::Adit),
            ("adit, no FEC, bbr", "adit, no FEC, BBR", Whose::Adit),
            ("avx2-vaes", "adit, AVX2 and VAES", Whose::Adit),
            ("sing-box, 2 workers", "sing-box, 2 workers", Whose::Rival),
            ("TCP bbr", "plain TCP, BBR", Whose::Rival),
            ("bare records", "copies and cipher alone", Whose::Floor),
            ("no relay", "no proxy", Whose::Floor),
        ] {
            assert_eq!(named(who), (name.to_owned(), whose));
        }
    }
}
