//! Options before a key in `authorized_keys` (OpenSSH's `sshd(8)`, AUTHORIZED_KEYS FILE FORMAT).

use adit_wire::UnixTime;

use super::key_grant::{ForwardRule, KeyGrant};
use super::pattern::SourceList;

/// Maximum number of entries of a list, and of variables, in a line.
const MAX_ENTRIES: usize = 64;
/// Maximum length of a variable's value, in bytes.
const MAX_VALUE: usize = 4096;

/// Options of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineOptions {
    pub(super) grant: KeyGrant,
    pub(super) authority: bool,
    pub(super) principals: Option<Vec<String>>,
    pub(super) from: Option<SourceList>,
    pub(super) expires: Option<UnixTime>,
}

impl LineOptions {
    /// Returns the defaults of a line without options.
    pub(super) const fn defaults() -> Self {
        Self {
            grant: KeyGrant::allow_all(),
            authority: false,
            principals: None,
            from: None,
            expires: None,
        }
    }

    /// Parses the options at the start of `line`, and returns them with the rest of the line.
    pub(super) fn parse(line: &str) -> Result<(Self, &str), &'static str> {
        let mut options = Self::defaults();
        let mut rest = line;
        loop {
            let end = rest.find(['=', ',', ' ', '\t']).unwrap_or(rest.len());
            let (name, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
            let (value, behind) = match behind.strip_prefix('=') {
                Some(quoted) => {
                    let (value, behind) =
                        take_quoted(quoted).ok_or("an option's value is not quoted")?;
                    (Some(value), behind)
                }
                None => (None, behind),
            };
            options.apply_option(&name.to_ascii_lowercase(), value)?;
            match behind.strip_prefix(',') {
                Some(next) => rest = next,
                None if behind.starts_with([' ', '\t']) => return Ok((options, behind)),
                None => return Err("the key after the options is missing"),
            }
        }
    }

    fn apply_option(&mut self, name: &str, value: Option<String>) -> Result<(), &'static str> {
        match value {
            None => self.apply_flag(name),
            Some(value) => self.apply_value(name, value),
        }
    }

    fn apply_flag(&mut self, name: &str) -> Result<(), &'static str> {
        let grant = &mut self.grant;
        match name {
            "cert-authority" => self.authority = true,
            "restrict" => {
                grant.pty = false;
                grant.port_forwarding = false;
                grant.agent_forwarding = false;
                grant.x11_forwarding = false;
                grant.user_rc = false;
            }
            "pty" => grant.pty = true,
            "no-pty" => grant.pty = false,
            "port-forwarding" => grant.port_forwarding = true,
            "no-port-forwarding" => grant.port_forwarding = false,
            "agent-forwarding" => grant.agent_forwarding = true,
            "no-agent-forwarding" => grant.agent_forwarding = false,
            "x11-forwarding" => grant.x11_forwarding = true,
            "no-x11-forwarding" => grant.x11_forwarding = false,
            "user-rc" => grant.user_rc = true,
            "no-user-rc" => grant.user_rc = false,
            "touch-required" => grant.touch_required = true,
            "no-touch-required" => grant.touch_required = false,
            "verify-required" => grant.verify_required = true,
            "no-verify-required" => grant.verify_required = false,
            _ => return Err("unknown option"),
        }
        Ok(())
    }

    fn apply_value(&mut self, name: &str, value: String) -> Result<(), &'static str> {
        match name {
            "command" => set_once(&mut self.grant.command, value)?,
            "from" => {
                let list = SourceList::parse(&value).ok_or("invalid list in `from`")?;
                set_once(&mut self.from, list)?;
            }
            "principals" => {
                let list = value.split(',').map(str::to_owned).collect();
                set_once(&mut self.principals, list)?;
            }
            "expiry-time" => {
                let time = parse_time(&value).ok_or("invalid time in `expiry-time`")?;
                // The earliest one applies.
                self.expires = Some(self.expires.map_or(time, |other| other.min(time)));
            }
            "permitopen" => {
                let forward = ForwardRule::parse(&value).ok_or("invalid value of `permitopen`")?;
                push_bounded(self.grant.permit_open.get_or_insert_default(), forward)?;
            }
            "permitlisten" => {
                let any = || ForwardRule::parse(&format!("*:{value}"));
                let forward = ForwardRule::parse(&value).or_else(any);
                let forward = forward.ok_or("invalid value of `permitlisten`")?;
                push_bounded(self.grant.permit_listen.get_or_insert_default(), forward)?;
            }
            "environment" => {
                let (name, value) = value
                    .split_once('=')
                    .ok_or("invalid value of `environment`")?;
                let fine = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
                if name.is_empty() || !name.bytes().all(fine) || value.len() > MAX_VALUE {
                    return Err("invalid value of `environment`");
                }
                let pair = (name.to_owned(), value.to_owned());
                push_bounded(&mut self.grant.environment, pair)?;
            }
            // The number of a tunnel device. Tunnels are not supported, so there is nothing to
            // enforce.
            "tunnel" if value.bytes().all(|b| b.is_ascii_alphanumeric()) => {}
            _ => return Err("unknown option"),
        }
        Ok(())
    }
}

fn set_once<T>(place: &mut Option<T>, value: T) -> Result<(), &'static str> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err("an option is repeated"),
    }
}

fn push_bounded<T>(list: &mut Vec<T>, value: T) -> Result<(), &'static str> {
    if list.len() >= MAX_ENTRIES {
        return Err("too many entries in an option");
    }
    list.push(value);
    Ok(())
}

/// Returns the quoted text at the start, in which `\"` is a quote, and the rest after it.
fn take_quoted(text: &str) -> Option<(String, &str)> {
    let inside = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut chars = inside.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, inside.get(at + 1..)?)),
            '\\' if chars.next_if(|(_, c)| *c == '"').is_some() => value.push('"'),
            _ => value.push(c),
        }
    }
    None
}

/// Parses `YYYYMMDD[HHMM[SS]][Z]`, which is UTC with and without `Z`.
fn parse_time(text: &str) -> Option<UnixTime> {
    let digits = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    if !digits.bytes().all(|b| b.is_ascii_digit()) || ![8, 12, 14].contains(&digits.len()) {
        return None;
    }
    let part = |at: usize, len: usize| match digits.get(at..at + len) {
        Some(part) => part.parse::<u64>().ok(),
        None => Some(0),
    };
    let (year, month, day) = (part(0, 4)?, part(4, 2)?, part(6, 2)?);
    let (hour, minute, second) = (part(8, 2)?, part(10, 2)?, part(12, 2)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let months = [
        31,
        28 + u64::from(leap),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let before = usize::try_from(month.checked_sub(1)?).ok()?;
    if year < 1970 || !(1..=*months.get(before)?).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Leap years before this one since year 0, minus those before 1970.
    let last = year - 1;
    let leaps = last / 4 - last / 100 + last / 400 - 477;
    let days = (year - 1970) * 365 + leaps + months.iter().take(before).sum::<u64>() + day - 1;
    Some(UnixTime(((days * 24 + hour) * 60 + minute) * 60 + second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        // As printed by `date -u -d … +%s`.
        for (text, seconds) in [
            ("19700101", 0),
            ("20000229Z", 951_782_400),
            ("20000301", 951_868_800),
            ("203801190314", 2_147_483_640),
            ("20380119031408Z", 2_147_483_648),
            ("21000301", 4_107_542_400),
        ] {
            assert_eq!(parse_time(text), Some(UnixTime(seconds)), "{text}");
        }
        for bad in [
            "",
            "2024",
            "20240230",
            "20230229",
            "20241301",
            "20240100",
            "202401012400",
            "19691231",
            "2024010112000",
            "2024-01-01",
            "20240101ZZ",
            "99999999",
        ] {
            assert_eq!(parse_time(bad), None, "{bad}");
        }
    }

    #[test]
    fn quotes() {
        let line = r#"command="echo \"a, b\" \\ c",no-PTY,environment="A=b c" ssh-ed25519 x"#;
        let (options, rest) = LineOptions::parse(line).unwrap();
        assert_eq!(
            options.grant.command.as_deref(),
            Some(r#"echo "a, b" \\ c"#)
        );
        assert_eq!(options.grant.environment, [("A".into(), "b c".into())]);
        assert!(!options.grant.pty && options.grant.user_rc);
        assert_eq!(rest, " ssh-ed25519 x");
        for bad in [
            "no-such x",
            "command=ls x",
            r#"command="ls x"#,
            r#"command="a",command="b" x"#,
            "pty",
            "pty,,pty x",
            "",
            r#"pty="1" x"#,
            "command x",
            r#"environment="A B=c" x"#,
            r#"permitopen="80" x"#,
            r#"from="10.0.0.0/99" x"#,
            r#"expiry-time="soon" x"#,
        ] {
            assert!(LineOptions::parse(bad).is_err(), "{bad}");
        }
    }
}
