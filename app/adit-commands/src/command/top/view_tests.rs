//! Tests of the view in a terminal in memory.

use std::time::{Duration, Instant};

use serde_json::json;

use super::super::feed::Update;
use super::super::keys::Outcome;
use super::super::live_view::LiveModel;
use super::super::look::{ASCII_LEVELS, LEVELS};
use super::super::model::Action;
use super::super::table_view::MARK;
use super::super::test_terminal::{drawn, press};
use super::*;
use crate::command::process_documents::Overview;

fn overview() -> Overview {
    serde_json::from_value(json!({
        "version": "0.1.0", "pid": 4711, "started": 1, "uptime": 3700,
        "up": 2048, "down": 5_242_880, "upRate": 100, "downRate": 1024,
        "sessionsOpen": 2, "sessionsTotal": 7, "connectionsOpen": 3, "associationsOpen": 1,
        "listeners": [{"route": "main", "listen": "127.0.0.1:1080", "transports": "tcp",
            "up": 1, "down": 2, "sessionsOpen": 2, "sessionsTotal": 7, "datagramsLost": 0}],
        "kcp": {"segsSent": 10}, "rejects": [{"cause": "wrong key", "count": 4}],
    }))
    .unwrap()
}

fn model() -> Model {
    let now = Instant::now();
    let mut model = Model::new("./api.sock", overview(), now);
    let sessions = json!({"total": 2, "sessions": [
        {"id": 12, "kind": "tcp", "user": "anna", "route": "main", "listen": "127.0.0.1:1080",
            "target": "name:443", "age": 61, "up": 10, "down": 1_048_576},
        {"id": 11, "kind": "udp", "user": "b\u{1b}[31mert", "route": "main",
            "listen": "127.0.0.1:1080", "target": "IPv4:53", "age": 5, "up": 3, "down": 4},
    ]});
    model.update(
        Update::Sessions(serde_json::from_value(sessions).unwrap()),
        now,
    );
    let groups = json!({"groups": [{"name": "home", "kind": "manual", "members": [
        {"name": "one", "up": true, "selected": true, "usualSeconds": 0.025},
        {"name": "two", "up": false, "selected": false, "outSeconds": 9, "reason": "silent"},
    ]}]});
    model.update(Update::Groups(serde_json::from_value(groups).unwrap()), now);
    model
}

const PLAIN: Look = Look::new(false, true);

#[test]
fn eighty_columns_show_sessions() {
    let mut model = model();
    let lines = drawn(&mut model, (80, 24), PLAIN, Instant::now());
    assert_eq!(lines[0], "adit 0.1.0  pid 4711  up 1h01m  ./api.sock");
    assert!(lines[1].starts_with("down 1.02 kB/s "), "{}", lines[1]);
    assert!(
        lines[1].contains("█ 5.24 MB  up   100 B/s "),
        "{}",
        lines[1]
    );
    assert!(lines[1].ends_with("█ 2.04 kB"), "{}", lines[1]);
    assert_eq!(
        lines[2],
        "sessions 2 open, 7 total  connections 3  associations 1  rejected 4"
    );
    assert_eq!(
        lines[3],
        "[1 Sessions]  2 Users   3 Groups   4 Listeners   5 KCP"
    );
    let heads: Vec<&str> = lines[4].split_whitespace().collect();
    let all = [
        "ID", "KIND", "USER", "LISTENER", "TARGET", "AGE", "UP", "DOWN",
    ];
    assert_eq!(heads, all);
    assert!(lines[5].starts_with("> "), "{}", lines[5]);
    let cells: Vec<&str> = lines[5].split_whitespace().collect();
    let all = [
        ">",
        "12",
        "tcp",
        "anna",
        "127.0.0.1:1080",
        "name:443",
        "1m01s",
        "10",
        "B",
        "1.04",
        "MB",
    ];
    assert_eq!(cells, all);
    assert!(lines[6].contains("b\u{fffd}[31mert"), "{}", lines[6]);
    assert!(lines[23].starts_with("q quit"), "{}", lines[23]);
}

#[test]
fn wide_terminals_show_more() {
    let lines = drawn(&mut model(), (200, 50), PLAIN, Instant::now());
    for word in ["DOWN/S", "ROUTE"] {
        assert!(lines[4].contains(word), "{}", lines[4]);
    }
    assert!(lines[5].ends_with("main"), "{}", lines[5]);
}

#[test]
fn every_size_is_drawn() {
    for width in [1, 39, 40, 60, 109, 110, 300] {
        for height in [1, 7, 8, 9, 24, 100] {
            for keys in ["", "\t", "\t\t", "\t\t\t", "\t\t\t\t", "?", "/anna", "K"] {
                let mut model = model();
                press(&mut model, keys);
                drawn(
                    &mut model,
                    (width, height),
                    Look::new(true, false),
                    Instant::now(),
                );
            }
        }
    }
}

#[test]
fn keys_sort_and_filter() {
    let mut model = model();
    let first = |model: &mut Model| {
        let lines = drawn(model, (80, 24), PLAIN, Instant::now());
        let row = lines[5].trim_start_matches(MARK);
        row.split_whitespace().next().map(str::to_owned)
    };
    assert_eq!(first(&mut model).as_deref(), Some("12"));
    press(&mut model, "sr");
    assert_eq!(first(&mut model).as_deref(), Some("11"));
    press(&mut model, "ssss");
    let lines = drawn(&mut model, (80, 24), PLAIN, Instant::now());
    assert!(lines[4].contains("TARGETv"), "{}", lines[4]);
    press(&mut model, "/nna\n");
    let lines = drawn(&mut model, (80, 24), PLAIN, Instant::now());
    assert!(
        lines[5].contains("anna") && lines[6].is_empty(),
        "{lines:?}"
    );
    assert!(lines[23].ends_with("[/nna]"), "{}", lines[23]);
    press(&mut model, "/x\n");
    let lines = drawn(&mut model, (80, 24), PLAIN, Instant::now());
    assert!(lines[5].contains("nothing matches"), "{}", lines[5]);
    press(&mut model, "\u{1b}");
    let lines = drawn(&mut model, (80, 24), PLAIN, Instant::now());
    assert!(
        lines[5].contains("ert") && lines[6].contains("anna"),
        "{lines:?}"
    );
}

#[test]
fn a_session_is_ended_after_a_question() {
    let mut model = model();
    press(&mut model, "jK");
    let lines = drawn(&mut model, (80, 24), PLAIN, Instant::now());
    assert!(lines[23].starts_with("end session 11? "), "{}", lines[23]);
    assert_eq!(press(&mut model, "n"), Outcome::Continue);
    assert_eq!(model.dialogue.mode, Mode::Normal);
    let ended = press(&mut model, "Ky");
    assert_eq!(ended, Outcome::Perform(Action::EndSession(11)));
    let now = Instant::now();
    model.update(Update::Performed(Ok("ended session 11".to_owned())), now);
    let lines = drawn(&mut model, (80, 24), PLAIN, now);
    assert_eq!(lines[23], "ended session 11");
    let fault = Err("no\u{1b} such session".to_owned());
    model.update(Update::Performed(fault), now);
    let lines = drawn(&mut model, (80, 24), PLAIN, now);
    assert_eq!(lines[23], "no\u{fffd} such session");
}

#[test]
fn enter_selects_a_member() {
    let mut model = model();
    assert_eq!(press(&mut model, "\n"), Outcome::Continue);
    let selected = press(&mut model, "\t\tj\n");
    let action = Action::SelectMember {
        group: "home".to_owned(),
        member: "two".to_owned(),
    };
    assert_eq!(selected, Outcome::Perform(action));
    let lines = drawn(&mut model, (80, 24), PLAIN, Instant::now());
    assert!(
        lines[5].contains("one") && lines[5].contains('*'),
        "{}",
        lines[5]
    );
    assert!(lines[5].contains("up, 25 ms"), "{}", lines[5]);
    assert!(
        lines[6].contains("out, 9 s") && lines[6].contains("silent"),
        "{}",
        lines[6]
    );
}

#[test]
fn a_silent_process_is_noticed() {
    let mut model = model();
    let late = Instant::now() + Duration::from_secs(7);
    let lines = drawn(&mut model, (80, 24), PLAIN, late);
    assert!(lines[0].ends_with("no answer for 7 s"), "{}", lines[0]);
    model.update(Update::Overview(Box::new(overview())), late);
    let lines = drawn(&mut model, (80, 24), PLAIN, late);
    assert!(!lines[0].contains("no answer"), "{}", lines[0]);
}

#[test]
fn a_pause_keeps_the_figures() {
    let mut model = model();
    press(&mut model, "p");
    let mut next = overview();
    next.sessions_open = 99;
    let now = Instant::now();
    model.update(Update::Overview(Box::new(next.clone())), now);
    let lines = drawn(&mut model, (80, 24), PLAIN, now);
    assert!(lines[0].ends_with("paused"), "{}", lines[0]);
    assert!(lines[2].starts_with("sessions 2 open"), "{}", lines[2]);
    press(&mut model, "p");
    model.update(Update::Overview(Box::new(next)), now);
    let lines = drawn(&mut model, (80, 24), PLAIN, now);
    assert!(lines[2].starts_with("sessions 99 open"), "{}", lines[2]);
}

#[test]
fn sparklines_are_relative_to_the_largest_value() {
    assert_eq!(sparkline(&[0, 1, 7], 4, &LEVELS), "  ▂█");
    assert_eq!(sparkline(&[9, 0, 1, 7], 2, &ASCII_LEVELS), ".#");
    assert_eq!(sparkline(&[u64::MAX, 0], 2, &LEVELS), "█ ");
    assert_eq!(sparkline(&[], 0, &LEVELS), "");
}
