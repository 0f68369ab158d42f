//! The columns and rows of each tab.

use adit_config::text::{format_size, sanitize_for_terminal};
use serde_json::Value;

use super::model::{Model, SessionRate, Tab};
use super::table::{Cell, Column, Row, Width};
use crate::command::age::format_age;
use crate::command::process_documents::{Account, Group, Listener, Session};

/// The identity of a row. The names are unchanged: requests contain them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RowKey {
    Session(u64),
    Account(String),
    Member {
        group: String,
        member: String,
        is_manual: bool,
    },
    Listener(String, String),
    Counter(String),
}

/// Width from which all columns are shown.
const WIDE: u16 = 110;

const fn text(title: &'static str, width: Width) -> Column {
    Column {
        title,
        width,
        is_number: false,
        from_width: 0,
    }
}

const fn number(title: &'static str, width: u16) -> Column {
    Column {
        title,
        width: Width::Fixed(width),
        is_number: true,
        from_width: 0,
    }
}

const fn wide(column: Column) -> Column {
    Column {
        from_width: WIDE,
        ..column
    }
}

const SESSIONS: &[Column] = &[
    number("ID", 6),
    text("KIND", Width::Fixed(4)),
    text("USER", Width::Rest(2)),
    text("LISTENER", Width::Rest(3)),
    text("TARGET", Width::Fixed(12)),
    number("AGE", 7),
    number("UP", 8),
    number("DOWN", 8),
    wide(number("UP/S", 8)),
    wide(number("DOWN/S", 8)),
    wide(text("ROUTE", Width::Fixed(14))),
];

const USERS: &[Column] = &[
    text("USER", Width::Rest(1)),
    text("STATE", Width::Fixed(10)),
    number("OPEN", 6),
    number("DEVICES", 7),
    number("USED", 8),
    number("QUOTA", 8),
    number("%", 4),
    wide(number("TOTAL UP", 9)),
    wide(number("TOTAL DOWN", 10)),
];

const GROUPS: &[Column] = &[
    text("GROUP", Width::Rest(1)),
    text("KIND", Width::Fixed(9)),
    text("MEMBER", Width::Rest(2)),
    text("USED", Width::Fixed(4)),
    text("HEALTH", Width::Fixed(12)),
    text("REASON", Width::Rest(2)),
];

const LISTENERS: &[Column] = &[
    text("ROUTE", Width::Rest(1)),
    text("LISTENER", Width::Rest(2)),
    text("OVER", Width::Fixed(7)),
    number("OPEN", 6),
    number("TOTAL", 9),
    number("UP", 8),
    number("DOWN", 8),
    number("LOST", 6),
];

const KCP: &[Column] = &[
    text("COUNTER", Width::Rest(1)),
    number("VALUE", 20),
    number("CHANGE", 12),
];

/// Returns the columns of a tab.
pub(super) const fn columns(tab: Tab) -> &'static [Column] {
    match tab {
        Tab::Sessions => SESSIONS,
        Tab::Users => USERS,
        Tab::Groups => GROUPS,
        Tab::Listeners => LISTENERS,
        Tab::Kcp => KCP,
    }
}

/// Returns the rows of a tab, in the order of the process.
pub(super) fn rows(model: &Model, tab: Tab) -> Vec<Row<RowKey>> {
    match tab {
        Tab::Sessions => {
            let sessions = model.sessions.iter().flat_map(|list| &list.sessions);
            let rate = |id| model.session_rates.get(id).copied().unwrap_or_default();
            sessions.map(|s| session_row(s, rate(&s.id))).collect()
        }
        Tab::Users => {
            let accounts = model.accounts.iter().flatten();
            let accounts = accounts.flat_map(|list| &list.accounts);
            accounts.map(account_row).collect()
        }
        Tab::Groups => {
            let groups = model.groups.iter().flat_map(|list| &list.groups);
            groups.flat_map(member_rows).collect()
        }
        Tab::Listeners => model.overview.listeners.iter().map(listener_row).collect(),
        Tab::Kcp => counter_rows(model),
    }
}

/// Returns the sentence for a tab without rows.
pub(super) fn empty_text(model: &Model) -> &'static str {
    if !model.shown_table().filter.is_empty() {
        return "nothing matches the filter; Esc clears it";
    }
    match model.tab() {
        Tab::Sessions if model.sessions.is_none() => "waiting for the list",
        Tab::Sessions => "no open sessions",
        Tab::Users => match &model.accounts {
            None => "waiting for the list",
            Some(None) => "this process reports no users",
            Some(Some(_)) => "no users",
        },
        Tab::Groups if model.groups.is_none() => "waiting for the list",
        Tab::Groups => "no groups",
        Tab::Listeners => "no listeners",
        Tab::Kcp => "no KCP",
    }
}

const fn row(key: RowKey, cells: Vec<Cell>) -> Row<RowKey> {
    Row {
        key,
        cells,
        is_marked: false,
        is_warning: false,
    }
}

fn bytes(value: u64) -> Cell {
    Cell::number(value, format_size(value))
}

fn session_row(session: &Session, rate: SessionRate) -> Row<RowKey> {
    let cells = vec![
        Cell::number(session.id, session.id),
        Cell::text(&session.kind),
        Cell::text(&session.user),
        Cell::text(&session.listen),
        Cell::text(&session.target),
        Cell::number(session.age, format_age(session.age)),
        bytes(session.up),
        bytes(session.down),
        bytes(rate.up),
        bytes(rate.down),
        Cell::text(&session.route),
    ];
    row(RowKey::Session(session.id), cells)
}

fn account_row(account: &Account) -> Row<RowKey> {
    let used = account.used_up.saturating_add(account.used_down);
    let share = account.quota.map(|quota| match quota {
        0 => 100,
        quota => (u128::from(used) * 100 / u128::from(quota)).min(999) as u64,
    });
    let optional = |value: Option<u64>, text: Option<String>| {
        Cell::number(value.unwrap_or(0), text.unwrap_or_default())
    };
    let cells = vec![
        Cell::text(&account.name),
        Cell::text(&account.state),
        Cell::number(account.sessions_open, account.sessions_open),
        Cell::number(account.devices_open, account.devices_open),
        bytes(used),
        optional(account.quota, account.quota.map(format_size)),
        optional(share, share.map(|share| share.to_string())),
        bytes(account.total_up),
        bytes(account.total_down),
    ];
    let key = RowKey::Account(account.name.as_str().to_owned());
    Row {
        is_warning: account.state.as_str() != "active",
        ..row(key, cells)
    }
}

fn member_rows(group: &Group) -> impl Iterator<Item = Row<RowKey>> {
    group.members.iter().map(|member| {
        let is_selected = member.selected == Some(true);
        let cells = vec![
            Cell::text(sanitize_for_terminal(&group.name)),
            Cell::text(&group.kind),
            Cell::text(sanitize_for_terminal(&member.name)),
            Cell::text(if is_selected { "*" } else { "" }),
            Cell::text(member.health()),
            Cell::text(&member.reason),
        ];
        let key = RowKey::Member {
            group: group.name.clone(),
            member: member.name.clone(),
            is_manual: member.selected.is_some(),
        };
        Row {
            is_marked: is_selected,
            is_warning: !member.up,
            ..row(key, cells)
        }
    })
}

fn listener_row(listener: &Listener) -> Row<RowKey> {
    let count = |value: u64| Cell::number(value, value);
    let cells = vec![
        Cell::text(&listener.route),
        Cell::text(&listener.listen),
        Cell::text(&listener.transports),
        count(listener.sessions_open),
        count(listener.sessions_total),
        bytes(listener.up),
        bytes(listener.down),
        count(listener.datagrams_lost),
    ];
    let (route, listen) = (listener.route.as_str(), listener.listen.as_str());
    row(RowKey::Listener(route.to_owned(), listen.to_owned()), cells)
}

fn counter_rows(model: &Model) -> Vec<Row<RowKey>> {
    let counters = model.overview.kcp.iter();
    let counters = counters.filter_map(|(name, value)| Some((name, value.as_u64()?)));
    counters
        .map(|(name, value)| {
            let before = model.kcp_before.get(name).and_then(Value::as_u64);
            let change = value.saturating_sub(before.unwrap_or(value));
            let cells = vec![
                Cell::text(sanitize_for_terminal(name)),
                Cell::number(value, value),
                Cell::number(change, change),
            ];
            row(RowKey::Counter(name.clone()), cells)
        })
        .collect()
}
