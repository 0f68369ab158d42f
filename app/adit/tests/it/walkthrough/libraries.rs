//! The example programs, which are built with the workspace.

use super::Walk;
use super::hosts::Hosts;
use super::page::{KEY, SERVER_ID};

pub(super) fn book(hosts: &Hosts, walk: &mut Walk) {
    let _sites = hosts.start_sites(&[]);
    let server = walk.next("cargo run");
    let server = hosts.home.start_until(&server, "", 0);
    hosts.home.wait_for_port(1080, &server);
    hosts.home.browses("socks5h://ann:secret@127.0.0.1:1080");
}

pub(super) fn examples(hosts: &Hosts, walk: &mut Walk) {
    let home = &hosts.home;
    let _sites = hosts.start_sites(&[]);
    let _sshd = hosts.start_ssh(&[(&hosts.gate, 22)]);
    let server = home.start_until(&walk.next("cargo run"), "", 0);
    home.wait_for_port(1080, &server);
    let page = home.run(&walk.next("printf 'GET"));
    assert!(page.contains("hello from example.com"), "{page}");
    drop(server);

    let server = home.start_until(&walk.next("cargo run"), "4000", 1);
    assert!(home.run(&walk.next("cargo run")).contains("hello"));
    drop(server);
    let server = home.start_until(&walk.next("cargo run"), "4001", 1);
    let frames = home.run(&walk.next("cargo run"));
    assert!(frames.contains("THREE"), "{frames}");
    drop(server);

    home.run(&walk.take(2, "ssh-keygen"));
    let server = home.start_until(&walk.next("cargo run"), "", 0);
    home.wait_for_port(2222, &server);
    home.run(&walk.next("ssh-keyscan"));
    let told = home.run(&walk.next("cargo run"));
    assert!(told.starts_with("Linux"), "{told}");
    drop(server);

    home.run("cp ~/.ssh/id_ed25519 KEY_FILE");
    let line = walk.next("cargo run").replace(" USER ", " me ");
    let forward = home.start_until(&line, "", 0);
    home.wait_for_port(8080, &forward);
    let page = home.run("curl -sS -H 'Host: example.com' http://127.0.0.1:8080/");
    assert_eq!(page, "hello from example.com");
    drop(forward);

    let _server = hosts.vps.start(&format!("adit run ss://{SERVER_ID}@:8388"));
    let line = walk
        .next("printf 'GET")
        .replace(" KEY ", &format!(" {KEY} "));
    let page = home.run(&line);
    assert!(page.contains("hello from example.com"), "{page}");

    home.write("Cargo.toml", "[package]\n");
    let tag = home.run(&walk.next("cargo run"));
    let verify =
        "cargo run -p adit-examples --bin umac -- 000102030405060708090a0b0c0d0e0f 1 Cargo.toml";
    home.run(&format!(
        "{verify} {}",
        tag.split_whitespace().next().unwrap()
    ));
    let restored = home.run(&walk.next("cargo run"));
    assert!(restored.contains("a text of some length"), "{restored}");
}
