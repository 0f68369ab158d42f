//! Users at all nodes: they appear, change, are kicked and removed.

use std::time::Duration;

use adit_fleet::{Fault, NodeOp, NodeState, RecordLimits, Store};
use adit_fleet_node::NodeReadiness;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::world::{
    ByteServer, Node, Realm, closed, connect, keyed_client, stays_open, until, upload,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_appears_everywhere_and_a_removal_cuts_live_sessions() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let early = realm.add("early", RecordLimits::default()).await;
    let nodes = [realm.node("a").await, realm.node("b").await];
    let late = realm.add("late", RecordLimits::default()).await;
    for node in &nodes {
        let took = node.admits(&late, server.addr).await;
        assert!(took < Duration::from_secs(1), "{took:?}");
        assert!(
            connect(node.proxy, Some(("late", "wrong")), server.addr)
                .await
                .is_err()
        );
        assert!(
            connect(node.proxy, Some(("nora", "x")), server.addr)
                .await
                .is_err()
        );
    }
    let [a, b] = &nodes;
    let mut others = b.session(&early, server.addr).await.unwrap();
    let mut sessions = [
        a.session(&late, server.addr).await.unwrap(),
        b.session(&late, server.addr).await.unwrap(),
    ];
    realm.writer.delete(&[late.id]).await.unwrap();
    for session in &mut sessions {
        let took = closed(session).await;
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
    assert!(
        stays_open(&mut others).await,
        "another user has lost a session"
    );
    assert!(a.session(&late, server.addr).await.is_err());
    assert_eq!(a.engine.fleet_users().registry().to_stored().count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_limits_keeps_sessions_and_another_secret_ends_them() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let mut ann = realm.add("ann", RecordLimits::default()).await;
    let node = realm.node("a").await;
    let (_client, at) = keyed_client(node.keyed, &keys(&realm, 1, &ann)).await;
    let mut by_password = node.session(&ann, server.addr).await.unwrap();
    let mut by_key = connect(at, None, server.addr).await.unwrap();
    by_key.write_all(b"x").await.unwrap();
    until("the first byte arrives", async || server.received() == 1).await;
    ann.limits.sessions = Some(9);
    realm.writer.put(std::slice::from_ref(&ann)).await.unwrap();
    let registry = node.engine.user_registry().clone();
    until("the limit is applied", async || {
        registry
            .limits("ann")
            .is_some_and(|limits| limits.sessions == Some(9))
    })
    .await;
    assert!(stays_open(&mut by_password).await && stays_open(&mut by_key).await);
    ann.secret = adit_fleet::RealmWriter::new_secret();
    realm.writer.put(std::slice::from_ref(&ann)).await.unwrap();
    closed(&mut by_password).await;
    closed(&mut by_key).await;
    node.admits(&ann, server.addr).await;
    // Disabled, and enabled again.
    let mut live = node.session(&ann, server.addr).await.unwrap();
    ann.disabled = true;
    realm.writer.put(std::slice::from_ref(&ann)).await.unwrap();
    closed(&mut live).await;
    assert!(node.session(&ann, server.addr).await.is_err());
    ann.disabled = false;
    ann.name = "anna".to_owned();
    realm.writer.put(std::slice::from_ref(&ann)).await.unwrap();
    node.admits(&ann, server.addr).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_after_the_removal_of_its_user_is_not_served() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let ann = realm.add("ann", RecordLimits::default()).await;
    let node = realm.node("a").await;
    let mut client = TcpStream::connect(node.proxy).await.unwrap();
    let password = ann.password();
    let len = u8::try_from(password.len()).unwrap();
    let login = [b"\x05\x01\x02\x01\x03ann", &[len][..], password.as_bytes()].concat();
    client.write_all(&login).await.unwrap();
    let mut accepted = [0; 4];
    client.read_exact(&mut accepted).await.unwrap();
    assert_eq!(accepted, [5, 2, 1, 0]);
    // The client waits with its request until the user is removed.
    realm.writer.delete(&[ann.id]).await.unwrap();
    until("the user is removed", async || {
        node.session(&ann, server.addr).await.is_err()
    })
    .await;
    let [a, b] = server.addr.port().to_be_bytes();
    let request = [5, 1, 0, 1, 127, 0, 0, 1, a, b];
    client.write_all(&request).await.unwrap();
    client.write_all(b"12345").await.unwrap();
    assert!(closed(&mut client).await < Duration::from_secs(1));
    assert_eq!(server.received(), 0);
}

/// Cuts a node off while `change` changes the users, so that it reads all changes at once.
async fn while_away(realm: &Realm, node: &Node, change: impl AsyncFnOnce()) {
    node.faults.set_outage(Some(Fault::LostRequest));
    // The question that the store holds is answered by the first change.
    realm.add("first", RecordLimits::default()).await;
    sleep(Duration::from_millis(300)).await;
    change().await;
    node.faults.set_outage(None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_was_disabled_right_after_being_added_is_refused() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    // More than the changes: few changes are applied one by one.
    for n in 0..8 {
        realm
            .add(&format!("user-{n}"), RecordLimits::default())
            .await;
    }
    let node = realm.node("a").await;
    let (mut ann, mut late) = (None, None);
    while_away(&realm, &node, async || {
        let mut user = realm.add("ann", RecordLimits::default()).await;
        user.disabled = true;
        realm.writer.put(std::slice::from_ref(&user)).await.unwrap();
        ann = Some(user);
        late = Some(realm.add("late", RecordLimits::default()).await);
    })
    .await;
    node.admits(&late.unwrap(), server.addr).await;
    assert!(node.session(&ann.unwrap(), server.addr).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_was_added_anew_has_the_new_limits() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let ann = realm.add("ann", RecordLimits::default()).await;
    let node = realm.node("a").await;
    // The node knows the user by a session.
    drop(node.session(&ann, server.addr).await.unwrap());
    let (mut again, mut late) = (None, None);
    while_away(&realm, &node, async || {
        realm.writer.delete(&[ann.id]).await.unwrap();
        let expired = RecordLimits {
            expires: Some(1),
            ..RecordLimits::default()
        };
        again = Some(realm.add("ann", expired).await);
        late = Some(realm.add("late", RecordLimits::default()).await);
    })
    .await;
    node.admits(&late.unwrap(), server.addr).await;
    assert!(node.session(&again.unwrap(), server.addr).await.is_err());
}

fn keys(realm: &Realm, node: u32, user: &adit_fleet::FleetUser) -> String {
    let identity = realm.key.identity_psk(node, 16).unwrap();
    let own = user.psk(16).unwrap();
    format!("{}:{}", &*identity, &*own)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_of_one_node_is_none_at_another() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let ann = realm.add("ann", RecordLimits::default()).await;
    let (a, b) = (realm.node("a").await, realm.node("b").await);
    for (node, number, expected) in [(&a, 1, true), (&b, 2, true), (&b, 1, false), (&a, 2, false)] {
        let before = server.received();
        let (client, at) = keyed_client(node.keyed, &keys(&realm, number, &ann)).await;
        let stream = connect(at, None, server.addr).await;
        if let Ok(mut stream) = stream {
            let _ = stream.write_all(b"12345").await;
            sleep(Duration::from_millis(300)).await;
        }
        assert_eq!(server.received() == before + 5, expected, "{number}");
        client.drain_and_stop(Duration::ZERO).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kick_ends_sessions_and_not_the_user() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let ann = realm.add("ann", RecordLimits::default()).await;
    let node = realm.node("a").await;
    let mut session = node.session(&ann, server.addr).await.unwrap();
    realm.writer.kick(ann.id).await.unwrap();
    closed(&mut session).await;
    node.admits(&ann, server.addr).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn devices_are_counted_over_nodes() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let limits = RecordLimits {
        devices: Some(1),
        ..RecordLimits::default()
    };
    let ann = realm.add("ann", limits).await;
    let (a, b) = (realm.node("a").await, realm.node("b").await);
    // Both are the same device: the address is the same.
    let _one = a.session(&ann, server.addr).await.unwrap();
    let _two = b.session(&ann, server.addr).await.unwrap();
    // Another device at another node, as its report says.
    let digest = realm.writer.cipher().device_digest(&[192, 0, 2, 9]);
    let activity = adit_fleet::UserActivity {
        user: ann.id,
        sessions: 1,
        max_devices: Some(2),
        devices: vec![digest],
        gone: Vec::new(),
    };
    realm.memory.report_activity(99, &[activity]).await.unwrap();
    drop((_one, _two));
    until("the device elsewhere counts", async || {
        match a.session(&ann, server.addr).await {
            // It is open at the next report, whose answer has the device.
            Ok(session) => {
                sleep(Duration::from_millis(1200)).await;
                drop(session);
                sleep(Duration::from_millis(100)).await;
                false
            }
            Err(_) => true,
        }
    })
    .await;
}

/// Other addresses of this machine are other devices.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn devices_beyond_the_limit_end() {
    use crate::world::connect_from;
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let limits = |devices| RecordLimits {
        devices: Some(devices),
        ..RecordLimits::default()
    };
    let mut ann = realm.add("ann", limits(3)).await;
    let (a, b) = (realm.node("a").await, realm.node("b").await);
    let mut first = connect_from(1, &a, &ann, server.addr).await.unwrap();
    let mut second = connect_from(2, &a, &ann, server.addr).await.unwrap();
    let mut third = connect_from(3, &b, &ann, server.addr).await.unwrap();
    // At one node, the device that came last ends.
    ann.limits = limits(1);
    realm.writer.put(std::slice::from_ref(&ann)).await.unwrap();
    let took = closed(&mut second).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    // Of two nodes, one keeps its device.
    let took = tokio::select! {
        took = closed(&mut first) => took,
        took = closed(&mut third) => took,
    };
    assert!(took < Duration::from_secs(2), "{took:?}");
    let stay = [stays_open(&mut first).await, stays_open(&mut third).await];
    assert_ne!(stay[0], stay[1]);
    // Longer than the interval of reports.
    sleep(Duration::from_secs(6)).await;
    let (node, kept) = match stay[0] {
        true => (&a, &mut first),
        false => (&b, &mut third),
    };
    assert!(stays_open(kept).await, "the last device");
    assert!(connect_from(9, node, &ann, server.addr).await.is_err());
}

/// Users who are added meanwhile receive a URL of each node that reports.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_are_reported_at_once() {
    let realm = Realm::new().await;
    let node = realm.node("a").await;
    let reported = async || {
        let nodes = realm.memory.nodes().await.unwrap();
        nodes.into_iter().find_map(|entry| entry.status)
    };
    until("the node has reported", async || reported().await.is_some()).await;
    let since = Instant::now();
    node.control
        .set_servers(Some("192.0.2.7".to_owned()), Vec::new());
    until("the address is known", async || {
        reported().await.unwrap().public_host.as_deref() == Some("192.0.2.7")
    })
    .await;
    let time = since.elapsed();
    assert!(
        time < Duration::from_secs(3),
        "with the next report: {time:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_node_reports_when_it_is_empty() {
    let realm = Realm::new().await;
    let server = ByteServer::start().await;
    let ann = realm.add("ann", RecordLimits::default()).await;
    let node = realm.node("a").await;
    let session = node.session(&ann, server.addr).await.unwrap();
    let state = async || {
        let nodes = realm.memory.nodes().await.unwrap();
        nodes[0].status.as_ref().map(|status| status.state)
    };
    until("the node reports", async || {
        state().await == Some(NodeState::Active)
    })
    .await;
    assert_eq!(node.control.readiness(), NodeReadiness::Ready);
    realm.writer.send_node_op(1, &NodeOp::Drain).await.unwrap();
    until("it drains", async || {
        state().await == Some(NodeState::Draining)
    })
    .await;
    assert!(matches!(
        node.control.readiness(),
        NodeReadiness::NotReady(_)
    ));
    // It accepts until the grace is over.
    until("it accepts nothing", async || {
        node.session(&ann, server.addr).await.is_err()
    })
    .await;
    assert_eq!(upload(session, 1000).await, 1000);
    until("it is drained", async || {
        state().await == Some(NodeState::Drained)
    })
    .await;
    let nodes = realm.memory.nodes().await.unwrap();
    let status = nodes[0].status.clone().unwrap();
    assert_eq!((status.users, status.version.as_str()), (1, "test"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_node_opens_its_listeners_again() {
    let realm = Realm::new().await;
    let node = realm.node("a").await;
    let state = async || {
        let nodes = realm.memory.nodes().await.unwrap();
        nodes[0].status.as_ref().map(|status| status.state)
    };
    // Orders from before its first look at the store are not for this process.
    until("it reports", async || {
        state().await == Some(NodeState::Active)
    })
    .await;
    realm.writer.send_node_op(1, &NodeOp::Drain).await.unwrap();
    until("it is drained", async || {
        state().await == Some(NodeState::Drained)
    })
    .await;
    // The process that has the plan cannot open them at first.
    realm
        .writer
        .send_node_op(1, &NodeOp::Undrain)
        .await
        .unwrap();
    let first = node.control.next_resume().await;
    first.send(false).unwrap();
    // The node tries it again on its own.
    let second = node.control.next_resume().await;
    assert!(matches!(
        node.control.readiness(),
        NodeReadiness::NotReady(_)
    ));
    second.send(true).unwrap();
    until("it serves", async || {
        state().await == Some(NodeState::Active)
    })
    .await;
    assert_eq!(node.control.readiness(), NodeReadiness::Ready);
}
