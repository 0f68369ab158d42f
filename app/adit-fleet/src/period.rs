//! The labels of counters that the store has for a period of quotas, and the byte in its records.

use std::fmt;

use adit_wire::{QuotaPeriod, UnixTime};
use serde::{Deserialize, Serialize};

/// A day, in seconds.
const DAY: u64 = 86_400;
/// Maximum length of a label, in bytes.
const MAX_LABEL: usize = 16;

/// Returns the byte that stands for a period in records.
pub(crate) const fn period_byte(period: QuotaPeriod) -> u8 {
    match period {
        QuotaPeriod::Total => 0,
        QuotaPeriod::Day => 1,
        QuotaPeriod::Week => 2,
        QuotaPeriod::Month => 3,
    }
}

/// Returns the period that [`period_byte`] returns this byte for.
pub(crate) fn period_from_byte(byte: u8) -> Option<QuotaPeriod> {
    let mut all = QuotaPeriod::ALL.into_iter();
    all.find(|period| period_byte(*period) == byte)
}

/// The label of one period, which is a part of keys in the store: 1 to 16 digits, lower-case letters and `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct PeriodLabel(String);

impl TryFrom<String> for PeriodLabel {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::from_text(&text).ok_or("no label of a period")
    }
}

impl PeriodLabel {
    /// Returns the label of the period that contains `now`: `total`, `2026-11-28` for a day, `w2026-11-23` for a week
    /// (its Monday), `2026-11` for a month.
    #[must_use]
    pub fn new(period: QuotaPeriod, now: UnixTime) -> Self {
        let (year, month, day) = period.start(now).utc_date();
        Self(match period {
            QuotaPeriod::Total => period.name().to_owned(),
            QuotaPeriod::Day => format!("{year:04}-{month:02}-{day:02}"),
            QuotaPeriod::Week => format!("w{year:04}-{month:02}-{day:02}"),
            QuotaPeriod::Month => format!("{year:04}-{month:02}"),
        })
    }

    /// Returns the labels of the period that contains `now`, and of those before it whose counters stores keep.
    #[must_use]
    pub fn kept(period: QuotaPeriod, now: UnixTime) -> Vec<Self> {
        let current = Self::new(period, now);
        let Some(kept) = current.retention() else {
            return vec![current];
        };
        let at = |days: u64| UnixTime(now.0.saturating_sub(days * DAY));
        let labels = (0..=kept / DAY).map(|days| Self::new(period, at(days)));
        let mut labels: Vec<Self> = labels.collect();
        labels.dedup();
        labels
    }

    /// Returns the label with this text.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let allowed = |c: u8| c.is_ascii_digit() || c.is_ascii_lowercase() || c == b'-';
        let is_label = (1..=MAX_LABEL).contains(&text.len()) && text.bytes().all(allowed);
        is_label.then(|| Self(text.to_owned()))
    }

    /// Returns the text of the label.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the time for which the store keeps the counters after they last changed, in seconds; `None` is
    /// forever.
    #[must_use]
    pub(crate) fn retention(&self) -> Option<u64> {
        match self.0.as_str() {
            "total" => None,
            week if week.starts_with('w') => Some(100 * DAY),
            month if month.len() <= "2026-11".len() => Some(400 * DAY),
            _ => Some(40 * DAY),
        }
    }
}

impl fmt::Display for PeriodLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_name_the_period() {
        // 2026-11-28, a Saturday, 12:00.
        let now = UnixTime(1_795_867_200);
        let labels = QuotaPeriod::ALL.map(|period| PeriodLabel::new(period, now));
        let texts = labels.each_ref().map(PeriodLabel::as_str);
        assert_eq!(texts, ["total", "2026-11-28", "w2026-11-23", "2026-11"]);
        for label in labels {
            assert_eq!(PeriodLabel::from_text(label.as_str()), Some(label));
        }
    }

    #[test]
    fn labels_of_past_periods_are_kept_for_a_while() {
        let now = UnixTime(1_795_867_200);
        let kept = QuotaPeriod::ALL.map(|period| PeriodLabel::kept(period, now));
        let counts = kept.each_ref().map(Vec::len);
        assert_eq!(counts, [1, 41, 15, 14]);
        let second = |labels: &[PeriodLabel]| labels[1].to_string();
        assert_eq!(second(&kept[1]), "2026-11-27");
        assert_eq!(second(&kept[2]), "w2026-11-16");
        assert_eq!(second(&kept[3]), "2026-10");
    }

    #[test]
    fn a_label_contains_nothing_else() {
        for text in ["", "a b", "A", "{x}", "12345678901234567", "x:y", "*"] {
            assert_eq!(PeriodLabel::from_text(text), None, "{text}");
        }
    }

    #[test]
    fn bytes_are_read_back() {
        // They are part of records, and never change.
        assert_eq!(QuotaPeriod::ALL.map(period_byte), [0, 1, 2, 3]);
        for period in QuotaPeriod::ALL {
            assert_eq!(period_from_byte(period_byte(period)), Some(period));
        }
        assert_eq!(period_from_byte(4), None);
    }
}
