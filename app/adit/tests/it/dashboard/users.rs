//! The users in the dashboard: added, limited, rotated and removed, with their URLs and QR codes.

use std::path::PathBuf;
use std::process::Command;

use adit_interop::external_tools;
use adit_interop::socks_client::{self, Destination};
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, traffic};

use super::browser::{Browser, Look};
use super::world::{REVEALING_TOKEN, World};
use crate::setup::{ALLOW, start};

const METHOD: &str = "2022-blake3-aes-128-gcm";
const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";

/// A server and a proxy, each with a file of users.
fn start_world() -> World {
    let folder = TempFolder::new("dashboard-users").unwrap();
    folder.write_file("server.key", KEY).unwrap();
    folder
        .write_file("users.json", r#"{"admin": "MDEyMzQ1Njc4OTo7PD0+Pw=="}"#)
        .unwrap();
    folder
        .write_file("proxy.users", "admin:admins-password\n")
        .unwrap();
    let text = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\ntokens = \"@tokens\"\npublic_host = \"127.0.0.1\"\nstore = \"users.redb\"\n\
         [route.main]\nlisten = \"ss://{METHOD}:@server.key@127.0.0.1:0?users=@users.json&{ALLOW}\"\n\
         [route.proxy]\nlisten = \"mixed://127.0.0.1:0?users=@proxy.users&{ALLOW}\"\n"
    );
    World::start_managed(folder, &text)
}

/// Waits for the row of a user, and returns its selector.
fn row_of(browser: &mut Browser, name: &str) -> String {
    let row = format!("#user-table tr[data-key=\"{name}\"]");
    browser.wait_until(&format!("document.querySelector('{row}')"));
    row
}

/// Presses the button of a user's row, which has this label.
fn press_button(browser: &mut Browser, name: &str, label: &str) {
    let row = row_of(browser, name);
    browser.click(&format!("{row} button[aria-label=\"{label}: {name}\"]"));
    browser.wait_until("document.querySelector('dialog').open");
}

/// Confirms the dialog.
fn confirm(browser: &mut Browser) {
    browser.click("#dialog-buttons button:last-child");
}

/// Returns the URL in the dialog, once it has one that differs from `before`.
fn shown_url(browser: &mut Browser, before: &str) -> String {
    let urls =
        "[...document.querySelectorAll('#dialog-body .secret')].map((one) => one.textContent)";
    browser.wait_until(&format!(
        "{urls}.some((url) => url.startsWith('ss://') && url !== '{before}')"
    ));
    let url = browser.value(&format!("{urls}.find((url) => url.startsWith('ss://'))"));
    url.as_str().unwrap().to_owned()
}

/// Returns what a program reads from a picture of the dialog's first QR code.
fn scan_qr_code(browser: &mut Browser) -> String {
    let folder = TempFolder::new("dashboard-qr").unwrap();
    let picture: PathBuf = folder.path().join("qr.png");
    browser.value("document.querySelector('#dialog-body .qr').scrollIntoView()");
    browser.take_picture_of("#dialog-body .qr", &picture);
    let mut command = Command::new("zbarimg");
    command.args(["--quiet", "--raw", "--nodbus"]).arg(&picture);
    let output = external_tools::run_to_end(command, TEST_TIMEOUT).unwrap();
    let read = output.expect_success().unwrap();
    read.lines().next().unwrap_or_default().to_owned()
}

/// Starts a client of a server with this URL.
fn start_client(url: &str) -> AditProcess {
    start(&["run", "socks5://127.0.0.1:0", url])
}

/// Returns true if a download through the proxy is complete.
fn carries(world: &World, proxy: &AditProcess) -> bool {
    let to = Destination::Addr(world.origin.addr());
    let stream = socks_client::connect_through(proxy.addr(), None, &to);
    stream.is_ok_and(|stream| traffic::download(stream, 100_000).is_ok())
}

#[test]
fn a_user_is_added_limited_rotated_and_removed() {
    let world = start_world();
    let mut browser = Browser::start();
    browser.look(Look::WIDE);
    browser.open(&format!(
        "http://{}/dashboard#token={REVEALING_TOKEN}",
        world.api
    ));
    browser.wait_until("document.querySelector('#live.on')");
    browser.wait_until("!document.querySelector('#tab-users').hidden");
    browser.click("#tab-users");
    row_of(&mut browser, "admin");
    browser.take_picture("users");
    assert_eq!(browser.accessibility_faults(), [""; 0]);

    // A name is required.
    browser.click("#add-user");
    browser.wait_until("document.querySelector('dialog').open");
    confirm(&mut browser);
    assert_eq!(browser.value("document.querySelector('dialog').open"), true);
    assert_eq!(
        world.json("/accounts")["accounts"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    browser.value("document.querySelector('#dialog-body input[name=name]').focus()");
    browser.type_text("anna");
    browser.value("document.querySelector('#dialog-body input[type=number]').focus()");
    browser.type_text("0.5");
    browser.take_picture("users-add");
    assert_eq!(browser.accessibility_faults(), [""; 0]);
    browser.press("Enter");
    let url = shown_url(&mut browser, "");
    browser.wait_until("document.querySelector('#dialog-body .qr')");
    browser.take_picture("users-keys");
    assert_eq!(browser.accessibility_faults(), [""; 0]);
    assert_eq!(scan_qr_code(&mut browser), url);
    let client = start_client(&url);
    assert!(carries(&world, &client));
    browser.press("Escape");
    let row = row_of(&mut browser, "anna");
    browser.wait_until(&format!(
        "document.querySelector('{row} svg.quota rect').getAttribute('width') !== '0%'"
    ));
    let text = browser.text(&row);
    assert!(text.contains("0.5 GB") || text.contains("500 MB"), "{text}");

    // Limits.
    press_button(&mut browser, "anna", "Limits");
    browser.value("document.querySelectorAll('#dialog-body input')[3].focus()");
    browser.type_text("7");
    confirm(&mut browser);
    let limited =
        |found: &serde_json::Value| found["sessions"] == 7 && found["quota"] == 500_000_000;
    world.wait_for("/accounts/anna", limited);
    browser.wait_until("!document.querySelector('dialog').open");

    // The keys are shown again, and are the same.
    press_button(&mut browser, "anna", "Show keys");
    assert_eq!(shown_url(&mut browser, ""), url);
    browser.press("Escape");

    press_button(&mut browser, "anna", "New key");
    confirm(&mut browser);
    let rotated = shown_url(&mut browser, &url);
    browser.wait_until("document.querySelector('#dialog-body .qr')");
    assert_eq!(scan_qr_code(&mut browser), rotated);
    assert!(!carries(&world, &client), "the old key still works");
    client.stop().unwrap();
    let client = start_client(&rotated);
    assert!(carries(&world, &client));
    browser.press("Escape");

    press_button(&mut browser, "anna", "Remove");
    // Nothing happens without a confirmation.
    browser.press("Escape");
    browser.wait_until("!document.querySelector('dialog').open");
    assert!(carries(&world, &client));
    press_button(&mut browser, "anna", "Remove");
    confirm(&mut browser);
    browser.wait_until("!document.querySelector('#user-table tr[data-key=\"anna\"]')");
    assert_eq!(world.say("GET /accounts/anna").status, 404);
    assert!(!carries(&world, &client), "the user was not removed");
    assert_eq!(browser.take_errors(), [""; 0]);
    client.stop().unwrap();
    world.adit.stop().unwrap();
}

#[test]
fn users_fit_a_narrow_window_in_chinese_and_dark() {
    let world = start_world();
    let mut browser = Browser::start();
    let look = Look {
        width: 360,
        language: "zh-CN",
        theme: "dark",
    };
    browser.look(look);
    browser.open(&format!(
        "http://{}/dashboard#token={REVEALING_TOKEN}",
        world.api
    ));
    browser.wait_until("document.querySelector('#live.on')");
    browser.click("#tab-users");
    row_of(&mut browser, "admin");
    assert_eq!(browser.text("#tab-users"), "用户");
    for step in ["users", "users-keys"] {
        if step == "users-keys" {
            press_button(&mut browser, "admin", "显示密钥");
            shown_url(&mut browser, "");
        }
        let width = browser.value("document.documentElement.scrollWidth");
        assert!(width.as_u64() <= Some(360), "{step}: {width}");
        assert_eq!(browser.accessibility_faults(), [""; 0], "{step}");
        browser.take_picture(&format!("narrow-dark-chinese-{step}"));
    }
    assert_eq!(browser.take_errors(), [""; 0]);
    world.adit.stop().unwrap();
}
