//! `adit system-proxy` with the programs of the desktops.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use adit_interop::TempFolder;
use adit_interop::external_tools::{self, ToolOutput};

use crate::setup::{bin, says};

const LIMIT: Duration = Duration::from_secs(60);
/// Wine creates its folder when it is started for the first time.
const WINE_LIMIT: Duration = Duration::from_secs(200);

/// A desktop whose settings are files in a folder.
struct Desktop {
    folder: TempFolder,
    name: &'static str,
}

impl Desktop {
    fn new(name: &'static str) -> Self {
        let folder = TempFolder::new(&format!("proxy-{name}")).unwrap();
        Self { folder, name }
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        let home = self.folder.path();
        command
            .args(words)
            .env("HOME", home)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_STATE_HOME", home.join("state"))
            .env("XDG_CURRENT_DESKTOP", self.name)
            .env("GSETTINGS_BACKEND", "keyfile")
            .env_remove("STATE_DIRECTORY")
            .env_remove("DBUS_SESSION_BUS_ADDRESS");
        command
    }

    fn proxy(&self, words: &[&str]) -> ToolOutput {
        let command = self.command(bin(), &[&["system-proxy"], words].concat());
        external_tools::run_to_end(command, LIMIT).unwrap()
    }

    fn read(&self, program: &str, words: &[&str]) -> String {
        let command = self.command(program, words);
        let read = external_tools::run_to_end(command, LIMIT).unwrap();
        read.expect_success().unwrap().trim().to_owned()
    }
}

#[test]
fn the_proxy_of_gnome_is_switched_and_restored() {
    let desktop = Desktop::new("ubuntu:GNOME");
    let get = |schema: &str, key: &str| {
        let schema = format!("org.gnome.system.proxy{schema}");
        desktop.read("gsettings", &["get", &schema, key])
    };
    let before = ["set", "org.gnome.system.proxy.http", "host", "old.example"];
    desktop.read("gsettings", &before);
    assert_eq!(desktop.proxy(&["off"]).code, Some(1));

    let on = desktop.proxy(&["on"]).expect_success().unwrap();
    says(&on, &["the SOCKS and HTTP proxy on 127.0.0.1:1080"]);
    assert_eq!(get("", "mode"), "'manual'");
    assert_eq!(
        (get(".socks", "host"), get(".socks", "port")),
        ("'127.0.0.1'".to_owned(), "1080".to_owned())
    );
    assert_eq!(get(".http", "host"), "'127.0.0.1'");
    // Another proxy replaces the first one, and the settings before both are kept.
    desktop
        .proxy(&["on", "socks5://[::1]:1081"])
        .expect_success()
        .unwrap();
    assert_eq!(
        (get(".socks", "host"), get(".socks", "port")),
        ("'::1'".to_owned(), "1081".to_owned())
    );
    assert_eq!(get(".https", "host"), "''");
    let status = desktop.proxy(&["status"]).expect_success().unwrap();
    says(
        &status,
        &[
            "org.gnome.system.proxy mode = 'manual'",
            "switched on by adit",
        ],
    );
    let status = desktop.proxy(&["status", "--json"]);
    let status: serde_json::Value =
        serde_json::from_str(&status.expect_success().unwrap()).unwrap();
    let result = &status["result"];
    assert_eq!(status["command"], "system-proxy status");
    assert_eq!(
        (&result["desktop"], &result["isOn"]),
        (&"gnome".into(), &true.into())
    );
    let mode = serde_json::json!({
        "key": ["org.gnome.system.proxy", "mode"],
        "value": "'manual'",
    });
    assert!(
        result["settings"].as_array().unwrap().contains(&mode),
        "{result}"
    );

    desktop.proxy(&["off"]).expect_success().unwrap();
    assert_eq!(
        (get("", "mode"), get(".http", "host")),
        ("'none'".to_owned(), "'old.example'".to_owned())
    );
    assert_eq!(
        (get(".socks", "host"), get(".socks", "port")),
        ("''".to_owned(), "0".to_owned())
    );
    assert_eq!(desktop.proxy(&["off"]).code, Some(1));
}

#[test]
fn the_proxy_of_kde_is_switched_and_restored() {
    let desktop = Desktop::new("KDE");
    let words = ["--file", "kioslaverc", "--group", "Proxy Settings", "--key"];
    let get = |key: &str| desktop.read("kreadconfig5", &[&words[..], &[key]].concat());
    let before = [&words[..], &["httpProxy", "http://old.example 3128"]].concat();
    desktop.read("kwriteconfig5", &before);

    desktop
        .proxy(&["on", "mixed://127.0.0.1:1080"])
        .expect_success()
        .unwrap();
    assert_eq!(
        (get("ProxyType"), get("socksProxy")),
        ("1".to_owned(), "socks://127.0.0.1 1080".to_owned())
    );
    assert_eq!(get("httpProxy"), "http://127.0.0.1 1080");
    let other = desktop.proxy(&["off", "--desktop", "gnome"]);
    assert_eq!(other.code, Some(2), "{}", other.output);
    desktop.proxy(&["off"]).expect_success().unwrap();
    assert_eq!(
        (get("ProxyType"), get("httpProxy")),
        (String::new(), "http://old.example 3128".to_owned())
    );
    says(
        &desktop.proxy(&["status"]).output,
        &["ProxyType = (not set)", "not switched on by adit"],
    );
}

/// The registry of Wine is that of Windows.
#[test]
fn the_proxy_of_windows_is_switched_and_restored() {
    let desktop = Desktop::new("windows");
    let path = desktop.folder.path();
    let script = desktop
        .folder
        .write_file("reg.exe", "#!/bin/sh\nexec wine reg \"$@\"\n")
        .unwrap();
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    let run = |program: &std::path::Path, words: &[&str]| {
        let mut command = desktop.command(program, words);
        let search = std::env::var("PATH").unwrap();
        command
            .env("PATH", format!("{}:{search}", path.display()))
            .env("WINEPREFIX", path.join("wine"))
            .env("WINEDEBUG", "-all");
        external_tools::run_to_end(command, WINE_LIMIT).unwrap()
    };
    let proxy = |action: &str| {
        let all = ["system-proxy", action, "--desktop", "windows"];
        run(&bin(), &all).expect_success().unwrap()
    };
    says(&proxy("status"), &["ProxyServer = (not set)"]);
    proxy("on");
    let server =
        "ProxyServer = REG_SZ http=127.0.0.1:1080;https=127.0.0.1:1080;socks=127.0.0.1:1080";
    says(&proxy("status"), &[server, "ProxyEnable = REG_DWORD 0x1"]);
    proxy("off");
    says(
        &proxy("status"),
        &["ProxyServer = (not set)", "ProxyEnable = (not set)"],
    );
    // It would run for some seconds more, and write into the folder.
    run("wineserver".as_ref(), &["--kill"]);
}

#[test]
fn a_proxy_that_desktops_cannot_use_is_refused() {
    let desktop = Desktop::new("sway");
    for (words, code, expected) in [
        (&["on"][..], 1, "`sway` is not supported"),
        (
            &["on", "--desktop", "kde", "ss://aes-128-gcm:x@127.0.0.1:1"],
            2,
            "SOCKS and HTTP",
        ),
        (
            &["on", "--desktop", "kde", "socks5://a:b@127.0.0.1:1080"],
            2,
            "password",
        ),
        (
            &["on", "--desktop", "kde", "socks5://127.0.0.1"],
            2,
            "the port is missing",
        ),
    ] {
        let refused = desktop.proxy(words);
        assert_eq!(refused.code, Some(code), "{words:?}: {}", refused.output);
        says(&refused.output, &[expected]);
    }
}
