//! A fleet without a store server: users are copied to nodes over SSH, and usage is fetched.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use adit_fleet::{Feed, Membership, PeriodLabel, StoreLogin, UsageBatch, UserUsage, open_store};
use adit_interop::{external_tools, free_port};
use adit_wire::{QuotaPeriod, UnixTime};

use super::world::World;
use crate::setup::{bin, says, start};

#[test]
fn users_are_pushed_and_usage_is_pulled() {
    let world = World::start();
    let key = world.path("key");
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", &key]);
    external_tools::run_to_end(keygen, Duration::from_secs(20))
        .unwrap()
        .expect_success()
        .unwrap();
    let (host_key, keys) = (world.path("host"), format!("{key}.pub"));
    let sshd = start(&[
        "sshd",
        "--listen",
        "127.0.0.1:0",
        "--host-key",
        &host_key,
        "--authorized-keys",
        &keys,
    ]);
    let config = format!(
        "Host *\n  IdentityFile {key}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  \
         StrictHostKeyChecking accept-new\n",
        world.path("known_hosts")
    );
    world.write("ssh_config", &config);
    // The node's folder, on a machine that is the operator's too.
    let state = world.path("state");
    let script = format!(
        "#!/bin/sh\nSTATE_DIRECTORY={state} exec {} \"$@\"\n",
        bin().display()
    );
    let program = world.write("adit-node", &script);
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    world.write(
        "hosts.txt",
        &format!("127.0.0.1:{} paris\n", sshd.addr().port()),
    );
    let (hosts, ssh_config) = (world.path("hosts.txt"), world.path("ssh_config"));
    let program = program.display().to_string();
    let over_ssh = |command: &'static str| {
        [
            "fleet",
            command,
            "--nodes",
            &hosts,
            "--ssh-config",
            &ssh_config,
            "--program",
            &program,
        ]
        .map(str::to_owned)
    };
    let run = |command: &'static str| {
        let words = over_ssh(command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        world.prints(&words)
    };

    let engine = format!("file://{}", world.path("realm.store"));
    let created = world.prints(&["fleet", "init", "--engine", &engine]);
    says(
        &created,
        &["created       realm main", "adit fleet push --nodes FILE"],
    );
    assert!(
        !created.contains("adit-join:") && !created.contains("note"),
        "{created}"
    );
    says(
        &world.fails(&["fleet", "token"], 2),
        &["is in a file", "adit fleet push"],
    );
    let anna = world.json(&["user", "add", "anna"]);
    world.prints(&["user", "add", "bert"]);
    assert_eq!(run("push"), "paris  2 users");

    // The node has a membership and the users.
    let file = format!("{state}/fleet/membership.json");
    assert_eq!(world.mode_of(&file), 0o600);
    let membership = Membership::read(file.as_ref()).unwrap();
    assert_eq!(
        (membership.name.as_str(), membership.node_id),
        ("paris", Some(1))
    );
    let store = open_store(&StoreLogin::from(&membership)).unwrap();
    let names = || {
        let mut feed = Feed::new(membership.cipher());
        feed.apply_snapshot(&world.block_on(store.snapshot()).unwrap(), false);
        let names: Vec<String> = feed.users().map(|user| user.name).collect();
        names
    };
    assert_eq!(names(), ["anna", "bert"]);

    // Changes arrive with the next push.
    world.prints(&["user", "remove", "bert"]);
    world.prints(&["user", "add", "cleo"]);
    assert_eq!(run("push"), "paris  2 users");
    assert_eq!(names(), ["anna", "cleo"]);
    assert_eq!(run("push"), "paris  2 users");

    // Usage is counted at the node, and comes back once.
    let id = u32::try_from(anna["id"].as_u64().unwrap()).unwrap();
    let count = |number, down| {
        let entries = vec![UserUsage {
            user: id,
            period: PeriodLabel::new(QuotaPeriod::Total, UnixTime(0)),
            up: 10,
            down,
        }];
        let batch = UsageBatch { number, entries };
        world.block_on(store.add_usage(1, &batch)).unwrap();
    };
    count(1, 1000);
    assert_eq!(run("pull"), "paris  1010 new bytes");
    assert_eq!(run("pull"), "paris  0 new bytes");
    count(2, 500);
    assert_eq!(run("pull"), "paris  510 new bytes");
    let shown = world.json(&["user", "show", "anna"]);
    assert_eq!(
        (&shown["usedUp"], &shown["usedDown"]),
        (&20.into(), &1500.into()),
        "{shown}"
    );
    // What a node has counted at the end of a period comes with the first pull of the next one.
    let now = adit_net::system::unix_now();
    let past = PeriodLabel::kept(QuotaPeriod::Month, now).swap_remove(1);
    let entry = UserUsage {
        user: id,
        period: past.clone(),
        up: 7,
        down: 0,
    };
    let batch = UsageBatch {
        number: 3,
        entries: vec![entry],
    };
    world.block_on(store.add_usage(1, &batch)).unwrap();
    assert_eq!(run("pull"), "paris  7 new bytes");
    assert_eq!(run("pull"), "paris  0 new bytes");
    // A push keeps what the node has counted.
    run("push");
    assert_eq!(run("pull"), "paris  0 new bytes");

    // A node that cannot be reached fails alone.
    let closed = free_port();
    world.write(
        "hosts.txt",
        &format!(
            "127.0.0.1:{closed} osaka\n127.0.0.1:{} paris\n",
            sshd.addr().port()
        ),
    );
    let words = over_ssh("push");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = world.fails(&words, 4);
    says(&text, &["osaka  failed: ", "paris  2 users"]);
    let result = world.json_of(&words, 4);
    assert_eq!(result["nodes"][1]["count"], 2, "{result}");
    // Another node's machine.
    world.write(
        "hosts.txt",
        &format!("127.0.0.1:{} osaka\n", sshd.addr().port()),
    );
    says(
        &world.fails(&words, 4),
        &["osaka  failed: ", "this machine is another node"],
    );
    sshd.stop().unwrap();
}
