//! Firefox, headless, with a fresh profile that only knows the proxy.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use adit_interop::http_server::HttpServer;
use adit_interop::recording_relay::RecordingRelay;
use adit_interop::{ChildProcess, TempFolder};

use crate::setup::{Proxy, Way};

/// Preferences that keep the browser from contacting other servers.
const QUIET: &str = r#"
user_pref("app.update.enabled", false);
user_pref("browser.safebrowsing.update.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("extensions.systemAddon.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("network.proxy.allow_hijacking_localhost", true);
user_pref("network.proxy.no_proxies_on", "");
user_pref("network.proxy.type", 1);
user_pref("toolkit.telemetry.enabled", false);
"#;

/// Loads a page with a script and a picture in the browser. Returns the first bytes of each
/// connection to the proxy.
fn load(prefs: impl Fn(SocketAddr) -> String, host: &str, way: Way) -> Vec<Vec<u8>> {
    let page = br#"<!doctype html><title>t</title><img src="/picture.svg">
        <script src="/code.js"></script><p>served through the proxy"#;
    let code = b"fetch('/ran-' + (6 * 7), {method: 'POST', body: 'x'.repeat(100000)});";
    let picture = br#"<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>"#;
    let web = HttpServer::start(&[
        ("/", "text/html", page),
        ("/code.js", "text/javascript", code),
        ("/picture.svg", "image/svg+xml", picture),
    ])
    .unwrap();
    let proxy = Proxy::mixed(way);
    let tap = RecordingRelay::start(proxy.addr()).unwrap();

    let home = TempFolder::new("firefox").unwrap();
    let profile = home.path().join("profile");
    fs::create_dir(&profile).unwrap();
    fs::write(
        profile.join("user.js"),
        format!("{QUIET}{}", prefs(tap.addr())),
    )
    .unwrap();
    let mut command = Command::new("firefox-esr");
    command
        .args(["--headless", "--no-remote", "--profile"])
        .arg(&profile);
    command
        .arg("--screenshot")
        .arg(home.path().join("page.png"));
    command.arg(format!("http://{host}:{}/", web.port()));
    command
        .env("HOME", home.path())
        .env("MOZ_HEADLESS", "1")
        .env_remove("DISPLAY");
    let mut firefox = ChildProcess::spawn(command).unwrap();

    let patience = Duration::from_secs(60);
    for target in ["/", "/picture.svg", "/code.js", "/ran-42"] {
        assert!(
            web.wait_for_request(target, patience),
            "{target} was not asked for:\n{}",
            firefox.output()
        );
    }
    assert!(
        firefox.wait(patience).unwrap().success(),
        "{}",
        firefox.output()
    );
    let picture = fs::metadata(home.path().join("page.png")).unwrap();
    assert!(
        picture.len() > 500,
        "a screenshot of {} bytes",
        picture.len()
    );
    proxy.stop();
    tap.requests()
}

#[test]
fn firefox_over_socks5_with_remote_names() {
    let prefs = |proxy: SocketAddr| {
        format!(
            "user_pref(\"network.proxy.socks\", \"{}\");\n\
             user_pref(\"network.proxy.socks_port\", {});\n\
             user_pref(\"network.proxy.socks_version\", 5);\n\
             user_pref(\"network.proxy.socks_remote_dns\", true);\n\
             user_pref(\"network.proxy.socks5_remote_dns\", true);\n",
            proxy.ip(),
            proxy.port()
        )
    };
    let seen = load(prefs, "localhost", Way::Tunnel);
    let wanted = b"\x05\x01\x00\x05\x01\x00\x03\x09localhost";
    assert!(
        seen.iter().any(|bytes| bytes.starts_with(wanted)),
        "no SOCKS5 request: {seen:02x?}"
    );
}

#[test]
fn firefox_over_an_http_proxy() {
    let prefs = |proxy: SocketAddr| {
        format!(
            "user_pref(\"network.proxy.http\", \"{}\");\n\
             user_pref(\"network.proxy.http_port\", {});\n",
            proxy.ip(),
            proxy.port()
        )
    };
    let seen = load(prefs, "127.0.0.1", Way::Alone);
    let wanted = b"GET http://127.0.0.1:";
    assert!(
        seen.iter().any(|bytes| bytes.starts_with(wanted)),
        "no absolute-form request"
    );
}
