//! A client's handling of host keys.

use std::sync::Arc;

use super::super::{Event, Transport};
use super::{End, Link, data, host_key, pair_in, settings};
use crate::algorithm::KeyAlgorithm;
use crate::error::SshError;
use crate::kex::tests::TestRng;
use crate::key::{KeySet, KeyType, PrivateKey, Signer};

fn another_key() -> Arc<dyn Signer> {
    let key = PrivateKey::generate(KeyType::Ed25519, &mut TestRng(99)).unwrap();
    Arc::new(KeySet::from(vec![key]))
}

fn rsa_key() -> Arc<dyn Signer> {
    let key = include_str!("../../../vectors/ssh/keys/rsa2048");
    Arc::new(PrivateKey::from_text(key, None).unwrap())
}

/// Runs until the client asks about the host key.
fn asking() -> Link {
    let mut link = Link::new(settings(), settings());
    link.client.trusting = false;
    link.settle().unwrap();
    link
}

#[test]
fn wrong_host_key_must_fail() {
    let mut link = asking();
    let [Event::HostKey { algorithm, blob }] = &link.client.events[..] else {
        panic!("{:?}", link.client.events);
    };
    assert_eq!(*algorithm, KeyAlgorithm::Ed25519);
    assert_eq!(*blob, host_key().public_blob(KeyAlgorithm::Ed25519));
    assert_eq!(link.client.transport.session_id(), None);
    link.client.transport.reject_host_key();
    assert!(!link.client.transport.is_writable());
    assert!(link.client.transport.send(&data(1, 1)).is_err());
    assert!(link.client.transport.accept_host_key().is_err());
    let up = link.client.said();
    let told = link.server.hear(&up);
    assert!(
        matches!(&told, Err(SshError::Disconnected { reason: 9, .. })),
        "{told:?}"
    );
}

/// Nothing continues without an answer, for any time and any input.
#[test]
fn nothing_is_sent_to_an_unknown_host() {
    let mut link = asking();
    link.client.transport.send(b"\x32a password").unwrap();
    assert!(link.client.transport.begin_payload().is_none());
    let year = adit_wire::Time(365 * 86400 * 1_000_000);
    assert_eq!(link.client.transport.poll_timeout(year), None);
    link.client.transport.handle_timeout(year).unwrap();
    link.settle().unwrap();
    assert_eq!((link.client.keys(), link.client.said()), (0, vec![]));
    link.client.transport.accept_host_key().unwrap();
    link.client.transport.accept_host_key().unwrap();
    link.settle().unwrap();
    assert_eq!(link.server.payloads, [b"\x32a password"]);
}

/// A signer that presents another host's key.
#[test]
fn a_borrowed_host_key_proves_nothing() {
    struct Liar;
    impl Signer for Liar {
        fn algorithms(&self) -> Vec<KeyAlgorithm> {
            vec![KeyAlgorithm::Ed25519]
        }
        fn public_blob(&self, algorithm: KeyAlgorithm) -> Vec<u8> {
            host_key().public_blob(algorithm)
        }
        fn sign_data(&self, algorithm: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, SshError> {
            another_key().sign_data(algorithm, data)
        }
    }
    let rng = Box::new(TestRng(2));
    let liar = Transport::new_server(Arc::new(settings()), Arc::new(Liar), rng).unwrap();
    let mut link = Link {
        client: End::client(settings()),
        server: End::new(liar),
    };
    assert!(matches!(link.settle(), Err(SshError::Kex(_))));
    assert!(link.client.events.is_empty(), "not even asked about");
    assert!(link.client.transport.session_id().is_none());
}

/// A host key of the right type that signs with an algorithm that was not negotiated, or a key of
/// another type.
#[test]
fn the_algorithm_must_be_the_one_agreed_on() {
    struct Other(KeyAlgorithm);
    impl Signer for Other {
        fn algorithms(&self) -> Vec<KeyAlgorithm> {
            vec![KeyAlgorithm::RsaSha512, KeyAlgorithm::Ed25519]
        }
        fn public_blob(&self, _: KeyAlgorithm) -> Vec<u8> {
            self.key().public_blob(self.0)
        }
        fn sign_data(&self, _: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, SshError> {
            self.key().sign_data(self.0, data)
        }
    }
    impl Other {
        fn key(&self) -> Arc<dyn Signer> {
            if self.0 == KeyAlgorithm::Ed25519 {
                return host_key();
            }
            rsa_key()
        }
    }
    for (signed_with, agreed, fine) in [
        (KeyAlgorithm::RsaSha512, KeyAlgorithm::RsaSha512, true),
        (KeyAlgorithm::RsaSha256, KeyAlgorithm::RsaSha512, false),
        (KeyAlgorithm::Ed25519, KeyAlgorithm::RsaSha512, false),
        (KeyAlgorithm::RsaSha512, KeyAlgorithm::Ed25519, false),
    ] {
        let mut config = settings();
        config.preferred.host_key = vec![agreed];
        let rng = Box::new(TestRng(2));
        let signer = Arc::new(Other(signed_with));
        let server = Transport::new_server(Arc::new(config.clone()), signer, rng).unwrap();
        let mut link = Link {
            client: End::client(config),
            server: End::new(server),
        };
        assert_eq!(link.settle().is_ok(), fine, "{signed_with} for {agreed}");
        assert_eq!(link.client.events.is_empty(), !fine);
    }
}

#[test]
fn short_rsa_keys_are_refused() {
    for (least, fine) in [(2048, true), (2049, false), (4096, false)] {
        let mut config = settings();
        config.preferred.host_key = vec![KeyAlgorithm::RsaSha256];
        config.min_rsa_bits = least;
        let key = rsa_key();
        let rng = Box::new(TestRng(2));
        let server = Transport::new_server(Arc::new(config.clone()), key, rng).unwrap();
        let mut link = Link {
            client: End::client(config),
            server: End::new(server),
        };
        assert_eq!(link.settle().is_ok(), fine, "{least}");
    }
}

#[test]
fn the_host_key_stays_while_connected() {
    let mut link = pair_in(settings(), settings());
    link.server.transport.signer = Some(another_key());
    link.server.transport.rekey().unwrap();
    let broken = link.settle();
    let expected = SshError::Kex("the host key changed while connected");
    assert_eq!(broken, Err(expected));
}
