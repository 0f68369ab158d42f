//! The picture of terminals in the README: a server and a client of a real run, with the key and the
//! addresses replaced by placeholders.

mod picture;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use adit_interop::{ChildProcess, TempFolder, external_tools};
use anyhow::{Context, Result};

use picture::{TerminalLine, TerminalWindow};

/// The picture, in the folder of the documents.
const PICTURE_FILE: &str = "terminal.svg";
/// Time limit for a program to print the lines that are shown.
const PATIENCE: Duration = Duration::from_secs(30);

/// Placeholders for the key and its identifier. No key has brackets.
const KEY_PLACEHOLDER: &str = "[key]";
const KEY_ID_PLACEHOLDER: &str = "[id]";
/// Placeholder for the server's address, as in the README.
const HOST: &str = "vps.example";
const SERVER_PORT: u16 = 8388;
const PROXY_PORT: u16 = 1080;
const STATE_DIR: &str = "~/.local/state/adit";

/// Runs a server and a client of this `adit` and draws their output.
pub(crate) fn draw_terminals(adit: &Path, docs: &Path) -> Result<()> {
    let folder = TempFolder::new("terminal")?;
    let state = folder.path().join("state");
    let mut command = Command::new(adit);
    command.args(["server", "--host", HOST, "--listen", "[::]:0"]);
    command
        .args(["--show-url", "--no-qr", "--state"])
        .arg(&state);
    let mut server = ChildProcess::spawn(command)?;
    let server_addr = wait_until_listening(&mut server)?;
    let said = server.output();
    let secret = text_between(&said, "url      ss://", ':', '@').context("no key in the URL")?;
    let id = text_between(&said, "key-id ", ' ', '\n').context("no key-id")?;
    let url = said.lines().find_map(|line| line.strip_prefix("url      "));
    let url = url.context("no URL")?.replace(HOST, "127.0.0.1");

    let mut command = Command::new(adit);
    command.args(["client", &url, "--check", "--save", "home", "--state"]);
    external_tools::run_to_end(command_in(command, &state), PATIENCE)?.expect_success()?;
    let mut command = Command::new(adit);
    command.args(["client", "home", "--listen", "0", "--state"]);
    let command = command_in(command, &state);
    let mut client = ChildProcess::spawn(command)?;
    let proxy = wait_until_listening(&mut client)?;
    client.wait_lines("ok: ", 1, PATIENCE)?;

    let places = [
        (secret.to_owned(), KEY_PLACEHOLDER.to_owned()),
        (
            format!("key-id {id}"),
            format!("key-id {KEY_ID_PLACEHOLDER}"),
        ),
        (
            format!("key-id   {id}"),
            format!("key-id   {KEY_ID_PLACEHOLDER}"),
        ),
        (state.display().to_string(), STATE_DIR.to_owned()),
        (proxy.to_string(), format!("127.0.0.1:{PROXY_PORT}")),
        (
            format!("127.0.0.1:{}", server_addr.port()),
            format!("{HOST}:{SERVER_PORT}"),
        ),
        (
            format!(":{}", server_addr.port()),
            format!(":{SERVER_PORT}"),
        ),
    ];
    let windows = [
        build_window(
            "on the server",
            format!("adit server --host {HOST} --no-qr"),
            &said,
            &places,
        ),
        build_window(
            "at home",
            "adit client home".to_owned(),
            &client.output(),
            &places,
        ),
    ];
    client.terminate()?;
    server.terminate()?;
    let path = docs.join(PICTURE_FILE);
    fs::write(&path, picture::draw_picture(&windows)).with_context(|| path.display().to_string())
}

/// Adds a folder to the arguments.
fn command_in(mut command: Command, folder: &Path) -> Command {
    command.arg(folder);
    command
}

/// Waits until the process listens, and returns its address.
fn wait_until_listening(process: &mut ChildProcess) -> Result<SocketAddr> {
    let lines = process.wait_lines("listening on ", 1, PATIENCE)?;
    let line = lines.first().context("no line")?;
    let (_, addr) = line.split_once("listening on ").context("no address")?;
    addr.trim().parse().with_context(|| line.clone())
}

/// Returns the text after `before`, between `open` and `close`; a blank `open` is the start.
fn text_between<'a>(text: &'a str, before: &str, open: char, close: char) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    let line = rest.lines().next()?;
    let inner = match open {
        ' ' => line,
        _ => line.split_once(open)?.1,
    };
    Some(inner.split(close).next()?.trim())
}

fn build_window(
    title: &str,
    typed: String,
    said: &str,
    places: &[(String, String)],
) -> TerminalWindow {
    let typed = std::iter::once(TerminalLine::new_typed(redact_text(&typed, places)));
    let said = said
        .lines()
        .map(|line| TerminalLine::new_printed(redact_text(line, places)));
    TerminalWindow {
        title: title.to_owned(),
        lines: typed.chain(said).collect(),
    }
}

/// Replaces each of these texts by its placeholder, in this order.
fn redact_text(text: &str, places: &[(String, String)]) -> String {
    let mut text = text.to_owned();
    for (what, placeholder) in places {
        text = text.replace(what, placeholder);
    }
    text
}

#[cfg(test)]
mod tests;
