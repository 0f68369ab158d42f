//! The golden bytes, encoded and decoded, whole and in chunks.

use std::sync::Arc;

use adit_wire::codec_laws::{open_all, run_handshake};
use adit_wire::{FixedEntropy, HandshakeProgress, Seal, UnixTime};
use serde_json::Value;

use crate::http::{HttpMethod, RequestTemplate};
use crate::quiet::{self, HelloRandom, ProofKey, TICKET_LEN};
use crate::tls::sni_name;
use crate::*;

const SPLITS: [&[usize]; 4] = [&[usize::MAX], &[1], &[7, 1, 300], &[4096]];
/// The time of the recordings, and the dates that the recording server sent.
const NOW: UnixTime = UnixTime(1_700_000_000);
const DATED: UnixTime = UnixTime(1_795_230_340);

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn hex(value: &Value) -> Vec<u8> {
    let digit = |c: u8| u8::try_from((c as char).to_digit(16).unwrap()).unwrap();
    let pairs = text(value).as_bytes().chunks(2);
    pairs.map(|p| digit(p[0]) << 4 | digit(p[1])).collect()
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().unwrap()
}

/// Returns the raw number from which [`adit_wire::Entropy::between`] draws.
fn drawn(offset: usize) -> Vec<u8> {
    u64::try_from(offset).unwrap().to_le_bytes().to_vec()
}

struct Case {
    value: Value,
    kind: ObfsKind,
}

impl Case {
    /// The wire bytes of one direction, each with its plaintext.
    fn steps(&self, dir: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        let steps = self.value["steps"].as_array().unwrap().iter();
        let steps = steps.filter(|step| text(&step["dir"]) == dir);
        steps.map(|s| (hex(&s["wire"]), hex(&s["plain"]))).collect()
    }

    fn wire(&self, dir: &str) -> Vec<u8> {
        self.steps(dir).into_iter().flat_map(|(w, _)| w).collect()
    }

    fn plain(&self, dir: &str) -> Vec<u8> {
        self.steps(dir).into_iter().flat_map(|(_, p)| p).collect()
    }

    fn param(&self, side: &str) -> ObfsParam {
        ObfsParam::parse(text(&self.value[side])).unwrap()
    }

    fn server_addr(&self) -> adit_wire::Target {
        let (host, port) = (text(&self.value["server_host"]), &self.value["port"]);
        format!("{host}:{port}").parse().unwrap()
    }

    fn server(&self, rng: Vec<u8>) -> ServerHandshake {
        let is_http = matches!(self.kind, ObfsKind::HttpSimple | ObfsKind::HttpPost);
        let clock = if is_http { DATED } else { NOW };
        let settings = ServerSettings {
            kind: self.kind,
            unrecognized: UnrecognizedPolicy::Refuse,
            param: &self.param("server_obfs_param"),
            key: &hex(&self.value["key"]),
            password: b"",
            clock: Arc::new(clock),
            started: NOW,
        };
        let state = ServerState::new(&settings, &mut FixedEntropy::default()).unwrap();
        state.new_handshake(&mut FixedEntropy::new(rng))
    }

    fn client(&self, shared: Vec<u8>, own: Vec<u8>) -> ClientHandshake {
        let settings = ClientSettings {
            kind: self.kind,
            param: &self.param("client_obfs_param"),
            server: &self.server_addr(),
            key: &hex(&self.value["key"]),
            password: b"",
            browser: Browser::Chrome,
            url_bytes: 46,
        };
        let state = ClientState::new(&settings, &mut FixedEntropy::new(shared)).unwrap();
        state.new_handshake(NOW, &mut FixedEntropy::new(own))
    }
}

fn cases(kinds: &[ObfsKind]) -> Vec<Case> {
    let all: Value = serde_json::from_str(include_str!("../vectors/obfs.json")).unwrap();
    let cases = all.as_array().unwrap().iter().map(|value| Case {
        kind: text(&value["name"]).parse().unwrap(),
        value: value.clone(),
    });
    let cases: Vec<Case> = cases.filter(|case| kinds.contains(&case.kind)).collect();
    assert!(!cases.is_empty());
    cases
}

/// Runs a server over all bytes of a client; returns its answer and the opened data.
fn serve(mut core: ServerHandshake, wire: &[u8], pieces: &[usize]) -> (Vec<u8>, Vec<u8>, Codecs) {
    let (step, sent, held) = run_handshake(&mut core, wire, pieces).unwrap();
    let HandshakeProgress::Done(mut codecs) = step else {
        panic!("{step:?}");
    };
    let (plain, left) = open_all(&mut codecs.open, &held, pieces).unwrap();
    assert_eq!(left, 0);
    (sent, plain, codecs)
}

/// Does the same for a client.
fn connect(mut core: ClientHandshake, wire: &[u8], pieces: &[usize]) -> (Vec<u8>, Vec<u8>, Codecs) {
    let (step, sent, held) = run_handshake(&mut core, wire, pieces).unwrap();
    let HandshakeProgress::Done(mut codecs) = step else {
        panic!("{step:?}");
    };
    let (plain, left) = open_all(&mut codecs.open, &held, pieces).unwrap();
    assert_eq!(left, 0);
    (sent, plain, codecs)
}

fn seal(seal: &mut ObfsSeal, plain: &[u8]) -> Vec<u8> {
    let head = seal.overhead().head;
    let mut record = [&vec![0; head][..], plain].concat();
    let range = seal.seal(&mut record, head..head + plain.len()).unwrap();
    record[range].to_vec()
}

/// Seals in records as long as those of `wire`, which contains only records.
fn seal_like(codec: &mut ObfsSeal, wire: &[u8], mut plain: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), wire);
    while let Some(len) = rest.get(3..5) {
        let len = usize::from(u16::from_be_bytes([len[0], len[1]]));
        out.extend(seal(codec, &plain[..len]));
        plain = &plain[len..];
        rest = &rest[5 + len..];
    }
    out
}

#[test]
fn http() {
    for case in cases(&[ObfsKind::HttpSimple, ObfsKind::HttpPost]) {
        let (sent, answers) = (case.steps("c2s"), case.steps("s2c"));
        for pieces in SPLITS {
            let (_, plain, mut codecs) = serve(case.server(vec![]), &case.wire("c2s"), pieces);
            assert_eq!(plain, case.plain("c2s"));
            for (wire, plain) in &answers {
                assert_eq!(seal(&mut codecs.seal, plain), *wire);
            }
            let (hello, plain, _) = connect(case.client(vec![], vec![]), &case.wire("s2c"), pieces);
            assert_eq!((hello, plain), (vec![], case.plain("s2c")));
        }
        let verb = match case.kind {
            ObfsKind::HttpPost => HttpMethod::Post,
            _ => HttpMethod::Get,
        };
        let param = case.param("client_obfs_param");
        let mut rng = FixedEntropy::default();
        let requests = RequestTemplate::new(verb, &param, &case.server_addr(), 46, &mut rng);
        let agent = "Mozilla/5.0 (Windows NT 6.3; WOW64; rv:40.0) Gecko/20100101 Firefox/40.0";
        let draws =
            usize::from(param.hosts().len() > 1) + 32 * usize::from(verb == HttpMethod::Post);
        let rng = [vec![0; 8 * draws], drawn(78 - 46)].concat();
        let request = requests
            .with_agent(agent)
            .new_head(&mut FixedEntropy::new(rng));
        let mut codec = ObfsSeal::with_request_head(request);
        for (wire, plain) in &sent {
            assert_eq!(seal(&mut codec, plain), *wire);
        }
    }
}

#[test]
fn random_head() {
    for case in cases(&[ObfsKind::RandomHead]) {
        let (sent, answers) = (case.steps("c2s"), case.steps("s2c"));
        let (hello, answer) = (&sent[0].0, &answers[0].0);
        let own = [&drawn(hello.len() - 8)[..], &hello[..hello.len() - 4]].concat();
        let theirs = [&drawn(answer.len() - 4)[..], answer].concat();
        for pieces in SPLITS {
            let (reply, plain, _) = serve(case.server(theirs.clone()), &case.wire("c2s"), pieces);
            assert_eq!((&reply, plain), (answer, case.plain("c2s")));
        }
        // A client first takes all received bytes for the head.
        let (hi, plain, mut codecs) = connect(case.client(vec![], own), answer, &[usize::MAX]);
        assert_eq!((&hi, plain), (hello, vec![]));
        let rest: Vec<u8> = answers[1..].iter().flat_map(|(w, _)| w.clone()).collect();
        let (plain, _) = open_all(&mut codecs.open, &rest, &[1, 5000]).unwrap();
        assert_eq!(plain, case.plain("s2c"));
        for (wire, plain) in [(&sent[1].0, &sent[0].1), (&sent[2].0, &sent[2].1)] {
            assert_eq!(seal(&mut codecs.seal, plain), *wire);
        }
    }
}

#[test]
fn ticket_auth() {
    for case in cases(&[ObfsKind::TicketAuth]) {
        let (sent, answers) = (case.steps("c2s"), case.steps("s2c"));
        let (hello, flight, end) = (&sent[0].0, &answers[0].0, &sent[1].0);
        // The random numbers of the peer, from its bytes.
        let name = sni_name(text(&case.value["client_obfs_param"])).len();
        let ticket_at = 76 + 32 + 2 + 5 + 9 + name + 4 + 2;
        let len = usize::from(u16::from_be_bytes(array(&hello[ticket_at..])));
        let ticket = &hello[ticket_at + 2..ticket_at + 2 + len];
        let id = hex(&case.value["client_id"]);
        let shared = [&id[..], &drawn(len / 16 - 8), ticket].concat();
        let own = [&hello[15..33], &end[11..33]].concat();
        let theirs = [&flight[15..33], &drawn(1), &drawn(0), &flight[97..119]].concat();
        for pieces in SPLITS {
            let server = case.server(theirs.clone());
            let (reply, plain, mut codecs) = serve(server, &case.wire("c2s"), pieces);
            assert_eq!((&reply, plain), (flight, case.plain("c2s")));
            for (wire, plain) in &answers[1..] {
                assert_eq!(seal_like(&mut codecs.seal, wire, plain), *wire);
            }
            let client = case.client(shared.clone(), own.clone());
            let (hi, plain, mut codecs) = connect(client, &case.wire("s2c"), pieces);
            assert_eq!((&hi, plain), (hello, case.plain("s2c")));
            assert!(codecs.seal.must_send_head());
            assert_eq!(seal(&mut codecs.seal, &sent[0].1), *end);
            let (wire, plain) = &sent[2];
            assert_eq!(seal_like(&mut codecs.seal, wire, plain), *wire);
        }
        // The same bytes without the wait.
        let kind = ObfsKind::TicketFastAuth;
        let fast = Case {
            value: case.value.clone(),
            kind,
        };
        for pieces in SPLITS {
            let client = fast.client(shared.clone(), own.clone());
            let (hi, plain, mut codecs) = connect(client, &case.wire("s2c"), pieces);
            assert_eq!((&hi, plain), (hello, case.plain("s2c")));
            assert_eq!(seal(&mut codecs.seal, &sent[0].1), *end);
        }
    }
}

fn go_quiet_vectors() -> Value {
    serde_json::from_str(include_str!("../vectors/go_quiet.json")).unwrap()
}

fn quiet_server(key: &str, now: u64) -> ServerHandshake {
    let settings = ServerSettings {
        kind: ObfsKind::GoQuiet,
        unrecognized: UnrecognizedPolicy::Refuse,
        param: &ObfsParam::default(),
        key: b"",
        password: key.as_bytes(),
        clock: Arc::new(UnixTime(now)),
        started: UnixTime(now),
    };
    let state = ServerState::new(&settings, &mut FixedEntropy::default()).unwrap();
    state.new_handshake(&mut FixedEntropy::default())
}

#[test]
fn go_quiet_random_fields() {
    let vectors = go_quiet_vectors();
    for case in vectors["random_field"].as_array().unwrap() {
        let key = ProofKey::new(text(&case["key"]).as_bytes()).unwrap();
        let now = UnixTime(case["time"].as_u64().unwrap());
        let field = key.make_proof(array(&hex(&case["iv"])), now);
        assert_eq!(field.to_vec(), hex(&case["random"]));
        assert_eq!(key.check_proof(&field, now), Ok(()));
    }
}

#[test]
fn go_quiet_clients_of_others() {
    let vectors = go_quiet_vectors();
    for case in vectors["captures"].as_array().unwrap() {
        let (hello, reply) = (hex(&case["client_hello"]), hex(&case["server_reply"]));
        let (end, data) = (hex(&case["client_finish"]), hex(&case["first_data"]));
        let (key, now) = (text(&case["key"]), case["time"].as_u64().unwrap());
        let wire = [&hello[..], &end, &data].concat();
        for pieces in SPLITS {
            let (sent, plain, mut codecs) = serve(quiet_server(key, now), &wire, pieces);
            assert_eq!((sent, &plain[..]), (reply.clone(), &b"first payload"[..]));
            assert_eq!(seal(&mut codecs.seal, &plain), data);
        }
        // Our own side of the same connection.
        let chrome = text(&case["browser"]) == "chrome";
        let find = |what: &[u8]| hello.windows(what.len()).position(|at| at == what).unwrap();
        let ticket = find(&[0, 0x23, 0, 0xc0]) + 4;
        let rng = HelloRandom {
            session: array(&hello[44..]),
            grease: match chrome {
                true => [
                    hello[110],
                    hello[find(&[0, 0x0a, 0, 0x0a, 0, 8]) + 6],
                    hello[find(&[0, 1, 0, 0, 0x15]) - 1],
                ],
                false => [0; 3],
            },
        };
        let proof = ProofKey::new(key.as_bytes()).unwrap();
        let ours = quiet::GoQuietHello {
            browser: if chrome {
                Browser::Chrome
            } else {
                Browser::Firefox
            },
            random: proof.make_proof(array(&hello[11..]), UnixTime(now)),
            rng: &rng,
            name: text(&case["server_name"]),
            ticket: &array::<TICKET_LEN>(&hello[ticket..]),
        };
        assert_eq!(ours.encode(), hello);
        let done = Ok(HandshakeProgress::Done(reply.len()));
        assert_eq!(quiet::read_answer(&reply, &rng.session), done);
        let mut codec = ObfsSeal::records_after(quiet::client_end(&array(&end[11..])));
        assert_eq!(seal(&mut codec, b""), end);
        assert_eq!(seal(&mut codec, b"first payload"), data);
    }
}

#[test]
fn go_quiet_least_hello() {
    let case = &go_quiet_vectors()["server"];
    let hello = hex(&case["client_hello"]);
    let now = case["time"].as_u64().unwrap();
    let mut core = quiet_server("exampleconftest", now);
    let (step, sent, held) = run_handshake(&mut core, &hello, &[1]).unwrap();
    assert!(matches!(step, HandshakeProgress::NeedMore { .. }) && held.is_empty());
    let mut rest = &sent[..];
    for head in case["reply_layout"].as_array().unwrap() {
        let head = hex(head);
        assert_eq!(rest[..5], head);
        rest = &rest[5 + usize::from(head[4])..];
    }
    assert!(rest.is_empty() && core.is_answered());
}
