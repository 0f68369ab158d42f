//! `adit sessions`, `adit routes` and `adit status`, of a scripted process.

use adit_interop::external_tools::ToolOutput;
use serde_json::{Value, json};

use super::scripted::{ScriptedApi, sessions};
use crate::setup::ended;

fn run(api: &ScriptedApi, words: &[&str]) -> ToolOutput {
    let address = api.address();
    ended(&[words, &["--admin", &address]].concat())
}

/// Returns the result of a command, which is the only thing that it prints.
fn result(api: &ScriptedApi, words: &[&str]) -> Value {
    let output = run(api, &[words, &["--json"]].concat());
    let text = output.expect_success().unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["command"], words[0]);
    document["result"].clone()
}

/// Returns the error of a command, with its exit code.
fn error(api: &ScriptedApi, words: &[&str]) -> Value {
    let output = run(api, &[words, &["--json"]].concat());
    let document: Value = serde_json::from_str(&output.output).unwrap();
    let error = document["error"].clone();
    assert_eq!(
        error["exitCode"].as_i64(),
        output.code.map(i64::from),
        "{error}"
    );
    error
}

fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .map(|line| line.split_whitespace().collect())
        .collect()
}

#[test]
fn sessions_are_listed() {
    let api = ScriptedApi::start(sessions(&["anna", "bert\u{1b}[2J", "anna"]));
    let text = run(&api, &["sessions"]).expect_success().unwrap();
    let table = rows(&text);
    let heads = [
        "ID", "KIND", "USER", "ROUTE", "LISTENER", "TARGET", "AGE", "UP", "DOWN",
    ];
    assert_eq!(table[0], heads);
    let row = [
        "1",
        "tcp",
        "anna",
        "main",
        "127.0.0.1:1080",
        "name:443",
        "1m00s",
        "100",
        "B",
        "2.04",
        "kB",
    ];
    assert_eq!(table[1], row);
    assert_eq!(table[2][2], "bert\u{fffd}[2J");
    assert_eq!(text.lines().last(), Some("3 open sessions"));

    let text = run(&api, &["sessions", "--user", "anna"])
        .expect_success()
        .unwrap();
    let ids: Vec<&str> = rows(&text)[1..3].iter().map(|row| row[0]).collect();
    assert_eq!(ids, ["1", "3"]);
    assert_eq!(text.lines().last(), Some("2 open sessions"));

    let all = result(&api, &["sessions"]);
    assert_eq!(all, sessions(&["anna", "bert\u{1b}[2J", "anna"]));
    let some = result(&api, &["sessions", "--user", "anna", "--limit", "1"]);
    assert_eq!(some["total"], 2);
    assert_eq!(some["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn a_session_is_ended() {
    let api = ScriptedApi::start(sessions(&["anna"]));
    let text = run(&api, &["sessions", "--kill", "1"])
        .expect_success()
        .unwrap();
    assert_eq!(text, "ended session 1");
    assert_eq!(
        result(&api, &["sessions", "--kill", "7"]),
        json!({"ended": 7})
    );
    assert_eq!(api.changes(), ["DELETE /sessions/1", "DELETE /sessions/7"]);
    let error = error(&api, &["sessions", "--kill", "999"]);
    assert_eq!(error["what"], "no session has the ID 999");
    assert_eq!(error["exitCode"], 1);
    let output = run(&api, &["sessions", "--kill", "1", "--user", "anna"]);
    assert_eq!(output.code, Some(2), "{output:?}");
}

#[test]
fn routes_have_traffic_and_health() {
    let api = ScriptedApi::start(sessions(&[]));
    let text = run(&api, &["routes"]).expect_success().unwrap();
    let table = rows(&text);
    let heads = [
        "ROUTE", "LISTENER", "OVER", "OPEN", "TOTAL", "UP", "DOWN", "LOST",
    ];
    assert_eq!(table[0], heads);
    let row = [
        "main",
        "127.0.0.1:1080",
        "tcp+udp",
        "2",
        "7",
        "1",
        "B",
        "2",
        "B",
        "5",
    ];
    assert_eq!(table[1], row);
    let row = |name: &str| {
        table
            .iter()
            .find(|row| row.contains(&name))
            .unwrap()
            .join(" ")
    };
    assert_eq!(row("one"), "home manual one selected up, 20 ms");
    assert_eq!(row("two"), "home manual two out, 9 s no answer");
    assert_eq!(row("three"), "any failover three up");

    let document = result(&api, &["routes"]);
    assert_eq!(document["listeners"][0]["datagramsLost"], 5);
    assert_eq!(document["groups"][0]["members"][0]["usualSeconds"], 0.02);

    api.forget("/overview");
    let error = error(&api, &["routes"]);
    assert!(
        error["what"]
            .as_str()
            .unwrap()
            .contains("older than this program"),
        "{error}"
    );
    assert_eq!(error["exitCode"], 1);
}

#[test]
fn status_has_the_figures() {
    let api = ScriptedApi::start(sessions(&[]));
    let text = run(&api, &["status"]).expect_success().unwrap();
    let table = rows(&text);
    let row = |name: &str| {
        let row = table.iter().find(|row| row[0] == name);
        row.unwrap_or_else(|| panic!("no {name} in\n{text}"))[1..].join(" ")
    };
    assert_eq!(row("version"), "9.8.7");
    assert_eq!(row("uptime"), "1d01h");
    assert_eq!(row("traffic"), "1.02 kB up, 5.24 MB down");
    assert_eq!(row("sessions"), "2 open, 12345 since the start");
    assert_eq!(row("rejected"), "4 × wrong key");
    let document = result(&api, &["status"]);
    assert_eq!(document["overview"]["pid"], 4711);
    assert_eq!(document["address"], api.address());

    // It is healthy without figures.
    api.forget("/overview");
    let text = run(&api, &["status"]).expect_success().unwrap();
    assert!(text.contains("older than this program"), "{text}");
    let document = result(&api, &["status"]);
    assert!(document["overview"].is_null(), "{document}");
    api.end();
    let error = error(&api, &["status"]);
    assert_eq!(error["exitCode"], 4);
}
