//! Proof of host keys other than the one of the key exchange (OpenSSH's `PROTOCOL`, 2.5): with
//! `hostkeys-prove-00@openssh.com`, a client lists some of them and receives a signature by each.

use super::public_key::PublicKey;
use super::signer::Signer;
use crate::algorithm::KeyAlgorithm;
use crate::error::SshError;
use crate::wire::{MessageReader, SshBufMut};

const PURPOSE: &[u8] = b"hostkeys-prove-00@openssh.com";

/// Returns the data that a host signs for the key of `blob` in this session.
fn proof_data(session_id: &[u8], blob: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(PURPOSE.len() + session_id.len() + blob.len() + 12);
    out.put_string(PURPOSE);
    out.put_string(session_id);
    out.put_string(blob);
    out
}

/// Returns the data of the answer: a signature by each key of `blobs`, in order. RSA keys sign with
/// `agreed`, the algorithm of the key exchange, if they support it.
///
/// # Errors
/// [`SshError::Policy`] if the host does not have a key, or a key is listed twice.
pub fn prove_host_keys(
    signer: &dyn Signer,
    agreed: KeyAlgorithm,
    session_id: &[u8],
    blobs: &[Vec<u8>],
) -> Result<Vec<u8>, SshError> {
    let mut own = signer.plain_blobs();
    let mut out = Vec::new();
    for blob in blobs {
        let at = own.iter().position(|one| one == blob);
        let at = at.ok_or(SshError::Policy(
            "a proof was requested for a key that the host does not have",
        ))?;
        own.swap_remove(at);
        let able = PublicKey::parse(blob)?.algorithms();
        let usual = able.first().copied();
        let usual = usual.ok_or(SshError::Crypto("the key has no algorithms"))?;
        let algorithm = if able.contains(&agreed.without_certificate()) {
            agreed.without_certificate()
        } else {
            usual
        };
        let data = proof_data(session_id, blob);
        out.put_string(&signer.sign_with_key(blob, algorithm, &data)?);
    }
    Ok(out)
}

/// Verifies the data of an answer: the host has all of `keys`. `rsa_min_bits` is in bits.
///
/// # Errors
/// [`SshError::Malformed`] if the number of signatures is wrong, [`SshError::Kex`] if one is not by
/// its key and over this session.
pub fn verify_host_key_proof(
    rsa_min_bits: usize,
    session_id: &[u8],
    keys: &[PublicKey],
    data: &[u8],
) -> Result<(), SshError> {
    let mut r = MessageReader::new(data, "proof of host keys");
    for key in keys {
        let signature = r.read_string()?;
        let name = MessageReader::new(signature, "signature").read_string()?;
        let named = |algorithm: &&KeyAlgorithm| algorithm.name().as_bytes() == name;
        let algorithm = key.algorithms().iter().find(named).copied();
        let algorithm = algorithm.ok_or(SshError::Kex(
            "a proof of a host key uses an unknown algorithm",
        ))?;
        let data = proof_data(session_id, &key.to_blob());
        key.verify_with(rsa_min_bits, algorithm, &data, signature)
            .map_err(|_| SshError::Kex("the proof of an announced host key is wrong"))?;
    }
    r.expect_end()
}

#[cfg(test)]
mod tests {
    use adit_wire::FixedEntropy;

    use super::*;
    use crate::key::{KeySet, KeyType, PrivateKey};

    fn ed25519(seed: u8) -> PrivateKey {
        let mut rng = FixedEntropy::new([seed; 32]);
        PrivateKey::generate(KeyType::Ed25519, &mut rng).unwrap()
    }

    /// Two keys of one type, and RSA.
    fn host() -> KeySet {
        let rsa = include_str!("../../vectors/ssh/keys/rsa2048");
        let rsa = PrivateKey::from_text(rsa, None).unwrap();
        KeySet::from(vec![ed25519(1), ed25519(2), rsa])
    }

    fn keys(host: &KeySet) -> Vec<PublicKey> {
        let blobs = host.plain_blobs();
        blobs.iter().map(|b| PublicKey::parse(b).unwrap()).collect()
    }

    #[test]
    fn all_keys_of_a_host_are_proved() {
        let host = host();
        let (blobs, keys) = (host.plain_blobs(), keys(&host));
        assert_eq!(blobs.len(), 3);
        for agreed in [KeyAlgorithm::Ed25519, KeyAlgorithm::RsaSha256] {
            let proof = prove_host_keys(&host, agreed, b"id", &blobs).unwrap();
            assert_eq!(verify_host_key_proof(2048, b"id", &keys, &proof), Ok(()));
            let sha256 = proof.windows(12).any(|name| name == b"rsa-sha2-256");
            assert_eq!(sha256, agreed == KeyAlgorithm::RsaSha256);
            assert!(
                verify_host_key_proof(2048, b"di", &keys, &proof).is_err(),
                "another session"
            );
            assert!(
                verify_host_key_proof(4096, b"id", &keys, &proof).is_err(),
                "a short key"
            );
            assert!(
                verify_host_key_proof(2048, b"id", &keys[..2], &proof).is_err(),
                "one too many"
            );
            let mut other = keys.clone();
            other.swap(0, 1);
            assert!(
                verify_host_key_proof(2048, b"id", &other, &proof).is_err(),
                "in another order"
            );
            for at in 0..proof.len() {
                assert!(
                    verify_host_key_proof(2048, b"id", &keys, &proof[..at]).is_err(),
                    "{at}"
                );
            }
        }
        assert_eq!(
            prove_host_keys(&host, KeyAlgorithm::Ed25519, b"id", &[]),
            Ok(vec![])
        );
    }

    #[test]
    fn a_host_signs_for_its_own_keys_once() {
        let host = host();
        let own = host.plain_blobs().remove(0);
        let strange = ed25519(3).public_key().to_blob();
        for asked in [vec![strange], vec![own.clone(), own], vec![vec![]]] {
            let proof = prove_host_keys(&host, KeyAlgorithm::Ed25519, b"id", &asked);
            assert!(matches!(proof, Err(SshError::Policy(_))), "{proof:?}");
        }
    }
}
