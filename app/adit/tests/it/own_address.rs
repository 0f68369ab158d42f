//! A machine with a public address, and its services that are for the machine only.

use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::{AditProcess, loopback_addr, traffic};

use crate::netns::{GATEWAY, SERVER, command, enter, world};
use crate::setup::bin;

fn adit(args: &[&str]) -> AditProcess {
    let bin = bin();
    let words: Vec<&str> = [&[bin.to_str().unwrap(), "run"], args].concat();
    AditProcess::start_command(command(GATEWAY, &words), 1).unwrap()
}

#[test]
fn a_public_address_of_the_machine_itself_is_private() {
    if !world("own_address::a_public_address_of_the_machine_itself_is_private") {
        return;
    }
    let at = |name: &str, addr: &str| {
        let addr = addr.parse().unwrap();
        enter(name, || OriginServer::start_at(addr)).unwrap()
    };
    let origins = [
        (at(GATEWAY, "9.9.9.1:7000"), false),
        (at(GATEWAY, "[2620:fe::1]:7000"), false),
        (at(SERVER, "9.9.9.9:7000"), true),
        (at(SERVER, "[2620:fe::9]:7000"), true),
    ];
    let reaches = |more: &str, origin: &OriginServer| {
        let server = adit(&[&format!("{}{more}", BLAKE3_AES_128.url(loopback_addr(0)))]);
        let entry = format!("tcp://127.0.0.1:0/{}", origin.addr());
        let client = adit(&[&entry, &BLAKE3_AES_128.url(server.addr())]);
        let passed = enter(GATEWAY, || {
            traffic::connect_directly(client.addr())
                .and_then(traffic::check_one_byte)
                .is_ok()
        });
        client.stop().unwrap();
        server.stop().unwrap();
        passed
    };
    for (origin, is_others) in &origins {
        assert_eq!(reaches("", origin), *is_others, "{}", origin.addr());
    }
    let named = "?allow_private=9.9.9.1/32";
    assert!(reaches(named, &origins[0].0), "named by `allow_private`");
}
