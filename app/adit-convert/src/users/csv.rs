//! Comma-separated values (RFC 4180). The first line names the columns, in any order; without such a line they are
//! [`COLUMNS`] in their order. Lines that begin with `#` are comments.

use adit_config::parse_duration;
use adit_config::text::{Problem, nearest_word, parse_date, parse_rate, parse_size};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use zeroize::Zeroizing;

use super::collector::{UserCollector, UserDraft, count_limit};

/// The columns of a file without a line that names them.
const COLUMNS: [&str; 7] = [
    "name", "password", "quota", "expires", "rate", "sessions", "devices",
];
/// The column that only a line of names can add: the key for 2022 methods.
const KEY_COLUMN: &str = "psk";
/// Bytes of a line at most.
const MAX_LINE: usize = 16 << 10;
/// Columns at most.
const MAX_COLUMNS: usize = 32;
/// The smallest number that is a time since 1970 rather than a mistake.
const FIRST_TIME: u64 = 1_000_000_000;

/// Reads the users.
pub(super) fn read(
    text: &str,
    name: &str,
    found: &mut UserCollector<'_>,
) -> Result<(), Box<Problem>> {
    let mut lines = Lines {
        reader: ReaderBuilder::new().comment(Some(b'#')).build(),
        input: text.as_bytes(),
        fields: Zeroizing::new(vec![0; MAX_LINE]),
    };
    let mut columns: Option<Vec<String>> = None;
    while let Some((line, fields)) = lines.next_line(name)? {
        let Some(columns) = &columns else {
            let is_header = fields.first().is_some_and(|first| {
                let first = first.to_ascii_lowercase();
                first == COLUMNS[0] || (fields.len() > 1 && is_column(&first))
            });
            if is_header {
                columns = Some(read_header(&fields, name)?);
                continue;
            }
            columns = Some(COLUMNS.map(str::to_owned).to_vec());
            let named = COLUMNS.map(str::to_owned);
            add_line(line, &fields, &named, found);
            continue;
        };
        add_line(line, &fields, columns, found);
    }
    Ok(())
}

fn is_column(name: &str) -> bool {
    name == KEY_COLUMN || COLUMNS.contains(&name)
}

/// Returns the names of the columns.
fn read_header(fields: &[&str], file: &str) -> Result<Vec<String>, Box<Problem>> {
    let mut columns = Vec::with_capacity(fields.len());
    for field in fields {
        let column = field.trim().to_ascii_lowercase();
        let all = COLUMNS.iter().copied().chain([KEY_COLUMN]);
        if !is_column(&column) {
            let help = match nearest_word(&column, all.clone()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("the columns are {}", all.collect::<Vec<_>>().join(", ")),
            };
            let title = format!("`{file}`: a column that adit does not know");
            return Err(Box::new(Problem::without_place(title, help)));
        }
        if columns.contains(&column) {
            let title = format!("`{file}`: two columns `{column}`");
            return Err(Box::new(Problem::without_place(
                title,
                "remove one of them",
            )));
        }
        columns.push(column);
    }
    if !columns.iter().any(|column| column == COLUMNS[0]) {
        let title = format!("`{file}`: no column `name`");
        let help = "the first line names the columns: name,password,quota";
        return Err(Box::new(Problem::without_place(title, help)));
    }
    Ok(columns)
}

/// The lines of a file.
struct Lines<'t> {
    reader: Reader,
    input: &'t [u8],
    /// The fields of the current line, one after another.
    fields: Zeroizing<Vec<u8>>,
}

impl Lines<'_> {
    /// Returns the next line that is not empty, with its number.
    fn next_line(&mut self, name: &str) -> Result<Option<(u64, Vec<&str>)>, Box<Problem>> {
        let mut ends = [0; MAX_COLUMNS];
        let (mut len, mut count) = (0, 0);
        let mut line = self.reader.line();
        loop {
            let output = self.fields.get_mut(len..).unwrap_or_default();
            let free = ends.get_mut(count..).unwrap_or_default();
            let (result, read, written, ended) = self.reader.read_record(self.input, output, free);
            self.input = self.input.get(read..).unwrap_or_default();
            len += written;
            count += ended;
            match result {
                // The next call learns that this was the end.
                ReadRecordResult::InputEmpty => self.input = &[],
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    let title = format!("`{name}`: line {line} is too long for a user");
                    let help = format!(
                        "a line has at most {MAX_COLUMNS} columns and {MAX_LINE} bytes: is a `\"` missing?"
                    );
                    return Err(Box::new(Problem::without_place(title, help)));
                }
                ReadRecordResult::Record => break,
                ReadRecordResult::End => return Ok(None),
            }
            line = line.max(1);
        }
        let mut start = 0;
        let mut fields = Vec::with_capacity(count);
        for end in ends.iter().take(count) {
            let field = self.fields.get(start..*end).unwrap_or_default();
            // The fields of a text are text: they are cut at ASCII characters.
            fields.push(str::from_utf8(field).unwrap_or_default());
            start = *end;
        }
        Ok(Some((line, fields)))
    }
}

/// Adds the user of a line.
fn add_line(line: u64, fields: &[&str], columns: &[String], found: &mut UserCollector<'_>) {
    let place = format!("line {line}");
    let field = |name: &str| {
        let at = columns.iter().position(|column| column == name)?;
        let text = fields.get(at)?.trim();
        Some(text).filter(|text| !text.is_empty() && *text != "none")
    };
    let name = field("name").unwrap_or_default();
    let user = if fields.len() > columns.len() {
        Err("it has more fields than there are columns".to_owned())
    } else {
        read_user(name, field)
    };
    found.add(&place, user.map_err(|why| (name.to_owned(), why)));
}

fn read_user<'f>(name: &str, field: impl Fn(&str) -> Option<&'f str>) -> Result<UserDraft, String> {
    let mut user = UserDraft {
        name: name.to_owned(),
        ..UserDraft::default()
    };
    if let Some(password) = field("password") {
        user.password = Some(password.into());
        user.login = Some(password.into());
    }
    if let Some(key) = field(KEY_COLUMN) {
        let decoded = STANDARD.decode(key).map(Zeroizing::new);
        if !decoded.is_ok_and(|key| [16, 32].contains(&key.len())) {
            return Err("its `psk` is not base64 of 16 or 32 bytes".to_owned());
        }
        user.psk = Some(key.into());
    }
    if let Some(text) = field("quota") {
        let (bytes, period) = parse_quota(text)
            .ok_or("its `quota` is not a size such as `50GB`, `50GB/month` or a number of bytes")?;
        user.limits.quota = Some(bytes);
        user.limits.period = Some(period);
    }
    if let Some(text) = field("expires") {
        let number = text.parse().ok().filter(|at| *at >= FIRST_TIME);
        let after = parse_duration(text).map(|time| time.as_secs());
        match (number.or_else(|| parse_date(text)), after) {
            (Some(at), _) => user.limits.expires = Some(at.max(1)),
            (None, Some(seconds)) => user.limits.expires_after = Some(seconds.max(1)),
            (None, None) => {
                return Err(
                    "its `expires` is not a date such as `2027-01-01`, a time such as `30d`, or a \
                     number of seconds since 1970"
                        .to_owned(),
                );
            }
        }
    }
    if let Some(text) = field("rate") {
        let rate = text.parse().ok().or_else(|| parse_rate(text));
        let rate = rate.filter(|rate: &u64| *rate > 0);
        user.limits.rate = Some(rate.ok_or(
            "its `rate` is not a rate such as `10MB/s`, `100Mbit/s` or a number of bytes per second",
        )?);
    }
    let count = |name: &str| match field(name) {
        None => Ok(None),
        Some(text) => {
            let number = text.parse().ok().and_then(count_limit);
            let why = || format!("its `{name}` is not a number from 1 to 1000000");
            number.map(Some).ok_or_else(why)
        }
    };
    user.limits.sessions = count("sessions")?;
    user.limits.devices = count("devices")?;
    Ok(user)
}

/// Parses `50GB`, `50GB/month`, or a number of bytes.
fn parse_quota(text: &str) -> Option<(u64, &'static str)> {
    let (size, period) = text.split_once('/').unwrap_or((text, "total"));
    let periods = ["total", "day", "week", "month"];
    let period = periods.into_iter().find(|known| *known == period)?;
    let bytes = size.parse().ok().or_else(|| parse_size(size))?;
    Some((bytes, period)).filter(|(bytes, _)| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use adit_config::text::Secret;

    use super::*;
    use crate::users::{ExportedLimits, UserExport, UserFormat, read_user_export};

    fn read(text: &str) -> UserExport {
        read_user_export(text, "a.csv", Some(UserFormat::Csv)).unwrap()
    }

    #[test]
    fn columns_are_named_or_in_their_order() {
        let all = "anna,pw,50GB/month,2027-01-01,10MB/s,3,2";
        for text in [
            all.to_owned(),
            format!("name,password,quota,expires,rate,sessions,devices\r\n{all}\r\n\r\n"),
            "# users\nquota,Name,password,devices,expires,rate,sessions\n50000000000/month,\"anna\",pw,2,1798761600,10000000,3"
                .to_owned(),
        ] {
            let found = read(&text);
            assert_eq!(found.skipped, [], "{text}");
            let [user] = found.users.as_slice() else {
                panic!("{text}: {found:?}");
            };
            assert_eq!((user.name.as_str(), &user.password), ("anna", &Some(Secret::from("pw"))));
            assert_eq!(user.login, user.password);
            let expected = ExportedLimits {
                quota: Some(50_000_000_000),
                period: Some("month"),
                expires: Some(1_798_761_600),
                expires_after: None,
                rate: Some(10_000_000),
                sessions: Some(3),
                devices: Some(2),
            };
            assert_eq!(user.limits, expected, "{text}");
        }
    }

    #[test]
    fn fields_may_be_quoted_empty_or_missing() {
        let found = read(
            "name,password,expires,psk\n\"a, \"\"b\"\"\",\"p,\nq\",30d,AQEBAQEBAQEBAQEBAQEBAQ==\nc,pw\nd,none,,\n",
        );
        assert_eq!(found.users[0].name, "a, \"b\"");
        assert_eq!(found.users[0].password, Some(Secret::from("p,\nq")));
        assert_eq!(found.users[0].limits.expires_after, Some(30 * 86_400));
        assert!(found.users[0].psk.is_some());
        assert_eq!(found.users[1].limits, ExportedLimits::default());
        assert_eq!(
            (found.skipped[0].name.as_str(), found.skipped.len()),
            ("d", 1)
        );
    }

    #[test]
    fn mistakes_skip_the_user_and_are_named() {
        for (line, says) in [
            ("a,p,50", ""),
            ("a,p,50XB", "`quota`"),
            ("a,p,50GB/year", "`quota`"),
            ("a,p,0", "`quota`"),
            ("a,p,,2027-02-30", "`expires`"),
            ("a,p,,17", "`expires`"),
            ("a,p,,,fast", "`rate`"),
            ("a,p,,,,0", "`sessions`"),
            ("a,p,,,,,many", "`devices`"),
            ("a,p,,,,,1,more", "more fields"),
            ("a", "no password or key"),
            (",p", "no name"),
        ] {
            let found = read(line);
            match says {
                "" => assert_eq!(found.users[0].limits.quota, Some(50)),
                says => {
                    assert_eq!(found.users, [], "{line}");
                    assert!(found.skipped[0].why.contains(says), "{line}: {found:?}");
                }
            }
        }
        let long = format!("a,{}", "p".repeat(MAX_LINE));
        for (text, says) in [
            ("name,pasword\na,b", "does not know"),
            ("name,name\na,b", "two columns"),
            ("password,quota\na,b", "no column `name`"),
            (long.as_str(), "line 1 is too long"),
        ] {
            let why = read_user_export(text, "a.csv", Some(UserFormat::Csv)).unwrap_err();
            assert!(why.title.contains(says), "{}", why.title);
        }
    }
}
