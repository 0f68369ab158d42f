//! Sessions of every kind are listed and ended one by one.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use adit_interop::socks_client::{Destination, UdpAssociation};
use adit_interop::{TEST_TIMEOUT, TempFolder};
use serde_json::Value;

use super::world::{World, echoes};
use crate::setup::{ALLOW, start};

fn sessions(found: &Value) -> &[Value] {
    found["sessions"].as_array().unwrap()
}

#[test]
fn a_session_is_listed_without_its_destination_and_ended_alone() {
    let mut world = World::start_proxy();
    let (mut one, mut two) = (world.session(), world.session());
    for stream in [&mut one, &mut two] {
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.write_all(b"ECHO\n").unwrap();
        assert!(echoes(stream));
    }
    let list = world.wait_for("/sessions", |found| {
        found["total"] == 2 && sessions(found).iter().all(|one| one["down"] == 1)
    });
    let port = world.origin.addr().port();
    for session in sessions(&list) {
        assert_eq!(session["user"], "ann", "{session}");
        assert_eq!(session["kind"], "tcp");
        assert_eq!(session["route"], "main");
        assert_eq!(session["listen"], world.adit.addr().to_string());
        assert_eq!(session["target"], format!("private:{port}"));
        assert_eq!(session["up"], "ECHO\nx".len());
        assert!(session["age"].as_u64().unwrap() < 600);
    }
    assert!(
        !list.to_string().contains(&world.origin.addr().to_string()),
        "{list}"
    );
    let [newest, oldest] = [0, 1].map(|at| sessions(&list)[at]["id"].as_u64().unwrap());
    assert!(newest > oldest, "{list}");
    let limited = world.json("/sessions?limit=1");
    assert_eq!(
        (limited["total"].as_u64(), sessions(&limited).len()),
        (Some(2), 1)
    );
    assert_eq!(sessions(&limited)[0]["id"], newest);
    assert_eq!(world.say("GET /sessions?limit=x").status, 400);

    let end = format!("DELETE /sessions/{oldest}");
    assert_eq!(world.say(&end).status, 204);
    // The connection is reset, and does not look complete.
    let error = one
        .set_nonblocking(false)
        .and_then(|()| std::io::copy(&mut one, &mut std::io::sink()));
    assert!(error.is_err(), "{error:?}");
    assert!(echoes(&mut two), "another session was ended");
    world.wait_for("/sessions", |found| found["total"] == 1);
    let again = world.say(&end);
    assert!(
        again.status == 404 && again.body.contains("no such session"),
        "{}",
        again.body
    );
    assert_eq!(world.say("GET /sessions/1").status, 405);
    drop(two);
    let overview = world.wait_for("/overview", |found| found["sessionsOpen"] == 0);
    assert_eq!(overview["sessionsTotal"], 2);
    assert_eq!(overview["up"], 2 * "ECHO\nx".len() + 1);
    assert_eq!(overview["pid"], world.adit.process().id());
    assert_eq!(overview["listeners"][0]["transports"], "tcp");
    assert!(overview["kcp"]["retrans_segs"].is_u64(), "{overview}");
    world.adit.stop().unwrap();
}

#[test]
fn an_association_is_listed_and_ended() {
    let world = World::start_proxy();
    let to = Destination::Addr(world.origin.addr());
    let association = UdpAssociation::open(world.adit.addr(), Some(("ann", "pw"))).unwrap();
    association.send_to(&to, b"four").unwrap();
    assert_eq!(association.recv().unwrap().1, b"four");
    let list = world.wait_for("/sessions", |found| {
        found["total"] == 1 && sessions(found)[0]["down"] == 4
    });
    let session = &sessions(&list)[0];
    assert_eq!(
        (&session["kind"], &session["user"]),
        (&"udp".into(), &"ann".into())
    );
    assert_eq!(session["up"], 4);
    assert_eq!(world.json("/overview")["associationsOpen"], 1);
    assert_eq!(
        world
            .say(&format!("DELETE /sessions/{}", session["id"]))
            .status,
        204
    );
    world.wait_for("/sessions", |found| found["total"] == 0);
    association.send_to(&to, b"late").unwrap();
    assert!(association.recv_within(Duration::from_millis(300)).is_err());
    world.adit.stop().unwrap();
}

/// Datagrams of a Shadowsocks client, with and without a stream around them.
#[test]
fn datagrams_of_shadowsocks_are_sessions_of_their_user() {
    let folder = TempFolder::new("dashboard").unwrap();
    let users = folder
        .write_file("users.json", r#"{"bob": "EBESExQVFhcYGRobHB0eHw=="}"#)
        .unwrap();
    let server = "2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D";
    let url = format!(
        "ss://{server}@127.0.0.1:0?users=@{}&{ALLOW}#main",
        users.display()
    );
    let world = World::start(&[&url]);
    let client = format!(
        "ss://{server}%3AEBESExQVFhcYGRobHB0eHw%3D%3D@{}",
        world.adit.addr()
    );
    for (query, count) in [("", 1), ("?udp=over-tcp", 2)] {
        let proxy = start(&["run", "socks5://127.0.0.1:0", &format!("{client}{query}")]);
        let association = UdpAssociation::open(proxy.addr(), None).unwrap();
        association
            .send_to(&Destination::Addr(world.origin.addr()), b"hello")
            .unwrap();
        assert_eq!(association.recv().unwrap().1, b"hello");
        let list = world.wait_for("/sessions", |found| {
            sessions(found).iter().any(|one| one["up"] == 5)
        });
        let session = &sessions(&list)[0];
        assert_eq!(
            (&session["kind"], &session["user"]),
            (&"udp".into(), &"bob".into()),
            "{list}"
        );
        assert_eq!(
            world
                .say(&format!("DELETE /sessions/{}", session["id"]))
                .status,
            204
        );
        world.wait_for("/sessions", |found| found["total"] == 0);
        assert_eq!(world.json("/overview")["sessionsTotal"], count);
        proxy.stop().unwrap();
    }
    world.adit.stop().unwrap();
}

#[test]
fn a_channel_of_ssh_is_a_session() {
    let folder = TempFolder::new("dashboard").unwrap();
    let key = folder.path().join("host_key");
    let url = format!(
        "ssh://ann:pw@127.0.0.1:0?host_key=@{}&{ALLOW}#main",
        key.display()
    );
    let world = World::start(&[&url]);
    let keygen = Command::new("ssh-keygen")
        .arg("-lf")
        .arg(&key)
        .output()
        .unwrap();
    let fingerprint = String::from_utf8(keygen.stdout).unwrap();
    let fingerprint = fingerprint.split(' ').nth(1).unwrap();
    let hop = format!("ssh://ann:pw@{}?host_key={fingerprint}", world.adit.addr());
    let proxy = start(&["run", "socks5://127.0.0.1:0", &hop]);
    let to = Destination::Addr(world.origin.addr());
    let mut stream = adit_interop::socks_client::connect_through(proxy.addr(), None, &to).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(b"ECHO\n").unwrap();
    assert!(echoes(&mut stream));
    let list = world.wait_for("/sessions", |found| found["total"] == 1);
    let session = &sessions(&list)[0];
    assert_eq!(
        (&session["kind"], &session["user"]),
        (&"ssh".into(), &"ann".into())
    );
    assert_eq!(
        world
            .say(&format!("DELETE /sessions/{}", session["id"]))
            .status,
        204
    );
    assert!(!echoes(&mut stream));
    world.wait_for("/sessions", |found| found["total"] == 0);
    proxy.stop().unwrap();
    world.adit.stop().unwrap();
}
