//! Services of a machine and of a user, under a systemd of the test.

use super::Walk;
use super::page::{KEY, SERVER_ID};
use crate::service::systemd_world::SystemdWorld;
use crate::setup::says;

const SOCKS: &str = "socks5h://127.0.0.1:1080";

/// A web site, which the servers of this machine may reach.
const SITE: &str = "\
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 60s
frontend site
  bind 127.0.0.1:8080
  http-request return status 200 content-type text/plain string \"hello\"
";

const CONFIG: &str = "\
[admin]
listen = \"/run/adit/api.sock\"

[route.server]
listen = \"ss://2022-blake3-aes-128-gcm:@/etc/adit/server.key@:8388?allow_private=127.0.0.0/8\"
";

/// Pastes the URL into a client, and ends it when the server has accepted it. `$1` is the command.
const PASTE: &str = "
sh -c \"exec $1\" < /run/url > /run/client.log 2>&1 &
until grep -q 'accepts us: key-id' /run/client.log; do
    kill -0 $! || { cat /run/client.log; exit 1; }
    sleep 0.1
done
kill $!
wait $! || true
";

/// Runs a script in the session of a user with a desktop.
fn in_session(world: &SystemdWorld, script: &str, words: &[&str]) -> String {
    let session = [
        "env",
        "XDG_CURRENT_DESKTOP=ubuntu:GNOME",
        "GSETTINGS_BACKEND=keyfile",
    ];
    let shell = ["sh", "-ec", script, "sh"];
    let done = world.as_user(&[&session[..], &shell, words].concat());
    let done = done.expect_success();
    done.unwrap_or_else(|why| panic!("{script}\n{why:#}"))
}

fn browses(world: &SystemdWorld) {
    let line = format!("curl -sS -m 40 -x {SOCKS} http://vps.example:8080/");
    assert_eq!(world.sh(&line), "hello");
}

pub(super) fn book(world: &SystemdWorld, walk: &mut Walk) {
    // The machine may have no sudo, and everything here runs as root.
    world.write("/usr/local/bin/sudo", "#!/bin/sh\nexec \"$@\"\n");
    world.sh("chmod 755 /usr/local/bin/sudo");
    world.write("/etc/hosts", "127.0.0.1 localhost vps.example\n");
    world.write("/run/site.cfg", SITE);
    world.sh("haproxy -D -f /run/site.cfg");

    world.sh(&walk.next("sudo adit service install server"));
    let status = world.sh(&walk.next("adit service status"));
    says(&status, &["adit: active (running)", "enabled"]);
    let url = world.sh(&walk.next("sudo adit server url"));
    world.write("/run/url", &url);
    world.sh("adit client --check - < /run/url");

    world.write("/etc/adit/adit.toml", CONFIG);
    world.write("/etc/adit/server.key", KEY);
    world.sh("chgrp adit /etc/adit/server.key && chmod 640 /etc/adit/server.key");
    world.write("/run/url", &format!("ss://{SERVER_ID}@vps.example:8388"));
    world.sh(&walk.next("sudo adit service install -c"));
    world.sh(&walk.next("sudo chown"));
    world.sh(&walk.next("sudo chmod"));
    let owner = world.sh("stat -c '%U:%G %a' /etc/adit/adit.toml");
    assert_eq!(owner.trim(), "root:adit 640");
    world.sh("systemctl reload adit");
    world.sh("curl -sS --unix-socket /run/adit/api.sock http://adit/healthz");
    world.sh("adit client --check - < /run/url");

    world.sh(&walk.next("sudo adit service install --name proxy"));
    browses(world);
    world.sh("adit service uninstall --name proxy");

    world.start_user_manager();
    in_session(world, PASTE, &[&walk.next("adit client - --save home")]);
    in_session(world, &walk.next("adit service install --user"), &[]);
    browses(world);
    in_session(world, "adit service uninstall --user", &[]);

    says(
        &world.sh(&walk.next("sudo adit service uninstall")),
        &["stopped and removed"],
    );
    assert_eq!(world.adit(&["service", "status"]).code, Some(1));

    desktop(world, walk);
}

fn desktop(world: &SystemdWorld, walk: &mut Walk) {
    let mode = |expected| {
        let mode = in_session(world, "gsettings get org.gnome.system.proxy mode", &[]);
        assert_eq!(mode.trim(), expected);
    };
    in_session(world, &walk.next("adit system-proxy on"), &[]);
    mode("'manual'");
    let status = in_session(world, &walk.next("adit system-proxy status"), &[]);
    says(&status, &["switched on by adit"]);
    in_session(world, &walk.next("adit system-proxy off"), &[]);
    mode("'none'");
}
