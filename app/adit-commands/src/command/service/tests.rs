//! The files of all service managers, checked by other programs where they are installed.

use std::path::{Path, PathBuf};

use super::definition::{Privileges, ServiceDefinition, ServiceScope};
use super::systemd::UnitText;
use super::*;
use crate::args::{Args, Command};
use clap::Parser as _;

fn definition(scope: ServiceScope) -> ServiceDefinition {
    let arguments = ["run", "-c", "/etc/adit/adit.toml"];
    ServiceDefinition {
        name: "adit".to_owned(),
        scope,
        program: "/usr/bin/adit".to_owned(),
        arguments: arguments.map(str::to_owned).to_vec(),
        reports_start: true,
        can_reload: true,
        privileges: Privileges {
            low_ports: true,
            transparent: false,
        },
        needed: Privileges::default(),
    }
}

/// Returns the units of the packages, with their paths in `packaging/systemd`.
fn packaged_units() -> Vec<(&'static str, String)> {
    let (system, mut user) = (
        definition(ServiceScope::System),
        definition(ServiceScope::User),
    );
    let mut template = system.clone();
    let instance = ["run", "-c", "/etc/adit/%i.toml"];
    template.arguments = instance.map(str::to_owned).to_vec();
    let own = ["run", "-c", "%E/adit/adit.toml"];
    user.arguments = own.map(str::to_owned).to_vec();
    let build = |definition: &ServiceDefinition, folder| {
        let is_own = false;
        let text = UnitText {
            definition,
            is_own,
            folder,
        };
        text.build()
    };
    vec![
        ("adit.service", build(&system, "adit")),
        // A percent sign of an argument is doubled; these two are meant for systemd.
        (
            "adit@.service",
            build(&template, "adit-%i").replace("%%i", "%i"),
        ),
        (
            "user/adit.service",
            build(&user, "adit").replace("%%E", "%E"),
        ),
    ]
}

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd")
}

/// The units of the packages are those of the command. `ADIT_BLESS=1` writes them.
#[test]
fn packages_have_the_same_units() {
    for (name, text) in packaged_units() {
        let path = packaging().join(name);
        if std::env::var_os("ADIT_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let packaged = std::fs::read_to_string(&path).unwrap();
        assert_eq!(packaged, text, "{name}; ADIT_BLESS=1 writes it");
    }
}

fn installed(words: &[&str]) -> Result<ServiceDefinition, Failure> {
    let line = ["adit", "service", "install"].iter().chain(words);
    let args = Args::try_parse_from(line).unwrap();
    let Command::Service(ServiceCommand::Install(typed)) = args.command else {
        panic!("{words:?}");
    };
    ServiceDefinition::from_args(&typed, Path::new("/usr/bin/adit"))
}

fn refusal(words: &[&str]) -> String {
    installed(words).unwrap_err().to_log_line()
}

#[test]
fn privileges_are_those_of_the_listeners() {
    let of = |words: &[&str]| {
        installed(words)
            .unwrap()
            .privileges
            .capabilities()
            .join(" ")
    };
    assert_eq!(of(&["socks5://127.0.0.1:1080"]), "");
    assert_eq!(of(&["socks5://127.0.0.1:0"]), "");
    assert_eq!(
        of(&["-L", "socks5://127.0.0.1:1023"]),
        "CAP_NET_BIND_SERVICE"
    );
    assert_eq!(
        of(&["run", "tproxy://127.0.0.1:12345"]),
        "CAP_NET_ADMIN CAP_NET_BIND_SERVICE"
    );
    assert_eq!(of(&["redir://127.0.0.1:12345"]), "");
    assert_eq!(of(&["server", "--listen", ":443"]), "CAP_NET_BIND_SERVICE");
    assert_eq!(of(&["server"]), "");
}

#[test]
fn arguments_become_those_of_adit() {
    let of = |words: &[&str]| installed(words).unwrap().arguments.join(" ");
    assert_eq!(
        of(&["socks5://127.0.0.1:1080"]),
        "run socks5://127.0.0.1:1080"
    );
    assert_eq!(of(&["-L", "1080"]), "run -L 1080");
    assert_eq!(
        of(&["server", "--host", "vps.example"]),
        "server --host vps.example"
    );
    assert_eq!(of(&["--user", "client", "home"]), "client home");
    let profile = installed(&["--user", "client", "home"]).unwrap();
    assert!(!profile.reports_start && !profile.can_reload);
}

#[test]
fn what_a_service_cannot_do_is_refused() {
    for (words, expected) in [
        (&["ss://aes-128-gcm:secret@:8388"][..], "@/absolute/FILE"),
        (&["socks5://127.0.0.1:$PORT"], "variables of your shell"),
        (&["keygen"], "cannot be a service"),
        (&["server", "url"], "prints a URL and ends"),
        (&["run", "-c", "/etc/adit/adit.toml"], "-c FILE"),
        (&["client", "home"], "needs --user"),
        (
            &[
                "--user",
                "client",
                "ss://aes-128-gcm:secret@vps.example:8388",
            ],
            "--save home",
        ),
        (&["--name", "a/b", "server"], "--name a/b"),
        (
            &["-c", "/home/anna/adit.toml"],
            "cannot read files in /home",
        ),
        (&["server", "--no-such"], "--no-such"),
    ] {
        let why = refusal(words);
        assert!(why.contains(expected), "{words:?}: {why}");
    }
    let missing = refusal(&["-c", "/etc/adit/no-such-file.toml"]);
    assert!(missing.contains("no-such-file.toml"), "{missing}");
}

#[test]
fn words_of_a_unit_are_quoted() {
    let mut service = definition(ServiceScope::System);
    let words = ["run", "-L", "socks5://u:a%20b@[::1]:1?x=\"y\" \\$", ""];
    service.arguments = words.map(str::to_owned).to_vec();
    let text = text(ServiceManager::Systemd, &service, None);
    let line = text
        .lines()
        .find(|line| line.starts_with("ExecStart="))
        .unwrap();
    let quoted = r#"/usr/bin/adit run -L "socks5://u:a%%20b@[::1]:1?x=\"y\" \\$$" """#;
    assert_eq!(line, format!("ExecStart={quoted}"));
}

/// Python reads the property list of launchd, with the same words.
#[test]
fn a_property_list_is_read_by_others() {
    let mut service = definition(ServiceScope::System);
    service.arguments.push("a<b>&\"c\"".to_owned());
    let text = text(ServiceManager::Launchd, &service, Some("anna"));
    let script = "import json, plistlib, sys\n\
                  print(json.dumps(plistlib.loads(sys.argv[1].encode())))";
    let (read, json) = steps::output_of(&["python3", "-c", script, &text]).unwrap();
    assert!(read, "{text}");
    let list: serde_json::Value = serde_json::from_str(&json).unwrap();
    let words: Vec<_> = list["ProgramArguments"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(
        words,
        [
            "/usr/bin/adit",
            "run",
            "-c",
            "/etc/adit/adit.toml",
            "a<b>&\"c\""
        ]
    );
    assert_eq!(list["UserName"], "anna");
    assert_eq!(list["KeepAlive"]["SuccessfulExit"], false);
    assert_eq!(list["Label"], "adit");
}

/// A shell accepts the script of OpenRC.
#[test]
fn a_script_is_valid() {
    let mut service = definition(ServiceScope::System);
    service.arguments.push("it's $HOME".to_owned());
    let text = text(ServiceManager::OpenRc, &service, None);
    let (valid, _) = steps::output_of(&["sh", "-n", "-c", &text]).unwrap();
    assert!(valid, "{text}");
    // The variables are those of OpenRC, and the arguments are quoted for a second shell.
    let lint = "printf '%s' \"$1\" | shellcheck --shell=sh --exclude=SC2034,SC1003,SC2016 -";
    let (clean, faults) = steps::output_of(&["sh", "-c", lint, "sh", &text]).unwrap();
    assert!(clean, "{faults}");
    assert!(!text.contains("capabilities="));
    service.needed.low_ports = true;
    let low = super::text(ServiceManager::OpenRc, &service, None);
    assert!(
        low.contains("capabilities=\"^cap_net_bind_service\"\n"),
        "{low}"
    );
    let printed = text.replace("#!/sbin/openrc-run", "") + "\neval printf '%s,' \"$command_args\"";
    let (_, words) = steps::output_of(&["sh", "-c", &printed]).unwrap();
    assert_eq!(words, "run,-c,/etc/adit/adit.toml,it's $HOME,");
}
