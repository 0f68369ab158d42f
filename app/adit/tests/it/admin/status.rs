//! `adit status`, the health check of containers.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use adit_interop::TempFolder;
use adit_interop::external_tools::{self, ToolOutput};

use super::world::{World, anna, server_url};
use crate::setup::{bin, start};

fn status(args: &[&str]) -> ToolOutput {
    let mut command = Command::new(bin());
    command.arg("status").args(args);
    external_tools::run_to_end(command, Duration::from_secs(40)).unwrap()
}

#[test]
fn status_asks_the_running_process_without_a_token() {
    let world = World::start(&server_url(), &anna());
    let api = world.api.to_string();
    let output = status(&["--admin", &api]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.output.contains(&api), "{output:?}");
    drop(world);
    let output = status(&["--admin", &api]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(
        output.output.contains("cannot reach the management API"),
        "{output:?}"
    );
}

#[test]
fn status_takes_the_address_from_the_file() {
    let folder = TempFolder::new("status").unwrap();
    let socket = folder.path().join("api.sock");
    let text =
        format!("[admin]\nlisten = {socket:?}\n\n[route.main]\nlisten = \"mixed://127.0.0.1:0\"\n");
    let file = folder.write_file("adit.toml", text).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(status(&["-c", file]).code, Some(4));
    let _adit = start(&["run", "-c", file]);
    assert_eq!(status(&["-c", file]).code, Some(0));

    let route = "[route.main]\nlisten = \"mixed://127.0.0.1:0\"\n";
    let file = folder.write_file("other.toml", route).unwrap();
    let output = status(&["-c", file.to_str().unwrap()]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.output.contains("no `[admin]`"), "{output:?}");
}

#[test]
fn status_does_not_wait_for_a_silent_process() {
    // Connections wait in the backlog, and nothing answers them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap().to_string();
    let output = status(&["--admin", &at]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(output.output.contains("did not answer"), "{output:?}");
}
