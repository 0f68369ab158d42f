//! Units of systemd.
//!
//! The units of the packages, in `packaging/systemd`, are the same text; a test compares them.

use std::path::{Path, PathBuf};

use adit_cli::{Failure, FailureCode};

use super::definition::{SERVICE_USER, ServiceDefinition, ServiceScope};
use super::folders::config_home;
use super::status::{ServiceStatus, not_installed};
use super::steps::{MARK, Step, output_of};

/// The sandbox of both scopes: it needs no privilege of the service manager.
const SANDBOX: &str = "\
NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
UMask=0077
";

/// The sandbox that only the system's service manager can set up for every kernel.
const SYSTEM_SANDBOX: &str = "\
DevicePolicy=closed
KeyringMode=private
PrivateDevices=yes
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProtectSystem=strict
RemoveIPC=yes
";

/// The text of a unit.
#[derive(Debug)]
pub(super) struct UnitText<'a> {
    pub(super) definition: &'a ServiceDefinition,
    /// True if `adit service` may replace and remove the file.
    pub(super) is_own: bool,
    /// The folder in /run and in /var/lib; a template has one for each instance.
    pub(super) folder: &'a str,
}

impl UnitText<'_> {
    pub(super) fn build(&self) -> String {
        let definition = self.definition;
        let is_system = definition.scope == ServiceScope::System;
        let mut text = String::new();
        let mut line = |words: &str| {
            text.push_str(words);
            text.push('\n');
        };
        if self.is_own {
            line(&format!("# {MARK}"));
        }
        line("[Unit]");
        line("Description=adit, encrypted tunnels and proxies");
        line("Documentation=man:adit(1) man:adit.toml(5)");
        if is_system {
            line("After=network-online.target nss-lookup.target");
            line("Wants=network-online.target");
        }
        line("\n[Service]");
        line(match definition.reports_start {
            true => "Type=notify",
            false => "Type=exec",
        });
        line(&format!("ExecStart={}", command_line(definition)));
        if definition.can_reload {
            line("ExecReload=/bin/kill -HUP $MAINPID");
        }
        line("Restart=on-failure");
        line("RestartSec=2");
        // Wrong arguments or a wrong configuration stay wrong.
        line("RestartPreventExitStatus=2 3");
        line("LimitNOFILE=1048576");
        if is_system {
            let (folder, capabilities) = (self.folder, definition.privileges.capabilities());
            let capabilities = capabilities.join(" ");
            line(&format!("User={SERVICE_USER}"));
            line(&format!("Group={SERVICE_USER}"));
            line(&format!("StateDirectory={folder}"));
            line("StateDirectoryMode=0700");
            line(&format!("RuntimeDirectory={folder}"));
            line("RuntimeDirectoryMode=0750");
            line(&format!("AmbientCapabilities={capabilities}"));
            line(&format!("CapabilityBoundingSet={capabilities}"));
        }
        text.push_str(SANDBOX);
        if is_system {
            text.push_str(SYSTEM_SANDBOX);
        }
        text.push_str("\n[Install]\n");
        text.push_str(match definition.scope {
            ServiceScope::System => "WantedBy=multi-user.target\n",
            ServiceScope::User => "WantedBy=default.target\n",
        });
        text
    }
}

/// Returns the program and its arguments as a unit contains them.
fn command_line(definition: &ServiceDefinition) -> String {
    let words = std::iter::once(&definition.program).chain(&definition.arguments);
    let words: Vec<String> = words.map(|word| quoted(word)).collect();
    words.join(" ")
}

/// Quotes a word for `ExecStart`: `%` and `$` would be replaced by systemd.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=@,+?&%[]#~".contains(c);
    let doubled = word.replace('%', "%%").replace('$', "$$");
    // The first character may be a prefix with a meaning, such as `-` or `@` of the program.
    if !word.is_empty() && word.chars().all(is_plain) {
        return doubled;
    }
    format!("\"{}\"", doubled.replace('\\', r"\\").replace('"', "\\\""))
}

/// Returns the path of a unit.
pub(super) fn path(scope: ServiceScope, name: &str) -> Result<PathBuf, Failure> {
    let file = format!("{name}.service");
    Ok(match scope {
        ServiceScope::System => Path::new("/etc/systemd/system").join(file),
        ServiceScope::User => config_home()?.join("systemd/user").join(file),
    })
}

pub(super) fn install_steps(definition: &ServiceDefinition, path: PathBuf) -> Vec<Step> {
    let text = UnitText {
        definition,
        is_own: true,
        folder: &definition.name,
    };
    let mut steps = Vec::new();
    if definition.scope == ServiceScope::System {
        let user = format!("u {SERVICE_USER} - \"adit\" /var/lib/adit");
        steps.push(Step::run(&["systemd-sysusers", "--inline", &user]));
    }
    steps.push(Step::Write {
        path,
        text: text.build(),
        mode: 0o644,
    });
    let control = |words: &[&str]| Step::run(&control(definition.scope, words));
    steps.push(control(&["daemon-reload"]));
    let unit = format!("{}.service", definition.name);
    steps.push(control(&["enable", &unit]));
    // A service that runs already gets the new unit.
    steps.push(control(&["restart", &unit]));
    steps
}

pub(super) fn uninstall_steps(scope: ServiceScope, name: &str, path: PathBuf) -> Vec<Step> {
    let unit = format!("{name}.service");
    vec![
        Step::run(&control(scope, &["disable", "--now", &unit])),
        Step::Remove(path),
        Step::run(&control(scope, &["daemon-reload"])),
        Step::attempt(&control(scope, &["reset-failed", &unit])),
    ]
}

/// Prints the state of the service.
pub(super) fn status(scope: ServiceScope, name: &str) -> Result<ServiceStatus, Failure> {
    let unit = format!("{name}.service");
    let properties = "--property=LoadState,ActiveState,SubState,UnitFileState,MainPID,FragmentPath";
    let output = output_of(&control(scope, &["show", &unit, properties]));
    let Some((true, text)) = output else {
        return Err(
            Failure::new(FailureCode::Failure, "`systemctl show` failed")
                .with_hint("is systemd running? `--user` needs a session of the user"),
        );
    };
    let value = |key: &str| {
        let found = text
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        found.unwrap_or_default()
    };
    if value("LoadState") == "not-found" {
        return Err(not_installed(name));
    }
    Ok(ServiceStatus {
        name: name.to_owned(),
        manager: "systemd",
        is_running: value("ActiveState") == "active",
        state: format!("{} ({})", value("ActiveState"), value("SubState")),
        file: value("FragmentPath").into(),
        is_enabled: Some(value("UnitFileState") == "enabled"),
        process: value("MainPID")
            .parse()
            .ok()
            .filter(|process| *process != 0),
    })
}

/// Returns the command that shows the log of the service.
pub(super) fn log_hint(scope: ServiceScope, name: &str) -> String {
    match scope {
        ServiceScope::System => format!("journalctl -u {name} -n 20"),
        ServiceScope::User => format!("journalctl --user -u {name} -n 20"),
    }
}

fn control<'a>(scope: ServiceScope, words: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["systemctl"];
    if scope == ServiceScope::User {
        all.push("--user");
    }
    all.extend(words);
    all
}
