//! Bytes of smux 1.5.56; see `vectors/smux/README.md`.

use serde_json::Value;

use super::{START, frame, output, session};
use crate::{Config, Role, Session, StreamId, Version};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../vectors/smux.json")).unwrap()
}

fn hex(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn what_a_client_sends() {
    for (version, key) in [(Version::V1, "v1_client"), (Version::V2, "v2_client")] {
        let steps = &vectors()[key];
        let mut client = session(version, Role::Client);
        let first = client.open().unwrap();
        assert_eq!(first.get(), 3);
        assert_eq!(output(&mut client), hex(&steps[0]["wire"]));

        assert_eq!(client.write(first, b"hello"), Ok(5));
        assert_eq!(output(&mut client), hex(&steps[1]["wire"]));

        assert_eq!(client.write(first, &[7; 9000]), Ok(9000));
        let wire = output(&mut client);
        assert_eq!(wire.len() as u64, steps[2]["wire_len"].as_u64().unwrap());
        assert_eq!(wire[..8], hex(&steps[2]["first_header"]));
        assert_eq!(wire[8200..8208], hex(&steps[2]["second_header"]));

        let second = client.open().unwrap();
        assert_eq!(output(&mut client), hex(&steps[3]["wire"]));

        let pong = frame(version.number(), 2, 3, b"pong");
        assert_eq!(client.handle_input(START, &pong), Ok(pong.len()));
        let mut out = [0; 8];
        assert_eq!(client.read(first, &mut out), Ok(4));
        assert_eq!(out[..4], *b"pong");
        assert_eq!(output(&mut client), hex(&steps[4]["wire"]));

        client.close_write(first).unwrap();
        assert_eq!(output(&mut client), hex(&steps[5]["wire"]));
        client.close(second);
        assert_eq!(output(&mut client), hex(&steps[6]["wire"]));
        assert_eq!(client.stream_count(), 1);
    }
}

#[test]
fn what_a_server_opens() {
    for (version, key) in [
        (Version::V1, "v1_server_open"),
        (Version::V2, "v2_server_open"),
    ] {
        let mut server = session(version, Role::Server);
        assert_eq!(server.open(), Ok(StreamId(2)));
        assert_eq!(output(&mut server), hex(&vectors()[key]["wire"]));
    }
}

#[test]
fn a_sign_of_life() {
    let mut client = session(Version::V2, Role::Client);
    let due = client.poll_timeout().unwrap();
    assert_eq!(due.0, 10_000_000);
    client.handle_timeout(due).unwrap();
    assert_eq!(output(&mut client), hex(&vectors()["nop_v2"]));
}

#[test]
fn what_a_server_makes_of_it() {
    for (version, key) in [(Version::V1, "v1_client"), (Version::V2, "v2_client")] {
        let steps = &vectors()[key];
        let mut wire = [&steps[0]["wire"], &steps[1]["wire"], &steps[3]["wire"]]
            .map(hex)
            .concat();
        wire.extend([hex(&steps[2]["first_header"]), vec![1; 8192]].concat());
        wire.extend([hex(&steps[2]["second_header"]), vec![2; 808]].concat());
        wire.extend(hex(&steps[4]["wire"]));
        wire.extend([&steps[5]["wire"], &steps[6]["wire"]].map(hex).concat());
        let mut server = Session::new(Config::new(version, Role::Server), START).unwrap();
        let ours = server.open().unwrap();
        // The client's update is for a stream on which four bytes were sent.
        let third = StreamId(3);
        for byte in wire.chunks(1) {
            assert_eq!(server.handle_input(START, byte), Ok(1));
            if server.accept() == Some(third) {
                assert_eq!(server.write(third, b"pong"), Ok(4));
                output(&mut server);
            }
        }
        let expected = [&b"hello"[..], &[1; 8192], &[2; 808]].concat();
        assert_eq!(super::read_all(&mut server, third), expected);
        assert_eq!(server.read(third, &mut [0]), Ok(0), "its end was sent");
        assert_eq!(server.read(StreamId(5), &mut [0]), Ok(0));
        assert_eq!(server.stream_count(), 3);
        server.close(ours);
        assert!(!super::events(&mut server).contains(&crate::Event::Failed(third)));
    }
}
