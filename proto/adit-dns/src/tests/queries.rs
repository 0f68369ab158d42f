//! Queries of clients and to servers.

use core::time::Duration;

use hickory_proto::op::Message;
use hickory_proto::rr::{RData, RecordType as Kind};
use proptest::prelude::*;

use super::{bytes, query, with_edns};
use crate::{ClientQuery, NameError, QueryError, RecordType, ResponseCode, UpstreamQuery};

fn parse(message: &Message) -> ClientQuery {
    ClientQuery::parse(&bytes(message)).unwrap()
}

#[test]
fn queries_are_read() {
    let got = parse(&query(7, "WWW.Example.Test.", Kind::AAAA));
    assert_eq!(got.name(), "www.example.test");
    assert_eq!(got.record_type(), RecordType::AAAA);
    assert_eq!(got.udp_limit(), 512);
    let root = parse(&query(7, ".", Kind::NS));
    assert_eq!(root.name(), "");
    for (payload, limit) in [(0, 512), (512, 512), (1000, 1000), (4096, 1232)] {
        let got = parse(&with_edns(query(7, "a.test.", Kind::A), payload));
        assert_eq!(got.udp_limit(), limit, "{payload}");
        assert_eq!(got.with_stream_limit().udp_limit(), 65_535);
    }
}

#[test]
fn replies_repeat_the_query() {
    let asked = query(7, "WWW.Example.test.", Kind::A);
    let reply = parse(&asked).error_reply(ResponseCode::Refused);
    let got = Message::from_vec(&reply).unwrap();
    assert_eq!(got.metadata.id, 7);
    assert_eq!(got.queries[0].name.to_ascii(), "WWW.Example.test.");
    assert_eq!(got.metadata.response_code.to_string(), "Query Refused");
    assert!(got.metadata.recursion_available && got.metadata.recursion_desired);
    assert!(got.edns.is_none() && !got.metadata.authentic_data);

    let asked = with_edns(asked, 4096);
    let addresses = ["192.0.2.1", "2001:db8::1", "192.0.2.2"].map(|ip| ip.parse().unwrap());
    let reply = parse(&asked).address_reply(&addresses, Duration::from_secs(60));
    let got = Message::from_vec(&reply).unwrap();
    assert_eq!(got.edns.unwrap().max_payload(), 1232);
    let ips: Vec<String> = got.answers.iter().map(|r| r.data.to_string()).collect();
    assert_eq!(ips, ["192.0.2.1", "192.0.2.2"]);
    assert!(got.answers.iter().all(|r| r.ttl == 60));
    assert_eq!(got.answers[0].name, got.queries[0].name);

    let reply = parse(&query(8, "a.test.", Kind::AAAA)).address_reply(&addresses, Duration::MAX);
    let got = Message::from_vec(&reply).unwrap();
    assert!(matches!(got.answers[0].data, RData::AAAA(_)));
    assert_eq!(got.answers.len(), 1);
    // No more than fit.
    let many = vec![addresses[0]; 500];
    let asked = parse(&query(9, "a.test.", Kind::A));
    let reply = asked.address_reply(&many, Duration::ZERO);
    assert!(reply.len() <= 512);
    assert!(Message::from_vec(&reply).unwrap().answers.len() > 28);
}

#[test]
fn bad_queries_get_the_right_reply() {
    let good = bytes(&with_edns(query(0x1234, "a.test.", Kind::A), 4096));
    let patched = |at: usize, with: u8| {
        let mut message = good.clone();
        message[at] = with;
        ClientQuery::parse(&message).unwrap_err()
    };
    let code = |e: QueryError| {
        let reply = e.reply()?;
        assert_eq!(reply[..2], [0x12, 0x34], "{e}");
        Some(
            Message::from_vec(&reply)
                .unwrap()
                .metadata
                .response_code
                .into(),
        )
    };
    assert_eq!(code(patched(2, 0x80)), None::<u16>, "a response");
    assert_eq!(code(patched(2, 0x28)), Some(4), "an update");
    assert_eq!(code(patched(5, 2)), Some(1), "two questions");
    assert_eq!(code(patched(5, 0)), Some(1), "no question");
    assert_eq!(code(patched(7, 1)), Some(1), "an answer");
    assert_eq!(code(patched(11, 9)), Some(1), "many records");
    assert_eq!(code(patched(11, 2)), Some(1), "a missing record");
    // 12: 1 a 4 t e s t 0, then type and class.
    assert_eq!(code(patched(13, b'.')), Some(1), "a dot in a label");
    assert_eq!(code(patched(13, b' ')), Some(1), "a space");
    assert_eq!(code(patched(12, 0x40)), Some(1), "a kind of label");
    assert_eq!(code(patched(23, 3)), Some(4), "another class");
    for meta in [0, 41, 251, 252, 255] {
        assert_eq!(code(patched(21, meta)), Some(4), "type {meta}");
    }
    // The OPT record: 0, type, class, upper code, version.
    assert_eq!(code(patched(30, 1)), Some(16), "version 1");
    for len in 0..good.len() {
        let e = ClientQuery::parse(&good[..len]).unwrap_err();
        assert_eq!(e.reply().is_some(), len >= 12, "{len}");
    }
    let mut pointer = good[..12].to_vec();
    pointer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1]);
    assert!(ClientQuery::parse(&pointer).is_err(), "a pointer to itself");
}

#[test]
fn queries_to_servers_are_read_by_others() {
    let asked = UpstreamQuery::new("WWW.Example.test.", RecordType::AAAA, 9).unwrap();
    let got = Message::from_vec(&asked.to_bytes()).unwrap();
    assert_eq!(got.metadata.id, 9);
    assert!(got.metadata.recursion_desired);
    assert_eq!(got.queries[0].name.to_ascii(), "www.example.test.");
    assert_eq!(got.queries[0].query_type, Kind::AAAA);
    assert_eq!(got.edns.as_ref().unwrap().max_payload(), 1232);
    let plain = Message::from_vec(&asked.without_edns().to_bytes()).unwrap();
    assert!(plain.edns.is_none() && plain.queries == got.queries);
    for len in [1, 30, 60] {
        let name = format!("{}.{}.test", "a".repeat(len), "b".repeat(len));
        let padded = UpstreamQuery::new(&name, RecordType::A, 0)
            .unwrap()
            .with_padding();
        let got = padded.to_bytes();
        assert_eq!(got.len() % 128, 0);
        assert!(Message::from_vec(&got).unwrap().edns.is_some());
        assert_eq!(ClientQuery::parse(&got).unwrap().name(), name);
    }
    let new = |name: &str| UpstreamQuery::new(name, RecordType::A, 0).map(|_| ());
    assert_eq!(new(""), Ok(()));
    assert_eq!(new("."), Ok(()));
    assert_eq!(new("a..b"), Err(NameError::Label));
    assert_eq!(new(&"a".repeat(64)), Err(NameError::Label));
    assert_eq!(new(&"a.".repeat(127)), Ok(()));
    assert_eq!(new(&"a.".repeat(128)), Err(NameError::Long));
    assert_eq!(new("bücher.test"), Err(NameError::Character));
    assert_eq!(new("a b"), Err(NameError::Character));
}

#[test]
fn types_and_codes_have_names() {
    assert_eq!(RecordType::HTTPS.to_string(), "HTTPS");
    assert_eq!(RecordType(4711).to_string(), "TYPE4711");
    for number in 0..64 {
        let code = ResponseCode::from(number);
        assert_eq!(code.number(), number);
        assert!(!code.to_string().is_empty());
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(message in proptest::collection::vec(any::<u8>(), 0..80)) {
        match ClientQuery::parse(&message) {
            Ok(query) => prop_assert!(Message::from_vec(&query.error_reply(ResponseCode::ServFail)).is_ok()),
            Err(e) => prop_assert!(e.reply().is_none_or(|reply| Message::from_vec(&reply).is_ok())),
        }
    }
}
