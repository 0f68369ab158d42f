//! The names of bars: descriptive words in place of the short names of tables.

use crate::peers::is_floor;
use crate::suite::NO_RELAY;

/// The kind of implementation that a bar belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BarOwner {
    Adit,
    Rival,
    /// Not a proxy: the cost of the bare work.
    Floor,
}

impl BarOwner {
    pub(super) const ALL: [Self; 3] = [Self::Adit, Self::Rival, Self::Floor];

    /// Returns the CSS class of its bars.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Adit => "adit",
            Self::Rival => "rival",
            Self::Floor => "floor",
        }
    }

    /// Returns its text in the legend.
    pub(super) const fn legend(self) -> &'static str {
        match self {
            Self::Adit => "adit",
            Self::Rival => "other programs",
            Self::Floor => "reference: the bare work, without a proxy",
        }
    }
}

/// Replacements for the parts of a name, which are separated by commas.
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

/// Returns the name that a chart shows, and the owner of the bar.
pub(super) fn display_name(who: &str) -> (String, BarOwner) {
    let parts: Vec<&str> = who.split(", ").collect();
    let word = |part: &&str| PARTS.iter().find(|(short, _)| short == part);
    let words = parts
        .iter()
        .map(|part| word(part).map_or(*part, |(_, word)| *word));
    let name = words.collect::<Vec<_>>().join(", ");
    let floor = who == NO_RELAY || is_floor(who);
    let owner = match floor {
        true => BarOwner::Floor,
        false if name.split(", ").any(|part| part == "adit") => BarOwner::Adit,
        false => BarOwner::Rival,
    };
    (name, owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_become_words() {
        for (who, name, owner) in [
            ("adit", "adit", BarOwner::Adit),
            ("adit, no FEC, bbr", "adit, no FEC, BBR", BarOwner::Adit),
            ("avx2-vaes", "adit, AVX2 and VAES", BarOwner::Adit),
            (
                "sing-box, 2 workers",
                "sing-box, 2 workers",
                BarOwner::Rival,
            ),
            ("TCP bbr", "plain TCP, BBR", BarOwner::Rival),
            ("bare records", "copies and cipher alone", BarOwner::Floor),
            ("no relay", "no proxy", BarOwner::Floor),
        ] {
            assert_eq!(display_name(who), (name.to_owned(), owner));
        }
    }
}
