//! Both sides of SSH's transport with an attacker in between who alters, adds and removes bytes, or
//! one side against a peer that has the keys and sends anything: no panic, output and events stay
//! bounded, and under strict key exchange, the data that arrives is the data that was sent.

#![no_main]

use std::sync::{Arc, LazyLock};

use adit_fuzz::{ActionScript, SeededRng, alter_byte};
use adit_ssh_proto::SshError;
use adit_ssh_proto::algorithm::{
    AlgorithmPreferences, Cipher, Compression, CpuFeatures, Kex, KeyAlgorithm, Mac,
};
use adit_ssh_proto::key::{KeySet, KeyType, PrivateKey, Signer};
use adit_ssh_proto::packet::Sealer;
use adit_ssh_proto::transport::{Event, OpenStep, StrictKex, Transport, TransportConfig};
use adit_wire::Time;
use libfuzzer_sys::fuzz_target;

/// An upper bound of the answer to one input of a fuzzer.
const MAX_OUTPUT: usize = 8 << 20;

static HOST_KEY: LazyLock<Arc<KeySet>> = LazyLock::new(|| {
    let key = PrivateKey::generate(KeyType::Ed25519, &mut SeededRng(1)).expect("a key");
    Arc::new(KeySet::from(vec![key]))
});

/// One side.
struct TransportEnd {
    transport: Transport,
    inbox: Vec<u8>,
    /// Payloads that it sent, in order.
    sent: Vec<Vec<u8>>,
    received: Vec<Vec<u8>>,
    /// True if the application rejects the host key.
    rejects: bool,
    ready: bool,
    failure: Option<SshError>,
}

impl TransportEnd {
    fn new(transport: Transport, rejects: bool) -> Self {
        Self {
            transport,
            inbox: Vec::new(),
            sent: Vec::new(),
            received: Vec::new(),
            rejects,
            ready: false,
            failure: None,
        }
    }

    fn send_payload(&mut self, payload: &[u8]) {
        if !payload.is_empty() && self.transport.send(payload).is_ok() {
            self.sent.push(payload.to_vec());
        }
    }

    fn handle_bytes(&mut self, bytes: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        self.inbox.extend_from_slice(bytes);
        while self.open_next_packet() {
            self.handle_events();
        }
        self.handle_events();
        assert!(self.transport.take_output().len() <= MAX_OUTPUT);
    }

    /// Returns false when there is nothing more to open.
    fn open_next_packet(&mut self) -> bool {
        let consumed = match self.transport.open_next(&mut self.inbox) {
            Ok(OpenStep::NeedMore { total }) => {
                assert!(total > self.inbox.len(), "it waits for bytes that it has");
                return false;
            }
            Ok(OpenStep::Consumed { consumed }) => consumed,
            Ok(OpenStep::Payload { consumed, payload }) => {
                let payload = self.transport.payload(&self.inbox, &payload);
                assert!(!payload.is_empty());
                assert!(
                    self.transport.session_id().is_some(),
                    "a payload without keys"
                );
                self.received.push(payload.to_vec());
                consumed
            }
            Ok(OpenStep::Blocked) => {
                self.handle_events();
                // Answered now, or failed.
                return self.failure.is_none();
            }
            Err(why) => {
                assert_eq!(self.transport.open_next(&mut self.inbox), Err(why.clone()));
                assert!(!self.transport.is_writable());
                self.failure = Some(why);
                return false;
            }
        };
        assert!(consumed > 0 && consumed <= self.inbox.len());
        self.inbox.drain(..consumed);
        true
    }

    fn handle_events(&mut self) {
        let mut events = 0;
        while let Some(event) = self.transport.poll_event() {
            events += 1;
            assert!(events <= 80, "too many events");
            match event {
                Event::HostKey { algorithm, blob } => {
                    assert_eq!(
                        blob,
                        HOST_KEY.public_blob(algorithm),
                        "an unproven host key"
                    );
                    if self.rejects {
                        self.transport.reject_host_key();
                        self.failure = Some(SshError::Policy("rejected"));
                    } else if let Err(why) = self.transport.accept_host_key() {
                        self.failure = Some(why);
                    }
                }
                Event::Ready(_) => self.ready = true,
                Event::Debug(text) => assert!(text.bytes().all(|b| (b' '..=b'~').contains(&b))),
                _ => {}
            }
        }
    }
}

fn read_config(script: &mut ActionScript<'_>) -> TransportConfig {
    let (flags, strict) = (script.read_u8(), script.read_below(4));
    let mut names = AlgorithmPreferences::for_machine(CpuFeatures {
        aes: flags & 1 != 0,
        clmul: flags & 2 != 0,
    });
    // The cheap methods: for the transport, the others are equivalent.
    names.kex = match script.read_below(4) {
        0 => vec![Kex::EcdhP256, Kex::Curve25519],
        1 => vec![Kex::MlKem768X25519, Kex::Curve25519],
        _ => vec![Kex::Curve25519],
    };
    names.host_key = vec![KeyAlgorithm::Ed25519];
    if flags & 4 != 0 {
        names.cipher = vec![script.pick_one(Cipher::ALL), Cipher::Aes128Gcm];
        names.mac = vec![script.pick_one(Mac::ALL), Mac::HmacSha256];
    }
    names.compression = vec![script.pick_one(Compression::ALL), Compression::None];
    let mut config = TransportConfig::new(names);
    config.strict = match strict {
        0 => StrictKex::Never,
        1 => StrictKex::Always,
        _ => StrictKex::WhenExposed,
    };
    if flags & 8 != 0 {
        config.rekey_bytes = Some(1);
    }
    if flags & 16 != 0 {
        config.rekey_packets = 12;
    }
    config.max_queue = 50_000;
    config.max_unsent = 200_000;
    config
}

fn new_ends(script: &mut ActionScript<'_>) -> (TransportEnd, TransportEnd) {
    let (ours, theirs) = (read_config(script), read_config(script));
    let client = Transport::new_client(Arc::new(ours), Box::new(SeededRng(2))).expect("a name");
    let signer: Arc<dyn Signer> = Arc::clone(&*HOST_KEY) as _;
    let server =
        Transport::new_server(Arc::new(theirs), signer, Box::new(SeededRng(3))).expect("a name");
    let rejects = script.read_u8() == 255;
    (
        TransportEnd::new(client, rejects),
        TransportEnd::new(server, false),
    )
}

/// Passes bytes from `from` to `to`, as the script says. Returns true if they were unchanged.
fn carry_bytes(
    script: &mut ActionScript<'_>,
    from: &mut TransportEnd,
    to: &mut TransportEnd,
) -> bool {
    let mut said = core::mem::take(from.transport.take_output());
    match script.read_u8() {
        0 if !said.is_empty() => {
            alter_byte(&mut said, script.read_u16(), script.read_u8());
        }
        // An attacker can send up to this many bytes in the clear.
        1 => {
            let mut added = Vec::new();
            if Sealer::new().seal(script.read_bytes(), &mut added).is_err() {
                to.handle_bytes(&said);
                return true;
            }
            if script.read_flag() {
                said.splice(0..0, added);
            } else {
                said.append(&mut added);
            }
        }
        2 if !said.is_empty() => {
            let at = usize::from(script.read_u16()) % said.len();
            let end = at.saturating_add(usize::from(script.read_u16()) + 1);
            said.drain(at..end.min(said.len()));
        }
        3 => said
            .splice(0..0, script.read_bytes().iter().copied())
            .for_each(drop),
        pieces => {
            let size = usize::from(pieces)
                .saturating_sub(3)
                .saturating_mul(9)
                .max(1);
            said.chunks(size).for_each(|piece| to.handle_bytes(piece));
            return true;
        }
    }
    to.handle_bytes(&said);
    false
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    let (mut client, mut server) = new_ends(&mut script);
    let (mut intact, mut now) = (true, 0u64);
    let mut turns = 0;
    while !script.is_empty() && turns < 200 {
        turns += 1;
        let (one, other) = match script.read_flag() {
            true => (&mut client, &mut server),
            false => (&mut server, &mut client),
        };
        match script.read_u8() % 8 {
            // A message of a higher layer, which has no meaning here.
            0 => {
                let payload = [&[94], script.read_bytes()].concat();
                one.send_payload(&payload.repeat(if script.read_flag() { 1 } else { 20 }));
            }
            // Arbitrary messages of a peer that has the keys.
            1 => {
                let payload = script.read_bytes();
                let harmless = payload
                    .first()
                    .is_some_and(|n| matches!(n, 52 | 53 | 80..=127));
                intact &= harmless || payload.is_empty();
                one.send_payload(payload);
            }
            2 => {
                let _ = one.transport.rekey();
            }
            3 => {
                now += u64::from(script.read_u8()) * 1_000_000;
                let _ = one.transport.poll_timeout(Time(now));
                intact &= one.transport.handle_timeout(Time(now)).is_ok();
            }
            4 => {
                if let Some(mut writer) = one.transport.begin_payload() {
                    let payload = script.read_bytes();
                    writer.buf_mut().push(94);
                    writer.buf_mut().extend_from_slice(payload);
                    if script.read_flag() && writer.seal_payload().is_ok() {
                        one.sent.push([&[94], payload].concat());
                    }
                }
            }
            _ => intact &= carry_bytes(&mut script, one, other),
        }
    }
    // An undisturbed exchange completes, unless the two sides have no method in common.
    if intact && client.failure.is_none() && server.failure.is_none() {
        for _ in 0..400 {
            let up = core::mem::take(client.transport.take_output());
            server.handle_bytes(&up);
            let down = core::mem::take(server.transport.take_output());
            client.handle_bytes(&down);
            if up.is_empty() && down.is_empty() {
                break;
            }
        }
        let fine = client.failure.is_none() && server.failure.is_none();
        if fine && client.ready && server.ready {
            assert_eq!(client.transport.session_id(), server.transport.session_id());
            assert!(client.transport.is_writable() && server.transport.is_writable());
            assert!(client.received == server.sent && server.received == client.sent);
        }
    }
    // Altered bytes are never delivered: under strict key exchange, the delivered payloads are the
    // beginning of those that were sent.
    if client.transport.is_strict() && server.transport.is_strict() {
        for (from, to) in [(&client, &server), (&server, &client)] {
            let visible = |payload: &&Vec<u8>| matches!(payload.first(), Some(5 | 6 | 50..=127));
            let mut sent = from.sent.iter().filter(visible);
            assert!(to.received.iter().all(|heard| sent.next() == Some(heard)));
        }
    }
});
