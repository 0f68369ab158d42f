//! The dashboard in a browser.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use adit_interop::TEST_TIMEOUT;

use super::browser::{Browser, Look};
use super::world::{TOKEN, World, echoes};
use crate::setup::ALLOW;

/// A proxy, a group with two servers that do not answer, and a KCP listener.
fn world() -> World {
    World::start_with_file(&format!(
        r#"
[route.main]
listen = "mixed://ann:pw@127.0.0.1:0?{ALLOW}"

[route.abroad]
listen = "socks5://127.0.0.1:0"
via = "abroad"

[group.abroad]
kind = "manual"
members = ["socks5://127.0.0.1:9#east", "socks5://127.0.0.1:10#west"]
"#
    ))
}

/// Opens the page with the token in its address, and waits until it is live.
fn open(browser: &mut Browser, world: &World) {
    browser.open(&format!("http://{}/dashboard#token={TOKEN}", world.api));
    browser.wait_until("document.querySelector('#live.on')");
}

/// Downloads without end, in another thread.
fn start_transfer(mut stream: TcpStream) -> thread::JoinHandle<()> {
    stream.write_all(b"GET 4000000000 1\n").unwrap();
    thread::spawn(move || {
        let mut buffer = vec![0; 200_000];
        while let Ok(1..) = stream.read(&mut buffer) {
            thread::sleep(Duration::from_millis(2));
        }
    })
}

#[test]
fn the_page_shows_a_transfer_and_ends_its_session() {
    let world = world();
    let mut browser = Browser::start();
    browser.look(Look::WIDE);
    open(&mut browser, &world);
    // The token is in the address no longer, and scripts cannot read the cookie.
    let place = browser.value("location.href + document.cookie");
    assert!(!place.as_str().unwrap().contains(TOKEN), "{place}");
    assert_eq!(browser.value("document.cookie"), "");

    let mut other = world.session();
    other.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    other.write_all(b"ECHO\n").unwrap();
    assert!(echoes(&mut other));
    let transfer = start_transfer(world.session());
    let rate = "document.querySelector('#tiles dd').textContent";
    browser.wait_until(&format!("/[1-9].* MB\\/s/.test({rate})"));
    let line = "document.querySelector('#chart-now .down').getAttribute('points')";
    let before = browser.value(line);
    browser.wait_until(&format!("{line} !== {before}"));
    browser.wait_until("document.querySelector('#chart-hour .down')");
    browser.take_picture("overview");

    browser.click("#tab-sessions");
    browser.wait_until("document.querySelectorAll('#session-table tbody tr').length === 2");
    let row = browser.text("#session-table tbody tr");
    assert!(row.contains("ann") && row.contains("private:"), "{row}");
    browser.take_picture("sessions");
    // The newest session is that of the transfer.
    browser.click("#session-table tbody tr button");
    browser.wait_until("document.querySelector('dialog').open");
    browser.take_picture("end");
    browser.press("Escape");
    browser.wait_until("!document.querySelector('dialog').open");
    assert_eq!(
        world.json("/sessions")["total"],
        2,
        "ended without a confirmation"
    );
    browser.click("#session-table tbody tr button");
    browser.wait_until("document.querySelector('dialog').open");
    browser.click("#dialog-buttons .danger");
    browser.wait_until("document.querySelectorAll('#session-table tbody tr').length === 1");
    transfer.join().unwrap();
    assert!(echoes(&mut other), "another session was ended");

    browser.click("#tab-groups");
    browser.wait_until("document.querySelectorAll('#group-list tbody tr').length === 2");
    browser.take_picture("groups");
    browser.click("#group-list tbody tr:nth-child(2) button");
    browser.click("#dialog-buttons .primary");
    let selected = |found: &serde_json::Value| found["members"][1]["selected"] == true;
    world.wait_for("/groups/abroad", selected);
    assert_eq!(browser.take_errors(), [""; 0]);
    world.adit.stop().unwrap();
}

#[test]
fn the_page_fits_every_window_language_and_theme() {
    let world = world();
    let mut browser = Browser::start();
    let _sessions = [world.session(), world.session()];
    let looks = [
        ("wide-light", Look::WIDE),
        (
            "wide-dark",
            Look {
                theme: "dark",
                ..Look::WIDE
            },
        ),
        (
            "narrow-light",
            Look {
                width: 360,
                ..Look::WIDE
            },
        ),
        (
            "narrow-dark-chinese",
            Look {
                width: 360,
                language: "zh-CN",
                theme: "dark",
            },
        ),
    ];
    for (name, look) in looks {
        browser.look(look);
        open(&mut browser, &world);
        let background = browser.value("getComputedStyle(document.body).backgroundColor");
        assert_eq!(
            background == "rgb(17, 21, 27)",
            look.theme == "dark",
            "{name}: {background}"
        );
        let title = browser.text("#tab-sessions");
        assert_eq!(title == "会话", look.language == "zh-CN", "{name}: {title}");
        for tab in ["overview", "sessions", "groups"] {
            browser.click(&format!("#tab-{tab}"));
            browser.wait_until(&format!("!document.querySelector('#{tab}').hidden"));
            browser.wait_until(&format!("document.querySelector('#{tab} tbody tr')"));
            let width = browser.value("document.documentElement.scrollWidth");
            assert!(
                width.as_u64() <= Some(look.width.into()),
                "{name} {tab}: {width}"
            );
            let faults = browser.accessibility_faults();
            assert!(faults.is_empty(), "{name} {tab}: {faults:#?}");
            browser.take_picture(&format!("{name}-{tab}"));
        }
    }
    assert_eq!(browser.take_errors(), [""; 0]);
    world.adit.stop().unwrap();
}

#[test]
fn the_keyboard_suffices_and_a_login_ends() {
    let world = world();
    let mut browser = Browser::start();
    browser.look(Look::WIDE);
    browser.open(&format!("http://{}/", world.api));
    browser.wait_until("location.pathname === '/dashboard'");
    browser.wait_until("document.activeElement?.id === 'token'");
    browser.type_text("0123456789abcdef0123456789abcdee");
    browser.press("Enter");
    browser.wait_until("document.querySelector('#login-error').textContent");
    assert!(browser.accessibility_faults().is_empty());
    browser.take_picture("login");
    browser.value("document.querySelector('#token').value = ''");
    browser.type_text(TOKEN);
    browser.press("Enter");
    browser.wait_until("document.querySelector('#live.on')");
    browser.value("document.querySelector('#tab-overview').focus()");
    browser.press("ArrowRight");
    browser.wait_until("document.activeElement.id === 'tab-sessions'");
    browser.wait_until("document.querySelector('#session-table').textContent");
    // A reload needs no token: the cookie and the key are still there.
    browser.open(&format!("http://{}/dashboard", world.api));
    browser.wait_until("document.querySelector('#live.on')");
    browser.click("#logout");
    browser.wait_until("!document.querySelector('#login').hidden");
    let status = browser.value("fetch('/overview').then(({status}) => status)");
    assert_eq!(status, 401);
    world.adit.stop().unwrap();
}
