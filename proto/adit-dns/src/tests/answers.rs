//! Answers of servers.

use core::net::IpAddr;
use core::time::Duration;

use hickory_proto::op::{Message, ResponseCode as Code};
use hickory_proto::rr::rdata::TXT;
use hickory_proto::rr::{RData, Record, RecordType as Kind};
use proptest::prelude::*;

use super::{a, aaaa, alias, answer, bytes, name, negative, query, with_edns};
use crate::{Answer, AnswerError, ClientQuery, RecordType, ResponseCode, UpstreamQuery};

const NAME: &str = "www.example.test.";

fn check(message: &Message) -> Result<Answer, AnswerError> {
    check_bytes(&bytes(message))
}

fn check_bytes(message: &[u8]) -> Result<Answer, AnswerError> {
    UpstreamQuery::new(NAME, RecordType::A, 7)
        .unwrap()
        .check_answer(message)
}

fn client(text: &str, payload: Option<u16>) -> ClientQuery {
    let asked = query(99, text, Kind::A);
    let asked = payload.map_or_else(
        || asked.clone(),
        |payload| with_edns(asked.clone(), payload),
    );
    ClientQuery::parse(&bytes(&asked)).unwrap()
}

#[test]
fn addresses_are_at_the_end_of_the_aliases() {
    let records = [
        alias(NAME, 300, "cdn.test."),
        a("a.cdn.test.", 70, [192, 0, 2, 1]),
        alias("CDN.test.", 90, "a.cdn.test."),
        a("other.test.", 5, [192, 0, 2, 9]),
        a("a.cdn.test.", 80, [192, 0, 2, 2]),
        aaaa("a.cdn.test.", 3, 1),
    ];
    let got = check(&answer(7, NAME, Kind::A, &records)).unwrap();
    assert_eq!(
        got.addresses(),
        ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse::<IpAddr>().unwrap())
    );
    assert_eq!(got.ttl(), Duration::from_secs(70));
    assert_eq!(got.code(), ResponseCode::NoError);
    assert!(!got.is_negative() && got.is_about_the_name() && !got.is_truncated());
}

#[test]
fn loops_and_long_rows_of_aliases_are_refused() {
    let records = [alias(NAME, 1, "b.test."), alias("b.test.", 1, NAME)];
    assert_eq!(
        check(&answer(7, NAME, Kind::A, &records)),
        Err(AnswerError::Aliases)
    );
    let row = |len: usize| -> Vec<Record> {
        let at = |n: usize| match n {
            0 => NAME.to_owned(),
            n => format!("n{n}.test."),
        };
        let mut all: Vec<Record> = (0..len).map(|n| alias(&at(n), 60, &at(n + 1))).collect();
        all.push(a(&at(len), 60, [192, 0, 2, 1]));
        all
    };
    assert_eq!(
        check(&answer(7, NAME, Kind::A, &row(16)))
            .unwrap()
            .addresses()
            .len(),
        1
    );
    assert_eq!(
        check(&answer(7, NAME, Kind::A, &row(17))),
        Err(AnswerError::Aliases)
    );
}

#[test]
fn answers_to_others_are_unrelated() {
    let unrelated = Err(AnswerError::Unrelated);
    let records = [a(NAME, 60, [192, 0, 2, 1])];
    assert!(check(&answer(7, NAME, Kind::A, &records)).is_ok());
    assert!(check(&answer(7, "WWW.example.TEST.", Kind::A, &records)).is_ok());
    assert_eq!(check(&answer(8, NAME, Kind::A, &records)), unrelated);
    assert_eq!(check(&answer(7, NAME, Kind::AAAA, &records)), unrelated);
    assert_eq!(
        check(&answer(7, "www.example.tesu.", Kind::A, &records)),
        unrelated
    );
    assert_eq!(check(&query(7, NAME, Kind::A)), unrelated);
    let mut two = answer(7, NAME, Kind::A, &records);
    two.add_query(two.queries[0].clone());
    assert_eq!(check(&two), unrelated);
    // HTTPS is 65 and `A` in ASCII: types have no case.
    let asked = UpstreamQuery::new(NAME, RecordType::HTTPS, 7).unwrap();
    let mut message = bytes(&answer(7, NAME, Kind::HTTPS, &[]));
    assert!(asked.check_answer(&message).is_ok());
    let at = message.len() - 3;
    assert_eq!(message[at], 65);
    message[at] = 97;
    assert_eq!(asked.check_answer(&message), unrelated);
}

#[test]
fn negative_answers_have_the_ttl_of_their_zone() {
    let got = check(&negative(7, NAME, Kind::A, Code::NXDomain)).unwrap();
    assert_eq!(got.code(), ResponseCode::NXDomain);
    assert!(got.is_negative() && got.is_about_the_name());
    assert_eq!(got.ttl(), Duration::from_secs(60));
    let got = check(&negative(7, NAME, Kind::A, Code::NoError)).unwrap();
    assert!(got.is_negative() && got.addresses().is_empty());
    let mut aliased = negative(7, NAME, Kind::A, Code::NoError);
    aliased.add_answer(alias(NAME, 30, "b.test."));
    assert_eq!(check(&aliased).unwrap().ttl(), Duration::from_secs(30));
    let got = check(&answer(7, NAME, Kind::A, &[])).unwrap();
    assert_eq!(got.ttl(), Duration::from_secs(5), "no SOA");
    let reply = check(&negative(7, NAME, Kind::A, Code::NXDomain))
        .unwrap()
        .reply_to(&client(NAME, None), Duration::from_secs(10));
    let got = Message::from_vec(&reply).unwrap();
    assert_eq!(got.metadata.response_code, Code::NXDomain);
    assert_eq!(got.authorities[0].ttl, 890);
}

#[test]
fn failures_say_nothing_about_the_name() {
    for code in [Code::ServFail, Code::Refused, Code::FormErr, Code::NotImp] {
        let mut message = answer(7, NAME, Kind::A, &[]);
        message.metadata.response_code = code;
        let got = check(&message).unwrap();
        assert!(!got.is_about_the_name() && got.is_negative());
        assert_eq!(got.code().number(), u16::from(code));
    }
    let mut message = with_edns(answer(7, NAME, Kind::A, &[]), 1232);
    message.metadata.response_code = Code::BADVERS;
    assert_eq!(check(&message).unwrap().code(), ResponseCode::BadVers);
}

#[test]
fn replies_are_patched_copies() {
    let mut message = with_edns(
        answer(
            7,
            NAME,
            Kind::A,
            &[
                alias(NAME, 300, "b.test."),
                a("b.test.", 70, [192, 0, 2, 1]),
            ],
        ),
        1232,
    );
    message.add_additional(a("poison.test.", 900, [192, 0, 2, 66]));
    let got = check(&message).unwrap();
    let reply = got.reply_to(
        &client("Www.eXample.test.", Some(4096)),
        Duration::from_secs(100),
    );
    let read = Message::from_vec(&reply).unwrap();
    assert_eq!(read.metadata.id, 99);
    assert_eq!(read.queries[0].name.to_ascii(), "Www.eXample.test.");
    assert_eq!(read.answers[0].name.to_ascii(), "Www.eXample.test.");
    let ttls: Vec<u32> = read.answers.iter().map(|record| record.ttl).collect();
    assert_eq!(ttls, [200, 0]);
    assert_eq!(read.answers[1].data, message.answers[1].data);
    assert!(read.additionals.is_empty() && read.edns.is_some());
    // The reply to a client without EDNS has no OPT record.
    let reply = got.reply_to(&client(NAME, None), Duration::ZERO);
    assert!(Message::from_vec(&reply).unwrap().edns.is_none());
}

#[test]
fn large_replies_are_truncated() {
    let text = TXT::new(vec!["x".repeat(200); 4]);
    let record = Record::from_rdata(name(NAME), 60, RData::TXT(text));
    let asked = UpstreamQuery::new(NAME, RecordType::TXT, 7).unwrap();
    let got = asked
        .check_answer(&bytes(&answer(7, NAME, Kind::TXT, &[record])))
        .unwrap();
    assert!(!got.is_negative());
    let ask = |payload: Option<u16>| {
        let asked = query(99, NAME, Kind::TXT);
        let asked = payload.map_or_else(|| asked.clone(), |size| with_edns(asked.clone(), size));
        ClientQuery::parse(&bytes(&asked)).unwrap()
    };
    for (client, whole) in [
        (ask(None), false),
        (ask(Some(800)), false),
        (ask(Some(1232)), true),
        (ask(None).with_stream_limit(), true),
    ] {
        let reply = got.reply_to(&client, Duration::ZERO);
        assert!(reply.len() <= client.udp_limit());
        let read = Message::from_vec(&reply).unwrap();
        assert_eq!(read.metadata.truncation, !whole);
        assert_eq!(read.answers.len(), usize::from(whole));
    }
    let mut cut = answer(7, NAME, Kind::A, &[]);
    cut.metadata.truncation = true;
    let got = check(&cut).unwrap();
    assert!(got.is_truncated());
    let reply = got.reply_to(&client(NAME, None), Duration::ZERO);
    assert!(Message::from_vec(&reply).unwrap().metadata.truncation);
}

#[test]
fn cut_and_looping_messages_are_malformed() {
    let good = bytes(&answer(
        7,
        NAME,
        Kind::A,
        &[alias(NAME, 9, "b.test."), a("b.test.", 9, [1; 4])],
    ));
    assert_eq!(check_bytes(&good).unwrap().addresses().len(), 1);
    for len in 0..good.len() {
        let e = check_bytes(&good[..len]).unwrap_err();
        let question_end = 12 + NAME.len() + 1 + 4;
        assert_eq!(
            e == AnswerError::Malformed,
            len >= question_end || (2..12).contains(&len),
            "{len}: {e}"
        );
    }
    // The name of the first record points to itself, ahead, or into the header.
    let at = 12 + NAME.len() + 1 + 4;
    assert_eq!(good[at..at + 2], [0xc0, 12]);
    for to in [at as u8, at as u8 + 4, 0, 11] {
        let mut bad = good.clone();
        bad[at + 1] = to;
        assert_eq!(check_bytes(&bad), Err(AnswerError::Malformed), "{to}");
    }
    // A pointer to bytes before it, whose labels continue behind it.
    let behind = [
        &[0, 7, 0x81, 0, 0, 1, 0, 0, 0, 2, 0, 0][..],
        &good[12..at],
        &[0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 1, 2],
        &[4, 0xc0, 1, b'b', 14, 0xc0, at as u8 + 12, 0, 1, 0, 1],
        &[0; 9],
    ];
    assert_eq!(check_bytes(&behind.concat()), Err(AnswerError::Malformed));
    // The alias is shorter or longer than its record says.
    let mut bad = good.clone();
    bad[at + 12] = 0xc0;
    assert_eq!(check_bytes(&bad), Err(AnswerError::Malformed));
    let mut many = good;
    many[6..8].copy_from_slice(&2000_u16.to_be_bytes());
    assert_eq!(check_bytes(&many), Err(AnswerError::TooManyRecords));
}

#[test]
fn times_to_live_with_the_upper_bit_are_zero() {
    let got = check(&answer(7, NAME, Kind::A, &[a(NAME, 1 << 31, [1; 4])])).unwrap();
    assert_eq!(got.ttl(), Duration::ZERO);
}

proptest! {
    #[test]
    fn changed_answers_never_panic(changes in proptest::collection::vec((2_usize..90, any::<u8>()), 1..6)) {
        let mut message = bytes(&with_edns(answer(7, NAME, Kind::A, &[
            alias(NAME, 300, "b.test."),
            a("b.test.", 70, [192, 0, 2, 1]),
        ]), 1232));
        for (at, byte) in changes {
            if let Some(place) = message.get_mut(at) {
                *place = byte;
            }
        }
        if let Ok(got) = check_bytes(&message) {
            let reply = got.reply_to(&client(NAME, Some(1232)), Duration::from_secs(1));
            prop_assert!(reply.len() <= 1232);
        }
    }
}
