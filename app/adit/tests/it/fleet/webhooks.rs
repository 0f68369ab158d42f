//! Events about the users of a fleet: all nodes see a change, and one of them sends it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use adit_fleet::{ANNOUNCEMENT_TIME, StoreFuture, UserChange, claim_events};
use adit_fleet_world::{FleetWorld, NodeOptions};
use adit_interop::store_server::StoreServer;
use adit_interop::{TEST_TIMEOUT, TempFolder, loopback_addr};
use adit_net::system::unix_now;
use serde_json::Value;

use crate::setup::bin;

/// Time in which a second event would arrive.
const CALM: Duration = Duration::from_secs(3);

/// A receiver, with the events that it has got.
struct Receiver {
    at: SocketAddr,
    events: Arc<Mutex<Vec<(String, String)>>>,
}

impl Receiver {
    fn start() -> Self {
        let listener = TcpListener::bind(loopback_addr(0)).unwrap();
        let at = listener.local_addr().unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let all = events.clone();
        spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Some(event) = answer(stream) {
                    all.lock().unwrap().push(event);
                }
            }
        });
        Self { at, events }
    }

    /// Returns the events about others than `early`, whose own may be sent or not.
    fn events(&self) -> Vec<(String, String)> {
        let mut events = self.events.lock().unwrap().clone();
        events.retain(|(_, user)| user != "early");
        events
    }

    #[track_caller]
    fn wait_for(&self, count: usize) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        while self.events().len() < count {
            assert!(Instant::now() < deadline, "{:?}", self.events());
            sleep(Duration::from_millis(20));
        }
    }
}

/// Reads a request, and returns the kind and the user of its event.
fn answer(mut stream: TcpStream) -> Option<(String, String)> {
    stream.set_read_timeout(Some(TEST_TIMEOUT)).ok()?;
    let mut text = Vec::new();
    let event: Value = loop {
        let mut part = [0; 4096];
        let len = stream.read(&mut part).ok().filter(|len| *len > 0)?;
        text.extend_from_slice(&part[..len]);
        let whole = String::from_utf8_lossy(&text).into_owned();
        let body = whole.split_once("\r\n\r\n").map(|(_, body)| body);
        if let Some(event) = body.and_then(|body| serde_json::from_str(body).ok()) {
            break event;
        }
    };
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.write_all(reply.as_bytes()).ok()?;
    let kind = event["type"].as_str()?.to_owned();
    Some((kind, event["data"]["user"].as_str()?.to_owned()))
}

/// Returns the options of nodes that send these kinds of events to a receiver.
fn nodes_with_events(folder: &TempFolder, receiver: &Receiver, events: &str) -> NodeOptions {
    let secret = folder.write_file("key", "0123456789abcdef0123").unwrap();
    NodeOptions {
        fleet: format!(
            "[[webhook]]\nurl = \"http://{}/\"\nsecret = \"@{}\"\nevents = [{events}]\n",
            receiver.at,
            secret.display()
        ),
        wrapper: vec![
            "env".to_owned(),
            format!("XDG_STATE_HOME={}", folder.path().display()),
        ],
        ..NodeOptions::default()
    }
}

#[test]
fn one_node_sends_what_an_operator_has_changed() {
    let mut world = FleetWorld::new(StoreServer::start().unwrap()).unwrap();
    let folder = TempFolder::new("webhooks").unwrap();
    let receiver = Receiver::start();
    let of_events = |events| nodes_with_events(&folder, &receiver, events);
    let both = of_events("\"user.added\", \"user.removed\"");
    world.start_nodes(&bin(), 2, &both).unwrap();
    // What this node does not send, it does not keep from the others.
    let removals = of_events("\"user.removed\"");
    world.start_nodes(&bin(), 1, &removals).unwrap();
    world.operator.add_user("early").unwrap();
    world.wait_for_tables(TEST_TIMEOUT).unwrap();
    // The nodes have everything now, so that what they read next is new.
    let names = ["anna", "bert", "cleo"];
    let users = names.map(|name| world.operator.add_user(name).unwrap());
    world.wait_for_tables(TEST_TIMEOUT).unwrap();
    receiver.wait_for(3);
    world.operator.put_users(&users).unwrap();
    world.operator.delete_user(&users[0]).unwrap();
    receiver.wait_for(4);
    sleep(CALM);
    let mut events = receiver.events();
    events.sort();
    let event = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
    let expected = [
        event("user.added", "anna"),
        event("user.added", "bert"),
        event("user.added", "cleo"),
        event("user.removed", "anna"),
    ];
    assert_eq!(events, expected);
}

#[test]
fn what_a_node_has_claimed_and_not_sent_is_sent_by_another() {
    let mut world = FleetWorld::new(StoreServer::start().unwrap()).unwrap();
    let folder = TempFolder::new("webhooks-lost").unwrap();
    let receiver = Receiver::start();
    let options = nodes_with_events(&folder, &receiver, "\"user.added\"");
    world.start_nodes(&bin(), 2, &options).unwrap();
    let early = world.operator.add_user("early").unwrap();
    world.wait_for_tables(TEST_TIMEOUT).unwrap();
    // A third node claims the next user, and fails.
    let next = UserChange {
        id: early.id + 1,
        name: "anna".to_owned(),
        is_added: true,
    };
    let (names, now) = ([next.event_name()], unix_now().0);
    let claim = |store| -> StoreFuture<'_, _> { Box::pin(claim_events(store, now, &names)) };
    assert_eq!(world.operator.call(claim).unwrap(), [true]);
    let added = world.operator.add_user("anna").unwrap();
    assert_eq!(added.id, next.id);
    world.wait_for_tables(TEST_TIMEOUT).unwrap();
    sleep(CALM);
    assert_eq!(receiver.events(), []);
    sleep(ANNOUNCEMENT_TIME.saturating_sub(CALM));
    receiver.wait_for(1);
    sleep(CALM);
    let event = ("user.added".to_owned(), "anna".to_owned());
    assert_eq!(receiver.events(), [event]);
}
