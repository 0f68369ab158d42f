//! The picture of terminals in the README: a server and a client of a real run, with the key and the
//! addresses replaced by placeholders.

mod picture;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use adit_interop::{Folder, Process};
use anyhow::{Context, Result};

use picture::{Line, Window};

/// The picture, in the folder of the documents.
const PICTURE: &str = "terminal.svg";
/// How long a program may take until it has printed what is shown.
const PATIENCE: Duration = Duration::from_secs(30);

/// In the place of the key, and of its name. No key has brackets.
const KEY: &str = "[key]";
const KEY_ID: &str = "[id]";
/// In the place of the server's address, as in the README.
const HOST: &str = "vps.example";
const SERVER_PORT: u16 = 8388;
const PROXY_PORT: u16 = 1080;
const STATE: &str = "~/.local/state/adit";

/// Runs a server and a client of this adit and draws what they print.
pub(crate) fn run(adit: &Path, docs: &Path) -> Result<()> {
    let folder = Folder::new("terminal")?;
    let state = folder.path().join("state");
    let mut command = Command::new(adit);
    command.args(["server", "--host", HOST, "--listen", "[::]:0"]);
    command
        .args(["--show-url", "--no-qr", "--state"])
        .arg(&state);
    let mut server = Process::spawn(command)?;
    let server_addr = listening(&mut server)?;
    let said = server.log();
    let secret = after(&said, "url      ss://", ':', '@').context("no key in the URL")?;
    let id = after(&said, "key-id ", ' ', '\n').context("no key-id")?;
    let url = said.lines().find_map(|line| line.strip_prefix("url      "));
    let url = url.context("no URL")?.replace(HOST, "127.0.0.1");

    let mut command = Command::new(adit);
    command.args(["client", &url, "--listen", "mixed://127.0.0.1:0"]);
    let mut client = Process::spawn(command)?;
    let proxy = listening(&mut client)?;
    client.wait_lines("ok: ", 1, PATIENCE)?;

    let places = [
        (secret.to_owned(), KEY.to_owned()),
        (format!("key-id {id}"), format!("key-id {KEY_ID}")),
        (format!("key-id   {id}"), format!("key-id   {KEY_ID}")),
        (state.display().to_string(), STATE.to_owned()),
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
        window(
            "on the server",
            format!("adit server --host {HOST} --no-qr"),
            &said,
            &places,
        ),
        window(
            "at home",
            format!("adit client '{url}'"),
            &client.log(),
            &places,
        ),
    ];
    client.terminate()?;
    server.terminate()?;
    let path = docs.join(PICTURE);
    fs::write(&path, picture::draw(&windows)).with_context(|| path.display().to_string())
}

/// Waits until it listens.
fn listening(process: &mut Process) -> Result<SocketAddr> {
    let lines = process.wait_lines("listening on ", 1, PATIENCE)?;
    let line = lines.first().context("no line")?;
    let (_, addr) = line.split_once("listening on ").context("no address")?;
    addr.trim().parse().with_context(|| line.clone())
}

/// The text after `before`, from behind `open` up to `close`.
fn after<'a>(text: &'a str, before: &str, open: char, close: char) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    let line = rest.lines().next()?;
    let inner = match open {
        ' ' => line,
        _ => line.split_once(open)?.1,
    };
    Some(inner.split(close).next()?.trim())
}

fn window(title: &str, typed: String, said: &str, places: &[(String, String)]) -> Window {
    let typed = std::iter::once(Line::typed(redacted(&typed, places)));
    let said = said
        .lines()
        .map(|line| Line::printed(redacted(line, places)));
    Window {
        title: title.to_owned(),
        lines: typed.chain(said).collect(),
    }
}

/// The text with a placeholder in each of these places, in their order.
fn redacted(text: &str, places: &[(String, String)]) -> String {
    let mut text = text.to_owned();
    for (what, placeholder) in places {
        text = text.replace(what, placeholder);
    }
    text
}

#[cfg(test)]
mod tests;
