//! Tests of the view in a terminal in memory.

use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::feed::Update;
use super::super::model::{Action, Outcome};
use super::*;
use crate::command::fleet::NodeView;

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
            ..NodeView::default()
        },
    ];
    Model::new(
        "main at valkey://s.example".to_owned(),
        nodes,
        Instant::now(),
    )
}

fn drawn(model: &mut Model, size: (u16, u16), now: Instant) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    let look = Look::new(false, false);
    terminal
        .draw(|frame| draw(frame, model, look, now))
        .unwrap();
    let buffer = terminal.backend().buffer().clone();
    let width = usize::from(size.0);
    let cells: Vec<&str> = buffer.content().iter().map(|cell| cell.symbol()).collect();
    cells
        .chunks(width)
        .map(|line| line.concat().trim_end().to_owned())
        .collect()
}

fn press(model: &mut Model, code: KeyCode) -> Outcome {
    model.press(KeyEvent::new(code, KeyModifiers::NONE), Instant::now())
}

#[test]
fn nodes_fit_into_80_columns() {
    let mut model = model();
    let lines = drawn(&mut model, (80, 10), Instant::now());
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
    let small = drawn(&mut model, (30, 5), Instant::now());
    assert!(small[0].starts_with("adit fleet top needs"));
}

#[test]
fn a_drain_asks_first() {
    let mut model = model();
    assert_eq!(press(&mut model, KeyCode::Char('d')), Outcome::Continue);
    let lines = drawn(&mut model, (80, 10), Instant::now());
    assert!(lines[9].starts_with("drain paris?"), "{lines:#?}");
    assert_eq!(press(&mut model, KeyCode::Char('n')), Outcome::Continue);
    press(&mut model, KeyCode::Char('d'));
    let action = Action {
        node: 1,
        name: "paris".to_owned(),
        is_drain: true,
    };
    assert_eq!(
        press(&mut model, KeyCode::Char('y')),
        Outcome::Perform(action)
    );
    // The next one drains already.
    press(&mut model, KeyCode::Down);
    assert_eq!(press(&mut model, KeyCode::Char('d')), Outcome::Continue);
    assert_eq!(model.mode, Mode::Normal);
    let undo = press(&mut model, KeyCode::Char('u'));
    assert!(
        matches!(&undo, Outcome::Perform(action) if action.node == 2 && !action.is_drain),
        "{undo:?}"
    );
    model.update(
        Update::Performed(Err("no such node".to_owned())),
        Instant::now(),
    );
    let lines = drawn(&mut model, (80, 10), Instant::now());
    assert_eq!(lines[9], "no such node");
}

#[test]
fn a_silent_server_shows() {
    let mut model = model();
    let later = Instant::now() + Duration::from_secs(9);
    model.update(Update::Failed("connection refused".to_owned()), later);
    let lines = drawn(&mut model, (80, 10), later);
    assert!(
        lines[0].contains("no answer for 9 s: connection refused")
            || lines[0].contains("no answer for 8 s: connection refused"),
        "{lines:#?}"
    );
    // A new answer ends it, and a pause keeps the rows.
    press(&mut model, KeyCode::Char('p'));
    model.update(Update::Nodes(Vec::new()), later);
    let lines = drawn(&mut model, (80, 10), later);
    assert!(
        lines[0].ends_with("paused") && lines[4].contains("paris"),
        "{lines:#?}"
    );
}

#[test]
fn rows_are_sorted_and_filtered() {
    let mut model = model();
    for _ in 0..5 {
        press(&mut model, KeyCode::Char('s'));
    }
    let lines = drawn(&mut model, (80, 10), Instant::now());
    assert!(
        lines[3].contains("MBIT/Sv") || lines[3].contains("MBIT/S"),
        "{lines:#?}"
    );
    assert!(lines[4].contains("aka"), "{lines:#?}");
    press(&mut model, KeyCode::Char('/'));
    for c in "lim".chars() {
        press(&mut model, KeyCode::Char(c));
    }
    let lines = drawn(&mut model, (80, 10), Instant::now());
    assert!(
        lines[4].contains("lima") && lines[9] == "/lim_",
        "{lines:#?}"
    );
    assert!(!lines.concat().contains("paris"));
}
