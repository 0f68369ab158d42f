//! The live view, of a scripted process.

use std::process::{Command, Stdio};
use std::time::Duration;

use adit_interop::external_tools;
use rustix::process::{Signal, kill_process};
use serde_json::json;

use super::scripted::{ScriptedApi, sessions};
use super::tmux::{Tmux, is_coloured};
use crate::setup::{bin, ended};

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (200, 50);

fn start(size: (u16, u16), variables: &[(&str, &str)], api: &ScriptedApi) -> Tmux {
    let program = bin();
    let words = [program.to_str().unwrap(), "top", &api.address()];
    Tmux::start(size, variables, &words)
}

/// Returns the words of the first line that contains one.
fn words_of(screen: &[String], word: &str) -> Vec<String> {
    let line = screen.iter().find(|line| line.contains(word));
    let line = line.unwrap_or_else(|| panic!("no {word} in\n{}", screen.join("\n")));
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_small_terminal_shows_all_tabs() {
    let api = ScriptedApi::start(sessions(&["anna", "b\u{1b}]0;x\u{7}ert"]));
    let top = start(SMALL, &[], &api);
    let screen = top.wait_words("anna");
    assert_eq!(screen.len(), 24, "{screen:?}");
    assert!(
        screen[0].starts_with("adit 9.8.7  pid 4711  up 1d01h"),
        "{screen:?}"
    );
    assert!(screen[1].starts_with("down 1.02 kB/s"), "{screen:?}");
    assert!(screen[1].contains("5.24 MB"), "{screen:?}");
    assert!(
        screen[2].starts_with("sessions 2 open, 12345 total"),
        "{screen:?}"
    );
    assert!(screen[2].ends_with("rejected 4"), "{screen:?}");
    let row = words_of(&screen, "anna");
    let expected = [
        ">",
        "1",
        "tcp",
        "anna",
        "127.0.0.1:1080",
        "name:443",
        "1m00s",
        "100",
        "B",
        "2.04",
        "kB",
    ];
    assert_eq!(row, expected);
    // A name cannot change the title of the terminal.
    assert!(
        screen
            .iter()
            .any(|line| line.contains("b\u{fffd}]0;x\u{fffd}ert")),
        "{screen:?}"
    );

    top.press(&["Tab"]);
    let row = words_of(&top.wait_words("active"), "active");
    let expected = [
        ">", "anna", "active", "1", "1", "524", "kB", "1.04", "MB", "50",
    ];
    assert_eq!(row, expected);
    top.press(&["Tab"]);
    let screen = top.wait_words("no answer");
    let row = words_of(&screen, "no answer");
    assert_eq!(row[..3], ["home", "manual", "two"], "{screen:?}");
    assert!(
        words_of(&screen, "one").contains(&"*".to_owned()),
        "{screen:?}"
    );
    top.press(&["4"]);
    let row = words_of(&top.wait_words("tcp+udp"), "tcp+udp");
    assert_eq!(row.last().map(String::as_str), Some("5"));
    top.press(&["5"]);
    let row = words_of(&top.wait_words("RetransSegs"), "RetransSegs");
    assert_eq!(row, [">", "RetransSegs", "17", "0"]);
    top.press(&["?"]);
    top.wait_words("end the selected session");
    top.press(&["x", "q"]);
    let screen = top.wait_words("exit code 0.");
    assert!(
        !screen.iter().any(|line| line.contains("RetransSegs")),
        "{screen:?}"
    );
}

#[test]
fn a_large_terminal_shows_rates_and_routes() {
    let api = ScriptedApi::start(sessions(&["anna"]));
    let top = start(LARGE, &[], &api);
    let screen = top.wait_words("anna");
    assert_eq!(screen.len(), 50);
    for word in ["UP/S", "DOWN/S", "ROUTE"] {
        words_of(&screen, word);
    }
    assert_eq!(
        words_of(&screen, "anna").last().map(String::as_str),
        Some("main")
    );
    top.resize(SMALL);
    let screen = top.wait_for(|screen| screen.len() == 24 && screen[23].starts_with("q quit"));
    assert!(
        !screen.iter().any(|line| line.contains("ROUTE")),
        "{screen:?}"
    );
    top.press(&["C-c"]);
    top.wait_words("exit code 130.");
}

#[test]
fn colours_can_be_turned_off() {
    let api = ScriptedApi::start(sessions(&["anna"]));
    let top = start(SMALL, &[], &api);
    top.wait_words("anna");
    top.press(&["3"]);
    top.wait_words("home");
    assert!(is_coloured(&top.coloured_screen()));
    let top = start(SMALL, &[("NO_COLOR", "1")], &api);
    top.wait_words("anna");
    top.press(&["3"]);
    top.wait_words("home");
    let screen = top.coloured_screen();
    assert!(!is_coloured(&screen), "{screen:?}");
    // The selected row is known without colours.
    assert!(top.screen().iter().any(|line| line.starts_with("> home")));
}

#[test]
fn keys_sort_filter_and_pause() {
    let api = ScriptedApi::start(sessions(&["cleo", "anna", "bert"]));
    let top = start(SMALL, &[], &api);
    let order = |screen: &[String]| {
        let users = screen.iter().filter_map(|line| {
            ["anna", "bert", "cleo"]
                .into_iter()
                .find(|user| line.contains(*user))
        });
        users.collect::<Vec<_>>().join(" ")
    };
    top.wait_for(|screen| order(screen) == "cleo anna bert");
    // By number, by kind, by user.
    top.press(&["s"]);
    top.wait_for(|screen| order(screen) == "bert anna cleo");
    top.press(&["s", "s"]);
    top.wait_for(|screen| order(screen) == "anna bert cleo");
    top.press(&["r"]);
    top.wait_for(|screen| order(screen) == "cleo bert anna");
    top.press(&["/", "n", "n", "Enter"]);
    top.wait_for(|screen| order(screen) == "anna");
    top.press(&["Escape"]);
    top.wait_for(|screen| order(screen) == "cleo bert anna");
    top.press(&["p"]);
    top.wait_words("paused");
    api.set("/sessions", sessions(&["bert"]));
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(order(&top.screen()), "cleo bert anna");
    top.press(&["p"]);
    top.wait_for(|screen| order(screen) == "bert");
    top.press(&["q"]);
    top.wait_words("exit code 0.");
}

#[test]
fn actions_reach_the_process() {
    let api = ScriptedApi::start(sessions(&["anna", "bert"]));
    let top = start(SMALL, &[], &api);
    top.wait_words("bert");
    top.press(&["Down", "K"]);
    top.wait_words("end session 2?");
    top.press(&["n"]);
    top.wait_words("q quit");
    top.press(&["K", "y"]);
    top.wait_words("ended session 2");
    assert_eq!(api.changes(), ["DELETE /sessions/2"]);
    top.press(&["3"]);
    top.wait_words("home");
    top.press(&["j", "Enter"]);
    top.wait_words("home uses two");
    let expected = r#"POST /groups/home {"selected":"two"}"#;
    assert_eq!(api.changes().last().map(String::as_str), Some(expected));
    top.press(&["G", "Enter"]);
    top.wait_words("only members of a `manual` group");
    assert_eq!(api.changes().len(), 2);
    // It has ended meanwhile.
    api.set(
        "/sessions",
        json!({"total": 1, "sessions": [{"id": 999, "user": "late"}]}),
    );
    top.press(&["1"]);
    top.wait_words("late");
    top.press(&["K", "y"]);
    top.wait_words("no such session");
}

#[test]
fn a_process_that_stalls_or_ends_is_reported() {
    let api = ScriptedApi::start(sessions(&["anna"]));
    api.forget("/accounts");
    let top = start(SMALL, &[], &api);
    top.wait_words("anna");
    top.press(&["2"]);
    top.wait_words("this process reports no users");
    api.stall(true);
    top.wait_words("no answer for 4 s");
    api.stall(false);
    top.wait_for(|screen| !screen.iter().any(|line| line.contains("no answer for")));
    api.end();
    let screen = top.wait_words("exit code 4.");
    words_of(&screen, "the process has ended");
    assert!(
        !screen.iter().any(|line| line.contains("q quit")),
        "{screen:?}"
    );
}

/// Its terminal is usable afterwards: the screen before it is back, and a key that is pressed is shown.
#[test]
fn a_signal_restores_the_terminal() {
    let api = ScriptedApi::start(sessions(&["anna"]));
    for (signal, code) in [(Signal::TERM, 0), (Signal::INT, 130), (Signal::HUP, 0)] {
        let top = start(SMALL, &[], &api);
        top.wait_words("anna");
        kill_process(top.program_id(), signal).unwrap();
        let screen = top.wait_words(&format!("exit code {code}."));
        assert!(
            !screen.iter().any(|line| line.contains("anna")),
            "{screen:?}"
        );
        top.press(&["e", "c", "h", "o"]);
        top.wait_words("echo");
    }
}

#[test]
fn it_needs_a_terminal_and_a_process() {
    let api = ScriptedApi::start(sessions(&[]));
    let mut command = Command::new(bin());
    command.args(["top", &api.address()]).stdin(Stdio::null());
    let output = external_tools::run_to_end(command, Duration::from_secs(20)).unwrap();
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.output.contains("needs a terminal"), "{output:?}");
    assert!(output.output.contains("adit status"), "{output:?}");

    let top = start(SMALL, &[("TERM", "dumb")], &api);
    let screen = top.wait_words("exit code 2.");
    words_of(&screen, "TERM=dumb");
    words_of(&screen, "adit status");

    let program = bin();
    let program = program.to_str().unwrap();
    let top = Tmux::start(SMALL, &[], &[program, "top", "/nonexistent/api.sock"]);
    top.wait_words("exit code 4.");
    api.forget("/events");
    let top = start(SMALL, &[], &api);
    let screen = top.wait_words("exit code 1.");
    words_of(&screen, "older than this program");
    let output = ended(&["top"]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.output.contains("--admin ADDRESS"), "{output:?}");
}
