//! Nodes as commands show them, in lines of 80 columns.

use adit_config::text::sanitize_for_terminal;
use adit_fleet::NodeView;

use crate::command::age::format_age;

/// Width of names in a table.
const NAME_WIDTH: usize = 12;
/// A day, in seconds.
const DAY: u64 = 86_400;

/// Returns the cells of a node in the table.
pub(in crate::command) fn cells(node: &NodeView) -> [String; 9] {
    let of = |text: String| if node.is_up() { text } else { "-".to_owned() };
    [
        cut(&sanitize_for_terminal(&node.name)),
        of(node.version.as_deref().map_or_else(
            || "-".to_owned(),
            |version| sanitize_for_terminal(version).chars().take(7).collect(),
        )),
        of(node.uptime.map_or_else(|| "-".to_owned(), short_age)),
        of(short_count(node.sessions)),
        of(megabits(node.up_rate.saturating_add(node.down_rate))),
        of(short_count(node.users)),
        of(short_seconds(node.lag_seconds)),
        of(signed_seconds(node.clock_offset_seconds)),
        sanitize_for_terminal(&node.state),
    ]
}

/// Titles of the columns.
pub(in crate::command) const TITLES: [&str; 9] = [
    "NODE", "VERSION", "UP", "SESS", "MBIT/S", "USERS", "LAG", "CLOCK", "STATE",
];

/// Returns the table of the nodes, in lines of at most 80 columns.
pub(in crate::command) fn table(nodes: &[NodeView]) -> Vec<String> {
    let row = |cells: [&str; 9]| {
        let [node, version, up, sessions, rate, users, lag, clock, state] = cells;
        format!(
            "{node:NAME_WIDTH$}  {version:7}  {up:>6}  {sessions:>6}  {rate:>7}  {users:>6}  {lag:>6}  {clock:>6}  {state}"
        )
    };
    let mut lines = vec![row(TITLES)];
    for node in nodes {
        let cells = cells(node);
        lines.push(row(cells.each_ref().map(String::as_str)));
    }
    // What does not fit into a column is in lines below the table.
    for node in nodes {
        let name = sanitize_for_terminal(&node.name);
        if let Some(fault) = &node.fault {
            lines.push(format!("{name}: {}", sanitize_for_terminal(fault)));
        }
        if node.is_up() && node.is_clock_off() {
            let offset = signed_seconds(node.clock_offset_seconds);
            lines.push(format!("{name}: the clock is off by {offset}: set it"));
        }
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

/// Returns a number in at most six characters.
pub(in crate::command) fn short_count(n: u64) -> String {
    match n {
        0..1_000_000 => n.to_string(),
        1_000_000..1_000_000_000 => format!("{:.1}M", n as f64 / 1e6),
        1_000_000_000..1_000_000_000_000 => format!("{:.1}G", n as f64 / 1e9),
        _ => ">999G".to_owned(),
    }
}

/// Returns an age in at most six characters.
fn short_age(seconds: u64) -> String {
    match seconds / DAY {
        ..100 => format_age(seconds),
        days @ 100..100_000 => format!("{days}d"),
        _ => ">99999".to_owned(),
    }
}

/// Returns a rate in bytes per second as megabits per second, in at most seven characters.
pub(in crate::command) fn megabits(bytes: u64) -> String {
    let rate = bytes as f64 * 8.0 / 1e6;
    match rate {
        ..100.0 => format!("{rate:.1}"),
        ..1e6 => format!("{rate:.0}"),
        ..1e9 => format!("{:.0}G", rate / 1e3),
        _ => ">999999".to_owned(),
    }
}

/// Returns a time in at most six characters.
fn short_seconds(seconds: f64) -> String {
    match seconds {
        ..1.0 => format!("{:.0}ms", seconds.max(0.0) * 1e3),
        ..100.0 => format!("{seconds:.1}s"),
        ..100_000.0 => format!("{seconds:.0}s"),
        _ => ">1d".to_owned(),
    }
}

fn signed_seconds(seconds: f64) -> String {
    let sign = if seconds < 0.0 { '-' } else { '+' };
    let size = seconds.abs();
    match size {
        ..0.0005 => "0ms".to_owned(),
        ..1.0 => format!("{sign}{:.0}ms", size * 1e3),
        ..10_000.0 => format!("{sign}{size:.0}s"),
        _ => format!("{sign}>2h"),
    }
}

#[cfg(test)]
mod tests {
    use adit_fleet::NodeProblem;

    use super::*;

    fn node(name: &str) -> NodeView {
        NodeView {
            id: 1,
            name: name.to_owned(),
            state: "active".to_owned(),
            version: Some("0.1.0".to_owned()),
            uptime: Some(100_000),
            sessions: 1234,
            up_rate: 1_000_000,
            down_rate: 20_000_000,
            users: 10_000,
            change: 77,
            lag_seconds: 0.012,
            clock_offset_seconds: -0.25,
            weight: 100,
            fault: None,
            problem: None,
        }
    }

    #[test]
    fn the_table_fits_into_80_columns() {
        let mut far = node("a-node-with-a-very-long-name\u{1b}[2J");
        far.state = "draining".to_owned();
        far.version = Some("10.20.30-rc1".to_owned());
        far.sessions = u64::MAX;
        far.users = 123_456_789;
        (far.up_rate, far.down_rate) = (1 << 40, 1 << 40);
        far.uptime = Some(86_400 * 999);
        far.lag_seconds = 1e9;
        far.clock_offset_seconds = -99_999.0;
        let gone = NodeView {
            name: "tokyo".to_owned(),
            state: "missing".to_owned(),
            ..NodeView::default()
        };
        let lines = table(&[node("paris"), far, gone]);
        for line in &lines[..4] {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert_eq!(
            lines[0],
            "NODE          VERSION      UP    SESS   MBIT/S   USERS     LAG   CLOCK  STATE"
        );
        assert_eq!(
            lines[1],
            "paris         0.1.0     1d03h    1234      168   10000    12ms  -250ms  active"
        );
        assert_eq!(
            lines[3],
            "tokyo         -             -       -        -       -       -       -  missing"
        );
        assert!(!lines.concat().contains('\u{1b}'));
        assert!(lines[4].contains("the clock is off by"), "{lines:?}");
    }

    #[test]
    fn faults_are_below_the_table() {
        let mut ill = node("paris");
        ill.fault = Some("the store server went back to change 3".to_owned());
        ill.problem = Some(NodeProblem::Fault);
        assert!(!ill.is_well() && node("x").is_well());
        let lines = table(&[ill]);
        assert_eq!(lines[2], "paris: the store server went back to change 3");
    }

    #[test]
    fn numbers_are_short() {
        for (n, text) in [(0, "0"), (999_999, "999999"), (1_500_000, "1.5M")] {
            assert_eq!(short_count(n), text);
        }
        assert_eq!(short_count(u64::MAX), ">999G");
        assert_eq!(
            (short_age(99 * DAY), short_age(100 * DAY + 5)),
            ("99d00h".to_owned(), "100d".to_owned())
        );
        assert_eq!(megabits(125_000), "1.0");
        assert_eq!(megabits(125_000_000), "1000");
        assert_eq!(short_seconds(0.25), "250ms");
        assert_eq!(short_seconds(12.34), "12.3s");
        assert_eq!(signed_seconds(0.0), "0ms");
        assert_eq!(signed_seconds(-61.0), "-61s");
    }
}
