//! Documents with the servers of all nodes, served by one of them, and used by a real client.

use std::io::{Read, Write};
use std::process::Command;
use std::time::Duration;

use adit_admin::api::subscription_path;
use adit_fleet::{NodeRecord, NodeState, subscription_addresses};
use adit_fleet_world::{FleetWorld, NodeOptions};
use adit_interop::external_tools::{self, peer_path};
use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, Destination};
use adit_interop::store_server::StoreServer;
use adit_interop::{
    ChildProcess, TEST_TIMEOUT, TempFolder, Transport, free_port, loopback_addr, wait_port,
};
use serde_json::Value;

use crate::setup::bin;

const METHOD: &str = "2022-blake3-aes-128-gcm";
/// Time in which a change of nodes is in the documents.
const LIMIT: Duration = Duration::from_secs(15);

fn world() -> FleetWorld {
    let mut world = FleetWorld::new(StoreServer::start().unwrap()).unwrap();
    let options = NodeOptions {
        fleet: "subscriptions = \"https://sub.example/x/\"".to_owned(),
        listeners: vec![format!(
            "ss://{METHOD}@127.0.0.1:0?users=fleet&restart=lenient&allow_private=127.0.0.0/8"
        )],
        ..NodeOptions::default()
    };
    world.start_nodes(&bin(), 3, &options).unwrap();
    world
}

/// Asks a node for a document; returns the head and the body.
fn ask(world: &FleetWorld, node: usize, path: &str) -> (String, String) {
    let socket = world.nodes[node].folder().join("admin.sock");
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// Returns the names of the servers in the SIP008 document of a node.
fn names(world: &FleetWorld, node: usize, path: &str) -> Vec<String> {
    let (head, body) = ask(world, node, path);
    if !head.starts_with("HTTP/1.1 200") {
        return Vec::new();
    }
    let document: Value = serde_json::from_str(&body).unwrap();
    let servers = document["servers"].as_array().unwrap().iter();
    servers
        .map(|server| server["remarks"].as_str().unwrap().to_owned())
        .collect()
}

fn wait_for_names(world: &mut FleetWorld, path: &str, expected: &[&str]) {
    world
        .wait_until(&format!("{expected:?} are offered"), LIMIT, |world| {
            Ok((0..world.nodes.len())
                .filter(|node| world.nodes[*node].is_up())
                .all(|node| names(world, node, path) == expected))
        })
        .unwrap();
}

#[test]
fn each_node_offers_the_servers_of_all() {
    let mut world = world();
    let user = world.operator.add_user("anna").unwrap();
    world.wait_for_tables(TEST_TIMEOUT).unwrap();
    let path = subscription_path("anna", &user.subscription_key());
    wait_for_names(&mut world, &path, &["node-1", "node-2", "node-3"]);
    let documents: Vec<String> = (0..3).map(|node| ask(&world, node, &path).1).collect();
    assert!(documents.iter().all(|document| *document == documents[0]));

    // All nodes are behind one web server, whose address operators print.
    let nodes = world.operator.call(|store| store.nodes()).unwrap();
    let addresses = subscription_addresses(&nodes, world.operator.cipher());
    assert_eq!(addresses, ["https://sub.example/x"]);

    // The weight orders, a drained node is left out, and a node that has ended.
    let id = world.nodes[2].id;
    let set = |world: &FleetWorld, state, weight| {
        let record = NodeRecord {
            name: "node-3".to_owned(),
            weight,
            state,
            ..NodeRecord::default()
        };
        world
            .operator
            .call(|store| store.put_node(id, &record))
            .unwrap();
    };
    set(&world, NodeState::Active, 200);
    wait_for_names(&mut world, &path, &["node-3", "node-1", "node-2"]);
    set(&world, NodeState::Draining, 200);
    wait_for_names(&mut world, &path, &["node-1", "node-2"]);
    world.nodes[0].kill().unwrap();
    // Reports count for 15 s.
    let limit = LIMIT + Duration::from_secs(15);
    world
        .wait_until("a node that is gone is left out", limit, |world| {
            Ok(names(world, 1, &path) == ["node-2"])
        })
        .unwrap();
    let (head, _) = ask(&world, 1, &path.replace("anna", "bert"));
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
}

#[test]
fn sing_box_uses_every_node() {
    let mut world = world();
    let user = world.operator.add_user("anna").unwrap();
    world.wait_for_tables(TEST_TIMEOUT).unwrap();
    let path = subscription_path("anna", &user.subscription_key());
    wait_for_names(&mut world, &path, &["node-1", "node-2", "node-3"]);
    for format in ["sip008", "base64", "clash", "sing-box"] {
        let (head, body) = ask(&world, 0, &format!("{path}?format={format}"));
        assert!(
            head.starts_with("HTTP/1.1 200") && !body.is_empty(),
            "{format}: {head}"
        );
        assert!(head.contains("subscription-userinfo: upload="), "{head}");
    }
    let (_, document) = ask(&world, 1, &format!("{path}?format=sing-box"));
    let origin = OriginServer::start().unwrap();
    for name in ["node-1", "node-2", "node-3"] {
        // The selector uses its first member.
        let port = free_port();
        let mut json: Value = serde_json::from_str(&document).unwrap();
        json["inbounds"][0]["listen_port"] = port.into();
        json["outbounds"][0]["outbounds"] = serde_json::json!([name]);
        let folder = TempFolder::new("sing-box").unwrap();
        let file = folder.write_file("document", json.to_string()).unwrap();
        let command = |word: &str| {
            let mut command = Command::new(peer_path("sing-box"));
            command.args([word, "-c"]).arg(&file);
            command
        };
        let checked = external_tools::run_to_end(command("check"), TEST_TIMEOUT).unwrap();
        checked
            .expect_success()
            .expect("sing-box reads the document");
        check_echo(command("run"), port, &origin, name);
    }
}

/// Starts the program of a user with a proxy on this port, and sends bytes through it to an echo.
fn check_echo(program: Command, port: u16, origin: &OriginServer, node: &str) {
    let mut process = ChildProcess::spawn(program).unwrap();
    wait_port(Transport::Tcp, port, TEST_TIMEOUT)
        .unwrap_or_else(|why| panic!("{node}: {why}: {}", process.output()));
    let to = Destination::Addr(origin.addr());
    let mut stream = socks_client::connect_through(loopback_addr(port), None, &to).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(b"ECHO\n").unwrap();
    // sing-box refuses an answer that arrives before it has noted the salt of its request.
    std::thread::sleep(Duration::from_millis(200));
    stream.write_all(b"hello").unwrap();
    let mut received = [0; 5];
    stream.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"hello", "{node}");
    process.terminate().unwrap();
}

/// The SIP008 document is a configuration file of shadowsocks-rust, except for the address of the proxy. The program takes
/// long to build: `cargo xtask test --all` builds and tests it.
#[test]
fn shadowsocks_rust_uses_every_node() {
    if std::env::var_os("ADIT_ALL_PEERS").is_none() {
        return;
    }
    let mut world = world();
    let user = world.operator.add_user("anna").unwrap();
    world.wait_for_tables(TEST_TIMEOUT).unwrap();
    let path = subscription_path("anna", &user.subscription_key());
    let nodes = ["node-1", "node-2", "node-3"];
    wait_for_names(&mut world, &path, &nodes);
    let (_, document) = ask(&world, 1, &path);
    let origin = OriginServer::start().unwrap();
    for (at, name) in nodes.into_iter().enumerate() {
        let port = free_port();
        let mut json: Value = serde_json::from_str(&document).unwrap();
        json["servers"] = serde_json::json!([json["servers"][at]]);
        json["local_address"] = "127.0.0.1".into();
        json["local_port"] = port.into();
        let folder = TempFolder::new("sslocal").unwrap();
        let file = folder.write_file("document", json.to_string()).unwrap();
        let mut program = Command::new(peer_path("sslocal"));
        program.arg("-c").arg(&file);
        check_echo(program, port, &origin, name);
    }
}
