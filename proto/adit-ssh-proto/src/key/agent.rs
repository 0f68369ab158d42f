//! The agent protocol, client side (draft-ietf-sshm-ssh-agent, OpenSSH's `PROTOCOL.agent`).
//!
//! Requests are appended as whole frames; [`split_frame`] splits answers from received data, and
//! [`AgentAnswer`] parses them. A forwarded agent is a pipe to the local one: its messages are not
//! inspected.

use adit_wire::usize_from;

use super::any_key::AnyKey;
use crate::algorithm::KeyAlgorithm;
use crate::error::SshError;
use crate::wire::{MessageReader, SshBufMut};

/// Maximum length of a frame without its length field, in bytes.
pub const MAX_FRAME: usize = 262_144;
/// Maximum number of identities used from an agent; the rest is ignored.
pub const MAX_IDENTITIES: usize = 1024;

const FAILURE: u8 = 5;
const SUCCESS: u8 = 6;
const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
const EXTENSION: u8 = 27;
const EXTENSION_FAILURE: u8 = 28;

const RSA_SHA2_256: u32 = 2;
const RSA_SHA2_512: u32 = 4;

/// Appends a request for the identities.
pub fn put_request_identities(out: &mut Vec<u8>) {
    out.put_nested(|out| out.put_u8(REQUEST_IDENTITIES));
}

/// Appends a request for a signature of `data` by the key of `blob`.
pub fn put_sign_request(out: &mut Vec<u8>, blob: &[u8], algorithm: KeyAlgorithm, data: &[u8]) {
    let flags = match algorithm.without_certificate() {
        KeyAlgorithm::RsaSha256 => RSA_SHA2_256,
        KeyAlgorithm::RsaSha512 => RSA_SHA2_512,
        _ => 0,
    };
    out.put_nested(|out| {
        out.put_u8(SIGN_REQUEST);
        out.put_string(blob);
        out.put_string(data);
        out.put_u32(flags);
    });
}

/// Appends `session-bind@openssh.com`, which tells the agent the connection that it is used for:
/// the host key, the session identifier, the host's signature of it, and if the agent is forwarded
/// over it.
pub fn put_session_bind(
    out: &mut Vec<u8>,
    host_key: &[u8],
    session_id: &[u8],
    signature: &[u8],
    forwarding: bool,
) {
    out.put_nested(|out| {
        out.put_u8(EXTENSION);
        out.put_string(b"session-bind@openssh.com");
        out.put_string(host_key);
        out.put_string(session_id);
        out.put_string(signature);
        out.put_bool(forwarding);
    });
}

/// Returns the first frame of `bytes` without its length field, and the number of bytes to consume;
/// `None` if it is incomplete.
///
/// # Errors
/// [`SshError::TooMuch`] if the frame is longer than [`MAX_FRAME`].
pub fn split_frame(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, SshError> {
    let Some((len, rest)) = bytes.split_first_chunk() else {
        return Ok(None);
    };
    let len = usize_from(u32::from_be_bytes(*len));
    if len > MAX_FRAME {
        return Err(SshError::TooMuch {
            what: "length of an agent's frame",
            limit: MAX_FRAME,
        });
    }
    Ok(rest.get(..len).map(|body| (body, len + 4)))
}

/// A key of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentIdentity {
    /// Key or certificate.
    pub key: AnyKey,
    /// Comment, with any characters.
    pub comment: String,
}

/// An answer of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentAnswer {
    /// The agent refused or failed, or does not support [`put_session_bind`].
    Failure,
    /// The request succeeded.
    Success,
    /// Keys of the agent, except for those of unknown types.
    Identities(Vec<AgentIdentity>),
    /// Signature with its algorithm name; compare it with the requested algorithm.
    Signature(Vec<u8>),
}

impl AgentAnswer {
    /// Parses a frame without its length field.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if it is not valid; [`SshError::Unexpected`] if it is another
    /// message.
    pub fn parse(body: &[u8]) -> Result<Self, SshError> {
        let mut r = MessageReader::new(body, "agent's answer");
        match r.read_u8()? {
            FAILURE | EXTENSION_FAILURE => Ok(Self::Failure),
            SUCCESS => Ok(Self::Success),
            IDENTITIES_ANSWER => {
                let mut identities = Vec::new();
                for _ in 0..r.read_u32()? {
                    let (blob, comment) = (r.read_string()?, r.read_string()?);
                    if identities.len() >= MAX_IDENTITIES {
                        return Ok(Self::Identities(identities));
                    }
                    if let Ok(key) = AnyKey::parse(blob) {
                        let comment = String::from_utf8_lossy(comment).into_owned();
                        identities.push(AgentIdentity { key, comment });
                    }
                }
                r.expect_end()?;
                Ok(Self::Identities(identities))
            }
            SIGN_RESPONSE => {
                let signature = r.read_string()?.to_vec();
                r.expect_end()?;
                Ok(Self::Signature(signature))
            }
            other => Err(SshError::Unexpected(other)),
        }
    }
}

/// True if an agent's `signature` is the requested one. An agent without support for SHA-2 signs
/// with SHA-1 instead, and a defective one may sign something else: both are detected before the
/// server rejects them.
#[must_use]
pub fn is_requested_signature(
    key: &AnyKey,
    algorithm: KeyAlgorithm,
    data: &[u8],
    signature: &[u8],
) -> bool {
    key.key()
        .verify_with(1024, algorithm, data, signature)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{KeyType, PrivateKey, PublicKey};
    use adit_wire::FixedEntropy;

    fn key() -> PrivateKey {
        PrivateKey::generate(KeyType::Ed25519, &mut FixedEntropy::new([1; 32])).unwrap()
    }

    #[test]
    fn requests_are_frames() {
        let mut out = Vec::new();
        put_request_identities(&mut out);
        assert_eq!(out, [0, 0, 0, 1, 11]);
        put_sign_request(&mut out, b"blob", KeyAlgorithm::RsaSha512Cert, b"data");
        put_session_bind(&mut out, b"host", b"id", b"sig", true);
        let (first, used) = split_frame(&out).unwrap().unwrap();
        assert_eq!((first, used), (&[11][..], 5));
        let (second, more) = split_frame(&out[used..]).unwrap().unwrap();
        assert_eq!(second, b"\x0d\0\0\0\x04blob\0\0\0\x04data\0\0\0\x04");
        let (third, last) = split_frame(&out[used + more..]).unwrap().unwrap();
        let name = b"\x1b\0\0\0\x18session-bind@openssh.com";
        assert!(third.starts_with(name) && third.ends_with(b"\0\0\0\x03sig\x01"));
        assert_eq!(used + more + last, out.len());
        for cut in 0..5 {
            assert_eq!(split_frame(&out[..cut]), Ok(None));
        }
    }

    #[test]
    fn hostile_frames() {
        assert!(split_frame(&[0, 4, 0, 1]).is_err());
        assert_eq!(split_frame(&[0, 4, 0, 0]), Ok(None));
        // A count without entries costs nothing.
        assert!(AgentAnswer::parse(&[12, 0xff, 0xff, 0xff, 0xff]).is_err());
        for body in [&[][..], &[99], &[14, 0, 0, 0, 9], &[14, 0, 0, 0, 0, 1]] {
            assert!(AgentAnswer::parse(body).is_err(), "{body:?}");
        }
    }

    #[test]
    fn identities() {
        let key = key();
        let mut body = vec![12];
        body.put_u32(2);
        body.put_string(b"\0\0\0\x07ssh-dss");
        body.put_string(b"of old");
        body.put_string(&key.public_key().to_blob());
        body.put_string(b"mine");
        let AgentAnswer::Identities(list) = AgentAnswer::parse(&body).unwrap() else {
            panic!("identities");
        };
        assert_eq!(list.len(), 1, "the unknown type is left out");
        assert_eq!(
            (list[0].key.key(), &*list[0].comment),
            (key.public_key(), "mine")
        );
        let mut flood = vec![12];
        flood.put_u32(100_000);
        for _ in 0..=MAX_IDENTITIES {
            flood.put_string(&key.public_key().to_blob());
            flood.put_string(b"");
        }
        let AgentAnswer::Identities(list) = AgentAnswer::parse(&flood).unwrap() else {
            panic!("identities");
        };
        assert_eq!(list.len(), MAX_IDENTITIES);
    }

    #[test]
    fn signatures_are_looked_at() {
        let key = key();
        let any = AnyKey::Plain(PublicKey::parse(&key.public_key().to_blob()).unwrap());
        let signature = key.sign(KeyAlgorithm::Ed25519, b"data").unwrap();
        let mut body = vec![14];
        body.put_string(&signature);
        assert_eq!(
            AgentAnswer::parse(&body),
            Ok(AgentAnswer::Signature(signature.clone()))
        );
        let of =
            |data: &[u8], s: &[u8]| is_requested_signature(&any, KeyAlgorithm::Ed25519, data, s);
        assert!(of(b"data", &signature) && !of(b"date", &signature) && !of(b"data", b""));
    }
}
