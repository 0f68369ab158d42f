//! Lines of directory listings in the format of `ls -l`.

use std::fmt::Write;

use adit_ssh_proto::sftp::FileAttrs;

/// Seconds after which a line shows the year instead of the time of day: half a year.
const OLD: i64 = 182 * 86_400;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The fields of a line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    /// POSIX mode with the file type.
    pub(crate) mode: u32,
    /// Number of hard links.
    pub(crate) links: u64,
    /// Name or number of the user and the group.
    pub(crate) owner: [String; 2],
    /// Length in bytes.
    pub(crate) size: i64,
    /// Time of the last modification, in seconds since 1970.
    pub(crate) modified: i64,
}

impl Line {
    /// The line for attributes, with the numbers of the owner.
    pub(crate) fn of(attrs: &FileAttrs) -> Self {
        let (user, group) = attrs.owner.unwrap_or_default();
        Self {
            mode: attrs.permissions.unwrap_or(0),
            links: 1,
            owner: [user.to_string(), group.to_string()],
            size: i64::try_from(attrs.size.unwrap_or(0)).unwrap_or(i64::MAX),
            modified: attrs.times.map_or(0, |(_, modified)| modified.into()),
        }
    }

    /// Returns the line up to the name, at `now` seconds since 1970. Times are in UTC.
    pub(crate) fn format(&self, now: i64) -> String {
        let mut line = String::with_capacity(80);
        line.push(match self.mode & 0o170_000 {
            0o040_000 => 'd',
            0o120_000 => 'l',
            0o010_000 => 'p',
            0o140_000 => 's',
            0o020_000 => 'c',
            0o060_000 => 'b',
            _ => '-',
        });
        for (shift, special, on, off) in [
            (6, 0o4000, 's', 'S'),
            (3, 0o2000, 's', 'S'),
            (0, 0o1000, 't', 'T'),
        ] {
            let may = |bit: u32| self.mode >> shift & bit != 0;
            line.push(if may(4) { 'r' } else { '-' });
            line.push(if may(2) { 'w' } else { '-' });
            line.push(match (self.mode & special != 0, may(1)) {
                (true, true) => on,
                (true, false) => off,
                (false, true) => 'x',
                (false, false) => '-',
            });
        }
        // Nothing that is written into a string fails.
        let _ = write!(line, " {:>4} ", self.links);
        for name in &self.owner {
            let _ = write!(line, "{name:<8} ");
        }
        let time = self.modified;
        let (year, month, day) = date(time.div_euclid(86_400));
        let _ = write!(line, "{:>8} {month} {day:>2} ", self.size);
        let age = now.saturating_sub(time);
        let _ = if (-60..OLD).contains(&age) {
            let minute = time.rem_euclid(86_400) / 60;
            write!(line, "{:02}:{:02} ", minute / 60, minute % 60)
        } else {
            write!(line, "{year:>5} ")
        };
        line
    }
}

/// Returns the year, month and day of a number of days since 1970-01-01, in the Gregorian calendar.
#[must_use]
pub fn date(day: i64) -> (i64, &'static str, i64) {
    // Counted from the 1st of March of the year 0, every fourth century starts with the same day.
    let day = day.saturating_add(719_468);
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let place = (month + 2) % 12;
    let name = usize::try_from(place).ok().and_then(|m| MONTHS.get(m));
    let year = year + era * 400 + i64::from(place < 2);
    (year, name.copied().unwrap_or("???"), day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        for (day, date_of_it) in [
            (0, (1970, "Jan", 1)),
            (-1, (1969, "Dec", 31)),
            (59, (1970, "Mar", 1)),
            (11_016, (2000, "Feb", 29)),
            (20_088, (2024, "Dec", 31)),
            (47_540, (2100, "Feb", 28)),
            (47_541, (2100, "Mar", 1)),
        ] {
            assert_eq!(date(day), date_of_it);
        }
    }

    #[test]
    fn lines_of_attributes() {
        let attrs = FileAttrs {
            size: Some(1536),
            owner: Some((0, 7)),
            permissions: Some(0o041_754),
            times: Some((0, 951_827_640)),
        };
        assert_eq!(
            Line::of(&attrs).format(0),
            "drwxr-xr-T    1 0        7            1536 Feb 29  2000 "
        );
        assert_eq!(
            Line::of(&attrs).format(951_827_700),
            "drwxr-xr-T    1 0        7            1536 Feb 29 12:34 "
        );
    }
}
