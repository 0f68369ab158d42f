//! Tests of the view in a terminal in memory.

use std::time::{Duration, Instant};

use super::super::feed::Update;
use super::super::model::Action;
use super::*;
use crate::command::top::keys::Outcome;
use crate::command::top::live_view::LiveModel;
use crate::command::top::test_terminal::{drawn, press};
use adit_fleet::{NodeProblem, NodeView};

const PLAIN: Look = Look::new(false, false);

fn node(id: u32, name: &str, state: &str, rate: u64) -> NodeView {
    NodeView {
        id,
        name: name.to_owned(),
        state: state.to_owned(),
        version: Some("0.1.0".to_owned()),
        uptime: Some(3700),
        sessions: 5,
        down_rate: rate,
        users: 10,
        ..NodeView::default()
    }
}

fn model() -> Model {
    let nodes = vec![
        node(1, "paris", "active", 1_250_000),
        node(2, "os\u{1b}aka", "draining", 2_500_000),
        NodeView {
            id: 3,
            name: "lima".to_owned(),
            state: "missing".to_owned(),
            problem: Some(NodeProblem::Missing),
            ..NodeView::default()
        },
    ];
    Model::new("main at valkey://s.example", nodes, Instant::now())
}

#[test]
fn nodes_fit_into_80_columns() {
    let mut model = model();
    let lines = drawn(&mut model, (80, 10), PLAIN, Instant::now());
    assert!(lines[0].starts_with("adit fleet  main at valkey://s.example"));
    assert!(
        lines[1].starts_with("2 of 3 nodes up  10 sessions  30.0 Mbit/s"),
        "{lines:#?}"
    );
    assert!(
        lines[3].contains("NODE") && lines[3].ends_with("STATE"),
        "{lines:#?}"
    );
    assert!(lines[4].starts_with("> paris") && lines[4].ends_with("active"));
    assert!(lines[5].contains("os\u{fffd}aka") && lines[5].ends_with("draining"));
    assert!(lines[6].ends_with("missing"), "{lines:#?}");
    assert!(lines[9].starts_with("q quit"));
    let small = drawn(&mut model, (30, 5), PLAIN, Instant::now());
    assert!(small[0].starts_with("adit fleet top needs"));
}

#[test]
fn a_drain_asks_first() {
    let mut model = model();
    assert_eq!(press(&mut model, "d"), Outcome::Continue);
    let lines = drawn(&mut model, (80, 10), PLAIN, Instant::now());
    assert!(lines[9].starts_with("drain paris?"), "{lines:#?}");
    assert_eq!(press(&mut model, "n"), Outcome::Continue);
    press(&mut model, "d");
    let action = Action {
        node: 1,
        name: "paris".to_owned(),
        is_drain: true,
    };
    assert_eq!(press(&mut model, "y"), Outcome::Perform(action));
    // The next one drains already.
    press(&mut model, "j");
    assert_eq!(press(&mut model, "d"), Outcome::Continue);
    assert_eq!(model.dialogue.mode, Mode::Normal);
    let undo = press(&mut model, "u");
    assert!(
        matches!(&undo, Outcome::Perform(action) if action.node == 2 && !action.is_drain),
        "{undo:?}"
    );
    model.update(
        Update::Performed(Err("no such node".to_owned())),
        Instant::now(),
    );
    let lines = drawn(&mut model, (80, 10), PLAIN, Instant::now());
    assert_eq!(lines[9], "no such node");
}

#[test]
fn a_silent_server_shows() {
    let mut model = model();
    let later = Instant::now() + Duration::from_secs(9);
    model.update(Update::Failed("connection refused".to_owned()), later);
    let lines = drawn(&mut model, (80, 10), PLAIN, later);
    assert!(
        lines[0].contains("no answer for 9 s: connection refused")
            || lines[0].contains("no answer for 8 s: connection refused"),
        "{lines:#?}"
    );
    // A new answer ends it, and a pause keeps the rows.
    press(&mut model, "p");
    model.update(Update::Nodes(Vec::new()), later);
    let lines = drawn(&mut model, (80, 10), PLAIN, later);
    assert!(
        lines[0].ends_with("paused") && lines[4].contains("paris"),
        "{lines:#?}"
    );
}

#[test]
fn rows_are_sorted_and_filtered() {
    let mut model = model();
    press(&mut model, "sssss");
    let lines = drawn(&mut model, (80, 10), PLAIN, Instant::now());
    assert!(
        lines[3].contains("MBIT/Sv") || lines[3].contains("MBIT/S"),
        "{lines:#?}"
    );
    assert!(lines[4].contains("aka"), "{lines:#?}");
    press(&mut model, "/lim");
    let lines = drawn(&mut model, (80, 10), PLAIN, Instant::now());
    assert!(
        lines[4].contains("lima") && lines[9] == "/lim_",
        "{lines:#?}"
    );
    assert!(!lines.concat().contains("paris"));
}
