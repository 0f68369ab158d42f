//! The nodes of a fleet in the dashboard of one of them.

use std::process::Command;

use adit_fleet_world::{FleetWorld, NodeOptions};
use adit_interop::store_server::StoreServer;
use adit_interop::{ChildProcess, TEST_TIMEOUT};

use super::browser::{Browser, Look};
use crate::setup::bin;

const NARROW: Look = Look {
    width: 360,
    language: "zh-CN",
    theme: "dark",
};

#[test]
fn a_node_shows_the_others() {
    let mut world = FleetWorld::new(StoreServer::start().unwrap()).unwrap();
    world
        .start_nodes(&bin(), 2, &NodeOptions::default())
        .unwrap();
    world.operator.add_user("anna").unwrap();
    world.wait_for_tables(TEST_TIMEOUT).unwrap();
    let mut forwarder = ChildProcess::spawn({
        let mut command = Command::new(bin());
        let socket = world.nodes[0].folder().join("admin.sock");
        command.args(["dashboard", "--admin"]).arg(socket);
        command
    })
    .unwrap();
    let lines = forwarder
        .wait_lines("http://127.0.0.1:", 1, TEST_TIMEOUT)
        .unwrap();
    let url = lines[0].trim().to_owned();

    let mut browser = Browser::start();
    browser.look(Look::WIDE);
    browser.open(&url);
    browser.wait_until("document.querySelector('#live.on')");
    browser.click("#tab-fleet");
    let state = |node: u32, class: &str| {
        format!("document.querySelector('#node-table tr[data-key=\"{node}\"] .{class}')")
    };
    let (own, other) = (world.nodes[0].id, world.nodes[1].id);
    browser.wait_until(&state(own, "good"));
    browser.wait_until(&state(other, "good"));
    // The count of users is of the table, the nodes report theirs every five seconds.
    browser.wait_until(
        "/2 of 2 nodes report; users: 1/.test(document.querySelector('#fleet-count').textContent)",
    );
    let row = browser.text(&format!("#node-table tr[data-key=\"{own}\"] th"));
    assert_eq!(row, "node-1 (this one)");
    browser.take_picture("fleet");
    assert!(browser.accessibility_faults().is_empty());

    browser.look(NARROW);
    browser.open(&url);
    browser.wait_until("document.querySelector('#live.on')");
    browser.click("#tab-fleet");
    browser.wait_until(&state(other, "good"));
    assert_eq!(browser.text("#tab-fleet"), "节点");
    let width = browser.value("document.documentElement.scrollWidth");
    assert!(width.as_u64() <= Some(360), "{width}");
    assert!(browser.accessibility_faults().is_empty());
    browser.take_picture("fleet-narrow-dark-chinese");

    // Reports count for 15 s. The other node is then named as silent.
    world.nodes[1].kill().unwrap();
    browser.wait_until_within(&state(other, "bad"), TEST_TIMEOUT * 2);
    let row = browser.text(&format!("#node-table tr[data-key=\"{other}\"]"));
    assert!(row.contains("没有上报"), "{row}");
    assert_eq!(browser.take_errors(), [""; 0]);
    assert!(forwarder.terminate().unwrap().success());
}
