//! Tests; messages are built and read by another implementation, hickory-proto.

mod answers;
mod cache;
mod failures;
mod fake_ips;
mod queries;

use core::net::{Ipv4Addr, Ipv6Addr};

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME, SOA};
use hickory_proto::rr::{Name, RData, Record, RecordType};

fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

fn query(id: u16, text: &str, kind: RecordType) -> Message {
    let mut message = Message::new(id, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(name(text), kind));
    message
}

fn with_edns(mut message: Message, payload: u16) -> Message {
    let mut edns = Edns::new();
    edns.set_max_payload(payload);
    message.set_edns(edns);
    message
}

fn answer(id: u16, text: &str, kind: RecordType, records: &[Record]) -> Message {
    let mut message = query(id, text, kind);
    message.metadata.message_type = MessageType::Response;
    message.metadata.recursion_available = true;
    for record in records {
        message.add_answer(record.clone());
    }
    message
}

fn negative(id: u16, text: &str, kind: RecordType, code: ResponseCode) -> Message {
    let mut message = answer(id, text, kind, &[]);
    message.metadata.response_code = code;
    let soa = SOA::new(name("ns.test."), name("admin.test."), 1, 2, 3, 4, 60);
    message.add_authority(Record::from_rdata(name("test."), 900, RData::SOA(soa)));
    message
}

fn a(text: &str, ttl: u32, ip: [u8; 4]) -> Record {
    Record::from_rdata(name(text), ttl, RData::A(A(Ipv4Addr::from(ip))))
}

fn aaaa(text: &str, ttl: u32, last: u8) -> Record {
    let ip = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into());
    Record::from_rdata(name(text), ttl, RData::AAAA(AAAA(ip)))
}

fn alias(text: &str, ttl: u32, to: &str) -> Record {
    Record::from_rdata(name(text), ttl, RData::CNAME(CNAME(name(to))))
}

fn bytes(message: &Message) -> Vec<u8> {
    message.to_vec().unwrap()
}
