//! `adit service` with a real systemd: process 1 of namespaces of its own, with nothing but the units that adit needs.

mod stop;
pub(crate) mod systemd_world;

use std::fs;
use std::process::Command;
use std::time::Duration;

use adit_interop::external_tools;
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder};
use rustix::process::Signal;

use self::systemd_world::SystemdWorld;
use crate::notify_socket::NotifySocket;
use crate::setup::{ALLOW, bin, ended, says};

const LIMIT: Duration = Duration::from_secs(60);
/// The highest exposure of the unit, in tenths, as `systemd-analyze security` computes it. 10 is no sandbox at all.
const MAX_EXPOSURE: &str = "29";

const CONFIG: &str = "\
[admin]
listen = \"/run/adit/api.sock\"

[route.proxy]
listen = [\"mixed://127.0.0.1:1080\", \"http://127.0.0.1:80\"]
";

#[test]
fn a_service_is_installed_reloaded_upgraded_and_removed() {
    let Some(world) = SystemdWorld::start() else {
        return;
    };
    world.write("/etc/adit/adit.toml", CONFIG);
    // A mistake in the file is found before anything changes.
    world.write("/etc/adit/broken.toml", "[route.x]\n");
    let words = ["service", "install", "--name", "broken", "-c"];
    let broken = world.adit(&[&words[..], &["/etc/adit/broken.toml"]].concat());
    assert_eq!(broken.code, Some(3), "{}", broken.output);
    let none = world.adit(&["service", "status"]);
    assert_eq!(none.code, Some(1));
    says(&none.output, &["is not installed"]);

    let installed = world
        .adit(&["service", "install"])
        .expect_success()
        .unwrap();
    says(
        &installed,
        &["installed and started: /etc/systemd/system/adit.service"],
    );
    let first = process_of(&world.adit(&["service", "status"]).expect_success().unwrap());
    assert_eq!(
        world
            .run(&["stat", "-c", "%U", &format!("/proc/{first}")])
            .trim(),
        "adit"
    );
    assert_eq!(
        world.run(&["systemctl", "is-enabled", "adit"]).trim(),
        "enabled"
    );
    let status = world.adit(&["service", "status", "--json"]);
    let status: serde_json::Value =
        serde_json::from_str(&status.expect_success().unwrap()).unwrap();
    let result = &status["result"];
    assert_eq!(status["command"], "service status");
    assert_eq!(result["file"], "/etc/systemd/system/adit.service");
    assert_eq!(
        (&result["isRunning"], &result["isEnabled"]),
        (&true.into(), &true.into())
    );
    assert_eq!(result["process"].to_string(), first);
    // Port 80 is open without root, and the sandbox lets the API create its socket.
    assert_eq!(world.proxy_answer(80), "502");
    let health = [
        "curl",
        "-sS",
        "--unix-socket",
        "/run/adit/api.sock",
        "http://adit/healthz",
    ];
    assert_eq!(world.run(&health).trim(), "ok");

    world.write("/etc/adit/adit.toml", &CONFIG.replace("1080", "1081"));
    world.run(&["systemctl", "reload", "adit"]);
    world.wait_until("no listener on port 1081", || {
        world.proxy_answer(1081) == "502"
    });
    let state = ["systemctl", "show", "-p", "ActiveState", "--value", "adit"];
    world.wait_until("the reload does not end", || {
        world.run(&state).trim() == "active"
    });

    let upgraded = world.run(&["adit", "upgrade", "-c", "/etc/adit/adit.toml"]);
    says(&upgraded, &["upgraded: process "]);
    let second = process_of(&world.adit(&["service", "status"]).expect_success().unwrap());
    assert_ne!(first, second);
    let old = format!("/proc/{first}");
    world.wait_until("the old process does not end", || {
        world.try_run(&["test", "-e", &old]).code != Some(0)
    });
    assert_eq!(
        process_of(&world.run(&["adit", "service", "status"])),
        second
    );
    assert_eq!(world.proxy_answer(1081), "502");

    // Installed again, it has the new settings.
    world.run(&["adit", "service", "install", "socks5://127.0.0.1:1083"]);
    let unit = world.run(&["cat", "/etc/systemd/system/adit.service"]);
    says(
        &unit,
        &[
            "ExecStart=/usr/local/bin/adit run socks5://127.0.0.1:1083",
            "AmbientCapabilities=\n",
        ],
    );

    let removed = world.run(&["adit", "service", "uninstall"]);
    says(&removed, &["stopped and removed"]);
    assert_eq!(world.try_run(&["pidof", "adit"]).code, Some(1));
    assert_eq!(
        world
            .try_run(&["test", "-e", "/etc/systemd/system/adit.service"])
            .code,
        Some(1)
    );
    assert_eq!(world.adit(&["service", "uninstall"]).code, Some(1));
}

/// Returns the process that `adit service status` prints.
fn process_of(status: &str) -> String {
    says(
        status,
        &[
            "adit: active (running)",
            "/etc/systemd/system/adit.service, enabled",
        ],
    );
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("process: "));
    line.expect(status).to_owned()
}

#[test]
fn files_of_others_and_failed_starts() {
    let Some(world) = SystemdWorld::start() else {
        return;
    };
    let unit = "/etc/systemd/system/adit.service";
    world.write(unit, "[Service]\nExecStart=/bin/sleep 1000\n");
    let install = ["service", "install", "mixed://127.0.0.1:1080"];
    let refused = world.adit(&install);
    assert_eq!(refused.code, Some(1));
    says(
        &refused.output,
        &["was not written by `adit service install`", "--force"],
    );
    let kept = world.adit(&["service", "uninstall"]);
    assert_eq!(kept.code, Some(1), "{}", kept.output);
    says(&world.run(&["cat", unit]), &["sleep"]);
    let forced = [
        "adit",
        "service",
        "install",
        "--force",
        "mixed://127.0.0.1:1080",
    ];
    world.run(&forced);
    assert_eq!(world.proxy_answer(1080), "502");
    world.run(&["adit", "service", "uninstall"]);

    // Only root can read the file: the service cannot start, and the message says what to do.
    world.write("/etc/adit/adit.toml", CONFIG);
    world.run(&["chmod", "600", "/etc/adit/adit.toml"]);
    let failed = world.adit(&["service", "install"]);
    assert_eq!(failed.code, Some(1), "{}", failed.output);
    says(
        &failed.output,
        &["chgrp adit FILE && chmod 640 FILE", "journalctl -u adit"],
    );
    world.run(&["chgrp", "adit", "/etc/adit/adit.toml"]);
    world.run(&["chmod", "640", "/etc/adit/adit.toml"]);
    world.run(&["adit", "service", "install"]);
    assert_eq!(world.proxy_answer(80), "502");

    // A relative file is not where the service looks.
    world.write("/etc/adit/key", "AAECAwQFBgcICQoLDA0ODw==");
    world.run(&["chmod", "600", "/etc/adit/key"]);
    let words =
        "cd /etc/adit && adit service install --name ss 'ss://aes-128-gcm:@key@127.0.0.1:8388'";
    let relative = world.try_run(&["sh", "-c", words]);
    assert_eq!(relative.code, Some(2), "{}", relative.output);
    says(&relative.output, &["absolute paths"]);
}

#[test]
fn a_service_of_a_user() {
    let Some(world) = SystemdWorld::start() else {
        return;
    };
    world.start_user_manager();
    let adit = |words: &[&str]| world.as_user(&[&["adit", "service"], words].concat());
    let installed = adit(&["install", "--user", "mixed://127.0.0.1:1082"])
        .expect_success()
        .unwrap();
    says(
        &installed,
        &["systemd/user/adit.service", "loginctl enable-linger"],
    );
    assert_eq!(world.proxy_answer(1082), "502");
    let status = adit(&["status", "--user"]).expect_success().unwrap();
    says(&status, &["adit: active (running)", "process: "]);
    adit(&["uninstall", "--user"]).expect_success().unwrap();
    assert_eq!(adit(&["status", "--user"]).code, Some(1));
}

/// OpenRC would start the service once more: that is refused.
#[test]
fn a_service_of_openrc_is_not_upgraded() {
    let mut command = Command::new(bin());
    command
        .args(["run", &format!("mixed://127.0.0.1:0?{ALLOW}")])
        .env("RC_SVCNAME", "adit");
    let mut adit = AditProcess::start_command(command, 1).unwrap();
    adit.process().send_signal(Signal::USR2).unwrap();
    let process = adit.process();
    let lines = process.wait_lines("not upgraded", 1, TEST_TIMEOUT).unwrap();
    assert!(lines[0].contains("OpenRC"), "{lines:?}");
    std::net::TcpStream::connect(adit.addr()).unwrap();
    adit.stop().unwrap();
}

/// systemd learns when a reload begins and when it has ended.
#[test]
fn the_service_manager_waits_for_a_reload() {
    let manager = NotifySocket::new("reload-notify");
    let folder = TempFolder::new("reload-notify-file").unwrap();
    let text = format!("[route.a]\nlisten = \"mixed://127.0.0.1:0?{ALLOW}\"\n");
    let file = folder.write_file("adit.toml", text).unwrap();
    let mut command = Command::new(bin());
    command.args(["run", "-c"]).arg(&file);
    manager.supervise(&mut command);
    let mut adit = AditProcess::start_command(command, 1).unwrap();
    assert_eq!(manager.next_report(), "READY=1");
    // A file with a mistake ends the reload as well.
    for text in [fs::read_to_string(&file).unwrap(), "[".to_owned()] {
        fs::write(&file, text).unwrap();
        adit.process().send_signal(Signal::HUP).unwrap();
        let begin = manager.next_report();
        assert!(begin.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{begin}");
        assert_eq!(manager.next_report(), "READY=1");
    }
    adit.stop().unwrap();
}

/// systemd accepts the units of the packages, and rates their sandbox.
#[test]
fn units_are_valid_and_confined() {
    let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd");
    let folder = TempFolder::new("service-units").unwrap();
    let bin = bin().display().to_string();
    let analyze = |words: &[&str], path: &str| {
        let mut command = Command::new("systemd-analyze");
        command
            .args(words)
            .arg(path)
            .env("SYSTEMD_LOG_LEVEL", "notice");
        external_tools::run_to_end(command, LIMIT).unwrap()
    };
    for name in ["adit.service", "adit@.service", "user/adit.service"] {
        let text = fs::read_to_string(format!("{packaging}/{name}")).unwrap();
        // The check needs the program of the unit; manual pages are installed with a package.
        let text = text.replace("/usr/bin/adit", &bin);
        let text: String = text
            .lines()
            .filter(|line| !line.starts_with("Documentation="))
            .map(|line| format!("{line}\n"))
            .collect();
        let path = folder.path().join(name.replace("user/", "user-"));
        fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        let verified = analyze(&["verify", "--man=no", "--recursive-errors=no"], path);
        assert_eq!(
            (verified.code, verified.output.trim()),
            (Some(0), ""),
            "{name}"
        );
        if !name.starts_with("user/") {
            let threshold = format!("--threshold={MAX_EXPOSURE}");
            let rated = analyze(
                &["security", "--offline=true", &threshold, "--no-pager"],
                path,
            );
            assert_eq!(rated.code, Some(0), "{name}: {}", rated.output);
            says(&rated.output, &["Overall exposure level"]);
        }
    }
}

/// Files for other machines are printed without their service manager.
#[test]
fn files_are_printed_and_mistakes_refused() {
    let print = |words: &[&str]| {
        let all = [&["service", "install", "--print", "--user"], words].concat();
        ended(&all)
    };
    let unit = print(&["--manager", "systemd", "mixed://127.0.0.1:1080"])
        .expect_success()
        .unwrap();
    says(
        &unit,
        &[
            "Type=notify",
            "NoNewPrivileges=yes",
            "WantedBy=default.target",
        ],
    );
    let list = print(&["--manager", "launchd", "mixed://127.0.0.1:1080"])
        .expect_success()
        .unwrap();
    says(
        &list,
        &[
            "<key>RunAtLoad</key>",
            "<string>mixed://127.0.0.1:1080</string>",
        ],
    );
    let openrc = print(&["--manager", "openrc", "mixed://127.0.0.1:1080"]);
    assert_eq!(openrc.code, Some(2), "{}", openrc.output);
    let elsewhere = ended(&["service", "status", "--manager", "launchd"]);
    assert_eq!(elsewhere.code, Some(1));
    says(&elsewhere.output, &["does not run here"]);
}
