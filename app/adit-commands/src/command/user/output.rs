//! The output of `adit user`: lines, and tables.

use std::io::IsTerminal;
use std::time::{SystemTime, UNIX_EPOCH};

use adit_admin::api::{AccountInfo, IssuedCredential, IssuedCredentials};
use adit_cli::CommandResult;
use adit_config::text::{format_date, format_size, sanitize_for_terminal};
use serde::Serialize;

use crate::qr_code;

/// Maximum width of names in a table.
const NAME_WIDTH: usize = 20;
/// Width of the bar that shows the used part of a quota.
const BAR_WIDTH: usize = 10;
/// The limits of a user without any.
const NO_LIMITS: &str = "none";
/// Seconds of a day.
const DAY: u64 = 86_400;

/// An added user, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IssuedJson<'a> {
    #[serde(flatten)]
    info: &'a AccountInfo,
    #[serde(rename = "credentials")]
    issued: &'a [IssuedCredential],
}

impl<'a> IssuedJson<'a> {
    pub(super) fn new(issued: &'a IssuedCredentials, info: &'a AccountInfo) -> Self {
        Self {
            info,
            issued: &issued.credentials,
        }
    }
}

/// Returns a name without characters that a terminal interprets.
pub(super) fn shown(name: &str) -> String {
    sanitize_for_terminal(name).to_string()
}

/// Prints new credentials.
pub(super) fn print_issued(what: &str, issued: &IssuedCredentials, no_qr: bool) -> CommandResult {
    let listeners: Vec<&str> = issued
        .credentials
        .iter()
        .map(|one| one.listener.as_str())
        .collect();
    println!(
        "{}  {what} at {}",
        shown(&issued.name),
        listeners.join(", ")
    );
    print_credentials(&issued.credentials, &[], no_qr)
}

/// Prints credentials and the addresses of the subscription, those of the credentials and `further` ones, with a QR code
/// of the first URL that phones read.
pub(super) fn print_credentials(
    credentials: &[IssuedCredential],
    further: &[String],
    no_qr: bool,
) -> CommandResult {
    for one in credentials {
        match &one.url {
            Some(url) => println!("url           {url}"),
            None if one.secret.is_empty() => {}
            None => println!("secret        {} (at {})", one.secret, one.listener),
        }
        if let Some(note) = &one.note {
            println!("note          {}: {note}", one.listener);
        }
    }
    let mut paths: Vec<&str> = credentials
        .iter()
        .filter_map(|one| one.subscription.as_deref())
        .collect();
    paths.dedup();
    paths.extend(further.iter().map(String::as_str));
    for path in paths {
        println!("subscription  {path}");
    }
    let mut urls = credentials.iter().filter_map(|one| one.url.as_deref());
    if let Some(url) = urls.find(|url| url.starts_with("ss://")).filter(|_| !no_qr) {
        println!("\n{}", qr_code::render_qr_code(url)?);
    }
    Ok(())
}

/// Prints the limits of a user in one line.
pub(super) fn print_limits(info: &AccountInfo) {
    let limits = limits_text(info);
    println!("limits        {limits}");
    if limits != NO_LIMITS && info.limits_last == Some(false) {
        println!("note          the limits last until adit ends: set `store` in `[admin]`");
    }
}

/// Returns the limits of a user.
fn limits_text(info: &AccountInfo) -> String {
    let mut limits = Vec::new();
    if let Some(quota) = info.quota {
        limits.push(format!(
            "{}{}",
            format_size(quota),
            period_text(&info.period)
        ));
    }
    limits.extend(info.expires.map(|at| format!("until {}", expiry_text(at))));
    limits.extend(info.rate.map(|rate| format!("{}/s", format_size(rate))));
    limits.extend(info.sessions.map(|n| counted(n, "session")));
    limits.extend(info.devices.map(|n| counted(n, "device")));
    match limits.is_empty() {
        true => NO_LIMITS.to_owned(),
        false => limits.join(", "),
    }
}

fn counted(n: u32, what: &str) -> String {
    let suffix = if n == 1 { "" } else { "s" };
    format!("{n} {what}{suffix}")
}

fn period_text(period: &str) -> String {
    match period {
        "total" => String::new(),
        period => format!(" a {period}"),
    }
}

/// Returns the time from which on a user is refused: the date, with the time of the day unless it is midnight (UTC).
fn expiry_text(at: u64) -> String {
    let date = format_date(at);
    match at % DAY {
        0 => date,
        second => format!("{date} {:02}:{:02} UTC", second / 3600, second / 60 % 60),
    }
}

/// The available information about the open sessions of users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenSessions {
    /// Their number, as a process knows it.
    Known,
    /// Nothing: each node of a realm has its own.
    #[cfg(feature = "fleet")]
    Unknown,
}

/// Prints one user.
pub(super) fn print_account(
    info: &AccountInfo,
    subscriptions: &[String],
    no_qr: bool,
    open: OpenSessions,
) -> CommandResult {
    println!("{}  {}", shown(&info.name), info.state);
    let used = info.used_up.saturating_add(info.used_down);
    let of = info.quota.map_or_else(String::new, |quota| {
        format!(" of {}{}", format_size(quota), period_text(&info.period))
    });
    println!(
        "used          {}{of} (up {}, down {})",
        format_size(used),
        format_size(info.used_up),
        format_size(info.used_down)
    );
    if open == OpenSessions::Known {
        println!(
            "total         up {}, down {}",
            format_size(info.total_up),
            format_size(info.total_down)
        );
        println!(
            "open          {}, {}",
            counted(info.sessions_open, "session"),
            counted(info.devices_open, "device")
        );
    }
    print_limits(info);
    if let Some(listeners) = info.listeners.as_ref().filter(|all| !all.is_empty()) {
        println!("listeners     {}", listeners.join(", "));
    }
    match &info.credentials {
        Some(credentials) => print_credentials(credentials, subscriptions, no_qr),
        None => Ok(()),
    }
}

/// Prints all users in a table of at most 80 columns.
pub(super) fn print_list(accounts: &[AccountInfo], open: OpenSessions) {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let is_terminal = std::io::stdout().is_terminal();
    for line in table(accounts, now.as_secs(), is_terminal, open) {
        println!("{line}");
    }
}

fn table(accounts: &[AccountInfo], now: u64, with_bars: bool, open: OpenSessions) -> Vec<String> {
    if accounts.is_empty() {
        return vec!["no users".to_owned()];
    }
    let names: Vec<String> = accounts
        .iter()
        .map(|account| cut(&shown(&account.name)))
        .collect();
    let width = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0)
        .max(4);
    let row = |name: &str, state: &str, used: &str, quota: &str, expires: &str, open: &str| {
        let line =
            format!("{name:width$}  {state:10}  {used:>8}  {quota:15}  {expires:10}  {open}");
        line.trim_end().to_owned()
    };
    let is_known = open == OpenSessions::Known;
    let of_open = |text: &str| {
        if is_known {
            text.to_owned()
        } else {
            String::new()
        }
    };
    let open = of_open("OPEN");
    let mut lines = vec![row("NAME", "STATE", "USED", "QUOTA", "EXPIRES", &open)];
    for (account, name) in accounts.iter().zip(&names) {
        let used = account.used_up.saturating_add(account.used_down);
        let quota = match account.quota {
            None => "-".to_owned(),
            Some(quota) if with_bars => {
                format!("{} {:>3}%", bar(used, quota), percent(used, quota))
            }
            Some(quota) => match account.period.as_str() {
                "total" => format_size(quota),
                period => format!("{}/{period}", format_size(quota)),
            },
        };
        let expires = account
            .expires
            .map_or_else(|| "-".to_owned(), |at| time_left(at, now));
        let open = of_open(&account.sessions_open.to_string());
        lines.push(row(
            name,
            &account.state,
            &format_size(used),
            &quota,
            &expires,
            &open,
        ));
    }
    lines
}

/// Returns a name that fits into its column.
fn cut(name: &str) -> String {
    match name.chars().count() {
        ..=NAME_WIDTH => name.to_owned(),
        _ => name.chars().take(NAME_WIDTH - 1).chain(['…']).collect(),
    }
}

/// Returns the used part of a quota in percent, at most 999.
fn percent(used: u64, quota: u64) -> u128 {
    (u128::from(used) * 100 / u128::from(quota.max(1))).min(999)
}

fn bar(used: u64, quota: u64) -> String {
    let all = BAR_WIDTH as u128;
    let full = (u128::from(used) * all / u128::from(quota.max(1))).min(all);
    (0..all)
        .map(|at| if at < full { '█' } else { '░' })
        .collect()
}

/// Returns the time until a user expires, or the date if that is far away.
fn time_left(at: u64, now: u64) -> String {
    match at.saturating_sub(now) {
        0 => "now".to_owned(),
        left if left <= 3600 => format!("{} min", left.div_ceil(60)),
        left if left <= 2 * DAY => format!("{} h", left.div_ceil(3600)),
        left if left <= 99 * DAY => format!("{} days", left.div_ceil(DAY)),
        _ => format_date(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str) -> AccountInfo {
        AccountInfo {
            name: name.to_owned(),
            state: "over-quota".to_owned(),
            quota: Some(50_000_000_000),
            period: "month".to_owned(),
            expires: Some(DAY * 400),
            rate: Some(10_000_000),
            sessions: Some(1),
            devices: Some(2),
            used_up: 40_000_000_000,
            used_down: 2_345_678_901,
            total_up: u64::MAX,
            total_down: u64::MAX,
            sessions_open: 1_000_000,
            devices_open: 3,
            listeners: None,
            limits_last: None,
            credentials: None,
        }
    }

    #[test]
    fn a_table_has_80_columns() {
        let accounts = [
            account("anna"),
            account(&"ü".repeat(255)),
            AccountInfo {
                quota: None,
                expires: None,
                ..account("bert\u{1b}[2J")
            },
        ];
        for with_bars in [false, true] {
            let lines = table(&accounts, 0, with_bars, OpenSessions::Known);
            for line in &lines {
                assert!(line.chars().count() <= 80, "{line}");
                assert!(!line.contains('\u{1b}'), "{line:?}");
            }
            // The columns begin where their headings do.
            let at = lines[0].find("EXPIRES").unwrap();
            let column = |line: &String| line.chars().skip(at).take(1).collect::<String>();
            assert_eq!(column(&lines[1]), "1", "{lines:?}");
            assert_eq!(column(&lines[3]), "-", "{lines:?}");
            assert_eq!(lines[1].contains('█'), with_bars);
        }
        assert_eq!(table(&[], 0, true, OpenSessions::Known), ["no users"]);
    }

    #[test]
    fn limits_are_one_line() {
        assert_eq!(
            limits_text(&account("anna")),
            "50.0 GB a month, until 1971-02-05, 10.0 MB/s, 1 session, 2 devices"
        );
        let none = AccountInfo {
            quota: None,
            expires: None,
            rate: None,
            sessions: None,
            devices: None,
            ..account("anna")
        };
        assert_eq!(limits_text(&none), "none");
        assert_eq!(expiry_text(DAY + 3661), "1970-01-02 01:01 UTC");
    }

    #[test]
    fn the_time_left_is_rounded_up() {
        for (left, text) in [
            (0, "now"),
            (1, "1 min"),
            (3601, "2 h"),
            (30 * DAY - 5, "30 days"),
            (30 * DAY, "30 days"),
            (400 * DAY, "1971-02-05"),
        ] {
            assert_eq!(time_left(left, 0), text);
        }
    }

    #[test]
    fn a_quota_that_is_exceeded_fills_its_bar() {
        assert_eq!(bar(20, 10), "█".repeat(BAR_WIDTH));
        assert_eq!(bar(0, 0), "░".repeat(BAR_WIDTH));
        assert_eq!(percent(u64::MAX, 1), 999);
        assert_eq!(percent(5, 10), 50);
    }
}
