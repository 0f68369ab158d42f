//! Every method, host key, cipher, MAC and compression, from the first line to payloads.

use std::sync::Arc;

use super::super::{StrictKex, Transport, TransportConfig};
use super::{End, Link, data, host_key, settings};
use crate::algorithm::{Cipher, Compression, Kex, KeyAlgorithm, Mac};
use crate::kex::tests::TestRng;
use crate::key::{Certificate, CertifiedKey, KeySet, PrivateKey, Signer};

macro_rules! vector {
    ($name:literal) => {
        include_str!(concat!("../../../vectors/ssh/keys/", $name))
    };
}

/// Returns a key of each type, with its certificate.
fn every_key() -> Arc<dyn Signer> {
    let files = [
        (vector!("ed25519"), vector!("user-cert.pub")),
        (vector!("ecdsa256"), vector!("user_p256-cert.pub")),
        (vector!("ecdsa384"), vector!("user_p384-cert.pub")),
        (vector!("ecdsa521"), vector!("user_p521-cert.pub")),
        (vector!("rsa2048"), vector!("user_rsa-cert.pub")),
    ];
    let keys = files.map(|(key, certificate)| {
        let key = PrivateKey::from_text(key, None).unwrap();
        let (certificate, _) = Certificate::from_line(certificate).unwrap();
        CertifiedKey::new(key, Some(certificate)).unwrap()
    });
    Arc::new(KeySet::new(keys.into()))
}

fn only(kex: Kex, host_key: KeyAlgorithm, cipher: Cipher, mac: Mac) -> TransportConfig {
    let mut config = settings();
    config.preferred.kex = vec![kex];
    config.preferred.host_key = vec![host_key];
    config.preferred.cipher = vec![cipher];
    config.preferred.mac = vec![mac];
    config
}

/// Connects and transfers data in both directions; the server offers everything, the client one of
/// each.
fn run(client: TransportConfig, signer: &Arc<dyn Signer>) -> Link {
    let mut server = settings();
    server.preferred.kex = Kex::ALL.to_vec();
    server.preferred.mac = Mac::ALL.to_vec();
    server.preferred.host_key = KeyAlgorithm::ALL.to_vec();
    server.preferred.compression = Compression::ALL.to_vec();
    let wanted = client.preferred.clone();
    let server = Transport::new_server(Arc::new(server), Arc::clone(signer), Box::new(TestRng(5)));
    let mut link = Link {
        client: End::client(client),
        server: End::new(server.unwrap()),
    };
    let what = format!("{wanted:?}");
    // No part is as long as a packet.
    link.settle_in(11).expect(&what);
    for number in 0..3 {
        link.client.transport.send(&data(number, 500)).unwrap();
        link.server.transport.send(&data(number + 9, 77)).unwrap();
        link.settle_in(97).expect(&what);
    }
    let expected = |from: usize, len| (from..from + 3).map(|n| data(n, len)).collect::<Vec<_>>();
    assert!(link.server.payloads == expected(0, 500), "{what}");
    assert!(link.client.payloads == expected(9, 77), "{what}");
    let (one, other) = (&link.client.transport, &link.server.transport);
    assert_eq!(one.session_id(), other.session_id());
    assert_eq!(one.host_key(), other.host_key());
    assert_eq!(one.negotiated(), other.negotiated());
    let chosen = one.negotiated().unwrap();
    assert_eq!([chosen.kex], *wanted.kex);
    assert_eq!([chosen.host_key], *wanted.host_key);
    for direction in [chosen.client_to_server, chosen.server_to_client] {
        assert_eq!([direction.cipher], *wanted.cipher);
        let mac = (!direction.cipher.is_aead()).then(|| wanted.mac[0]);
        assert_eq!(direction.mac, mac);
        assert_eq!([direction.compression], wanted.compression[..1]);
    }
    assert!(one.is_strict() && other.is_strict());
    link
}

/// Each method with every cipher and MAC, and the host keys in turn. Methods that compute with
/// thousands of bits are slow without optimization, so they run with a few.
#[test]
fn every_method_with_every_suite() {
    let signer = every_key();
    let able = signer.algorithms();
    let suites = suites();
    let mut turn = 0;
    for kex in Kex::ALL {
        let most = match kex {
            Kex::Group16 | Kex::Group18 | Kex::GroupExchange => 3,
            Kex::Group14 => 12,
            _ => usize::MAX,
        };
        for (cipher, mac) in suites
            .iter()
            .copied()
            .cycle()
            .skip(turn)
            .take(most.min(suites.len()))
        {
            let host_key = able[turn % able.len()];
            run(only(*kex, host_key, cipher, mac), &signer);
            turn += 1;
        }
    }
}

/// Every cipher with every MAC that it can be combined with.
fn suites() -> Vec<(Cipher, Mac)> {
    let mut out = Vec::new();
    for cipher in Cipher::ALL {
        let most = if cipher.is_aead() { 1 } else { Mac::ALL.len() };
        out.extend(Mac::ALL.iter().take(most).map(|mac| (*cipher, *mac)));
    }
    out
}

#[test]
fn every_host_key_under_every_cheap_method() {
    let signer = every_key();
    let able = signer.algorithms();
    let kinds = KeyAlgorithm::ALL.iter();
    let real = kinds.filter(|algorithm| !algorithm.name().starts_with("sk-"));
    assert_eq!(able, real.copied().collect::<Vec<_>>());
    for host_key in able {
        for kex in [Kex::MlKem768X25519, Kex::Curve25519, Kex::EcdhP256] {
            let config = only(kex, host_key, Cipher::Aes128Gcm, Mac::Umac64Etm);
            let link = run(config, &signer);
            let blob = link.client.transport.host_key().unwrap();
            assert_eq!(blob, signer.public_blob(host_key));
        }
    }
}

#[test]
fn every_cipher_with_every_mac_and_compression() {
    let signer = host_key();
    for cipher in Cipher::ALL {
        for mac in Mac::ALL {
            for compression in Compression::ALL {
                let algorithm = KeyAlgorithm::Ed25519;
                let mut config = only(Kex::Curve25519, algorithm, *cipher, *mac);
                config.preferred.compression = vec![*compression];
                run(config, &signer);
            }
        }
    }
}

/// Either side requires strict key exchange, or does not support it.
#[test]
fn strict_kex_takes_two() {
    use StrictKex::{Always, Never, WhenExposed};
    for (client, server, strict) in [
        (WhenExposed, WhenExposed, Some(true)),
        (Always, WhenExposed, Some(true)),
        (Never, Never, Some(false)),
        (Never, WhenExposed, Some(false)),
        (WhenExposed, Never, Some(false)),
        (Never, Always, None),
        (Always, Never, None),
    ] {
        let [mut ours, mut theirs] = [settings(), settings()];
        (ours.strict, theirs.strict) = (client, server);
        let mut link = Link::new(ours, theirs);
        let settled = link.settle();
        let found = settled.ok().map(|()| link.client.transport.is_strict());
        assert_eq!(found, strict, "{client:?} {server:?}");
        if strict.is_some() {
            assert_eq!(link.server.transport.is_strict(), found.unwrap());
        }
    }
}
