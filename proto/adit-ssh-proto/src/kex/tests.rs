//! Both sides of each method against each other, and against messages of a hostile peer.

use adit_wire::{Entropy, FixedEntropy, Role};
use proptest::prelude::*;

use super::*;
use crate::algorithm::{
    AlgorithmPreferences, Cipher, Compression, CpuFeatures, Kex, KeyAlgorithm, Mac,
};
use crate::wire::{MessageReader, SshBufMut};
use crate::{SshError, msg};

/// Pseudo-random bytes.
pub(crate) struct TestRng(pub(crate) u64);

impl Entropy for TestRng {
    fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *byte = (self.0 >> 56) as u8;
        }
    }
}

pub(crate) fn preferred() -> AlgorithmPreferences {
    AlgorithmPreferences::for_machine(CpuFeatures {
        aes: true,
        clmul: true,
    })
}

/// Runs `kex`; returns the results of the client and the server.
fn run(kex: Kex) -> (ServerKexReply, KexSecret) {
    let (mut a, mut b) = (TestRng(1), TestRng(2));
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let mut client = ClientKex::start(kex, &mut a, &mut up).unwrap();
    let mut server = ServerKex::new(kex);
    for _ in 0..2 {
        let answer = server
            .handle_input(&core::mem::take(&mut up), &mut b, &mut down)
            .unwrap();
        if let Some(answer) = &answer {
            answer
                .reply
                .write_payload(b"host key", b"signature", &mut down);
        }
        let reply = client
            .handle_input(&core::mem::take(&mut down), &mut a, &mut up)
            .unwrap();
        if let (Some(answer), Some(reply)) = (answer, reply) {
            return (reply, answer.agreed);
        }
    }
    panic!("the method did not end");
}

#[test]
fn both_sides_agree_in_every_method() {
    for kex in Kex::ALL {
        let (reply, server) = run(*kex);
        assert_eq!(
            (&*reply.host_key, &*reply.signature),
            (&b"host key"[..], &b"signature"[..])
        );
        assert_eq!(reply.agreed.transcript, server.transcript, "{kex}");
        assert!(reply.agreed.secret == server.secret, "{kex}");
        let mut r = MessageReader::new(server.secret.expose(), "K");
        let len = r.read_string().unwrap().len();
        assert!(r.expect_end().is_ok() && len >= 30, "{kex}: {len}");
    }
}

/// A value that is altered, truncated or of another method never panics, and never yields the
/// peer's secret.
#[test]
fn values_of_a_hostile_client() {
    for kex in Kex::ALL.iter().filter(|kex| **kex != Kex::GroupExchange) {
        let mut good = Vec::new();
        ClientKex::start(*kex, &mut TestRng(1), &mut good).unwrap();
        let serve = |payload: &[u8]| {
            ServerKex::new(*kex).handle_input(payload, &mut TestRng(2), &mut Vec::new())
        };
        assert!(serve(&good).is_ok(), "{kex}");
        let value = good[5..].to_vec();
        let with = |value: &[u8]| {
            let mut payload = vec![msg::KEX_INIT];
            payload.put_string(value);
            payload
        };
        for bad in [
            vec![],
            vec![msg::KEX_INIT],
            good[..good.len() - 1].to_vec(),
            [&good[..], &[0]].concat(),
        ] {
            assert!(serve(&bad).is_err(), "{kex}");
        }
        let cut = if has_numbers(*kex) {
            0..0
        } else {
            1..value.len()
        };
        for bad in [
            &[][..],
            &[0],
            &[4],
            &value[cut],
            &vec![0; value.len()],
            &vec![0xff; 5000],
        ] {
            assert!(serve(&with(bad)).is_err(), "{kex}: {}", bad.len());
        }
        assert_eq!(
            serve(&[&[msg::KEX_REPLY], &good[1..]].concat()).err(),
            Some(SshError::Unexpected(31))
        );
    }
}

#[test]
fn values_of_a_hostile_server() {
    for kex in Kex::ALL.iter().filter(|kex| **kex != Kex::GroupExchange) {
        let mut init = Vec::new();
        ClientKex::start(*kex, &mut TestRng(1), &mut init).unwrap();
        let mut server = ServerKex::new(*kex);
        let answer = server
            .handle_input(&init, &mut TestRng(2), &mut Vec::new())
            .unwrap()
            .unwrap();
        let mut written = Vec::new();
        answer.reply.write_payload(b"", b"", &mut written);
        // Message number, an empty host key, the length of the value, …, an empty signature.
        let value = written[9..written.len() - 4].to_vec();
        let cut = if has_numbers(*kex) {
            0..0
        } else {
            1..value.len()
        };
        for bad in [
            &[][..],
            &[0],
            &value[cut],
            &vec![0; value.len()],
            &vec![0xff; 5000],
        ] {
            let mut client = ClientKex::start(*kex, &mut TestRng(1), &mut Vec::new()).unwrap();
            let mut payload = vec![msg::KEX_REPLY];
            payload.put_string(b"host key");
            payload.put_string(bad);
            payload.put_string(b"signature");
            assert!(
                client
                    .handle_input(&payload, &mut TestRng(3), &mut Vec::new())
                    .is_err(),
                "{kex}"
            );
            // Nothing is accepted after a failure.
            let again = client.handle_input(&payload, &mut TestRng(3), &mut Vec::new());
            assert_eq!(again.err(), Some(SshError::Unexpected(31)));
        }
    }
}

#[test]
fn groups_of_a_hostile_server() {
    for (prime, generator) in [
        (vec![0xff; 128], vec![2]),
        (vec![0xff; 1025], vec![2]),
        (vec![0xff; 256], vec![1]),
        (vec![], vec![]),
        (vec![0xfe; 256], vec![2]),
    ] {
        let mut client =
            ClientKex::start(Kex::GroupExchange, &mut TestRng(1), &mut Vec::new()).unwrap();
        let mut payload = vec![msg::KEX_REPLY];
        payload.put_mpint(&prime);
        payload.put_mpint(&generator);
        let out = client.handle_input(&payload, &mut TestRng(1), &mut Vec::new());
        assert!(matches!(out, Err(SshError::Kex(_))));
    }
}

/// True if the method's values are numbers, which remain valid when truncated.
fn has_numbers(kex: Kex) -> bool {
    kex.name().starts_with("diffie-hellman")
}

fn offer(change: impl FnOnce(&mut AlgorithmPreferences), markers: &[&'static str]) -> Vec<u8> {
    let (mut names, mut out) = (preferred(), Vec::new());
    change(&mut names);
    write_kexinit(&names, markers, [7; 16], &mut out);
    out
}

fn agree(client: &[u8], server: &[u8]) -> Result<Negotiated, SshError> {
    let (c, s) = (
        KexInit::parse(client).unwrap(),
        KexInit::parse(server).unwrap(),
    );
    let at_server = negotiate(Role::Server, &s, &c);
    let at_client = negotiate(Role::Client, &c, &s);
    assert_eq!(at_client.is_ok(), at_server.is_ok());
    if at_client.is_ok() {
        assert_eq!(at_client, at_server);
    }
    at_client
}

/// For a peer that has UMAC over the plaintext only.
#[test]
fn plain_umac_goes_before_hmac_over_ciphertext() {
    let client = offer(|p| p.cipher = vec![Cipher::Aes128Ctr], &[]);
    let macs = vec![Mac::HmacSha256Etm, Mac::HmacSha256, Mac::Umac64];
    let server = offer(|p| p.mac = macs, &[]);
    let chosen = agree(&client, &server).unwrap();
    assert_eq!(chosen.server_to_client.mac, Some(Mac::Umac64));
}

#[test]
fn the_clients_order_decides() {
    let client = offer(
        |p| p.cipher = vec![Cipher::Aes256Ctr, Cipher::Aes128Gcm],
        &[],
    );
    let server = offer(|_| (), &[]);
    let chosen = agree(&client, &server).unwrap();
    assert_eq!(chosen.client_to_server.cipher, Cipher::Aes256Ctr);
    assert_eq!(chosen.client_to_server.mac, Some(Mac::Umac64Etm));
    assert_eq!(chosen.kex, Kex::MlKem768X25519);
    assert_eq!(chosen.host_key, KeyAlgorithm::Ed25519Cert);
    let chosen = agree(&server, &client).unwrap();
    assert_eq!(
        (chosen.server_to_client.cipher, chosen.server_to_client.mac),
        (Cipher::Aes128Gcm, None)
    );
    assert!(
        chosen
            .to_string()
            .contains("aes128-gcm@openssh.com, its own tag, none")
    );
}

/// Each direction is independent: the lists differ only from the server to the client.
#[test]
fn directions_are_chosen_apart() {
    let client = offer(|_| (), &[]);
    let mut server = vec![msg::KEXINIT];
    server.put_raw(&[0; 16]);
    for names in [
        "curve25519-sha256",
        "ssh-ed25519",
        "aes256-ctr",
        "chacha20-poly1305@openssh.com",
        "hmac-sha2-512",
        "none-known",
        "zlib@openssh.com,none",
        "zlib@openssh.com",
        "",
        "",
    ] {
        server.put_names([names]);
    }
    server.put_bool(false);
    server.put_u32(0);
    let chosen = agree(&client, &server).unwrap();
    assert_eq!(
        chosen.client_to_server,
        DirectionAlgorithms {
            cipher: Cipher::Aes256Ctr,
            mac: Some(Mac::HmacSha512),
            compression: Compression::None
        }
    );
    assert_eq!(
        chosen.server_to_client,
        DirectionAlgorithms {
            cipher: Cipher::ChaCha20Poly1305,
            mac: None,
            compression: Compression::ZlibDelayed
        }
    );
}

#[test]
fn nothing_in_common_tells_both() {
    let client = offer(|p| p.mac = vec![Mac::Umac64], &[]);
    let ctr = |mac| {
        move |p: &mut AlgorithmPreferences| (p.cipher, p.mac) = (vec![Cipher::Aes128Ctr], vec![mac])
    };
    let server = offer(ctr(Mac::HmacSha256), &[]);
    let Err(SshError::NoCommon { what, ours, theirs }) = agree(&client, &server) else {
        panic!()
    };
    assert_eq!(
        (what, &*ours, &*theirs),
        (
            "MAC (client to server)",
            "umac-64@openssh.com",
            "hmac-sha2-256"
        )
    );
    let only = |kex| move |p: &mut AlgorithmPreferences| p.kex = vec![kex];
    let (a, b) = (
        offer(only(Kex::Group14), &[STRICT_CLIENT, EXT_INFO_CLIENT]),
        offer(only(Kex::Group16), &[STRICT_CLIENT, EXT_INFO_CLIENT]),
    );
    assert!(
        matches!(
            agree(&a, &b),
            Err(SshError::NoCommon {
                what: "method of key exchange",
                ..
            })
        ),
        "markers are no methods"
    );
}

#[test]
fn guesses() {
    let guess = |change: fn(&mut AlgorithmPreferences)| {
        let mut out = offer(change, &[]);
        let at = out.len() - 5;
        out[at] = 1;
        out
    };
    let ours = offer(|_| (), &[STRICT_SERVER]);
    let ours = KexInit::parse(&ours).unwrap();
    let wrong = |theirs: &[u8]| guess_is_wrong(&ours, &KexInit::parse(theirs).unwrap());
    assert!(!wrong(&guess(|_| ())));
    assert!(!wrong(&offer(|p| p.kex = vec![Kex::Group14], &[])));
    assert!(wrong(&guess(|p| p.kex = vec![Kex::Group14])));
    assert!(wrong(
        &guess(|p| p.host_key = vec![KeyAlgorithm::RsaSha256])
    ));
    // A marker in front is not a method.
    let mut marked = vec![msg::KEXINIT];
    marked.put_raw(&[0; 16]);
    let first = [EXT_INFO_CLIENT, Kex::ALL[0].name()];
    marked.put_names(first);
    marked.put_names([KeyAlgorithm::ALL[0].name()]);
    for _ in 0..8 {
        marked.put_names([]);
    }
    marked.put_bool(true);
    marked.put_u32(0);
    assert!(!wrong(&marked));
}

/// RFC 4253 section 7.2 computed by hand: long keys are concatenated hashes.
#[test]
fn long_keys_go_on() {
    let mut secret = Vec::new();
    secret.put_mpint(&[0x80; 32]);
    let agreed = KexSecret {
        transcript: vec![],
        secret: adit_crypto::Secret::new(secret.clone()),
    };
    let source = KeyDerivation {
        kex: Kex::Curve25519,
        agreed: &agreed,
        exchange_hash: b"H",
        session_id: b"S",
    };
    let with = DirectionAlgorithms {
        cipher: Cipher::ChaCha20Poly1305,
        mac: None,
        compression: Compression::None,
    };
    let keys = source.client_to_server(with);
    let sha = |parts: &[&[u8]]| adit_crypto::Sha2::Sha256.hash_parts(parts).expose().clone();
    let first = sha(&[&secret, b"H", b"C", b"S"]);
    let more = sha(&[&secret, b"H", &first]);
    assert_eq!(*keys.key.expose(), [first, more].concat());
    assert!(keys.iv.expose().is_empty() && keys.mac_key.expose().is_empty());
    let with = DirectionAlgorithms {
        cipher: Cipher::Aes128Ctr,
        mac: Some(Mac::HmacSha512),
        compression: Compression::None,
    };
    let keys = source.server_to_client(with);
    let lens = [&keys.key, &keys.iv, &keys.mac_key].map(|k| k.expose().len());
    assert_eq!(lens, [16, 16, 64]);
    assert_eq!(
        keys.iv.expose()[..],
        sha(&[&secret, b"H", b"B", b"S"])[..16]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_kexinit_panics(bytes: Vec<u8>, at in any::<prop::sample::Index>(), flip: u8) {
        let _ = KexInit::parse(&bytes);
        let mut near = offer(|_| (), &[STRICT_CLIENT]);
        let at = at.index(near.len());
        near[at] ^= flip;
        let ours = offer(|_| (), &[]);
        if let Ok(theirs) = KexInit::parse(&near) {
            let _ = negotiate(Role::Server, &KexInit::parse(&ours).unwrap(), &theirs);
        }
    }

    #[test]
    fn no_message_panics(bytes: Vec<u8>, number in 30u8..35, which in 0usize..12) {
        let payload = [&[number][..], &bytes].concat();
        let kex = Kex::ALL[which];
        if kex != Kex::Group18 {
            let _ = ServerKex::new(kex).handle_input(&payload, &mut FixedEntropy::default(), &mut Vec::new());
        }
        let mut gex = ClientKex::start(Kex::GroupExchange, &mut TestRng(1), &mut Vec::new()).unwrap();
        let _ = gex.handle_input(&payload, &mut TestRng(1), &mut Vec::new());
    }
}
