//! Nodes that are taken out of service, and put back without a restart.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use adit_fleet::{NodeOp, NodeRecord, NodeState};
use adit_fleet_world::{FleetWorld, NodeOptions};
use adit_interop::TEST_TIMEOUT;
use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, Destination};
use adit_interop::store_server::StoreServer;

use crate::setup::bin;

/// Does what `adit fleet drain` does.
fn set_state(world: &FleetWorld, state: NodeState) {
    let id = world.nodes[0].id;
    let record = NodeRecord {
        name: "node-1".to_owned(),
        state,
        ..NodeRecord::default()
    };
    let operator = &world.operator;
    operator.call(|store| store.put_node(id, &record)).unwrap();
    let op = match state {
        NodeState::Active => NodeOp::Undrain,
        _ => NodeOp::Drain,
    };
    operator.send_node_op(id, &op).unwrap();
}

fn wait_for(world: &mut FleetWorld, state: NodeState) {
    let what = format!("the node is {state:?}");
    let reports = |world: &mut FleetWorld| {
        let reports = world.reports()?;
        Ok(reports.iter().any(|report| report.state == state))
    };
    world.wait_until(&what, TEST_TIMEOUT, reports).unwrap();
}

fn echoes(stream: &mut TcpStream) {
    stream.write_all(b"hello").unwrap();
    let mut received = [0; 5];
    stream.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"hello");
}

#[test]
fn a_drained_node_serves_again_without_a_restart() {
    let mut world = FleetWorld::new(StoreServer::start().unwrap()).unwrap();
    let options = NodeOptions {
        fleet: "drain_grace = \"100ms\"\ndrain_timeout = \"500ms\"".to_owned(),
        ..NodeOptions::default()
    };
    world.start_nodes(&bin(), 1, &options).unwrap();
    let user = world.operator.add_user("anna").unwrap();
    world.wait_for_tables(TEST_TIMEOUT).unwrap();
    let at = world.nodes[0].addr();
    let process = world.nodes[0].process().unwrap().id();
    let origin = OriginServer::start().unwrap();
    let password = user.password();
    let session = || {
        let login = Some(("anna", password.as_str()));
        let to = Destination::Addr(origin.addr());
        let mut stream = socks_client::connect_through(at, login, &to).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.write_all(b"ECHO\n").unwrap();
        stream
    };
    let mut open = session();
    echoes(&mut open);
    for round in 1..=2 {
        set_state(&world, NodeState::Draining);
        wait_for(&mut world, NodeState::Drained);
        let refused = TcpStream::connect_timeout(&at, Duration::from_secs(1));
        assert!(refused.is_err(), "it accepts connections");
        // A new file is not a reason to accept anything, and is read later.
        let file = world.nodes[0].folder().join("adit.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{text}# more\n")).unwrap();
        let hangup = rustix::process::Signal::HUP;
        let node = world.nodes[0].process().unwrap();
        node.send_signal(hangup).unwrap();
        let refused = "the file is read when it serves again";
        node.wait_lines(refused, round, TEST_TIMEOUT).unwrap();
        assert!(TcpStream::connect_timeout(&at, Duration::from_secs(1)).is_err());

        set_state(&world, NodeState::Active);
        wait_for(&mut world, NodeState::Active);
        echoes(&mut session());
        // Sessions outlive both.
        echoes(&mut open);
        let node = world.nodes[0].process().unwrap();
        node.wait_lines("reloaded ", round, TEST_TIMEOUT).unwrap();
    }
    assert_eq!(world.nodes[0].process().unwrap().id(), process);
}
