//! "Did you mean" suggestions.

use strsim::osa_distance;

/// Returns the candidate that was probably meant by `word`, if there is one.
pub fn nearest_word<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let allowed = if word.len() <= 3 {
        1
    } else {
        (word.len() / 3).max(2)
    };
    candidates
        .into_iter()
        .map(|candidate| (edit_distance(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the candidate that differs from `word` by a single typing error.
pub fn find_one_typo<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    candidates
        .into_iter()
        .find(|candidate| osa_distance(&word, candidate) == 1)
}

/// Returns the number of edits between two words. A word that continues the other is at most two
/// edits away.
fn edit_distance(word: &str, candidate: &str) -> usize {
    let edits = osa_distance(word, candidate);
    let continues = word.len().min(candidate.len()) >= 3
        && (word.starts_with(candidate) || candidate.starts_with(word));
    if continues { edits.min(2) } else { edits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_meant_word_or_none() {
        let keys = ["listen", "via", "rules", "udp", "udp_idle"];
        assert_eq!(nearest_word("listenport", keys), Some("listen"));
        assert_eq!(nearest_word("rulse", keys), Some("rules"));
        assert_eq!(nearest_word("upd", keys), Some("udp"));
        assert_eq!(nearest_word("udp-idle", keys), Some("udp_idle"));
        assert_eq!(nearest_word("fec", keys), None);
        assert_eq!(nearest_word("", keys), None);
    }

    #[test]
    fn one_slip_is_narrower() {
        assert_eq!(find_one_typo("prefix", ["prefer"]), None);
        assert_eq!(find_one_typo("perfer", ["prefer"]), Some("prefer"));
        assert_eq!(find_one_typo("prefer", ["prefer"]), None);
    }
}
