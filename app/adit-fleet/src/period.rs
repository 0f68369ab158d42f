//! Accounting periods, and the labels of the counters that the store has for them.

use std::fmt;

use adit_wire::UnixTime;
use serde::{Deserialize, Serialize};

/// A day, in seconds.
const DAY: u64 = 86_400;
/// The number of days before the first Monday after 1970-01-01, a Thursday.
const FIRST_MONDAY: u64 = 4;
/// Maximum length of a label, in bytes.
const MAX_LABEL: usize = 16;

/// The period of a quota. Periods begin at midnight UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum QuotaPeriod {
    /// All time: the quota is used up once.
    #[default]
    Total,
    /// A day.
    Day,
    /// A week, from Monday on.
    Week,
    /// A month of the calendar.
    Month,
}

impl QuotaPeriod {
    /// All periods.
    pub const ALL: [Self; 4] = [Self::Total, Self::Day, Self::Week, Self::Month];

    /// Returns the name of the period: `total`, `day`, `week` or `month`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// Returns the period with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|period| period.name() == name)
    }

    /// Returns the label of the period that contains `now`: `total`, `2026-11-28` for a day, `w2026-11-23` for a week
    /// (its Monday), `2026-11` for a month.
    #[must_use]
    pub fn label(self, now: UnixTime) -> PeriodLabel {
        let days = now.0 / DAY;
        let date = |days: u64| {
            let (year, month, day) = UnixTime(days.saturating_mul(DAY)).utc_date();
            format!("{year:04}-{month:02}-{day:02}")
        };
        PeriodLabel(match self {
            Self::Total => "total".to_owned(),
            Self::Day => date(days),
            // The first days of 1970 are those of a week that began before.
            Self::Week => {
                let monday = days.saturating_sub((days + 7 - FIRST_MONDAY) % 7);
                format!("w{}", date(monday))
            }
            Self::Month => {
                let (year, month, _) = now.utc_date();
                format!("{year:04}-{month:02}")
            }
        })
    }

    pub(crate) const fn to_byte(self) -> u8 {
        match self {
            Self::Total => 0,
            Self::Day => 1,
            Self::Week => 2,
            Self::Month => 3,
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|period| period.to_byte() == byte)
    }
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
        let labels = QuotaPeriod::ALL.map(|period| period.label(now));
        let texts = labels.each_ref().map(PeriodLabel::as_str);
        assert_eq!(texts, ["total", "2026-11-28", "w2026-11-23", "2026-11"]);
        for label in labels {
            assert_eq!(PeriodLabel::from_text(label.as_str()), Some(label));
        }
    }

    #[test]
    fn a_label_contains_nothing_else() {
        for text in ["", "a b", "A", "{x}", "12345678901234567", "x:y", "*"] {
            assert_eq!(PeriodLabel::from_text(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_read_back() {
        for period in QuotaPeriod::ALL {
            assert_eq!(QuotaPeriod::from_name(period.name()), Some(period));
            assert_eq!(QuotaPeriod::from_byte(period.to_byte()), Some(period));
        }
        assert_eq!(QuotaPeriod::from_byte(4), None);
    }
}
