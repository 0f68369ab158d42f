//! Settings of the process in the configuration file: `version`, `include`, `[log]`, `[admin]`; and `adit schema`.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder};

use crate::admin::world::ask;
use crate::setup::{bin, ended, says};

/// A running file.
struct Running {
    adit: AditProcess,
    folder: TempFolder,
}

impl Running {
    /// Starts a file with these settings and one route.
    fn start(options: &[&str], settings: &str) -> Self {
        let folder = TempFolder::new("settings").unwrap();
        let file = folder
            .write_file("adit.toml", with_route(settings))
            .unwrap();
        let args = [options, &["run", "-c", file.to_str().unwrap()]].concat();
        let adit = AditProcess::start_with(&bin(), &args, 1).unwrap();
        Self { adit, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces the settings, and reloads the file by the API at `admin.sock`.
    fn reload(&self, settings: &str) {
        fs::write(self.path("adit.toml"), with_route(settings)).unwrap();
        let headers = ["Content-Type: application/json", "Content-Length: 0"];
        assert_eq!(self.api_status("POST /v1/reload", &headers), 200);
    }

    #[track_caller]
    fn wait_for(&mut self, text: &str, count: usize) {
        let lines = self.adit.process().wait_lines(text, count, TEST_TIMEOUT);
        lines.unwrap();
    }

    /// Returns the status of a request to the API.
    fn api_status(&self, request: &str, headers: &[&str]) -> u16 {
        let stream = UnixStream::connect(self.path("admin.sock")).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        ask(
            stream,
            request,
            &[&["Host: localhost"][..], headers].concat(),
            "",
        )
        .status
    }
}

fn with_route(settings: &str) -> String {
    format!("{settings}\n[route.a]\nlisten = \"mixed://127.0.0.1:0\"\n")
}

/// The exit code and the output of `adit check` for these settings.
fn checked(settings: &str) -> (Option<i32>, String) {
    let folder = TempFolder::new("settings").unwrap();
    folder.write_file("weak", "short\n").unwrap();
    let file = folder
        .write_file("adit.toml", with_route(settings))
        .unwrap();
    let done = ended(&["check", "-c", file.to_str().unwrap()]);
    (done.code, done.output)
}

#[test]
fn another_version_is_refused() {
    assert_eq!(checked("version = 1\n").0, Some(0));
    let (code, output) = checked("version = 2\n");
    assert_eq!(code, Some(3), "{output}");
    says(
        &output,
        &[
            "unknown version `2`",
            "this adit reads version 1",
            "adit.toml:1:11",
        ],
    );
}

#[test]
fn the_level_of_the_log_changes_with_the_file() {
    let settings = |level: &str, socket: &str| {
        format!("[log]\nlevel = \"{level}\"\n[admin]\nlisten = \"{socket}\"\n")
    };
    let mut running = Running::start(&[], &settings("error", "admin.sock"));
    running.wait_for("api at ", 1);
    running.reload(&settings("error", "admin.sock"));
    running.reload(&settings("info", "admin.sock"));
    running.wait_for("reloaded /", 1);
    running.reload(&settings("info", "other.sock"));
    running.wait_for("restart it to apply the change", 1);
    running.reload(&settings("error", "other.sock"));
    running.reload(&settings("info", "admin.sock"));
    running.wait_for("reloaded /", 3);
    let log = running.adit.process().output();
    assert_eq!(log.matches("reloaded /").count(), 3, "{log}");
    assert_eq!(log.matches("restart it").count(), 1, "{log}");
    running.adit.stop().unwrap();
}

#[test]
fn the_command_line_takes_precedence() {
    let settings = "[log]\nlevel = \"error\"\n[admin]\nlisten = \"admin.sock\"\n";
    let mut running = Running::start(&["-v"], settings);
    running.wait_for("api at ", 1);
    running.reload(settings);
    running.wait_for("reloaded /", 1);
    running.adit.stop().unwrap();
}

#[test]
fn mistakes_of_the_api_are_found_before_it_starts() {
    for (settings, words) in [
        (
            "[admin]\nlisten = \"127.0.0.1:0\"\n",
            "the API on a port needs `tokens`",
        ),
        (
            "[admin]\nlisten = \"127.0.0.1\"\n",
            "bad address `127.0.0.1`",
        ),
        (
            "[admin]\nlisten = \"a.sock\"\ntokens = \"@none\"\n",
            "cannot read `none`",
        ),
        (
            "[admin]\nlisten = \"127.0.0.1:0\"\ntokens = \"@weak\"\n",
            "[admin] tokens",
        ),
        (
            "[admin]\nlisten = \"a.sock\"\npublic_host = \"a b\"\n",
            "bad host `a b`",
        ),
        (
            "[admin]\nlisten = \"a.sock\"\nstore = \"@users.redb\"\n",
            "bad path `@users.redb`",
        ),
        (
            "[admin]\nlisten = \"a.sock\"\nstore = \"none/users.redb\"\n",
            "[admin] store = ",
        ),
        (
            "[admin]\nlisten = \"a.sock\"\nstore_interval = \"1s\"\n",
            "`store_interval` without `store`",
        ),
        (
            "[admin]\nlisten = \"a.sock\"\nstore = \"a\"\nstore_interval = \"1ms\"\n",
            "`store_interval` is too short",
        ),
    ] {
        let (code, output) = checked(settings);
        assert_eq!(code, Some(3), "{output}");
        says(&output, &[words]);
    }
    let done = ended(&["run", "mixed://127.0.0.1:0", "--public-host", "a.example"]);
    assert_eq!(done.code, Some(2), "{}", done.output);
    says(&done.output, &["--public-host needs --admin"]);
}

#[test]
fn a_new_included_file_is_noticed() {
    let folder = TempFolder::new("include").unwrap();
    let main = "include = \"conf.d/*.toml\"\n[run]\nwatch = true\n";
    let file = folder.write_file("adit.toml", with_route(main)).unwrap();
    fs::create_dir(folder.path().join("conf.d")).unwrap();
    let args = ["run", "-c", file.to_str().unwrap()];
    let mut adit = AditProcess::start_with(&bin(), &args, 1).unwrap();
    let more = |port: &str| format!("[route.more]\nlisten = \"mixed://127.0.0.1:{port}\"\n");
    folder.write_file("conf.d/b.toml", more("0")).unwrap();
    let mut wait = |text: &str| adit.process().wait_lines(text, 1, TEST_TIMEOUT).unwrap();
    wait("1 listener added");
    // A change of an included file, and a mistake in it with its place.
    folder.write_file("conf.d/b.toml", more("x")).unwrap();
    wait("conf.d/b.toml:2:");
    fs::remove_file(folder.path().join("conf.d/b.toml")).unwrap();
    wait("1 removed");
    adit.stop().unwrap();
}

#[test]
fn the_schema_lists_the_tables() {
    let text = ended(&["schema"]).expect_success().unwrap();
    let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    for table in [
        "version", "include", "log", "admin", "run", "group", "route",
    ] {
        assert!(schema["properties"][table].is_object(), "{table}");
    }
    let topics = ended(&["help", "config"]).expect_success().unwrap();
    says(
        &topics,
        &["adit schema", "[log]", "[admin]", "include", "version"],
    );
}
