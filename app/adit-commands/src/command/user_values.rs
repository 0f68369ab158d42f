//! The values of the options that limit a user.

use std::time::{SystemTime, UNIX_EPOCH};

use adit_config::parse_duration;
use adit_config::text::{self, parse_date, parse_size};
use adit_convert::users::UserFormat;
use adit_wire::QuotaPeriod;

/// The change of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change<T> {
    /// The new limit.
    To(T),
    /// There is no limit any more.
    Removed,
}

impl<T> Change<T> {
    /// Returns the new limit, if there is one.
    pub(crate) fn into_limit(self) -> Option<T> {
        match self {
            Self::To(limit) => Some(limit),
            Self::Removed => None,
        }
    }
}

/// A quota with its period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quota {
    /// Bytes of both directions.
    pub(crate) bytes: u64,
    /// The period in which they may be used.
    pub(crate) period: QuotaPeriod,
}

/// Parses a limit, or `none`.
fn change_of<T>(text: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<Change<T>> {
    match text {
        "none" => Some(Change::Removed),
        text => parse(text).map(Change::To),
    }
}

/// The format of an export of users; `None` is found by the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExportFormat(pub(crate) Option<UserFormat>);

/// Parses the name of a format, or `auto`.
pub(crate) fn parse_export_format(text: &str) -> Result<ExportFormat, String> {
    if text == "auto" {
        return Ok(ExportFormat(None));
    }
    let format = text.parse::<UserFormat>();
    let format = format.map_err(|why| format!("{why}, or auto"))?;
    Ok(ExportFormat(Some(format)))
}

/// Parses `50GB`, `50GB/month` or `none`.
pub(crate) fn parse_quota(text: &str) -> Result<Change<Quota>, String> {
    let quota = |text: &str| {
        let (size, period) = text.split_once('/').unwrap_or((text, "total"));
        Some(Quota {
            bytes: parse_size(size).filter(|bytes| *bytes > 0)?,
            period: QuotaPeriod::from_name(period)?,
        })
    };
    change_of(text, quota).ok_or_else(|| {
        "expected a size like `50GB` or `512MiB`, with `/day`, `/week` or `/month` if it is for each, \
         or `none`"
            .to_owned()
    })
}

/// Parses `10MB/s`, `100Mbit/s` or `none`.
pub(crate) fn parse_rate(text: &str) -> Result<Change<u64>, String> {
    let rate = |text: &str| text::parse_rate(text).filter(|rate| *rate > 0);
    change_of(text, rate)
        .ok_or_else(|| "expected a rate like `10MB/s` or `100Mbit/s`, or `none`".to_owned())
}

/// Parses a number of sessions or devices, or `none`.
pub(crate) fn parse_count(text: &str) -> Result<Change<u32>, String> {
    let count = |text: &str| text.parse().ok().filter(|n| (1..=1_000_000).contains(n));
    change_of(text, count)
        .ok_or_else(|| "expected a number from 1 to 1000000, or `none`".to_owned())
}

/// Parses `30d`, `2027-01-01` or `none`, as seconds since 1970.
pub(crate) fn parse_expiry(text: &str) -> Result<Change<u64>, String> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    parse_expiry_at(text, now.as_secs())
}

fn parse_expiry_at(text: &str, now: u64) -> Result<Change<u64>, String> {
    let after = |text: &str| Some(now + parse_duration(text)?.as_secs()).filter(|at| *at > now);
    let time = |text: &str| after(text).or_else(|| parse_date(text));
    let expected =
        "expected a time like `30d` or `12h` (up to a year), a date like `2027-01-01`, or `none`";
    match change_of(text, time) {
        Some(Change::To(at)) if at <= now => Err(format!(
            "this day has begun already: {expected}; `adit user remove` removes a user"
        )),
        Some(change) => Ok(change),
        None => Err(expected.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_have_a_period() {
        let of = |bytes, period| Ok(Change::To(Quota { bytes, period }));
        assert_eq!(parse_quota("50GB"), of(50_000_000_000, QuotaPeriod::Total));
        assert_eq!(
            parse_quota("1.5GB/month"),
            of(1_500_000_000, QuotaPeriod::Month)
        );
        assert_eq!(parse_quota("none"), Ok(Change::Removed));
        for text in ["", "50", "0GB", "50GB/", "50GB/year", "None", "-1GB"] {
            assert!(parse_quota(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_and_counts_are_positive() {
        assert_eq!(parse_rate("10MB/s"), Ok(Change::To(10_000_000)));
        assert_eq!(parse_rate("none"), Ok(Change::Removed));
        assert_eq!(parse_count("3"), Ok(Change::To(3)));
        for text in ["0B/s", "10MB", ""] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        for text in ["0", "-1", "1000001", "many", ""] {
            assert!(parse_count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn users_expire_in_the_future() {
        const NOW: u64 = 1_798_761_600;
        assert_eq!(parse_expiry_at("2h", NOW), Ok(Change::To(NOW + 7200)));
        assert_eq!(
            parse_expiry_at("2027-01-02", NOW),
            Ok(Change::To(NOW + 86_400))
        );
        assert_eq!(parse_expiry_at("none", NOW), Ok(Change::Removed));
        assert!(parse_expiry_at("2027-01-01", NOW).is_err());
        for text in ["", "30", "500ms", "2027-02-30", "tomorrow", "400d"] {
            assert!(parse_expiry_at(text, NOW).is_err(), "{text}");
        }
    }
}
