//! Complete connections of both sides, unrecognized clients, replays and hostile bytes.

use std::sync::Arc;

use adit_wire::codec_laws::{open_all, run_handshake, seal_all};
use adit_wire::{
    Entropy, Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, Open, Opened,
    ProtocolError, Seal, UnixTime,
};
use proptest::prelude::*;

use crate::*;

const NOW: UnixTime = UnixTime(1_700_000_000);
const KEY: &[u8] = b"0123456789abcdef";

/// A predictable generator: the same numbers in every run.
struct TestRng(u64);

impl Entropy for TestRng {
    fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            *byte = self.0.to_be_bytes()[0];
        }
    }
}

fn client(kind: ObfsKind, param: &str, key: &[u8], seed: u64) -> ClientState {
    let settings = ClientSettings {
        kind,
        param: &ObfsParam::parse(param).unwrap(),
        server: &"example.com:8388".parse().unwrap(),
        key,
        password: key,
        browser: Browser::Chrome,
        url_bytes: 46,
    };
    ClientState::new(&settings, &mut TestRng(seed)).unwrap()
}

fn server(kind: ObfsKind, strangers: UnrecognizedPolicy, param: &str) -> ServerState {
    let param = ObfsParam::parse(param).unwrap();
    let settings = settings(kind, strangers, &param);
    ServerState::new(&settings, &mut TestRng(1)).unwrap()
}

fn settings(
    kind: ObfsKind,
    strangers: UnrecognizedPolicy,
    param: &ObfsParam,
) -> ServerSettings<'_> {
    ServerSettings {
        kind,
        unrecognized: strangers,
        param,
        key: KEY,
        password: KEY,
        clock: Arc::new(NOW),
        started: NOW,
    }
}

/// Runs one more step of a handshake over its remaining bytes and `input`; returns its codecs, if
/// it is done.
fn step<H: Handshake<Output = Codecs, Error = ProtocolError>>(
    core: &mut H,
    held: &mut Vec<u8>,
    input: &[u8],
) -> (Option<Codecs>, Vec<u8>) {
    let mut sent = Vec::new();
    held.extend_from_slice(input);
    let mut rx = HandshakeInput::new(held);
    let done = match core
        .step(&mut rx, &mut HandshakeOutput::new(&mut sent))
        .unwrap()
    {
        HandshakeProgress::Done(codecs) => Some(codecs),
        HandshakeProgress::NeedMore { total } => {
            assert!(total > rx.bytes().len());
            None
        }
    };
    let eaten = rx.consumed();
    held.drain(..eaten);
    (done, sent)
}

fn pattern(n: usize) -> Vec<u8> {
    (0..n).map(|i| u8::try_from(i * 7 % 251).unwrap()).collect()
}

#[test]
fn every_kind_from_end_to_end() {
    for kind in ObfsKind::ALL {
        for seed in 0..20 {
            for (first, piece) in [(0, 1400), (13, 20_000), (100, 100), (60_000, usize::MAX)] {
                exchange(kind, seed, first, piece);
            }
        }
    }
}

fn exchange(kind: ObfsKind, seed: u64, first: usize, piece: usize) {
    let (mut near, mut far) = (Vec::new(), Vec::new());
    let mut rng = TestRng(seed);
    let state = client(kind, "a.com,b.com", KEY, seed);
    let mut client = state.clone().new_handshake(NOW, &mut rng);
    let mut server = server(kind, UnrecognizedPolicy::Refuse, "").new_handshake(&mut rng);

    let (mut ours, hello) = step(&mut client, &mut near, b"");
    let (mut theirs, mut answer) = (None, Vec::new());
    if !hello.is_empty() {
        (theirs, answer) = step(&mut server, &mut far, &hello);
    }
    if ours.is_none() {
        (ours, _) = step(&mut client, &mut near, &std::mem::take(&mut answer));
    }
    // A side that joins records is compatible with one that does not.
    let joined = |codecs: Option<Codecs>, yes: bool| match codecs.unwrap() {
        codecs if yes => codecs.with_joined_records(),
        codecs => codecs,
    };
    let mut ours = joined(ours, seed % 2 == 1);

    let question = pattern(first.max(13));
    let mut wire = Vec::new();
    if first == 0 {
        // An owed head can be sent alone.
        let owed = ours.seal.must_send_head();
        wire = seal_all(&mut ours.seal, b"", piece).unwrap();
        assert_eq!(owed, !wire.is_empty());
    }
    wire.extend(seal_all(&mut ours.seal, &question, piece).unwrap());
    assert!(ours.seal.has_steady_overhead() && !ours.seal.must_send_head());
    if theirs.is_none() {
        let late;
        (theirs, late) = step(&mut server, &mut far, &wire);
        answer.extend(late);
        wire.clear();
    }
    let mut theirs = joined(theirs, seed / 2 % 2 == 1);
    far.extend(wire);
    let (plain, left) = open_all(&mut theirs.open, &far, &[1000, 1, 70_000]).unwrap();
    assert!(plain == question && left == 0, "{kind} {seed} {first}");
    assert!(theirs.open.is_at_boundary(0));

    let reply = pattern(50_000);
    answer.extend(seal_all(&mut theirs.seal, &reply, piece).unwrap());
    near.extend(answer);
    let (plain, left) = open_all(&mut ours.open, &near, &[1, 999, 70_000]).unwrap();
    assert!(plain == reply && left == 0, "{kind} {seed} {first}");
    assert!(ours.open.is_at_boundary(0));
    let records = kind.overhead() > 0;
    assert!(ours.open.is_raw() != records && theirs.seal.is_raw() != records);
}

/// A side that joins records sends the same bytes, and opens received records as one payload.
#[test]
fn joined_records_are_the_same_on_the_wire() {
    for len in [1, 16_384, 16_385, 50_000, 65_536, 200_000] {
        let data = pattern(len);
        let sealed = |seal: &mut ObfsSeal| seal_all(seal, &data, usize::MAX).unwrap();
        let mut joined = ObfsSeal::new_records().with_joined_records();
        assert_eq!(joined.overhead().max_payload, 65_536);
        let mut wire = sealed(&mut joined);
        assert!(wire == sealed(&mut ObfsSeal::new_records()), "{len}");
        let opened = ObfsOpen::new_records()
            .with_joined_records()
            .open(&mut wire)
            .unwrap();
        let consumed = wire.len();
        let payload = 5..5 + len;
        assert_eq!(opened, Opened::Record { consumed, payload });
        assert!(wire[5..5 + len] == data, "{len}");
    }
}

/// Returns a client's first bytes and all bytes it sends until it has sent some data.
fn first_bytes(kind: ObfsKind, key: &[u8], now: UnixTime, seed: u64) -> Vec<u8> {
    let mut rng = TestRng(seed);
    let mut core = client(kind, "a.com", key, seed).new_handshake(now, &mut rng);
    let (codecs, mut sent) = step(&mut core, &mut Vec::new(), b"");
    if let Some(mut codecs) = codecs {
        sent.extend(seal_all(&mut codecs.seal, &pattern(100), 4096).unwrap());
    }
    sent
}

const KEYED: [ObfsKind; 3] = [
    ObfsKind::TicketAuth,
    ObfsKind::TicketFastAuth,
    ObfsKind::GoQuiet,
];

fn refusal(state: &ServerState, wire: &[u8]) -> Option<ProtocolError> {
    let mut core = state.new_handshake(&mut TestRng(3));
    match run_handshake(&mut core, wire, &[usize::MAX]) {
        Ok(_) => None,
        Err((why, sent)) => {
            assert!(sent.is_empty() || core.is_answered());
            Some(why)
        }
    }
}

#[test]
fn wrong_keys_times_and_replays_are_refused() {
    for kind in KEYED {
        let state = server(kind, UnrecognizedPolicy::Refuse, "");
        let good = first_bytes(kind, KEY, NOW, 5);
        assert_eq!(refusal(&state, &good), None);
        assert_eq!(refusal(&state, &good), Some(ProtocolError::Replayed));
        let other = first_bytes(kind, b"other", NOW, 6);
        assert_eq!(refusal(&state, &other), Some(ProtocolError::Unauthentic));
        let late = first_bytes(kind, KEY, UnixTime(NOW.0 + 90_000), 7);
        let why = match kind {
            ObfsKind::GoQuiet => ProtocolError::Unauthentic,
            _ => ProtocolError::Clock { skew: 90_000 },
        };
        assert_eq!(refusal(&state, &late), Some(why));
    }
    let lenient = server(ObfsKind::TicketAuth, UnrecognizedPolicy::Refuse, "0");
    let late = first_bytes(ObfsKind::TicketAuth, KEY, UnixTime(5), 7);
    assert_eq!(refusal(&lenient, &late), None);
    assert_eq!(refusal(&lenient, &late), Some(ProtocolError::Replayed));
}

#[test]
fn replays_are_refused_by_the_next_process() {
    let param = ObfsParam::default();
    for kind in KEYED {
        let before = server(kind, UnrecognizedPolicy::Refuse, "");
        let (early, late) = (
            first_bytes(kind, KEY, NOW, 5),
            first_bytes(kind, KEY, NOW, 6),
        );
        assert_eq!(refusal(&before, &early), None);
        let snapshot = before.snapshot().unwrap();
        let settings = settings(kind, UnrecognizedPolicy::Refuse, &param);
        let mut rng = TestRng(77);
        let after = ServerState::from_snapshot(&settings, snapshot.expose(), &mut rng).unwrap();
        assert_eq!(refusal(&after, &early), Some(ProtocolError::Replayed));
        assert_eq!(refusal(&before, &late), None);
        after
            .merge_snapshot(before.snapshot().unwrap().expose())
            .unwrap();
        assert_eq!(refusal(&after, &late), Some(ProtocolError::Replayed));
        assert_eq!(refusal(&after, &first_bytes(kind, KEY, NOW, 7)), None);
        // Or each hello is confirmed by the other state.
        let log = before.decision_log().unwrap();
        let hello = first_bytes(kind, KEY, NOW, 8);
        let (refused, entries) = log.observe(|| refusal(&before, &hello));
        assert_eq!(refused, None);
        assert_eq!(after.insert_logged(&entries[0]), Ok(()));
        let replayed = ProtocolError::Replayed;
        assert_eq!(refusal(&after, &hello), Some(replayed));
        assert_eq!(after.insert_logged(&entries[0]), Err(replayed));
        assert!(after.insert_logged(&[0; 9]).is_err());
        let other = ServerState::new(&settings, &mut rng).unwrap();
        assert!(other.merge_snapshot(snapshot.expose()).is_err());
    }
    let plain = server(ObfsKind::Plain, UnrecognizedPolicy::Refuse, "");
    assert!(plain.snapshot().is_none() && plain.decision_log().is_none());
    assert_eq!(plain.merge_snapshot(b""), Err(HelloRestoreError::Unused));
}

#[test]
fn a_refused_client_leaves_its_bytes_as_they_were() {
    for kind in ObfsKind::ALL.into_iter().skip(1) {
        let state = server(kind, UnrecognizedPolicy::Refuse, "other.com");
        for seed in [8, 9] {
            let mut wire = first_bytes(kind, b"wrong", NOW, seed);
            if kind == ObfsKind::RandomHead {
                wire.resize(103, 0);
                wire[0] ^= 1;
            }
            let seen = wire.clone();
            let mut core = state.new_handshake(&mut TestRng(3));
            let (mut rx, mut sent) = (HandshakeInput::new(&mut wire), Vec::new());
            assert!(
                core.step(&mut rx, &mut HandshakeOutput::new(&mut sent))
                    .is_err(),
                "{kind}"
            );
            assert!(rx.consumed() == 0 && rx.bytes() == seen && sent.is_empty());
            assert!(!core.is_answered());
            let rules = [RedirectRule::parse("w.com:443").unwrap()];
            assert!(RedirectRule::find_decoy(&rules, &seen, 443).is_some());
        }
    }
}

#[test]
fn strangers_are_passed_on_if_so_wished() {
    for kind in ObfsKind::ALL {
        let name = format!("{kind}_compatible");
        let Ok((kind, strangers)) = ObfsKind::parse_server_name(&name) else {
            continue;
        };
        let state = server(kind, strangers, "");
        for pieces in [&[1][..], &[usize::MAX]] {
            let input = pattern(200);
            let mut core = state.new_handshake(&mut TestRng(3));
            let (step, sent, held) = run_handshake(&mut core, &input, pieces).unwrap();
            let HandshakeProgress::Done(mut codecs) = step else {
                panic!("{kind}");
            };
            assert!(sent.is_empty() && codecs.seal.is_raw());
            assert_eq!(open_all(&mut codecs.open, &held, pieces), Ok((input, 0)));
        }
        // Too few bytes to decide: the caller's patience decides.
        let mut core = state.new_handshake(&mut TestRng(3));
        assert!(core.handle_timeout().is_ok());
        let mut core = server(kind, UnrecognizedPolicy::Refuse, "").new_handshake(&mut TestRng(3));
        assert!(core.handle_timeout().is_err());
    }
}

/// Every bit of the authenticated parts, on each side.
#[test]
fn flipped_bits_are_refused() {
    let kind = ObfsKind::TicketAuth;
    let (mut near, mut far) = (Vec::new(), Vec::new());
    let (shared, mut rng) = (client(kind, "a.com", KEY, 2), TestRng(2));
    let mut ours = shared.new_handshake(NOW, &mut rng);
    let (_, hello) = step(&mut ours, &mut near, b"");
    // From the record head to the session id; the rest of a hello has no tag.
    for bit in 0..76 * 8 {
        let state = server(kind, UnrecognizedPolicy::Refuse, "");
        let mut bad = hello.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let mut core = state.new_handshake(&mut TestRng(2));
        match run_handshake(&mut core, &bad, &[usize::MAX]) {
            Ok((HandshakeProgress::NeedMore { .. }, sent, _)) => assert!(sent.is_empty(), "{bit}"),
            Ok((HandshakeProgress::Done(_), ..)) => panic!("{bit}"),
            Err((_, sent)) => assert!(sent.is_empty()),
        }
    }
    let state = server(kind, UnrecognizedPolicy::Refuse, "");
    let (_, flight) = step(&mut state.new_handshake(&mut TestRng(2)), &mut far, &hello);
    let (codecs, _) = step(&mut ours, &mut near, &flight);
    let end = seal_all(&mut codecs.unwrap().seal, b"", 1).unwrap();
    for bit in 0..flight.len() * 8 {
        let mut bad = flight.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let mut core = shared.new_handshake(NOW, &mut TestRng(2));
        let step = run_handshake(&mut core, &bad, &[usize::MAX]);
        assert!(
            !matches!(step, Ok((HandshakeProgress::Done(_), ..))),
            "{bit}"
        );
    }
    for bit in 0..end.len() * 8 {
        let mut bad = [&hello[..], &end].concat();
        bad[hello.len() + bit / 8] ^= 1 << (bit % 8);
        let mut core = server(kind, UnrecognizedPolicy::Refuse, "").new_handshake(&mut TestRng(2));
        let step = run_handshake(&mut core, &bad, &[usize::MAX]);
        assert!(
            !matches!(step, Ok((HandshakeProgress::Done(_), ..))),
            "{bit}"
        );
        assert!(core.is_answered());
    }
}

#[test]
fn a_real_web_server_is_no_answer() {
    for kind in [ObfsKind::TicketAuth, ObfsKind::GoQuiet] {
        let mut answer = vec![0x16, 3, 3, 0, 0x51, 2, 0, 0, 0x4d, 3, 3];
        answer.resize(86, 9);
        for bytes in [
            &answer[..],
            b"\x15\x03\x03\x00\x02\x02\x28",
            b"HTTP/1.1 400 Bad",
        ] {
            let mut core = client(kind, "a.com", KEY, 1).new_handshake(NOW, &mut TestRng(1));
            let (why, _) = run_handshake(&mut core, bytes, &[usize::MAX]).unwrap_err();
            let told = matches!(
                why,
                ProtocolError::Unauthentic
                    | ProtocolError::Refused(_)
                    | ProtocolError::Malformed(_)
            );
            assert!(told, "{kind} {why}");
        }
    }
}

#[test]
fn seals_say_when_there_is_no_room() {
    for kind in ObfsKind::ALL {
        let mut core = client(kind, "a.com", KEY, 1).new_handshake(NOW, &mut TestRng(1));
        let (Some(mut codecs), _) = step(&mut core, &mut Vec::new(), b"") else {
            continue;
        };
        let room = codecs.seal.overhead();
        let mut record = vec![0; room.head + 100];
        for bad in [
            room.head.wrapping_sub(1)..100,
            room.head..room.head + 101,
            7..usize::MAX,
        ] {
            if bad.start < bad.end && (room.head > 0 || bad.end > 100) {
                assert!(codecs.seal.seal(&mut record, bad).is_err(), "{kind}");
            }
        }
        assert!(
            codecs
                .seal
                .seal(&mut record, room.head..room.head + 100)
                .is_ok()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any bytes, also after a valid beginning: no panic, no endless loop, bounded waits.
    #[test]
    fn hostile_bytes(
        kind in 0..ObfsKind::ALL.len(),
        cut in 0usize..700,
        noise in proptest::collection::vec(any::<u8>(), 0..400),
        piece in 1usize..200,
    ) {
        let kind = ObfsKind::ALL[kind];
        let mut wire = first_bytes(kind, KEY, NOW, 4);
        wire.truncate(cut);
        wire.extend_from_slice(&noise);
        let state = server(kind, UnrecognizedPolicy::Refuse, "");
        let whole = run_handshake(&mut state.new_handshake(&mut TestRng(1)), &wire, &[usize::MAX]);
        let state = server(kind, UnrecognizedPolicy::Refuse, "");
        let split = run_handshake(&mut state.new_handshake(&mut TestRng(1)), &wire, &[piece]);
        match (whole, split) {
            (Ok((HandshakeProgress::Done(mut a), sent, held)), Ok((HandshakeProgress::Done(mut b), same, rest))) => {
                prop_assert_eq!((sent, &held), (same, &rest));
                let whole = open_all(&mut a.open, &held, &[usize::MAX]).map(|(plain, _)| plain);
                let split = open_all(&mut b.open, &rest, &[piece]).map(|(plain, _)| plain);
                prop_assert_eq!(whole, split);
            }
            (Ok((HandshakeProgress::NeedMore { .. }, ..)), Ok((HandshakeProgress::NeedMore { .. }, ..))) => {}
            (Err((a, _)), Err((b, _))) => prop_assert_eq!(a, b),
            other => prop_assert!(false, "{:?}", other),
        }
        let mut core = client(kind, "a.com", KEY, 4).new_handshake(NOW, &mut TestRng(4));
        if let Ok((HandshakeProgress::Done(mut codecs), _, held)) = run_handshake(&mut core, &noise, &[piece]) {
            let _ = open_all(&mut codecs.open, &held, &[piece]);
        }
    }
}
