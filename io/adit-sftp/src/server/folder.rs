//! Folders: their entries, with a line for people.

use std::ffi::CStr;
use std::fmt::Write;

use adit_ssh_proto::sftp::{FileEntry, ReplyTicket};
use rustix::fs::{AtFlags, Dir, FileType, Stat};
use rustix::io::Errno;

use super::attributes::{attrs, mode_bits};
use super::people::People;

/// Seconds after which a line shows the year instead of the time of day: half a year.
const OLD: i64 = 182 * 86_400;

/// Answers with the next entries of an open folder.
pub(super) fn list(
    ticket: ReplyTicket,
    folder: &mut Dir,
    people: &mut People,
    now: i64,
    out: &mut Vec<u8>,
) {
    let mut names = ticket.begin_names(out);
    let mut line = Vec::new();
    while !names.is_full() {
        // An error in the middle is the end: the entries before it are right.
        let Some(Ok(entry)) = folder.read() else {
            break;
        };
        let name = entry.file_name();
        // What was removed meanwhile is left out.
        let Ok(stat) = stat_of(folder, name) else {
            continue;
        };
        line.clear();
        line.extend_from_slice(describe(&stat, people, now).as_bytes());
        line.extend_from_slice(name.to_bytes());
        names.push(&FileEntry {
            name: name.to_bytes(),
            line: &line,
            attrs: attrs(&stat),
        });
    }
    names.finish();
}

fn stat_of(folder: &Dir, name: &CStr) -> Result<Stat, Errno> {
    rustix::fs::statat(folder.fd()?, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// A line as `ls -l` has it, up to the name. Times are in UTC.
fn describe(stat: &Stat, people: &mut People, now: i64) -> String {
    let mut line = String::with_capacity(80);
    let bits = mode_bits(stat);
    line.push(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        FileType::Fifo => 'p',
        FileType::Socket => 's',
        FileType::CharacterDevice => 'c',
        FileType::BlockDevice => 'b',
        _ => '-',
    });
    for (shift, special, on, off) in [
        (6, 0o4000, 's', 'S'),
        (3, 0o2000, 's', 'S'),
        (0, 0o1000, 't', 'T'),
    ] {
        let may = |bit: u32| bits >> shift & bit != 0;
        line.push(if may(4) { 'r' } else { '-' });
        line.push(if may(2) { 'w' } else { '-' });
        line.push(match (bits & special != 0, may(1)) {
            (true, true) => on,
            (true, false) => off,
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    // Nothing that is written into a string fails.
    let _ = write!(line, " {:>4} ", stat.st_nlink);
    for (name, id) in [
        (people.user(stat.st_uid).map(str::to_owned), stat.st_uid),
        (people.group(stat.st_gid).map(str::to_owned), stat.st_gid),
    ] {
        let name = name.unwrap_or_else(|| id.to_string());
        let _ = write!(line, "{name:<8} ");
    }
    let time = stat.st_mtime;
    let (year, month, day) = date(time.div_euclid(86_400));
    let _ = write!(line, "{:>8} {month} {day:>2} ", stat.st_size);
    let age = now.saturating_sub(time);
    let _ = if (-60..OLD).contains(&age) {
        let minute = time.rem_euclid(86_400) / 60;
        write!(line, "{:02}:{:02} ", minute / 60, minute % 60)
    } else {
        write!(line, "{year:>5} ")
    };
    line
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Year, month and day of a day since 1970-01-01, in the calendar of Gregory. Counted from the
/// 1st of March of the year 0, every fourth century begins with the same day.
pub fn date(day: i64) -> (i64, &'static str, i64) {
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
}
