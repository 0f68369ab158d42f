//! Queries and answers of DNS, and saved tables of fake addresses, over arbitrary bytes.

#![no_main]

use std::sync::Arc;
use std::time::Duration;

use adit_dns::{Cache, ClientQuery, FakeIpNetworks, FakeIpTable, RecordType, UpstreamQuery};
use adit_wire::Time;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(query) = ClientQuery::parse(input) {
        // What was read can be written, and is read as the same.
        let asked = UpstreamQuery::new(query.name(), query.record_type(), 7).expect("a name");
        let again = ClientQuery::parse(&asked.to_bytes()).expect("a query");
        assert_eq!(again.name(), query.name());
        let addresses = [
            [192, 0, 2, 1].into(),
            [0x2001_u16, 0xdb8, 0, 0, 0, 0, 0, 1].into(),
        ];
        let reply = query.address_reply(&addresses, Duration::from_secs(60));
        assert!(reply.len() <= query.udp_limit());
        let answer = UpstreamQuery::new(query.name(), query.record_type(), query_id(input))
            .expect("a name")
            .check_answer(&reply)
            .expect("an answer");
        let is_address = query.record_type().is_address();
        assert_eq!(answer.addresses().len(), usize::from(is_address));
    }
    // An answer to a query whose name is at the usual place.
    let Some((record_type, message)) = input.split_first() else {
        return;
    };
    let types = [
        RecordType::A,
        RecordType::AAAA,
        RecordType::HTTPS,
        RecordType::TXT,
    ];
    let record_type = types[usize::from(*record_type) % types.len()];
    let asked = UpstreamQuery::new("a.test", record_type, query_id(message)).expect("a name");
    if let Ok(answer) = asked.check_answer(message) {
        let answer = Arc::new(answer);
        let mut cache = Cache::default();
        cache.insert("a.test", record_type, answer.clone(), Time(0));
        let query = ClientQuery::parse(&asked.to_bytes()).expect("a query");
        let limited = answer.reply_to(&query, Duration::from_secs(1));
        assert!(limited.len() <= query.udp_limit());
        let whole = answer.reply_to(&query.with_stream_limit(), Duration::ZERO);
        let again = asked.check_answer(&whole).expect("an answer");
        assert_eq!(again.addresses(), answer.addresses());
        assert_eq!(again.ttl(), answer.ttl());
    }
    if let Ok(text) = str::from_utf8(input) {
        let networks = FakeIpNetworks {
            v4: "198.18.0.0/24".parse().ok(),
            v6: None,
        };
        let mut table = FakeIpTable::new(networks, 100).expect("a network");
        let head = "adit-fake-ip 1 198.18.0.0/24\n";
        if table.restore(&format!("{head}{text}")).is_ok() {
            let saved = table.snapshot();
            assert_eq!(table.restore(&saved), Ok(table.len()));
            assert_eq!(table.snapshot(), saved);
        }
    }
});

/// Returns the number of a message.
fn query_id(message: &[u8]) -> u16 {
    message.first_chunk().copied().map_or(0, u16::from_be_bytes)
}
